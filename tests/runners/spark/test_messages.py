"""Messages in columns of data frames, as Spark's Kafka source has them, become triples and rejects."""

from __future__ import annotations

import json
from pathlib import Path
from typing import TYPE_CHECKING, Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

import cqels_py.spark
from cqels_py.errors import DataError, UsageError
from cqels_py.mappings.mapping import Mapping
from tests.sources.test_http_bodies import jelly

if TYPE_CHECKING:
    from pyspark.sql import DataFrame, SparkSession

pytestmark = pytest.mark.xdist_group("spark")
messages = pytest.importorskip(
    "cqels_py.runners.spark.messages", reason="PySpark is not installed", exc_type=ImportError
)

EX = "http://ex.org/"
AT = f"{EX}at"
MAP = f"""PREFIX : <{EX}>
CONSTRUCT {{ ?s :value ?value ; :of ?topic ; :near [ :room ?room ] }}
WHERE {{ BIND(IRI(CONCAT(STR(:), ?sensor)) AS ?s) }}"""
KAFKA = pa.schema(
    [
        ("key", pa.binary()),
        ("value", pa.binary()),
        ("topic", pa.string()),
        ("partition", pa.int32()),
        ("offset", pa.int64()),
        ("timestamp", pa.timestamp("us", "UTC")),
        ("timestampType", pa.int32()),
    ]
)
"""The columns of Spark's Kafka source."""


def kafka(*values: bytes) -> pa.Table:
    n = list(range(len(values)))
    return pa.Table.from_arrays(
        [
            pa.nulls(len(values), pa.binary()),
            pa.array(values, pa.binary()),
            pa.array(["readings"] * len(values)),
            pa.array([each % 3 for each in n], pa.int32()),
            pa.array([each // 3 for each in n], pa.int64()),
            pa.array([1_000 + each for each in n], pa.timestamp("us", "UTC")),
            pa.array([0] * len(values), pa.int32()),
        ],
        schema=KAFKA,
    )


def as_rows(*values: bytes | None) -> pa.RecordBatch:
    """As `parsed` hands them to `triples_of`."""
    return pa.record_batch(
        [
            pa.array(values, pa.binary()),
            pa.array(["readings"] * len(values)),
            pa.array(range(1_000, 1_000 + len(values)), pa.int64()),
        ],
        names=["_body", "_origin", "_arrived"],
    )


def triples(how: Any, *values: bytes | None) -> list[dict[str, Any]]:
    return [row for each in messages.triples_of(how, [as_rows(*values)]) for row in each.to_pylist()]


def rejects(how: Any, *values: bytes | None) -> dict[int, str]:
    rows = as_rows(*values).append_column("n", pa.array(range(len(values))))
    return {row["n"]: row["error"] for each in messages.rejects_of(how, [rows]) for row in each.to_pylist()}


def test_quads_json_ld_and_what_is_neither() -> None:
    quads = f'<{EX}a> <{EX}v> "1" <{EX}g> .\n<{EX}g> <{AT}> "7"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}g> .\n'.encode()
    document = json.dumps({"@id": f"{EX}b", f"{EX}v": "é", f"{EX}part": {f"{EX}w": True}, AT: 8}).encode()
    how = messages.MessageParsing("value", time_predicate=AT)
    values = (quads, b"<nonsense", None, document, b"", b"\xff", quads)
    found = triples(how, *values)
    assert [row["time"] for row in found if row["predicate"] == f"<{EX}v>"] == [7, 8, 7]
    assert [row["graph"] for row in found if row["predicate"] == f"<{EX}v>"] == [f"<{EX}g>", None, f"<{EX}g>"]
    assert {row["object"] for row in found} >= {'"1"', '"é"'}
    assert len({row["element"] for row in found}) == 3
    blank = {row[place] for row in found for place in ("subject", "object") if row[place].startswith("_:")}
    assert len(blank) == 1
    told = rejects(how, *values)
    assert list(told) == [1, 2, 4, 5]
    assert told[2] == told[4] == "the message is empty"
    assert "not UTF-8" in told[5]
    with pytest.raises(DataError, match="message 2 of the task's rows of readings"):
        triples(messages.MessageParsing("value", time_predicate=AT, stop=True), *values)


def test_what_is_malformed_behind_an_empty_message_is_rejected_by_a_map() -> None:
    """Each message has its own error, whatever was left out before it."""
    good = b'{"sensor": "s1", "value": 1, "room": "r", "time": 5}'
    without_time = b'{"sensor": "s2", "value": 2, "room": "r", "time": "x"}'
    how = messages.MessageParsing("value", map=Mapping.of(MAP), origin="topic")
    values = (good, b"", b'{"sensor": ', None, without_time, b" \n", b"\xff", b"[]", good)
    told = rejects(how, *values)
    assert list(told) == [1, 2, 3, 4, 5, 6, 7]
    assert told[1] == told[3] == told[5] == "the message is empty"
    assert "this is no JSON" in told[2]
    assert "the element has no time: ?time is" in told[4]
    assert "not UTF-8" in told[6]
    assert "expected one JSON object" in told[7]
    assert [row["time"] for row in triples(how, *values) if row["predicate"] == f"<{EX}value>"] == [5, 5]


def test_each_message_that_is_no_jelly_is_rejected() -> None:
    how = messages.MessageParsing("value", format="jelly", arrival="timestamp")
    good = jelly([7])
    told = rejects(how, good, b"\xffno frame", good, b"\xffno frame")
    assert list(told) == [1, 3]
    assert told[1].startswith("frame 1 is not valid Jelly")
    assert len(triples(how, good, b"\xffno frame")) == len(triples(how, good)) > 0


@pytest.mark.parametrize("by_map", [True, False])
def test_messages_whose_time_of_arrival_or_topic_is_null(by_map: bool) -> None:
    """Those that need it are malformed, and the others are read."""
    of_map = [b'{"sensor": "s1", "value": 1, "room": "r"}', b'{"sensor": "s1", "value": 1, "room": "r", "time": 5}']
    time = f'<{EX}g> <{AT}> "5"^^<http://www.w3.org/2001/XMLSchema#integer> <{EX}g> .\n'
    quads = [f'<{EX}a> <{EX}value> "1" <{EX}g> .\n'.encode(), f'<{EX}a> <{EX}value> "1" <{EX}g> .\n{time}'.encode()]
    how = messages.MessageParsing(
        "value", map=Mapping.of(MAP) if by_map else None, time_predicate=AT, arrival="timestamp"
    )
    columns = [pa.array(of_map if by_map else quads, pa.binary()), pa.nulls(2, pa.string()), pa.nulls(2, pa.int64())]
    rows = pa.record_batch([*columns, pa.array([0, 1])], names=["_body", "_origin", "_arrived", "n"])
    told = [row for each in messages.rejects_of(how, [rows]) for row in each.to_pylist()]
    assert [row["n"] for row in told] == [0]
    assert "time" in told[0]["error"]
    assert "None" not in told[0]["error"]
    found = [row for each in messages.triples_of(how, [rows]) for row in each.to_pylist()]
    assert [row["time"] for row in found if row["predicate"] == f"<{EX}value>"] == [5]
    assert not any(row["predicate"] == f"<{EX}of>" for row in found)


def test_a_map_with_the_times_of_arrival() -> None:
    objects = [{"sensor": f"s{n % 2}", "value": n, "room": "r"} for n in range(4)]
    values = [json.dumps(each).encode() for each in objects]
    how = messages.MessageParsing("value", map=Mapping.of(MAP), arrival="timestamp", origin="topic")
    found = triples(how, *values[:2], b"[]", *values[2:])
    assert [row["time"] for row in found if row["predicate"] == f"<{EX}value>"] == [1000, 1001, 1003, 1004]
    assert {row["object"] for row in found if row["predicate"] == f"<{EX}of>"} == {'"readings"'}
    assert len({row["subject"] for row in found if row["predicate"] == f"<{EX}room>"}) == 4
    assert list(rejects(how, *values[:2], b"[]", *values[2:])) == [2]


def test_the_partition_of_a_message() -> None:
    """Each is parsed by itself, as its elements are in its own order; malformed messages are in none."""
    how = messages.MessageParsing("value", map=Mapping.of(MAP), arrival="timestamp", partition="partition")
    values = [json.dumps({"sensor": f"s{n}", "value": n, "room": "r"}).encode() for n in range(5)]
    rows = as_rows(*values[:2], b"[]", *values[2:]).append_column("_number", pa.array([4, 7, 7, 4, 7, 7]))
    found = [row for each in messages.triples_of(how, [rows]) for row in each.to_pylist()]
    told = [(row["time"], row["partition"]) for row in found if row["predicate"] == f"<{EX}value>"]
    assert told == [(1000, 4), (1003, 4), (1001, 7), (1004, 7), (1005, 7)]
    assert len({row["element"] for row in found}) == 5


def test_nothing() -> None:
    how = messages.MessageParsing("value")
    assert triples(how) == []
    assert triples(how, None) == []
    assert list(messages.triples_of(how, [])) == []


def test_a_streaming_frame_of_kafkas_columns(spark: SparkSession, tmp_path: Path) -> None:
    """Messages through a map, and the rejects in a sink of their own."""
    values = [json.dumps({"sensor": f"s{n % 3}", "value": n, "room": "r"}).encode() for n in range(40)]
    values[7] = b"{"
    (tmp_path / "in").mkdir()
    pq.write_table(kafka(*values), tmp_path / "in" / "one.parquet")
    still = spark.read.parquet(str(tmp_path / "in"))
    frame = spark.readStream.schema(still.schema).parquet(str(tmp_path / "in"))
    found, wrong = cqels_py.spark.parse(
        frame, map=Mapping.of(MAP), arrival="timestamp", topic="topic", partition="partition"
    )
    assert found.columns[-1] == "partition"
    text = f"""PREFIX : <{EX}> SELECT ?s (COUNT(*) AS ?n) (MAX(?v) AS ?last)
    WHERE {{ STREAM :readings [ALL] {{ ?s :value ?v }} }} GROUP BY ?s"""
    answers = cqels_py.spark.continuous({f"{EX}readings": found}, text, state=tmp_path / "state", changelog=True)
    rows = run(answers, tmp_path, "answers")
    last = {row["s"]: row["n"].partition("^")[0] for row in sorted(rows, key=lambda row: (row["time"], row["sign"]))}
    assert last == {f"<{EX}s0>": '"14"', f"<{EX}s1>": '"12"', f"<{EX}s2>": '"13"'}
    (row,) = run(wrong, tmp_path, "rejects")
    assert (row["value"], row["topic"], row["partition"], row["offset"]) == (b"{", "readings", 1, 2)
    assert row["error"]
    check_mistakes(frame)


def run(frame: DataFrame, folder: Path, name: str) -> list[dict[str, Any]]:
    rows: list[dict[str, Any]] = []

    def keep(each: DataFrame, batch: int) -> None:
        rows.extend(each.toArrow().to_pylist())

    writer = frame.writeStream.option("checkpointLocation", str(folder / f"checkpoint-{name}"))
    query = writer.foreachBatch(keep).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


def check_mistakes(frame: DataFrame) -> None:
    for options, message in (
        ({"column": "body"}, "no column 'body'"),
        ({"column": "offset"}, "the column offset is of type bigint"),
        ({"partition": "shard"}, "no column 'shard'"),
        ({"arrival": "offset"}, "times of messages are timestamps"),
        ({"format": "csv"}, "format is one of auto, nq"),
        ({"on_error": "ask"}, "on_error is"),
    ):
        with pytest.raises(UsageError, match=message):
            cqels_py.spark.parse(frame, **options)  # type: ignore[arg-type]
