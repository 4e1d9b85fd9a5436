"""Queries that are registered later, and are given elements of before, have the results of those registered from the beginning."""

from __future__ import annotations

import random
from pathlib import Path
from typing import Any

import pytest

from cqels_py.engine.durable.summary import summary
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.errors import DataError, UsageError

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
A, B = EX + "a", EX + "b"
QUERIES = (
    "SELECT ?s ?o { STREAM :a [RANGE 8us] { ?s :p ?o } }",
    "SELECT ?s (COUNT(*) AS ?n) { STREAM :a [RANGE 9us STEP 3us] { ?s :p ?o } } GROUP BY ?s",
    "SELECT DISTINCT ?s { STREAM :a [COUNT 7] { ?s :p ?o } STREAM :b [RANGE 8us] { ?s :p ?q } }",
    "SELECT ?s (COUNT(*) AS ?n) { STREAM :b [SESSION 4us] { ?s :p ?o } } GROUP BY ?s",
    "SELECT ?s { STREAM :a [RANGE 9us] { ?s :p ?o } FILTER NOT EXISTS { STREAM :b [RANGE 4us] { ?s :p ?q } } }",
    "SELECT ?x ?y { MATCH WITHIN 6us { EVENT ON :a { ?x :p ?o } SEQ EVENT ON :b { ?y :p ?q } } }",
)
BASE = 1_700_000_000_000_000
Element = tuple[str, int, str]


def drawn(seed: int, count: int) -> list[Element]:
    draw = random.Random(seed)
    now, found = BASE, []
    for _ in range(count):
        now += draw.choice((0, 0, 1, 1, 2, 5))
        found.append((draw.choice((A, B)), now - draw.choice((0, 0, 0, 1, 3)), draw.choice("xyz")))
    return found


def quads(elements: list[Element], stream: str) -> str:
    """Those of one stream, in their order."""
    lines = []
    for number, (each, time, subject) in enumerate(elements):
        if each == stream:
            graph = f"<{EX}g{number}>"
            lines.append(
                f'{graph} <http://www.w3.org/ns/prov#generatedAtTime> "{time}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
                f'<{EX}{subject}> <{EX}p> "{time}" {graph} .\n'
            )
    return "".join(lines)


def push(engine: Engine, element: Element) -> None:
    stream, time, subject = element
    engine.push(stream, [(f"<{EX}{subject}>", f"<{EX}p>", f'"{time}"')], time=time)


def rows(query: Query) -> list[tuple[int, int, str]]:
    return [(r.time, r.sign, str(sorted(r.bindings.items()))) for r in query.results()]


def history(tmp_path: Path, query: Query | tuple[str, ...], elements: list[Element]) -> dict[str, str]:
    streams = query if isinstance(query, tuple) else query.streams
    for stream in streams:
        (tmp_path / f"{stream[-1]}.nq").write_text(quads(elements, stream))
    return {stream: str(tmp_path / f"{stream[-1]}.nq") for stream in streams}


def register(engine: Engine, text: str, **more: Any) -> Query:
    return engine.register(PREFIX + text, changelog="MATCH" not in text, **more)


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("text", QUERIES)
@pytest.mark.parametrize("seed", range(2))
def test_results_are_those_of_a_query_that_was_there(tmp_path: Path, seed: int, text: str, lateness: int) -> None:
    """Streams of history are merged by time, so both engines get the elements in that order."""
    elements = drawn(seed, 120)
    engine = Engine(lateness=lateness, report=lambda _: None)
    there = register(engine, text)
    streams = there.streams
    elements = [each for each in elements if each[0] in streams]
    if len(streams) > 1:
        # In the order in which two files are merged.
        elements.sort(key=lambda each: (each[1], each[0]))
    past, coming = elements[: len(elements) // 2], elements[len(elements) // 2 :]
    for each in past:
        push(engine, each)
    before = rows(there)
    later = register(engine, text, backfill=history(tmp_path, there, past))
    counted = engine.statistics.elements
    assert counted == len(past)
    assert sorted(rows(later)) == sorted(before)
    for each in coming:
        push(engine, each)
    engine.finish()
    found = rows(there)
    assert sorted(rows(later)) == sorted(found)
    assert found


DECIDED_BY_CONTENTS = (
    QUERIES[0],
    "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 9us] { ?s :p ?o } }",
    QUERIES[2],
    "SELECT ?s ?o ?q { STREAM :a [RANGE 9us] { ?s :p ?o } STREAM :b [RANGE 5us] { ?s :p ?q } }",
    "SELECT ?s { { STREAM :a [RANGE 6us] { ?s :p ?o } } UNION { STREAM :b [COUNT 3] { ?s :p ?o } } }",
    "SELECT ?s { STREAM :a [RANGE 6us STEP 3us] { ?s :p ?o } }",
)
"""Queries that are evaluated as one, however they were registered, once their windows have turned over."""


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("text", DECIDED_BY_CONTENTS)
@pytest.mark.parametrize("seed", range(2))
def test_equal_queries_that_come_one_after_the_other(tmp_path: Path, seed: int, text: str, lateness: int) -> None:
    """With and without history: each has the results, in their order, that it has without the others."""
    streams = tuple(stream for stream in (A, B) if f":{stream[-1]} " in text)
    elements = sorted((each for each in drawn(seed, 150) if each[0] in streams), key=lambda each: (each[1], each[0]))
    begins = [0, *sorted(random.Random(seed).sample(range(5, len(elements) - 5), 3))]
    other = f"SELECT ?z {{ {' '.join(f'STREAM :{stream[-1]} [NOW] {{ ?z :nothing ?y }}' for stream in streams)} }}"

    def results(*registered: int) -> list[list[tuple[int, int, str]]]:
        engine = Engine(lateness=lateness, report=lambda _: None)
        register(engine, other)
        queries = []
        for at, element in enumerate(elements):
            for number in registered:
                if begins[number] == at:
                    before = {"backfill": history(tmp_path, streams, elements[:at])} if number % 2 else {}
                    queries.append(register(engine, text, **before))
            push(engine, element)
        engine.finish()
        return [rows(query) for query in queries]

    assert results(0, 1, 2, 3) == [results(number)[0] for number in range(4)]


@pytest.mark.parametrize("text", QUERIES)
def test_history_that_goes_beyond_the_present_is_cut(tmp_path: Path, text: str) -> None:
    elements = sorted(drawn(5, 100), key=lambda each: (each[1], each[0]))
    engine = Engine(report=lambda _: None)
    there = register(engine, text)
    elements = [each for each in elements if each[0] in there.streams]
    # Between two instants: elements of the instant of the cut would be in both.
    cut = next(at for at in range(40, 99) if elements[at - 1][1] < elements[at][1])
    for each in elements[:cut]:
        push(engine, each)
    later = register(engine, text, backfill=history(tmp_path, there, elements))
    for each in elements[cut:]:
        push(engine, each)
    engine.finish()
    assert sorted(rows(later)) == sorted(rows(there))


def test_without_other_queries_time_begins_where_history_ends(tmp_path: Path) -> None:
    elements = sorted(drawn(3, 60), key=lambda each: each[1])
    elements = [each for each in elements if each[0] == A]
    past, coming = elements[:30], elements[30:]
    first, second = Engine(report=lambda _: None), Engine(report=lambda _: None)
    later = register(first, QUERIES[0], backfill=history(tmp_path, (A,), past))
    there = register(second, QUERIES[0])
    for each in past:
        push(second, each)
    push(first, (A, past[-1][1] - 1, "late"))
    assert first.statistics.late == 1
    for each in coming:
        push(first, each)
        push(second, each)
    assert rows(later) == rows(there)


def test_the_other_queries_go_on_as_before(tmp_path: Path) -> None:
    elements = [each for each in drawn(4, 120) if each[0] == A]
    engines = [Engine(report=lambda _: None) for _ in range(2)]
    queries = [register(engine, QUERIES[1]) for engine in engines]
    for at, each in enumerate(elements):
        for engine in engines:
            push(engine, each)
        if at == 30:
            register(engines[0], QUERIES[0], backfill=history(tmp_path, (A,), elements[:31]))
    assert rows(queries[0]) == rows(queries[1])
    assert engines[0].statistics.elements == engines[1].statistics.elements


def test_wrong_sources_are_refused_and_leave_no_query(tmp_path: Path) -> None:
    engine = Engine()
    broken = tmp_path / "a.nq"
    broken.write_text(quads([(A, BASE, "x")], A) + "no quad\n")
    with pytest.raises(UsageError, match=r"backfill: the query does not read the stream <http://ex.org/b>"):
        register(engine, QUERIES[0], backfill={B: str(broken)})
    with pytest.raises(UsageError, match="there is no file"):
        register(engine, QUERIES[0], backfill={A: str(tmp_path / "none.nq")})
    with pytest.raises(DataError, match=r"a\.nq:3"):
        register(engine, QUERIES[0], backfill={A: str(broken)})
    with pytest.raises(UsageError, match="backfill is a mapping"):
        register(engine, QUERIES[0], backfill=str(broken))
    assert engine.queries == ()
    # The engine goes on.
    query = register(engine, QUERIES[0])
    push(engine, (A, BASE, "x"))
    assert len(rows(query)) == 1


def test_late_elements_and_wrong_clocks_of_history_are_dropped_and_told(tmp_path: Path) -> None:
    reports: list[str] = []
    engine = Engine(ahead=1_000, report=lambda error: reports.append(str(error)))
    past = [(A, BASE, "x"), (A, BASE + 4_000_000, "wrong"), (A, BASE + 5, "y"), (A, BASE + 2, "late")]
    query = register(engine, QUERIES[0], backfill=history(tmp_path, (A,), past))
    assert engine.statistics.rejected == {(A, "ahead"): 1, (A, "late"): 1}
    assert len([each for each in reports if "dropped" in each]) == 2
    push(engine, (A, BASE + 6, "z"))
    assert engine.statistics.late == 1
    assert [row[0] for row in rows(query) if row[1] > 0] == [BASE, BASE + 5, BASE + 6]


def test_chained_queries_cannot_be_given_history(tmp_path: Path) -> None:
    engine = Engine()
    engine.register(PREFIX + "REGISTER STREAM :a AS CONSTRUCT { ?s :p ?o } { STREAM :b [RANGE 3us] { ?s :p ?o } }")
    with pytest.raises(UsageError, match="backfill: a query that reads the stream of another query"):
        register(engine, QUERIES[0], backfill=history(tmp_path, (A,), drawn(0, 9)))


def test_terms_of_a_long_history_are_released(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from cqels_py.runners import local

    monkeypatch.setattr(local, "_COLLECT_FROM", 2_000)
    engine = Engine()
    register(engine, QUERIES[1])
    many = [(A, BASE + at, f"s{at}") for at in range(60_000)]
    query = register(
        engine, "SELECT (COUNT(*) AS ?n) { STREAM :a [RANGE 8us] { ?s :p ?o } }", backfill=history(tmp_path, (A,), many)
    )
    assert len(rows(query)) > 0
    push(engine, (A, BASE + 70_000, "x"))
    assert len(engine.dictionary) < 90_000


@pytest.mark.parametrize("lateness", [0, 3])
@pytest.mark.parametrize("text", QUERIES)
def test_the_log_of_a_checkpoint_has_elements_of_before(tmp_path: Path, text: str, lateness: int) -> None:
    def opened() -> Engine:
        return Engine(lateness=lateness, report=lambda _: None, checkpoint=tmp_path / "state", durable="off")

    def known(engine: Engine, name: str, **more: Any) -> Query:
        return register(engine, text, name=name, **more)

    elements = drawn(7, 120)
    engine = opened()
    there = known(engine, "there")
    elements = [each for each in elements if each[0] in there.streams]
    # A group of streams of its own.
    register(engine, QUERIES[0] if B in there.streams else QUERIES[2], name="other")
    for number, each in enumerate(elements):
        push(engine, each)
        if number == len(elements) // 4:
            engine.checkpoint()
        if number == len(elements) // 2:
            before = rows(there)
            later = known(engine, "later", backfill="log")
            assert sorted(rows(later)) == sorted(before)
            # Its elements are in the log again, as that from which they came will go.
            engine.close()
            engine = opened()
            there, later = known(engine, "there"), known(engine, "later", backfill="log")
            assert later.restored
            assert sorted(rows(later)) == sorted(before)
            rows(there)
    engine.finish()
    found = rows(there)
    assert sorted(rows(later)) == sorted(found)
    assert found
    engine.close()


def test_the_log_has_the_elements_since_the_last_snapshot_but_one(tmp_path: Path) -> None:
    elements = [(A, BASE + number, "xyz"[number % 3]) for number in range(30)]
    engine, other = Engine(checkpoint=tmp_path, durable="off"), Engine()
    register(engine, QUERIES[0], name="there")
    for number, each in enumerate(elements):
        push(engine, each)
        if number in (9, 19):
            engine.checkpoint()
    later = register(engine, QUERIES[0], name="later", backfill="log")
    there = register(other, QUERIES[0])
    for each in elements[10:]:
        push(other, each)
    assert rows(later) == rows(there)
    engine.close()


@pytest.mark.parametrize("checkpoint", [False, True])
def test_a_query_that_was_registered_just_before_is_not_touched(tmp_path: Path, *, checkpoint: bool) -> None:
    def opened() -> Engine:
        return Engine(checkpoint=tmp_path / "state" if checkpoint else None)

    elements = [(A, BASE + number, "xyz"[number % 3]) for number in range(12)]
    past, coming = elements[:8], elements[8:]
    engine, other = opened(), Engine()
    there = register(engine, QUERIES[0], name="there")
    later = register(engine, QUERIES[0], name="later", backfill=history(tmp_path, (A,), past))
    if checkpoint:
        engine.checkpoint()
        engine.close()
        engine = opened()
        there, later = engine.queries
    alone, whole = register(other, QUERIES[0]), Engine()
    all_seen = register(whole, QUERIES[0])
    for each in past:
        push(whole, each)
    for each in coming:
        push(engine, each)
        push(other, each)
        push(whole, each)
    assert rows(there) == rows(alone)
    assert rows(later) == rows(all_seen)
    engine.close()


def test_a_summary_of_the_checkpoint_has_the_query(tmp_path: Path) -> None:
    engine = Engine(checkpoint=tmp_path / "state", report=lambda _: None)
    register(engine, QUERIES[0], name="later", backfill=history(tmp_path, (A,), drawn(0, 40)))
    assert summary(tmp_path / "state").queries == {"later": 0}
    engine.close()


def test_without_a_log_there_are_no_elements_of_before(tmp_path: Path) -> None:
    engine = Engine()
    with pytest.raises(UsageError, match='backfill="log" needs an engine with a log: make it with checkpoint='):
        register(engine, QUERIES[0], backfill="log")
    with pytest.raises(UsageError, match="backfill is a mapping of sources by stream"):
        register(engine, QUERIES[0], backfill="history")


GRAPHS = "SELECT ?g ?s { STREAM :a [RANGE 8us] { GRAPH ?g { ?s :p ?o } } }"


def push_in_graphs(engine: Engine, times: range) -> None:
    for time in times:
        engine.push(A, [(f"<{EX}x>", f"<{EX}p>", f'"{time}"')], time=time, graph=f"<{EX}g{time % 3}>")


def test_graphs_that_the_log_has_are_those_of_before(tmp_path: Path) -> None:
    engine = Engine(checkpoint=tmp_path)
    there = register(engine, GRAPHS, name="there")
    push_in_graphs(engine, range(1, 20))
    later = register(engine, GRAPHS, name="later", backfill="log")
    assert sorted(rows(later)) == sorted(found := rows(there))
    assert len({row[2] for row in found}) > 2
    engine.close()
    engine = Engine(checkpoint=tmp_path)
    there, later = register(engine, GRAPHS, name="there"), register(engine, GRAPHS, name="later", backfill="log")
    rows(there), rows(later)
    push_in_graphs(engine, range(20, 30))
    assert sorted(rows(later)) == sorted(found := rows(there))
    assert found
    engine.close()


def test_elements_without_their_graphs_are_refused(tmp_path: Path) -> None:
    engine = Engine(checkpoint=tmp_path)
    register(engine, QUERIES[0], name="there")
    push_in_graphs(engine, range(1, 5))
    with pytest.raises(UsageError, match="asks for the graphs of elements, and the log has some without"):
        register(engine, GRAPHS, name="later", backfill="log")
    assert len(engine.queries) == 1
    engine.close()
