"""A suite's query on Spark: measured over its files, and the answer checked by re-evaluation."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

import pytest

from cqels_py.suites import check, data, throughput
from cqels_py.suites.report import beside_local
from cqels_py.suites.task import Task
from tests.suites.rides import RIDES

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

pytestmark = pytest.mark.xdist_group("spark")


def test_a_suites_query_is_measured_and_checked(spark: SparkSession, tmp_path: Path) -> None:
    files = data.prepared(RIDES, 900, 1, tmp_path)
    streams = {iri: str(path) for iri, path in files.streams.items()}
    text = RIDES.queries()["tips-by-area"]
    task = Task("1", text, "?", streams, str(files.static), files.marks, 900, runner="spark", partitions=2, check=True)
    told: list[tuple[str, int]] = []
    measured = throughput.measure(task, spark, lambda phase, done: told.append((phase, done)))
    check.check(task, measured, spark, lambda phase, done: None)
    assert (measured.triples, measured.elements, measured.equal) == (900, 100, True)
    assert measured.results > 0
    assert told[-1] == ("running", 900)
    # The workers and the Java machine count too.
    assert measured.peak_rss_mb is not None and measured.peak_rss_mb > 300
    local = throughput.measure(replace(task, runner="local", partitions=None), None, lambda phase, done: None)
    assert beside_local([local, measured]) == []
    assert (measured.runner, measured.results) == ("spark", local.results)
    assert measured.local_ratio is not None and measured.local_ratio > 0
