"""The parts of the Spark soak that need no Spark: readings, the results that are expected, and what counts as a difference."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq

from bench.suites import spark_kills
from bench.suites.on_spark import readings
from bench.suites.on_spark.standalone import Cluster, Started

BATCHES = 8


def test_expected_results_are_compared_row_by_row(tmp_path: Path) -> None:
    tables = readings.few_readings(tmp_path / "in", BATCHES, seed=1)
    assert sum(map(len, tables)) == BATCHES * readings.SECONDS * readings.A_SECOND
    files = sorted((tmp_path / "in").iterdir(), key=lambda path: path.stat().st_mtime)
    assert [pq.read_table(file) for file in files] == tables, "Spark takes them in this order"
    wanted = spark_kills.expected(tables)
    assert {sign for _, sign, _, _ in wanted} == {1, -1}, "after a minute readings expire"
    names = ("time", "sign", "sensor", "mean")
    rows = [dict(zip(names, row, strict=True)) for row in wanted.elements()]
    out = tmp_path / "out"
    out.mkdir()
    for number in range(3):
        pq.write_table(pa.Table.from_pylist(rows[number::3]), out / f"{number}.parquet")
    assert spark_kills.found_in(out) == wanted, "in any order"
    pq.write_table(pa.Table.from_pylist(rows[:1]), out / "3.parquet")
    assert (spark_kills.found_in(out) - wanted).total() == 1, "a row that comes twice is a difference"


def test_executors_are_those_that_the_workers_have_started(tmp_path: Path) -> None:
    program = "import time; print(flush=True); time.sleep(600)"
    command = [sys.executable, "-c", program, "CoarseGrainedExecutorBackend"]
    mine, other = (subprocess.Popen(command, start_new_session=True, stdout=subprocess.PIPE) for _ in range(2))
    try:
        for each in (mine, other):
            # Before it runs, its arguments may not be there yet.
            assert each.stdout is not None and each.stdout.readline() == b"\n"
        cluster = Cluster("spark://host", (Started(mine.pid, tmp_path),))
        assert os.getsid(other.pid) == other.pid
        assert cluster.executors() == [mine.pid]
    finally:
        for each in (mine, other):
            each.kill()
            each.communicate()
