"""Two drivers on one checkpoint: Spark's log, with its default file manager, accepts each micro-batch from one of them.

The other one is a process of its own; within one, Spark stops a query when it is started once more.
"""

from __future__ import annotations

import os
import re
import subprocess
import sys
import time
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cqels_py.spark import continuous, statistics
from tests.runners.spark.conftest import ROOT
from tests.runners.spark.test_simulated import drawn
from tests.runners.spark.test_streaming import ELEMENTS, PIECE, QUERY, Setting, local
from tests.support.amount import long

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")

MORE = drawn(11, len(ELEMENTS) + 2 * PIECE)[len(ELEMENTS) :]
"""Elements that follow."""
MEETING = 3
"""The micro-batch at which both work."""
REFUSED = rf"(?s)CONCURRENT_STREAM_LOG_UPDATE.*Multiple streaming jobs detected for {MEETING}"
PATIENCE = 300


@pytest.fixture
def setting(spark: SparkSession, tmp_path: Path) -> Setting:
    found = Setting(spark, tmp_path)
    found.arrive(ELEMENTS)
    return found


def other_driver(setting: Setting) -> subprocess.Popen[str]:
    path = os.pathsep.join([str(ROOT), *filter(None, [os.environ.get("PYTHONPATH")])])
    environment = {**os.environ, "PYTHONPATH": path, "SPARK_LOCAL_IP": "127.0.0.1"}
    command = [sys.executable, "-m", "tests.runners.spark.second_driver", str(setting.folder)]
    return subprocess.Popen(command, cwd=ROOT, env=environment, stdout=subprocess.PIPE, text=True)


def run(setting: Setting, meet: list[subprocess.Popen[str]], *, until_end: bool) -> None:
    """Everything that is there; in the sink of a micro-batch another driver is started, which begins with the same one."""

    def keep(frame: DataFrame, batch: int) -> None:
        if batch == MEETING:
            other = other_driver(setting)
            meet.append(other)
            if until_end:
                other.wait(PATIENCE)
            else:
                wait_for(setting.folder / "waiting", other)
        setting.keep(frame, batch)

    setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True), keep)


def wait_for(path: Path, other: subprocess.Popen[str]) -> None:
    deadline = time.monotonic() + PATIENCE
    while not path.exists():
        assert other.poll() is None, "the other driver has ended"
        assert time.monotonic() < deadline, "the other driver does nothing"
        time.sleep(0.05)


def test_a_second_driver_is_refused_while_the_first_runs(setting: Setting) -> None:
    """Its tasks even come after the first driver's later micro-batches."""
    found: list[subprocess.Popen[str]] = []
    try:
        run(setting, found, until_end=False)
        assert setting.batches() == len(ELEMENTS) // PIECE
        (setting.folder / "go").touch()
        told = found[0].communicate(timeout=PATIENCE)[0]
    finally:
        for each in found:
            each.kill()
    assert re.search(REFUSED, told)
    check(setting)


@long
def test_a_stale_driver_is_refused_when_it_wakes(setting: Setting) -> None:
    """A second one has read everything meanwhile."""
    from pyspark.errors import StreamingQueryException

    (setting.folder / "go").touch()
    found: list[subprocess.Popen[str]] = []
    try:
        with pytest.raises(StreamingQueryException, match=REFUSED):
            run(setting, found, until_end=True)
    finally:
        for each in found:
            each.kill()
    assert found[0].communicate()[0] == "", "the second driver has read everything"
    assert setting.batches() == len(ELEMENTS) // PIECE
    check(setting)


def check(setting: Setting) -> None:
    """The results are those of one driver, and a later one goes on from them."""
    assert setting.results() == local(QUERY, ELEMENTS)
    setting.arrive(MORE, len(ELEMENTS))
    setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True))
    assert setting.results() == local(QUERY, [*ELEMENTS, *MORE])
    assert statistics(setting.state).elements == len(ELEMENTS) + len(MORE)
