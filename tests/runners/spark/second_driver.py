"""A driver of its own on the folders of a `Setting`: `python second_driver.py FOLDER`.

In the sink of its first micro-batch it writes FOLDER/waiting, and waits until FOLDER/go is there. In the end it prints Spark's error
with which its query has ended, or nothing if everything was read.
"""

from __future__ import annotations

import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.runners.spark.session import get_session, use_java
from cqels_py.spark import continuous
from tests.runners.spark.conftest import MASTER, SETTINGS
from tests.runners.spark.test_streaming import QUERY, Setting

if TYPE_CHECKING:
    from pyspark.sql import DataFrame


def main(folder: Path) -> None:
    from pyspark.errors import StreamingQueryException

    use_java()
    session = get_session(MASTER, SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    setting = Setting(session, folder)

    def keep(frame: DataFrame, batch: int) -> None:
        (folder / "waiting").touch()
        while not (folder / "go").exists():
            time.sleep(0.05)
        setting.keep(frame, batch)

    try:
        setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True), keep)
    except StreamingQueryException as error:
        print(error)
    session.stop()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
