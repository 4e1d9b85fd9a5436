"""A driver that may be killed at any time: `python -m bench.suites.on_spark.driving MASTER FOLDER PARTITIONS`.

It reads FOLDER/in, a file in each micro-batch, and ends when all are read. Results are in FOLDER/out, a file for each micro-batch.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pyarrow.parquet as pq

from bench.suites.on_spark.readings import COLUMNS, STREAM
from cqels_py.spark import continuous, session

SMALL = "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC"
SETTINGS = {
    "spark.cores.max": "2",
    "spark.driver.memory": "512m",
    "spark.executor.memory": "512m",
    "spark.driver.extraJavaOptions": SMALL,
    "spark.executor.extraJavaOptions": SMALL,
    "spark.sql.shuffle.partitions": "2",
}


def start(master: str, folder: Path, partitions: int) -> subprocess.Popen[bytes]:
    """A driver, which leads a session of its own; FOLDER/driver.log has its output."""
    environment = {**os.environ, "SPARK_LOCAL_IP": "127.0.0.1", "PYSPARK_PYTHON": sys.executable}
    environment["PYTHONPATH"] = os.pathsep.join([str(Path.cwd()), *filter(None, [os.environ.get("PYTHONPATH")])])
    command = [sys.executable, "-m", "bench.suites.on_spark.driving", master, str(folder), str(partitions)]
    with (folder / "driver.log").open("a") as log:
        return subprocess.Popen(command, stdout=log, stderr=log, env=environment, start_new_session=True)


def main(master: str, folder: Path, partitions: int) -> None:
    """Start the query, or continue it."""
    spark = session(master, {**SETTINGS, "spark.executorEnv.PYTHONPATH": os.environ.get("PYTHONPATH", "")})
    spark.sparkContext.setLogLevel("WARN")
    frame = spark.readStream.schema(COLUMNS).option("maxFilesPerTrigger", 1).parquet(str(folder / "in"))
    query = (folder / "query.rq").read_text()
    answers = continuous({STREAM: frame}, query, state=folder / "state", partitions=partitions, changelog=True)
    out = folder / "out"
    out.mkdir(exist_ok=True)

    def keep(rows: Any, batch: int) -> None:
        aside = out / f"{batch}.aside"
        pq.write_table(rows.toArrow(), aside)
        aside.rename(out / f"{batch}.parquet")

    writer = answers.writeStream.option("checkpointLocation", str(folder / "checkpoint")).foreachBatch(keep)
    writer.trigger(availableNow=True).start().awaitTermination()
    spark.stop()


if __name__ == "__main__":
    main(sys.argv[1], Path(sys.argv[2]), int(sys.argv[3]))
