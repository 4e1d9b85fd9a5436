"""The benchmark of Spark: everything of it runs, and copies of triples are as many as the planner's formula says."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
import pytest

from bench.suites import spark as suite
from bench.suites.on_spark import replication, taking
from bench.suites.on_spark.readings import Course
from cqels_py.runners.spark.stage import Job
from tests.runners.spark.simulation import Cluster

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

SMALL = suite.Scale(Course(200, 0, {50: 2}), 9, (2,), 30, 0, 2, 600)


@pytest.mark.parametrize("parts", [2, 4, 8, 9])
@pytest.mark.parametrize("shape", sorted(replication.SHAPES))
def test_partitions_get_as_many_copies_as_the_formula_says(shape: str, parts: int) -> None:
    def run(job: Job, rows: pa.Table) -> None:
        Cluster(job).run(0, rows.combine_chunks().to_batches(), final=True)

    found = replication.counted(shape, parts, 90, run)
    assert found.counted == pytest.approx(found.replication)
    assert found.load <= (found.busiest or 0) < 1
    # A star's triples are in one partition each, others in several.
    assert (found.replication > 1) == (shape != "star")


@pytest.mark.xdist_group("spark")
def test_everything_is_measured(spark: SparkSession, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    is_open = False
    seconds = taking._seconds

    @contextmanager
    def sessions(cores: int) -> Iterator[SparkSession]:
        """That of all tests, which stays, although nothing may run in it afterwards."""
        nonlocal is_open
        is_open = True
        yield spark
        is_open = False

    def while_open(session: SparkSession, answers: DataFrame, scratch: Path) -> list[float]:
        assert is_open
        return seconds(session, answers, scratch)

    monkeypatch.setattr(taking, "_seconds", while_open)
    figures = suite.measure(SMALL, 1, lambda what: None, sessions)
    plain = figures.as_plain()
    assert [len(case["seconds"]) for case in plain["cases"]] == [2] * 5
    assert figures.ratio(figures.case(50, "local runner")) == 1
    assert [each["counted"] for each in plain["replication"]["counted"]] == pytest.approx([4 / 3, 4 / 3, 1])
    assert [table.row_count for table in figures.tables()] == [6, 2, 3, 5, 2]
    assert figures.case(50, "idle tasks on Spark").median > 0
    every, net = figures.tasks
    # A reading changes the means of two sensors at most: its own, and that of the one which leaves the window.
    assert 0 < every.results <= 2
    assert 0 < net.results <= 4
    pytest.importorskip("matplotlib")
    from bench.suites.on_spark.picture import draw

    draw(figures, "tiny", tmp_path / "spark.png")
    assert (tmp_path / "spark.png").stat().st_size > 10_000
