"""The local runner: lateness, several queries, and a dictionary that lets go."""

from __future__ import annotations

import random
from collections.abc import Sequence

import numpy as np
import pytest

import cqels_py as cqels
from cqels_py.engine.engine import Engine
from cqels_py.runners import local

STREAM = "http://ex.org/s"
PREFIX = "PREFIX : <http://ex.org/> "
WINDOW = "STREAM :s [RANGE 4us] { ?s :p ?o }"
INTEGER = "http://www.w3.org/2001/XMLSchema#integer"
Row = tuple[int, int, str]


def triple(subject: str, number: int) -> tuple[str, str, str]:
    return (f"<http://ex.org/{subject}>", "<http://ex.org/p>", f'"{number}"^^<{INTEGER}>')


def run(
    arrivals: Sequence[tuple[int, str]], *, lateness: int = 0, batch: int = 1, advance: bool = False
) -> tuple[list[Row], cqels.Statistics]:
    """(time, subject) of arrivals -> (time, sign, subject) of results."""
    engine = Engine(lateness=lateness, batch=batch)
    query = engine.register(PREFIX + f"SELECT ?s WHERE {{ {WINDOW} }}", changelog=True)
    found: list[Row] = []
    query.subscribe(lambda r: found.append((r.time, r.sign, str(r.bindings["s"]).removeprefix("http://ex.org/"))))
    for time, subject in arrivals:
        engine.push(STREAM, [triple(subject, time)], time=time)
        if advance:
            engine.advance(time - lateness)
    engine.finish()
    return found, engine.statistics


def disordered(rng: random.Random, count: int, lateness: int) -> list[tuple[int, str]]:
    return [(i * 2 + rng.randint(-lateness, lateness), f"x{i}") for i in range(count)]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("batch", [1, 2, 7, 1000])
def test_elements_in_time_are_put_in_order(batch: int, seed: int) -> None:
    arrivals = disordered(random.Random(seed), 30, 6)
    in_order = sorted(arrivals, key=lambda arrival: arrival[0])
    found, statistics = run(arrivals, lateness=12, batch=batch)
    assert statistics.late == 0
    assert statistics.elements == statistics.triples == 30
    assert statistics.results == len(found)
    assert sorted(found) == sorted(run(in_order)[0])
    assert [time for time, _, _ in found] == sorted(time for time, _, _ in found)


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("lateness", [0, 2])
def test_what_is_late_is_dropped_and_counted_in_every_batching(lateness: int, seed: int) -> None:
    arrivals = disordered(random.Random(seed), 30, 5)
    greatest = np.maximum.accumulate([time for time, _ in arrivals])
    kept = [a for a, limit in zip(arrivals, greatest, strict=True) if a[0] >= limit - lateness]
    assert 0 < len(kept) < len(arrivals)
    wanted = run(sorted(kept, key=lambda arrival: arrival[0]))[0]
    for batch in (1, 3, 1000):
        found, statistics = run(arrivals, lateness=lateness, batch=batch)
        assert statistics.late == len(arrivals) - len(kept)
        assert sorted(found) == sorted(wanted)


@pytest.mark.parametrize("lateness", [0, 3])
def test_promises_change_nothing(lateness: int) -> None:
    arrivals = [(time, f"x{i}") for i, time in enumerate([1, 4, 4, 3, 9, 8, 20])]
    assert run(arrivals, lateness=lateness, advance=True)[0] == run(arrivals, lateness=lateness)[0]


def test_a_promise_lets_expire_and_makes_late() -> None:
    engine = Engine()
    query = engine.register(PREFIX + f"SELECT ?s WHERE {{ {WINDOW} }}", changelog=True)
    engine.push(STREAM, [triple("a", 1)], time=10)
    engine.advance(14)
    assert [(r.time, r.sign) for r in query.results()] == [(10, 1)]
    engine.advance(15)
    assert [(r.time, r.sign) for r in query.results()] == [(14, -1)]
    engine.push(STREAM, [triple("b", 1)], time=14)
    assert engine.statistics.late == 1
    engine.push(STREAM, [triple("c", 1)], time=15)
    assert [(r.time, r.sign) for r in query.results()] == [(15, 1)]


def test_elements_that_wait_are_processed_at_the_end() -> None:
    found, _ = run([(5, "a"), (3, "b")], lateness=1_000)
    assert found == [(3, 1, "b"), (5, 1, "a")]


def test_each_query_sees_its_own_streams_only() -> None:
    engine = Engine()
    found: dict[str, list[int]] = {}
    for name in ("s", "t"):
        query = engine.register(PREFIX + f"SELECT ?o WHERE {{ STREAM :{name} [COUNT 1] {{ ?s :p ?o }} }}")
        found[name] = []
        query.subscribe(lambda r, to=found[name]: to.append(int(r.bindings["o"])))  # type: ignore[misc]
    both = engine.register(
        PREFIX + "SELECT ?o ?n WHERE { STREAM :t [COUNT 1] { ?s :p ?o } STREAM :s [COUNT 1] { ?s :p ?n } }"
    )
    for time, stream in enumerate("ststts"):
        engine.push(f"http://ex.org/{stream}", [triple("x", time)], time=time)
    assert found == {"s": [0, 2, 5], "t": [1, 3, 4]}
    pairs = [(int(r.bindings["o"]), int(r.bindings["n"])) for r in both.results()]
    assert pairs == [(1, 0), (1, 2), (3, 2), (4, 2), (4, 5)]


# --- the dictionary ---------------------------------------------------------------------------------------------------

QUERIES = {
    "join": "SELECT ?s ?n WHERE { STREAM :s [RANGE 20us] { ?s :p ?o } STREAM :s [RANGE 5us] { ?s :p ?n } }",
    "step": "SELECT ?s ?o WHERE { STREAM :s [RANGE 20us STEP 10us] { ?s :p ?o } }",
    "count": "SELECT ?s (COUNT(*) AS ?n) (MAX(?o) AS ?m) WHERE { STREAM :s [COUNT 20] { ?s :p ?o } } GROUP BY ?s",
    "extremes": "SELECT (MIN(?s) AS ?a) (MAX(?s) AS ?b) WHERE { STREAM :s [RANGE 20us] { ?s :p ?o } }",
    "distinct": "SELECT DISTINCT ?s WHERE { STREAM :s [TRIPLES 20] { ?s :p ?o } }",
    "negation": "SELECT ?s WHERE { STREAM :s [RANGE 20us] { ?s :p ?o } MINUS { STREAM :s [NOW] { ?s :p ?n } } }",
    "top": "SELECT ?s ?o WHERE { STREAM :s [RANGE 20us] { ?s :p ?o } } ORDER BY DESC(?s) LIMIT 3",
    "constants": "SELECT ?s ?c ?d WHERE { STREAM :s [RANGE 9us] { ?s :p ?o } BIND(:const AS ?c) BIND(IF(?o > 5, 'yes', ?s) AS ?d) }",
    "computed": "SELECT ?s ?c WHERE { STREAM :s [RANGE 9us] { ?s :p ?o } BIND(CONCAT('n', STR(?o)) AS ?c) }",
    "datatype": "SELECT ?s (DATATYPE(?o) AS ?c) WHERE { STREAM :s [RANGE 9us] { ?s :p ?o } }",
    "filter": "SELECT ?s WHERE { STREAM :s [RANGE 9us] { ?s :p ?o } FILTER(?s != :x1999 && STR(?s) > 'http://ex.org/x1') }",
    "inline data": "SELECT ?s ?c WHERE { STREAM :s [RANGE 9us] { ?s :p ?o } VALUES ?c { :const 'text' } }",
    "answers": "REGISTER RSTREAM :q AS SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT0.00001S STEP PT0.00001S] "
    "WHERE { WINDOW :w { ?s :p ?o } }",
}


def results_of(text: str, count: int, *, limit: int, monkeypatch: pytest.MonkeyPatch) -> tuple[list[str], int, int]:
    """Results over ever-new subjects, the dictionary's greatest and last size, if it collects from `limit` terms on."""
    monkeypatch.setattr(local, "_COLLECT_FROM", limit)
    engine = Engine(batch=5)
    query = engine.register(PREFIX + text, changelog="RSTREAM" not in text, static=[[triple("static", 1)]])
    found: list[str] = []
    query.subscribe(lambda r: found.append(repr((r.time, r.sign, sorted(r.bindings.items())))))
    most = 0
    for i in range(count):
        engine.push(STREAM, [triple(f"x{i}", i)], time=i)
        most = max(most, len(engine.dictionary))
    engine.finish()
    return found, most, len(engine.dictionary)


@pytest.mark.parametrize("name", QUERIES)
def test_a_stream_of_ever_new_terms_does_not_fill_the_dictionary(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    found, most, _ = results_of(QUERIES[name], 2000, limit=150, monkeypatch=monkeypatch)
    wanted, everything, _ = results_of(QUERIES[name], 2000, limit=10**9, monkeypatch=monkeypatch)
    assert everything >= 2000
    assert most < 700
    assert sorted(found) == sorted(wanted)


def test_terms_of_elements_that_wait_are_kept(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(local, "_COLLECT_FROM", 20)
    arrivals = [(i, f"x{i}") for i in range(300)]
    found, _ = run(arrivals, lateness=50)
    assert sorted(found) == sorted(run(arrivals)[0])
