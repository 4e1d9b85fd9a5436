"""Attempts at earlier micro-batches that come late, and two drivers on one state: the stage's own functions, on real dataflows."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cqels_py.algebra.nodes import Output
from cqels_py.errors import RunError
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import prepare
from tests.checkpoints.test_store import BATCHES, ELEMENTS, QUERY, tasks
from tests.oracle.naive import Static
from tests.runners.spark import simulation

Rows = list[dict[str, Any]]


@pytest.fixture
def place() -> Iterator[Path]:
    with simulation.scratch() as folder:
        yield folder


def prepared(place: Path, application: str = "app-1") -> Job:
    return prepare(QUERY, state=place, partitions=1, changelog=True, application=application)[0]


def attempt(job: Job, batch: int, execution: int, *, rows: int | None = None) -> Rows:
    """The results of an attempt in a worker that has no states in its memory. `rows`: of the micro-batch's input, None: all."""
    stage._HOT.clear()
    routed = [
        each
        for number, task in enumerate(tasks(batch))
        for each in stage.route(job, [task if rows is None else task.slice(0, rows)], batch, number)
    ]
    found = stage.evaluate(job, routed, batch, 0, batch == BATCHES - 1, 0, None, execution)
    return [row for each in found for row in each.to_pylist()]


def right(rows: Rows) -> bool:
    return simulation.counted(rows) == simulation.expected(QUERY, ELEMENTS, Static(), Output.CHANGELOG)


@pytest.mark.parametrize("other_rows", [False, True], ids=["same rows", "other rows"])
@pytest.mark.parametrize("execution", [2, 7], ids=["the same stage", "a stage planned later"])
def test_a_late_attempt_at_an_earlier_micro_batch_changes_nothing(
    place: Path, execution: int, other_rows: bool
) -> None:
    """Micro-batches 0 to 3, then 2 once more, then the others; the late attempt may fail, as Spark does not wait for it."""
    job = prepared(place)
    rows: Rows = []
    for batch in range(4):
        rows += attempt(job, batch, batch)
    try:
        attempt(job, 2, execution, rows=1 if other_rows else None)
    except RunError as error:
        assert "too late" in str(error)
    for batch in range(4, BATCHES):
        rows += attempt(job, batch, 10 + batch)
    assert right(rows)


def test_two_drivers_on_one_state_go_on_from_their_own_micro_batches(place: Path) -> None:
    """Spark's log accepts one of them for each micro-batch. Until the other one has noticed, neither disturbs the other."""
    first = prepared(place, "app-1")
    rows: Rows = []
    for batch in range(2):
        rows += attempt(first, batch, batch)
    second = prepared(place, "app-2")
    assert second.run > first.run
    mine: Rows = list(rows)
    for batch in range(2, BATCHES):
        # The other driver's rows are different ones, so that it would be seen if a state had them.
        attempt(second, batch, batch, rows=1)
        mine += attempt(first, batch, batch)
    assert right(mine)


def test_a_micro_batch_that_is_repeated_by_a_second_driver_goes_on_from_the_first_ones(place: Path) -> None:
    first = prepared(place, "app-1")
    rows: Rows = []
    for batch in range(4):
        rows += attempt(first, batch, batch)
    attempt(first, 4, 4)
    second = prepared(place, "app-2")
    for batch in range(4, BATCHES):
        rows += attempt(second, batch, batch)
    attempt(first, 4, 5)
    assert right(rows)
