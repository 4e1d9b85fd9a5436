"""Steps that would not end are ended from another thread, for one query, and others get the results that they would have had."""

from __future__ import annotations

from collections.abc import Callable
from threading import Event, Thread
from typing import Any

import pytest

from cqels_py import Engine, Query
from cqels_py.dataflow.expressions import TextEvaluation
from cqels_py.runners.running import QueriesOnScans

STREAM = "http://ex.org/s"
PREFIX = "PREFIX : <http://ex.org/>\n"
W = "STREAM :s [RANGE 1h]"


def patterns(count: int) -> list[str]:
    return [f"{{ ?a{n} :p{n} ?b{n} }}" for n in range(count)]


def elements(kinds: int, each: int) -> list[tuple[str, str, str]]:
    """`each` triples of every kind, of which no two have a term in common but the property."""
    return [
        (f"<http://ex.org/a{kind}.{n}>", f"<http://ex.org/p{kind}>", f'"b{kind}.{n}"')
        for n in range(each)
        for kind in range(kinds)
    ]


OPTIONALS = " ".join(f"OPTIONAL {{ {W} {each} }}" for each in patterns(12)[1:])
EVENTS = " SEQ ".join(f"EVENT ON :s {each}" for each in patterns(6))
TWICE = "CONCAT(?t, ?t)"
for _ in range(3):
    TWICE = TWICE.replace("?t", "CONCAT(?t, ?t)")
HOSTILE: dict[str, tuple[str, int, int]] = {
    # The query; how many kinds of triples there are, and how many of each.
    "join": (f"SELECT * WHERE {{ {' '.join(f'{W} {each}' for each in patterns(4))} }}", 4, 60),
    "join without results": (
        f"SELECT * WHERE {{ {' '.join(f'{W} {each}' for each in patterns(4))} {W} {{ ?a0 :none ?a3 }} }}", 4, 60,
    ),
    "optional": (f"SELECT * WHERE {{ {W} {{ ?a0 :p0 ?b0 }} {OPTIONALS} }}", 12, 4),
    "match": (f"SELECT * WHERE {{ MATCH WITHIN 1h {{ {EVENTS} }} }}", 6, 20),
    "first match": (f"SELECT * WHERE {{ MATCH LATEST WITHIN 1h {{ {EVENTS} }} FILTER(?b0 = ?b5) }}", 6, 20),
    "event": (f"SELECT * WHERE {{ EVENT ON :s {{ {' . '.join(each[2:-2] for each in patterns(4))} }} }}", 4, 60),
    "texts": (
        f'SELECT (STRLEN(REPLACE({TWICE}, "b", {TWICE.replace("?t", "?b0")})) AS ?n) WHERE {{ {W} {{ ?a0 :p0 ?b0 }} '
        f"{W} {{ ?a1 :p1 ?t }} }}", 2, 30,
    ),
}  # fmt: skip
OTHERS = {
    "plain": f"SELECT * WHERE {{ {W} {{ ?a0 :p0 ?b0 }} }}",
    "pair": f"SELECT ?a0 ?a1 WHERE {{ {W} {{ ?a0 :p0 ?b0 }} {W} {{ ?a1 :p1 ?b1 }} }}",
}
AT_ONCE = ("event",)
"""Queries whose triples come in one element."""


class Turn:
    """The steps wait until somebody has asked a query to stop."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch, *, waits: bool) -> None:
        self.begun, self.asked = Event(), Event()
        for name in ("push", "push_one", "advance"):
            monkeypatch.setattr(QueriesOnScans, name, self._behind(getattr(QueriesOnScans, name), waits=waits))

    def _behind(self, method: Callable[..., Any], *, waits: bool) -> Callable[..., Any]:
        def called(*given: Any, **named: Any) -> Any:
            self.begun.set()
            if waits:
                self.asked.wait()
            return method(*given, **named)

        return called


def feed(
    engine: Engine, triples: list[tuple[str, str, str]], *, at_once: bool, time: int = 1_700_000_000_000_000
) -> None:
    if at_once:
        engine.push(STREAM, triples, time=time)
    else:
        for number, triple in enumerate(triples):
            engine.push(STREAM, [triple], time=time + number)
    engine.flush()


def results(queries: dict[str, Query]) -> dict[str, list[str]]:
    return {name: sorted(map(repr, query.results())) for name, query in queries.items()}


def registered(engine: Engine, texts: dict[str, str]) -> dict[str, Query]:
    return {name: engine.register(PREFIX + text, name=name) for name, text in texts.items()}


@pytest.mark.parametrize("waits", [True, False], ids=["before", "during"])
@pytest.mark.parametrize("among", [False, True], ids=["alone", "shared"])
@pytest.mark.parametrize("kind", HOSTILE)
def test_a_step_ends_for_the_query_that_is_stopped(
    kind: str, among: bool, waits: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    text, kinds, each = HOSTILE[kind]
    triples, at_once = elements(kinds, each), kind in AT_ONCE
    others = OTHERS if among else {}
    expected_engine = Engine(batch=len(triples))
    expected_queries = registered(expected_engine, others)
    if others:
        feed(expected_engine, triples, at_once=at_once)
    expected = results(expected_queries)
    engine = Engine(batch=len(triples), max_waiting=1 << 60)
    queries = registered(engine, others)
    (hostile,) = registered(engine, {"hostile": text}).values()
    turn = Turn(monkeypatch, waits=waits)
    pushing = Thread(target=feed, args=(engine, triples), kwargs={"at_once": at_once}, daemon=True)
    pushing.start()
    turn.begun.wait()
    engine.stop(hostile)
    turn.asked.set()
    # Figures are there at once.
    assert hostile.nbytes >= 0 and engine.statistics.elements >= 0
    pushing.join(120)
    assert not pushing.is_alive(), "the step goes on"
    if waits:
        assert hostile not in engine.queries and hostile.nbytes == 0
    assert results(queries) == expected
    # The engine goes on, and the query has gone for ever.
    again = registered(engine, {"again": OTHERS["plain"]})
    feed(engine, elements(1, len(triples)), at_once=False, time=1_700_000_100_000_000)
    assert len(results(again)["again"]) == len(triples)
    engine.close()


@pytest.mark.parametrize("kind", ["join", "match"])
def test_the_step_of_one_element_in_a_compiled_program_ends(kind: str, monkeypatch: pytest.MonkeyPatch) -> None:
    text, kinds, each = HOSTILE[kind]
    *before, last = [triple for n in range(kinds) for triple in elements(kinds, each)[n::kinds]][
        : (kinds - 1) * each + 1
    ]
    engine = Engine(max_waiting=1 << 60)
    (hostile,) = registered(engine, {"hostile": text}).values()
    feed(engine, before, at_once=False)
    assert next(iter(engine._queries.values())).dataflow.program is not None
    turn = Turn(monkeypatch, waits=True)
    pushing = Thread(
        target=feed, args=(engine, [last]), kwargs={"at_once": False, "time": 1_700_000_100_000_000}, daemon=True
    )
    pushing.start()
    turn.begun.wait()
    engine.stop(hostile)
    turn.asked.set()
    pushing.join(120)
    assert not pushing.is_alive(), "the step goes on"
    assert hostile not in engine.queries and list(hostile.results()) == []
    engine.close()


def test_a_query_goes_on_whose_equal_is_stopped() -> None:
    text = HOSTILE["join"][0]
    triples = elements(4, 5)
    alone = Engine()
    expected = registered(alone, {"first": text})
    feed(alone, triples, at_once=False)
    engine = Engine()
    first, second = registered(engine, {"first": text, "second": text}).values()
    feed(engine, triples[:10], at_once=False)
    engine.stop(first)
    feed(engine, triples[10:], at_once=False, time=1_700_000_000_000_010)
    assert results({"first": second}) == results(expected)
    engine.stop(second)
    engine.unregister(second)
    assert second not in engine.queries


def test_each_row_that_needs_texts_is_looked_at(monkeypatch: pytest.MonkeyPatch) -> None:
    engine = Engine(batch=20)
    query = engine.register(PREFIX + f"SELECT (UCASE(?b0) AS ?n) WHERE {{ {W} {{ ?a0 :p0 ?b0 }} }}")
    evaluated: list[object] = []
    value = TextEvaluation._value

    def stopping(self: TextEvaluation, *given: Any) -> Any:
        evaluated.append(given)
        if len(evaluated) == 3:
            engine.stop(query)
        return value(self, *given)

    monkeypatch.setattr(TextEvaluation, "_value", stopping)
    feed(engine, elements(1, 20), at_once=False)
    assert len(evaluated) == 3 and query not in engine.queries


def test_a_query_whose_stream_others_read_is_stopped_after_these() -> None:
    engine = Engine(batch=4)
    texts = {
        "feeds": f"REGISTER STREAM :made AS CONSTRUCT {{ ?a0 :q ?b0 }} WHERE {{ {W} {{ ?a0 :p0 ?b0 }} }}",
        "fed": "SELECT ?a WHERE { STREAM :made [RANGE 1h] { ?a :q ?b } }",
    }
    feeds, fed = registered(engine, texts).values()
    engine.stop(feeds)
    feed(engine, elements(1, 4), at_once=False)
    assert len(list(fed.results())) == 4 and feeds in engine.queries
    engine.stop(fed)
    engine.stop(feeds)
    feed(engine, elements(1, 4), at_once=False, time=1_700_000_000_001_000)
    assert feeds not in engine.queries and not list(fed.results())
