"""Rejects: every element that is left out is counted by stream and reason, and kept if there is a file for it."""

from __future__ import annotations

import errno
import json
import os
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.engine.durable.saved_state import restore_engine, state_of_engine
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError

ONE, OTHER = "http://example.org/one", "http://example.org/other"
QUERY = f"""
SELECT ?s ?v
FROM NAMED WINDOW <w> ON <{ONE}> [RANGE 10s]
FROM NAMED WINDOW <x> ON <{OTHER}> [RANGE 10s]
WHERE {{ {{ WINDOW <w> {{ ?s <http://example.org/p> ?v }} }} UNION {{ WINDOW <x> {{ ?s <http://example.org/p> ?v }} }} }}
"""
TIMED = f"""
SELECT ?s ?v FROM NAMED WINDOW <w> ON <{ONE}> [RANGE 10s]
WHERE {{ WINDOW <w> {{ ?s <http://example.org/p> ?v }} }}
"""
GENERATED_AT = "<http://www.w3.org/ns/prov#generatedAtTime>"


def triple(name: str, value: int) -> tuple[str, str, str]:
    return (f"<http://example.org/{name}>", "<http://example.org/p>", f'"{value}"')


def line(name: str, value: int) -> str:
    return " ".join(triple(name, value)) + " .\n"


def ignore(report: object) -> None:
    """Reports are not what these tests are about."""


def kept(path: Path) -> list[dict[str, Any]]:
    return [json.loads(each) for each in path.read_text().splitlines()]


@pytest.mark.parametrize("batch", [None, 1, 2, 7])
def test_late_elements_are_kept_whole_with_their_stream_time_and_number(tmp_path: Path, batch: int | None) -> None:
    #  number   1    2    3    4    5
    #  time    50   40   45   60   44      lateness 5: 2 and 5 are late
    path = tmp_path / "rejects"
    engine = Engine(lateness=5, batch=batch, rejects=path, report=ignore)
    engine.register(QUERY)
    for stream, time, triples in (
        (ONE, 50, [triple("a", 1)]),
        (OTHER, 40, [triple("b", 2), triple("c", 3)]),
        (ONE, 45, [triple("d", 4)]),
        (OTHER, 60, [triple("e", 5)]),
        (ONE, 44, [triple("f", 6)]),
    ):
        engine.push(stream, triples, time=time)
    engine.flush()
    assert kept(path) == [
        {"stream": OTHER, "position": 2, "reason": "late", "time": 40, "element": line("b", 2) + line("c", 3)},
        {"stream": ONE, "position": 5, "reason": "late", "time": 44, "element": line("f", 6)},
    ]
    assert engine.statistics.rejected == {(OTHER, "late"): 1, (ONE, "late"): 1}
    assert engine.statistics.late == 2


def test_rejects_are_counted_without_a_file() -> None:
    engine = Engine(on_error="skip", report=ignore)
    engine.register(QUERY)
    before = engine.statistics
    for time in (50, 1, 2):
        engine.push(OTHER, [triple("a", time)], time=time)
    engine.push(ONE, [("no term", "<http://example.org/p>", '"1"')], time=60)
    assert engine.statistics.rejected == {(OTHER, "late"): 2, (ONE, "malformed"): 1}
    assert before.rejected == {}, "a snapshot does not change"


def test_nothing_is_written_where_nothing_is_left_out(tmp_path: Path) -> None:
    path = tmp_path / "rejects"
    path.write_text("of an earlier run")
    engine = Engine(rejects=path)
    engine.register(QUERY)
    engine.push(ONE, [triple("a", 1)], time=1)
    engine.finish()
    assert path.read_text() == ""
    assert engine.statistics.rejected == {}


def test_a_malformed_push_is_kept_as_it_was_given(tmp_path: Path) -> None:
    path = tmp_path / "rejects"
    engine = Engine(on_error="skip", rejects=path, report=ignore)
    engine.register(QUERY)
    engine.push(ONE, [triple("a", 1), ("no term", "<http://example.org/p>", '"1"')], time=60)
    (reject,) = kept(path)
    assert (reject["stream"], reject["position"], reject["reason"]) == (ONE, None, "malformed")
    assert "no term" in reject["message"]
    assert reject["element"] == line("a", 1) + 'no term <http://example.org/p> "1" .\n'


def test_an_error_that_is_raised_is_no_reject(tmp_path: Path) -> None:
    path = tmp_path / "rejects"
    engine = Engine(rejects=path)
    engine.register(QUERY)
    with pytest.raises(Exception, match="no term"):
        engine.push(ONE, [("no term", "<http://example.org/p>", '"1"')], time=60)
    assert path.read_text() == ""
    assert engine.statistics.rejected == {}


def quads(*times: int) -> str:
    return "".join(
        f'<urn:g{t}> {GENERATED_AT} "{t}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f'<http://example.org/s> <http://example.org/p> "{t}" <urn:g{t}> .\n'
        for t in times
    )


UNTIMED_QUAD = '<http://example.org/s> <http://example.org/p> "9" <urn:untimed> .'
CASES = {
    "nq": [(quads(1) + "nonsense\n" + quads(2), 3, "nonsense")],
    "untimed.nq": [(quads(1) + UNTIMED_QUAD + "\n" + quads(2), 3, UNTIMED_QUAD.replace("<urn:untimed> ", "") + "\n")],
    "invalid.nq": [(quads(1).encode() + b"<urn:\xff>\n" + quads(2).encode(), 3, "<urn:\\xff>")],
    "tsv": [
        (
            "time\tsubject\tpredicate\tobject\n1\t<urn:a>\t<urn:p>\t<urn:b>\n2\tnonsense\t<urn:p>\t<urn:b>\n3\t<urn:a>\n",
            3,
            "2\tnonsense\t<urn:p>\t<urn:b>",
        )
    ],
    "ndjson": [('{"@id": "urn:a", "urn:p": 1, ]\n', 1, '{"@id": "urn:a", "urn:p": 1, ]')],
}


@pytest.mark.parametrize(
    ("name", "text", "at", "element"), [(n, *case) for n, cases in CASES.items() for case in cases]
)
def test_malformed_text_is_kept_with_its_place(
    tmp_path: Path, name: str, text: str | bytes, at: int, element: str
) -> None:
    path, source = tmp_path / "rejects", tmp_path / f"stream.{name}"
    source.write_bytes(text.encode() if isinstance(text, str) else text)
    engine = Engine(on_error="skip", rejects=path, report=ignore)
    engine.register(TIMED)
    statistics = engine.run({ONE: str(source)})
    first = kept(path)[0]
    assert first["element"] == element
    assert first["position"].startswith(f"{source}:{at}")
    assert (first["stream"], first["reason"]) == (ONE, "malformed")
    assert statistics.rejected == {(ONE, "malformed"): len(kept(path))}


def test_malformed_rows_of_a_pushed_table_are_kept(tmp_path: Path) -> None:
    path = tmp_path / "rejects"
    engine = Engine(on_error="skip", rejects=path, report=ignore)
    engine.register(TIMED)
    columns = {
        "time": pa.array([1, 2, 3], pa.timestamp("ns")),
        "subject": ["<urn:a>", "nonsense", "<urn:b>"],
        "predicate": ["<urn:p>"] * 3,
        "object": ["<urn:o>", None, "<urn:o>"],
    }
    engine.push_batch(ONE, pa.table(columns))
    (reject,) = kept(path)
    assert reject["element"] == "2\tnonsense\t<urn:p>\t"


def test_a_second_thread_loses_no_rejects(tmp_path: Path) -> None:
    path, source = tmp_path / "rejects", tmp_path / "stream.nq"
    source.write_text(quads(1) + "nonsense\n" + quads(2, 1, 3))
    engine = Engine(on_error="skip", rejects=path, report=ignore)
    engine.register(TIMED)
    assert engine.run({ONE: str(source)}, threads=2).rejected == {(ONE, "malformed"): 1, (ONE, "late"): 1}
    assert [each["reason"] for each in kept(path)] == ["malformed", "late"]


def test_a_file_that_cannot_be_written_is_named(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match=r"rejects: cannot write to .*nowhere"):
        Engine(rejects=tmp_path / "nowhere" / "rejects")


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="needs /dev/full, a disk that is full")
def test_a_full_disk_is_an_error_and_the_engine_remains_usable() -> None:
    engine = Engine(rejects="/dev/full", report=ignore)
    results = engine.register(QUERY).results
    engine.push(ONE, [triple("a", 50)], time=50)
    with pytest.raises(RunError, match="cannot write the rejects to /dev/full"):
        engine.push(ONE, [triple("a", 1)], time=1)
    engine.push(ONE, [triple("b", 51)], time=51)
    assert len(list(results())) == 2
    # What was not written is tried once more.
    with pytest.raises(RunError, match="cannot write the rejects to /dev/full"):
        engine.close()


def test_a_file_that_cannot_be_synced_is_named(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def fail(descriptor: int) -> None:
        raise OSError(errno.EIO, os.strerror(errno.EIO))

    engine = Engine(rejects=tmp_path / "rejects", report=ignore)
    engine.register(QUERY)
    for time in (50, 1):
        engine.push(ONE, [triple("a", time)], time=time)
    monkeypatch.setattr("cqels_py.engine.rejects.os.fsync", fail)
    with pytest.raises(RunError, match=r"cannot write the rejects to .*Input/output error"):
        engine.rejects.sync()
    engine.close()


def test_the_graph_is_kept_where_a_query_asks_for_it(tmp_path: Path) -> None:
    path, source = tmp_path / "rejects", tmp_path / "stream.nq"
    source.write_text(quads(5) + UNTIMED_QUAD + "\n" + quads(1))
    engine = Engine(on_error="skip", rejects=path, report=ignore)
    engine.register(
        f"SELECT ?g FROM NAMED WINDOW <w> ON <{ONE}> [RANGE 10s] WHERE {{ WINDOW <w> {{ GRAPH ?g {{ ?s ?p ?o }} }} }}"
    )
    engine.run({ONE: str(source)})
    untimed, late = (each["element"] for each in kept(path))
    assert untimed == UNTIMED_QUAD + "\n"
    assert '<http://example.org/p> "1" <urn:g1> .\n' in late


def test_the_counts_are_part_of_an_engine_s_state() -> None:
    engine, other = (Engine(on_error="skip", report=ignore) for _ in range(2))
    engine.register(QUERY)
    for time in (50, 1, 2):
        engine.push(OTHER, [triple("a", time)], time=time)
    engine.flush()
    restore_engine(other, {name: dict(values) for name, values in state_of_engine(engine).items()})
    other.register(QUERY)
    other.push(OTHER, [triple("a", 3)], time=3)
    other.push(ONE, [triple("a", 4)], time=4)
    assert other.statistics.rejected == {(OTHER, "late"): 3, (ONE, "late"): 1}
    assert engine.statistics.rejected == {(OTHER, "late"): 2}
