"""One Spark session for all tests that need one."""

from __future__ import annotations

import os
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from tests.support.needed_spark import needed_spark

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

ROOT = Path(__file__).parents[3]
MASTER = "local[2,3]"
"""Two cores, and a task is tried three times."""
SETTINGS = {
    "spark.sql.shuffle.partitions": "2",
    "spark.driver.extraJavaOptions": "-XX:TieredStopAtLevel=1 -XX:+UseSerialGC",
    "spark.driver.memory": "1g",
    "spark.driver.host": "127.0.0.1",
}


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """Workers can import these tests."""
    needed_spark()
    from cqels_py.runners.spark.session import get_session

    os.environ["PYTHONPATH"] = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    session = get_session(MASTER, SETTINGS)
    session.sparkContext.setLogLevel("OFF")
    yield session
    session.stop()
