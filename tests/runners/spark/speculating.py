"""A driver on a standalone cluster with speculation, one of whose attempts hangs: `python speculating.py MASTER FOLDER`.

Prints the numbers of the attempts that began at the part that hangs, and whether the results are those of a local run.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import cast

from cqels_py.runners.spark.pipeline import transform
from cqels_py.runners.spark.session import get_session
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import numbered, prepare
from tests.runners.spark.faults import Faulty
from tests.runners.spark.test_streaming import ELEMENTS, QUERY, Setting, local

SPECULATION = {
    "spark.speculation": "true",
    "spark.ui.enabled": "false",
    "spark.speculation.interval": "50ms",
    "spark.speculation.multiplier": "1.1",
    "spark.speculation.quantile": "0.4",
    "spark.speculation.minTaskRuntime": "50ms",
    "spark.speculation.efficiency.enabled": "false",
    "spark.cores.max": "2",
    "spark.executor.memory": "512m",
    "spark.driver.memory": "512m",
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.executor.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
}


def main(master: str, folder: Path) -> None:
    session = get_session(master, {**SPECULATION, "spark.executorEnv.PYTHONPATH": os.environ["PYTHONPATH"]})
    session.sparkContext.setLogLevel("ERROR")
    setting = Setting(session, folder)
    setting.arrive(ELEMENTS)
    faults = folder / "faults"
    faults.mkdir()
    (faults / "hang").touch()
    job, plan = prepare(QUERY, state=setting.state, partitions=2, changelog=True)
    setting.run(transform(cast("Job", Faulty(job, 3, faults)), numbered(setting.frames(), plan)))
    attempts = (folder / "attempts").read_text().splitlines()
    print(json.dumps({"attempts": attempts, "right": setting.results() == local(QUERY, ELEMENTS)}))


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]))
