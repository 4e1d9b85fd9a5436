"""Integer times that seem to be meant in another unit than microseconds: a question, once a stream."""

from __future__ import annotations

import logging
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.engine.engine import Engine
from cqels_py.formats.times import questionable, unit_question
from cqels_py.runners.spark import stage
from cqels_py.spark import prepare
from tests.engine.test_engine import OTHER, STREAM, VALUES, table, texts
from tests.runners.spark import simulation

DAY = 1_714_564_800
"""2024-05-01T12:00:00Z in seconds."""
ASKED = f"<{STREAM}>: {DAY}: seconds? as microseconds it is 1970-01-01T00:28"


@pytest.mark.parametrize(
    ("time", "question"),
    [
        (DAY, "seconds? as microseconds it is 1970-01-01T00:28"),
        (DAY * 1_000, "milliseconds? as microseconds it is 1970-01-20T20:16"),
        (DAY * 1_000_000, None),
        (DAY * 1_000_000_000, "nanoseconds? as microseconds it is 56302-05-26T00:00"),
        (315_532_799, None),
        (315_532_800, "seconds? as microseconds it is 1970-01-01T00:05"),
        (7_258_118_399, "seconds? as microseconds it is 1970-01-01T02:00"),
        (7_258_118_400, None),
        (315_532_800_000_000, None),
        (7_258_118_400_000_000, None),
        *((small, None) for small in (-DAY, -1, 0, 1, 1_000_000, 60_000_000)),
    ],
)
def test_the_unit_that_may_be_meant(time: int, question: str | None) -> None:
    assert unit_question(time) == (None if question is None else f"{time}: {question}")


@given(st.lists(st.integers(0, 1 << 62) | st.integers(0, 10**13) | st.sampled_from([DAY, DAY * 1_000]), max_size=20))
def test_many_at_once_are_judged_one_by_one(times: list[int]) -> None:
    found = questionable(np.array(times, np.int64)).tolist()
    assert found == [place for place, time in enumerate(times) if unit_question(time) is not None]


def asked(way: str, times: list[Any], folder: Path) -> list[str]:
    """The reports about elements with these times."""
    reports: list[Any] = []
    engine = Engine(report=reports.append)
    engine.register(VALUES)
    if way == "push":
        for time in times:
            engine.push(STREAM, [texts("a", 1)], time=time)
    else:
        rows = table([(0, "a", 1)] * len(times)).set_column(0, "time", pa.array(times))
        if way == "push_batch":
            engine.push_batch(STREAM, rows)
        elif way == "reader":
            engine.push_batch(STREAM, rows.to_reader())
        elif way == "run":
            engine.run({STREAM: rows})
        else:
            path = folder / f"s.{way.split()[0]}"
            write(rows, path)
            engine.run({STREAM: path}, threads=2 if "ahead" in way else 1)
    return list(map(str, reports))


def write(rows: pa.Table, path: Path) -> None:
    if path.suffix == ".parquet":
        import pyarrow.parquet

        pyarrow.parquet.write_table(rows, path)
        return
    lines = ["\t".join(map(str, row)) for row in zip(*(column.to_pylist() for column in rows.columns), strict=True)]
    path.write_text("\n".join(["\t".join(rows.column_names), *lines]) + "\n")


WAYS = ["push_batch", "reader", "run", "parquet", "tsv", "tsv ahead"]


@pytest.mark.parametrize("way", ["push", *WAYS])
def test_it_is_asked_once_a_stream(way: str, tmp_path: Path) -> None:
    assert asked(way, [DAY, DAY + 1, DAY + 100], tmp_path) == [ASKED]
    assert asked(way, [1, DAY - 1, DAY], tmp_path) == [ASKED.replace(str(DAY), str(DAY - 1))]
    assert asked(way, [0, 1_000_000, 2_000_000], tmp_path) == []
    assert asked(way, [DAY * 1_000_000, DAY * 1_000_000 + 1], tmp_path) == []


@pytest.mark.parametrize("way", WAYS)
def test_times_that_are_not_integers_are_never_doubted(way: str, tmp_path: Path) -> None:
    assert asked(way, ["1970-01-01T00:28:34Z", "1970-01-01T00:28:35Z"], tmp_path) == []
    if "tsv" not in way:
        assert asked(way, [np.datetime64(DAY, "us"), np.datetime64(DAY + 1, "us")], tmp_path) == []


def test_each_stream_is_asked_about() -> None:
    reports: list[Any] = []
    engine = Engine(report=reports.append)
    for text in (VALUES, VALUES.replace("STREAM :s", "STREAM :t")):
        engine.register(text)
    for stream in (STREAM, OTHER, STREAM):
        engine.push(stream, [texts("a", 1)], time=DAY)
        engine.push_batch(stream, table([(DAY, "a", 1)]))
    assert [str(report) for report in reports] == [ASKED, ASKED.replace(STREAM, OTHER)]
    assert engine.statistics.malformed == 0


def test_frames_on_spark(caplog: pytest.LogCaptureFixture) -> None:
    with simulation.scratch() as folder:
        job, _ = prepare(VALUES, state=folder, partitions=1)
        rows = pa.table({"stream": [0], "graph": [""], **table([(DAY, "a", 1)]).to_pydict()}).to_batches()
        with caplog.at_level(logging.WARNING, "cqels_py.spark"):
            for batch in range(3):
                list(stage.route(job, rows, batch, 0))
            assert caplog.records == []
            for batch in range(3):
                list(stage.route(job, rows, batch, 0, frozenset([0])))
    assert [record.message for record in caplog.records] == [ASKED]
