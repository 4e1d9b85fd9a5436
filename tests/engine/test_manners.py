"""Engines and queries in consoles, notebooks and with blocks; streams that nobody reads; analyses without an engine."""

from __future__ import annotations

import pydoc
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

import cqels_py as cqels
from cqels_py import Engine, UsageError

S = "urn:r"
QUERY = f"PREFIX : <urn:> SELECT ?s {{ STREAM <{S}> [RANGE 5m STEP 1m] {{ ?s <urn:p> ?o }} }}"


def push(engine: Engine, stream: str = S, time: int = 1) -> None:
    engine.push(stream, [("urn:a", "urn:p", 1)], time=time)


def test_a_with_block_finishes_the_engine() -> None:
    with Engine(batch=100) as engine:
        query = engine.register(QUERY)
        push(engine)
        assert query.waiting == 0
    assert [result.time for result in query.results()] == [60_000_000]
    with pytest.raises(UsageError, match="streams have ended"):
        push(engine)
    with engine:
        pass


def test_an_exception_in_a_with_block_closes_the_engine() -> None:
    with pytest.raises(ZeroDivisionError), Engine() as engine:
        query = engine.register(QUERY)
        push(engine)
        raise ZeroDivisionError
    assert query.waiting == 0
    with pytest.raises(UsageError, match="has been closed"):
        push(engine)


def test_an_engine_with_a_checkpoint_goes_on_after_its_block(tmp_path: Path) -> None:
    for time in (1, 2):
        with Engine(checkpoint=tmp_path / "kept") as engine:
            query = engine.register(QUERY, name="q")
            push(engine, time=time)
    assert engine.statistics.elements == 2
    assert query.restored


def test_reprs() -> None:
    engine = Engine()
    query = engine.register(QUERY, name="q1")
    assert repr(engine) == "<Engine: 1 query, 0 elements>"
    assert repr(query).startswith("<Query q1: SELECT ?s { STREAM <urn:r> [RANGE 5m STEP 1m] {")
    assert len(repr(query)) < 80
    assert repr(engine.queries) == f"({query!r},)"
    engine.close()
    assert "closed" in repr(engine)


def test_html_is_escaped() -> None:
    engine = Engine()
    query = engine.register(QUERY, name="<script>")
    push(engine)
    engine.finish()
    (result,) = query.results()
    html = engine._repr_html_() + query._repr_html_() + result._repr_html_()
    assert "<script>" not in html
    assert "&lt;urn:p&gt;" in html
    assert "<td>1970-01-01T00:01:00Z</td><td>+1</td><td>urn:a</td>" in html
    (asked,) = engine_of("ASK { STREAM <urn:r> [RANGE 5m] { ?s <urn:p> ?o } }").current()
    assert "<td>True</td>" in asked._repr_html_()


def engine_of(text: str) -> Any:
    engine = Engine()
    query = engine.register(text)
    push(engine)
    return query


@pytest.mark.parametrize(("policy", "counted"), [("ignore", {}), ("count", {"urn:x": 4})])
def test_streams_that_nobody_reads(policy: str, counted: dict[str, int]) -> None:
    engine = Engine(on_unread=policy)
    query = engine.register(QUERY)
    push(engine, "urn:x")
    table = pa.table({"time": [1], "subject": ["urn:a"], "predicate": ["urn:p"], "object": [1]})
    engine.push_batch("urn:x", table)
    engine.push_batch("urn:x", table.to_reader())
    engine.push_frame("urn:x", table, subject="{subject}", time="time", columns={"object": "urn:p"})
    push(engine)
    assert (engine.unread, engine.statistics.elements) == (counted, 1)
    engine.finish()
    assert query.waiting == 1
    with pytest.raises(UsageError, match="streams have ended"):
        push(engine, "urn:x")


def test_a_stream_that_nobody_reads_is_an_error_otherwise() -> None:
    with pytest.raises(UsageError, match="no registered query reads the stream <urn:x>"):
        push(Engine(), "urn:x")
    with pytest.raises(UsageError, match="on_unread is 'raise', 'ignore' or 'count', not 'skip'"):
        Engine(on_unread="skip")


def test_an_analysis_without_an_engine() -> None:
    found = cqels.analyse(QUERY)
    assert (found.form, found.variables, found.streams) == ("SELECT", ("s",), (S,))
    assert found.windows == ("[RANGE 5m STEP 1m]",)
    assert found.memory.kind == "bounded"
    assert found.plan.variables == ("s",)


def test_help_has_an_example_for_the_calls_of_programs() -> None:
    for name in ("push", "push_frame", "apush"):
        assert ">>> " in pydoc.render_doc(getattr(Engine, name)), name
    for name in ("to_arrow", "current", "stream", "subscribe_batches"):
        assert ">>> " in pydoc.render_doc(getattr(cqels.Query, name)), name
    assert {"current", "to_pandas", "stream", "explain"} <= set(dir(cqels.Query))
