"""Sinks that do not read all results: the next micro-batch cannot go on from the parts that were never asked, and says so."""

from __future__ import annotations

import re
import shutil
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cqels_py.errors import RunError
from cqels_py.runners.spark import stage
from cqels_py.spark import continuous, prepare
from tests.runners.spark import simulation
from tests.runners.spark.test_streaming import ELEMENTS, QUERY, STREAMS, Setting, local

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

    from tests.runners.spark.test_streaming import Sink

SKIPPED = 2
REASON = r"no task has ended micro-batch (\d+) there, .*\. A sink has to evaluate all rows of each micro-batch\. "


def never_more_than_one(frame: DataFrame, batch: int) -> None:
    frame.take(1)


def once_only_one(frame: DataFrame, batch: int) -> None:
    frame.take(1) if batch == SKIPPED else frame.collect()


def once_nothing(frame: DataFrame, batch: int) -> None:
    if batch != SKIPPED:
        frame.collect()


@pytest.fixture
def setting(spark: SparkSession, tmp_path: Path) -> Setting:
    found = Setting(spark, tmp_path)
    found.arrive(ELEMENTS)
    return found


def run(setting: Setting, sink: Sink | None = None) -> None:
    setting.run(continuous(setting.frames(), QUERY, state=setting.state, changelog=True, partitions=3), sink)


def check_that_it_is_found(setting: Setting, sink: Sink) -> None:
    from pyspark.errors import StreamingQueryException

    given: list[int] = []

    def noted(frame: DataFrame, batch: int) -> None:
        given.append(batch)
        sink(frame, batch)

    with pytest.raises(StreamingQueryException) as caught:
        run(setting, noted)
    told = re.search(REASON, str(caught.value))
    assert told, caught.value
    assert int(told[1]) == given[-1] - 1
    assert given[-1] <= SKIPPED + 1


@pytest.mark.xdist_group("spark")
@pytest.mark.parametrize("sink", [never_more_than_one, once_only_one], ids=lambda sink: sink.__name__)
def test_the_next_micro_batch_ends_the_query(sink: Sink, setting: Setting) -> None:
    check_that_it_is_found(setting, sink)


@pytest.mark.xdist_group("spark")
def test_the_way_out(setting: Setting) -> None:
    """As the error says: without state and checkpoint the query begins again."""
    check_that_it_is_found(setting, once_nothing)
    shutil.rmtree(setting.state)
    shutil.rmtree(setting.folder / "checkpoint")
    run(setting)
    assert setting.results() == local(QUERY, ELEMENTS)


@pytest.mark.parametrize(
    ("asked", "who"),
    [
        ({0, 1, 2, 3, 4}, []),
        ({0, 2, 4}, [0, 1]),
        ({0, 1}, [0, 1]),
        ({0, 1, 2, 4}, [1]),
        ({0, 1, 2, 3}, [0]),
    ],
    ids=["all", "one task", "one part of each task", "not all of the last task", "not all of the first task"],
)
def test_a_task_looks_after_parts_that_were_not_asked(asked: set[int], who: list[int]) -> None:
    """Five parts in two tasks, the second of which has the parts 1 and 3."""
    with simulation.scratch() as state:
        job, _ = prepare(QUERY, state=state, partitions=5, changelog=True)
        rows = simulation.rows_of(ELEMENTS[:9], STREAMS, [f"g{number}" for number in range(9)])
        routed = list(stage.route(job, [rows], 0, 0))
        for part in asked:
            list(stage.evaluate(job, routed, 0, part, False))
        assert [task for task in range(2) if finds(job, task)] == who


def finds(job: stage.Job, task: int) -> bool:
    try:
        stage.check_ended(job, 0, 2, task, 0)
    except RunError as error:
        assert re.search(REASON, str(error))
        return True
    return False
