"""The engine as a program uses it: queries come and go, elements in every form go in, results come out."""

from __future__ import annotations

import logging
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import numpy as np
import pyarrow as pa
import pytest
from rdflib import XSD, BNode, Graph, Literal, URIRef

import cqels_py as cqels
from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query, Result
from cqels_py.errors import DataError, UsageError

EX = "http://ex.org/"
STREAM, OTHER = EX + "s", EX + "t"
INTEGER = f"<{XSD.integer}>"
PREFIX = f"PREFIX : <{EX}> "
VALUES = PREFIX + "SELECT ?s ?v { STREAM :s [RANGE 4us] { ?s :v ?v } }"
LATEST = VALUES.replace("RANGE 4us", "COUNT 1")
COUNT = PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :s [COUNT 2] { ?s :v ?v } }"
LABELS = PREFIX + "SELECT ?l { STREAM :s [NOW] { ?s :v ?v } ?s :label ?l }"


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def texts(subject: str, value: int) -> tuple[str, str, str]:
    return (iri(subject), iri("v"), f'"{value}"^^{INTEGER}')


def terms(subject: str, value: int) -> tuple[URIRef, URIRef, Literal]:
    return (URIRef(EX + subject), URIRef(EX + "v"), Literal(value))


def table(rows: list[tuple[Any, ...]]) -> pa.Table:
    """(time, subject, value)"""
    columns = {"time": [row[0] for row in rows]}
    for place, name in enumerate(("subject", "predicate", "object")):
        columns[name] = [texts(row[1], row[2])[place] for row in rows]
    return pa.table(columns)


def seen(results: Iterator[Result]) -> list[tuple[int, int, str, int]]:
    return [(r.time, r.sign, r.bindings["s"].removeprefix(EX), int(r.bindings["v"])) for r in results]


ROWS = [(1, "a", 1), (2, "b", 2), (2, "c", 3), (7, "a", 4)]
ANSWERS = [
    (1, 1, "a", 1),
    (2, 1, "b", 2),
    (2, 1, "c", 3),
    (5, -1, "a", 1),
    (6, -1, "b", 2),
    (6, -1, "c", 3),
    (7, 1, "a", 4),
]


# --- results --------------------------------------------------------------------------------------------------------


def test_results_since_the_last_time() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    assert list(query.results()) == []
    engine.push(STREAM, [texts("a", 1)], time=1)
    (result,) = query.results()
    assert result == Result(1, 1, {"s": URIRef(EX + "a"), "v": Literal(1)})
    assert list(query.results()) == []
    engine.push(STREAM, [texts("b", 2), texts("c", 3)], time=2)
    first = next(query.results())
    assert [result.time for result in (first, *query.results())] == [2, 2]


def test_what_is_unbound_is_left_out() -> None:
    engine = Engine()
    query = engine.register(PREFIX + "SELECT ?s ?v ?w { STREAM :s [NOW] { ?s :v ?v } BIND(1 / ?v AS ?w) }")
    engine.push(STREAM, [texts("a", 0), texts("b", 1)], time=1)
    assert query.variables == ("s", "v", "w")
    assert sorted(sorted(r.bindings) for r in query.results()) == [["s", "v"], ["s", "v", "w"]]


def test_an_ask_query_has_an_answer() -> None:
    engine = Engine()
    query = engine.register(PREFIX + "ASK { STREAM :s [COUNT 1] { ?s :v 1 } }")
    for value in (0, 1, 1, 2):
        engine.push(STREAM, [texts("a", value)], time=value)
    assert [(r.bindings, r.boolean) for r in query.results()] == [({}, False), ({}, True), ({}, False)]
    assert (query.form, query.variables) == ("ASK", ("boolean",))


def test_construct_gives_its_template() -> None:
    query = Engine().register(PREFIX + "CONSTRUCT { ?s :seen ?v . _:b :of 1 } { STREAM :s [NOW] { ?s :v ?v } }")
    assert query.form == "CONSTRUCT"
    assert query.template[0] == ("?s", iri("seen"), "?v")
    assert query.template[1][0].startswith("_:")
    assert query.template[1][1:] == (iri("of"), f'"1"^^{INTEGER}')


def test_every_subscriber_gets_every_result() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    one: list[Result] = []
    other: list[Result] = []
    batches: list[ResultBatch] = []
    query.subscribe(one.append)
    query.subscribe(other.append)
    query.subscribe_batches(batches.append, ids=True)
    engine.push(STREAM, [texts("a", 1)], time=1)
    assert one == other == [Result(1, 1, {"s": URIRef(EX + "a"), "v": Literal(1)})]
    assert [engine.dictionary.decode(column) for column in batches[0].columns] == [[iri("a")], [f'"1"^^{INTEGER}']]
    with pytest.raises(UsageError, match="either subscribe"):
        query.results()


def test_who_subscribes_gets_what_waits_first() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS))
    first: list[Result] = []
    second: list[Result] = []
    query.subscribe(first.append)
    query.subscribe(second.append)
    engine.push(STREAM, [texts("z", 5)], time=8)
    assert [row[2] for row in seen(iter(first))] == ["a", "b", "c", "a", "z"]
    assert [row[2] for row in seen(iter(second))] == ["z"]


@pytest.mark.parametrize("taken", range(5))
def test_what_waits_comes_in_batches_too(taken: int) -> None:
    """Without those that `results()` has given."""
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS[:3]))
    engine.push(STREAM, [texts("a", 4)], time=7)
    for _ in range(taken):
        next(query.results())
    batches: list[ResultBatch] = []
    query.subscribe_batches(batches.append, ids=True)
    engine.push(STREAM, [texts("z", 5)], time=8)
    found = [name for batch in batches for name in engine.dictionary.decode(batch.columns[0])]
    assert found == [iri(name) for name in ["a", "b", "c", "a", "z"][taken:]]
    assert [time for batch in batches for time in batch.time.tolist()] == [1, 2, 2, 7, 8][taken:]


def test_what_waits_brings_about_more() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS))
    got: list[int] = []

    def take(result: Result) -> None:
        got.append(int(result.bindings["v"]))
        if got[-1] < 3:
            engine.push(STREAM, [texts("z", got[-1] + 10)], time=8)

    query.subscribe(take)
    assert got == [1, 2, 3, 4, 11, 12]


def test_what_a_subscriber_raises_of_what_waits_loses_nothing_else() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS))

    def fail(result: Result) -> None:
        raise ZeroDivisionError("of the subscriber")

    with pytest.raises(ZeroDivisionError):
        query.subscribe(fail)
    assert [row[2] for row in seen(query.results())] == ["b", "c", "a"]


def test_results_that_wait_keep_their_terms(monkeypatch: pytest.MonkeyPatch) -> None:
    """Also those of a query that has left, when the dictionary lets go of what nobody refers to."""
    monkeypatch.setattr("cqels_py.runners.local._COLLECT_FROM", 100)
    engine = Engine()
    left, stays = engine.register(LATEST), engine.register(LATEST)
    for time in range(50):
        engine.push(STREAM, [texts(f"x{time}", time)], time=time)
    engine.unregister(left)
    list(stays.results())
    for time in range(50, 2000):
        engine.push(STREAM, [texts(f"x{time}", time)], time=time)
        list(stays.results())
    assert len(engine.dictionary) < 1000
    assert [row[2] for row in seen(left.results())] == [f"x{k}" for k in range(50)]


def test_terms_come_out_as_they_went_in() -> None:
    engine = Engine()
    query = engine.register(PREFIX + "SELECT ?v { STREAM :s [NOW] { ?s :v ?v } }")
    values = [
        *(Literal(text, datatype=XSD.decimal) for text in ("23.50", "+.5", "100000000000000000000.000")),
        *(Literal("05", datatype=XSD.integer), Literal('x\n"y"\\', lang="en"), Literal("é😀")),
        *(Literal("2024-01-01T00:00:00+02:00", datatype=XSD.dateTime), Literal("a", datatype=URIRef(EX + "t"))),
        *(URIRef("urn:x"), Literal("")),
    ]
    for time, value in enumerate(values):
        engine.push(STREAM, [(URIRef(EX + "a"), URIRef(EX + "v"), value)], time=time)
    found = [result.bindings["v"] for result in query.results()]
    assert [(str(each), getattr(each, "datatype", None), getattr(each, "language", None)) for each in found] == [
        (str(each), getattr(each, "datatype", None), getattr(each, "language", None)) for each in values
    ]


def test_what_a_query_says_of_itself() -> None:
    engine = Engine()
    query = engine.register(PREFIX + "SELECT ?a { STREAM :s [NOW] { ?a :v ?b } STREAM :t [RANGE 1s] { ?a :v ?b } }")
    assert query.streams == (STREAM, OTHER)
    assert query.variables == ("a",)
    assert "[RANGE 1s]" in query.explain()
    before = query.nbytes
    for time in range(3000):
        engine.push(OTHER, [texts(f"x{time}", time)], time=time)
    assert query.nbytes > before > 0


# --- elements -------------------------------------------------------------------------------------------------------


def test_rdflib_terms_and_texts_are_the_same() -> None:
    engine = Engine()
    query = engine.register(COUNT.replace("COUNT 2", "ALL").replace("COUNT(*)", "COUNT(DISTINCT ?v)"))
    engine.push(STREAM, [texts("a", 1), terms("a", 1)], time=1)
    engine.push(STREAM, [(*terms("a", 1)[:2], f'"1"^^{INTEGER}')], time=2)
    assert [int(r.bindings["n"]) for r in query.results()] == [1]


def test_an_rdflib_graph_is_an_element() -> None:
    graph = Graph()
    graph.add(terms("a", 1))
    graph.add(terms("b", 2))
    engine = Engine()
    query = engine.register(VALUES)
    engine.push(STREAM, graph, time=1)
    assert sorted(seen(query.results())) == [(1, 1, "a", 1), (1, 1, "b", 2)]


def test_blank_nodes_belong_to_their_element() -> None:
    engine = Engine(batch=2)
    query = engine.register(
        PREFIX + "SELECT (COUNT(DISTINCT ?b) AS ?n) (COUNT(*) AS ?m) { STREAM :s [ALL] { ?b :v ?v } }"
    )
    node = BNode()
    for time in (1, 2):
        engine.push(STREAM, [(node, terms("", 1)[1], Literal(time)), (f"_:{node}", *texts("", 5)[1:])], time=time)
    assert [(int(r.bindings["n"]), int(r.bindings["m"])) for r in query.results()] == [(1, 2), (2, 4)]


@pytest.mark.parametrize("batch", [1, 2, 3, 100])
def test_pushed_one_by_one_or_as_a_table(batch: int) -> None:
    engine = Engine(batch=batch)
    query = engine.register(VALUES, changelog=True)
    for time, subject, value in ROWS:
        engine.push(STREAM, [texts(subject, value)], time=time)
    engine.finish()
    assert seen(query.results()) == ANSWERS
    whole = Engine(batch=batch)
    query = whole.register(VALUES, changelog=True)
    whole.push_batch(STREAM, table(ROWS))
    assert seen(query.results()) == ANSWERS
    assert (whole.statistics.elements, whole.statistics.triples, whole.statistics.event_time) == (3, 4, 7)


def test_a_batch_size_waits_for_so_many() -> None:
    engine = Engine(batch=3)
    query = engine.register(VALUES)
    for time in (1, 2):
        engine.push(STREAM, [texts("a", time)], time=time)
        assert list(query.results()) == []
    engine.flush()
    assert len(list(query.results())) == 2
    for time in (3, 4, 5, 6):
        engine.push(STREAM, [texts("a", time)], time=time)
    assert len(list(query.results())) == 3
    engine.advance(6)
    assert len(list(query.results())) == 1


def test_pushes_before_a_table_come_before_it() -> None:
    engine = Engine(batch=10)
    query = engine.register(VALUES)
    engine.push(STREAM, [texts("z", 9)], time=1)
    engine.push_batch(STREAM, table(ROWS))
    assert [row[2] for row in seen(query.results())] == ["z", "a", "b", "c", "a"]
    assert engine.statistics.late == 0


class Exporting:
    """A foreign table: Arrow's C stream and nothing else."""

    def __init__(self, held: pa.Table) -> None:
        self._held = held

    def __arrow_c_stream__(self, requested_schema: object = None) -> object:
        return self._held.__arrow_c_stream__(requested_schema)


def reader(held: pa.Table, rows: int = 1) -> pa.RecordBatchReader:
    return pa.RecordBatchReader.from_batches(held.schema, held.to_batches(max_chunksize=rows))


SOURCES = [lambda held: held, reader, lambda held: reader(held, 3), Exporting]


@pytest.mark.parametrize("source", SOURCES, ids=["table", "reader", "reader of three", "foreign"])
def test_arrow_in_every_form(source: Any) -> None:
    pushed = Engine()
    query = pushed.register(VALUES, changelog=True)
    pushed.push_batch(STREAM, source(table(ROWS)))
    assert seen(query.results()) == ANSWERS
    ran = Engine()
    query = ran.register(VALUES, changelog=True)
    statistics = ran.run({STREAM: source(table(ROWS))})
    assert seen(query.results()) == ANSWERS
    assert (statistics.elements, statistics.triples, statistics.results) == (3, 4, 7)


def test_an_empty_table_is_a_stream() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS)[:0])
    assert engine.run({STREAM: table(ROWS)[:0]}).elements == 0
    assert list(query.results()) == []


def test_batches_of_elements_are_a_source() -> None:
    engine = Engine()
    engine.register(PREFIX + "SELECT * { STREAM :t [NOW] { ?s :v ?v } }")
    query = engine.register(VALUES)
    ids = engine.dictionary.encode(list(texts("a", 5)))
    batch = ElementBatch(np.array([3]), np.array([0], np.int32), np.array([0, 1]), ids[:1], ids[1:2], ids[2:])
    engine.run({STREAM: iter([batch]), OTHER: []})
    assert seen(query.results()) == [(3, 1, "a", 5)]


def test_sources_are_merged_by_time(tmp_path: Path) -> None:
    file = tmp_path / "s.csv"
    rows = "".join(f'{t},{iri("a")},{iri("v")},"""{t}""^^{INTEGER}"\n' for t in (1, 3, 5))
    file.write_text("time,subject,predicate,object\n" + rows, encoding="utf-8")
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?s ?v { { STREAM :s [NOW] { ?s :v ?v } } UNION { STREAM :t [NOW] { ?s :v ?v } } }"
    )
    progress: list[int] = []
    statistics = engine.run(
        {STREAM: file, OTHER: table([(2, "b", 2), (3, "b", 3), (9, "b", 9)])},
        progress=lambda s: progress.append(s.elements),
    )
    assert seen(query.results()) == [
        (1, 1, "a", 1),
        (2, 1, "b", 2),
        (3, 1, "a", 3),
        (3, 1, "b", 3),
        (5, 1, "a", 5),
        (9, 1, "b", 9),
    ]
    assert statistics == engine.statistics
    assert progress[-1] == statistics.elements == 6


# --- the time inside of elements ---------------------------------------------------------------------------------------

TIMED = PREFIX + "SELECT ?s ?v { STREAM :s [RANGE 4s] @ :at { ?s :v ?v } }"


def stamped(subject: str, value: int, *times: str) -> list[tuple[str, str, str]]:
    return [texts(subject, value), *((iri(subject), iri("at"), f'"{time}"^^<{XSD.dateTime}>') for time in times)]


def test_the_time_comes_from_the_element_itself() -> None:
    engine = Engine(batch=2)
    query = engine.register(TIMED)
    engine.push(STREAM, stamped("a", 1, "1970-01-01T00:00:01Z"))
    engine.push(STREAM, stamped("b", 2, "1970-01-01T01:00:02.5+01:00"))
    assert seen(query.results()) == [(1_000_000, 1, "a", 1), (2_500_000, 1, "b", 2)]
    rows = [
        triple
        for subject, second in (("c", 4), ("d", 3))
        for triple in stamped(subject, second, f"1970-01-01T00:00:0{second}Z")
    ]
    held = pa.table({name: [row[k] for row in rows] for k, name in enumerate(("subject", "predicate", "object"))})
    held = held.append_column("graph", pa.array(["1", "1", "2", "2"]))
    with pytest.raises(DataError, match=r"element:2: the time 3000000 .* is before that of element 1, 4000000"):
        engine.push_batch(STREAM, held)
    assert list(query.results()) == []
    engine.push_batch(STREAM, held, sort=True)
    assert seen(query.results()) == [(3_000_000, 1, "d", 3), (4_000_000, 1, "c", 4)]
    engine.push_batch(STREAM, held[2:])
    assert engine.statistics.late == 1


@pytest.mark.parametrize(
    ("times", "message"),
    [
        ((), "no time: no triple with the predicate <http://ex.org/at>"),
        (("1970-01-01T00:00:01Z", "1970-01-01T00:00:02Z"), "two different times"),
        (("yesterday",), 'its time is "yesterday".*expected a time like'),
    ],
)
def test_an_element_whose_own_time_is_wrong(times: tuple[str, ...], message: str) -> None:
    engine = Engine()
    engine.register(TIMED)
    with pytest.raises(DataError, match=message):
        engine.push(STREAM, stamped("a", 1, *times))
    engine.push(STREAM, stamped("a", 1, "1970-01-01T00:00:01Z"))
    assert engine.statistics.elements == 1


def test_a_time_beside_the_elements_own_is_refused() -> None:
    engine = Engine()
    engine.register(TIMED)
    with pytest.raises(UsageError, match="push without time="):
        engine.push(STREAM, stamped("a", 1, "1970-01-01T00:00:01Z"), time=1)
    with pytest.raises(UsageError, match="use an engine for each"):
        engine.register(TIMED.replace(":at", ":since"))
    engine.register(TIMED)


# --- several queries ----------------------------------------------------------------------------------------------------


def test_two_queries_are_as_two_engines() -> None:
    texts_of = [VALUES, COUNT, PREFIX + "SELECT ?v { STREAM :t [RANGE 3us STEP 2us] { ?s :v ?v } }"]

    def pushed(engine: Engine, queries: list[Query]) -> list[list[Result]]:
        for time in range(12):
            stream = STREAM if time % 3 else OTHER
            if any(stream in query.streams for query in queries):
                engine.push(stream, [texts("abc"[time % 2], time)], time=time)
        engine.finish()
        return [list(query.results()) for query in queries]

    together = Engine()
    found = pushed(together, [together.register(text, changelog=True) for text in texts_of])
    for text, results in zip(texts_of, found, strict=True):
        alone = Engine()
        # The other query's ticks are the instants of its own streams.
        (expected,) = pushed(alone, [alone.register(text, changelog=True)])
        assert expected
        assert results == expected


def test_a_query_sees_what_comes_after_it() -> None:
    engine = Engine(batch=10)
    engine.register(VALUES)
    engine.push(STREAM, [texts("a", 1)], time=1)
    later = engine.register(COUNT)
    engine.push(STREAM, [texts("a", 2)], time=2)
    engine.finish()
    assert [int(r.bindings["n"]) for r in later.results()] == [1]


def test_a_query_can_leave() -> None:
    engine = Engine(batch=10)
    first, second = engine.register(VALUES), engine.register(COUNT)
    engine.push(STREAM, [texts("a", 1)], time=1)
    engine.unregister(first)
    assert seen(first.results()) == [(1, 1, "a", 1)]
    engine.push(STREAM, [texts("a", 2)], time=2)
    engine.flush()
    assert list(first.results()) == []
    assert [int(r.bindings["n"]) for r in second.results()] == [1, 2]
    with pytest.raises(UsageError, match="not registered"):
        engine.unregister(first)
    engine.unregister(second)
    with pytest.raises(UsageError, match="streams read: none"):
        engine.push(STREAM, [texts("a", 3)], time=3)
    again = engine.register(COUNT)
    engine.push(STREAM, [texts("a", 3)], time=3)
    engine.finish()
    assert [int(r.bindings["n"]) for r in again.results()] == [1]


def test_a_subscriber_can_let_its_query_leave() -> None:
    engine = Engine(batch=10)
    queries = [engine.register(VALUES) for _ in range(3)]
    counts = [0, 0, 0]

    def take(k: int, result: Result) -> None:
        counts[k] += 1
        if k == 0:
            engine.unregister(queries[0])

    for k, query in enumerate(queries):
        query.subscribe(lambda result, k=k: take(k, result))  # type: ignore[misc]
    for time in range(1, 6):
        engine.push(STREAM, [texts("a", time)], time=time * 10)
    engine.finish()
    assert counts == [1, 5, 5]
    engine.unregister(queries[1])


@pytest.mark.parametrize("leave", ["unregister", "close"])
@pytest.mark.parametrize("text", [VALUES, VALUES.replace("SELECT", "SELECT RSTREAM")])
def test_who_leaves_gets_nothing_more_of_the_same_table(leave: str, text: str) -> None:
    engine = Engine()
    query, other = engine.register(text), engine.register(VALUES)
    got: list[Result] = []
    second: list[Result] = []

    def take(result: Result) -> None:
        got.append(result)
        if len(got) == 2:
            engine.unregister(query) if leave == "unregister" else query.close()

    query.subscribe(take)
    query.subscribe(second.append)
    engine.push_batch(STREAM, table([(time, "a", time) for time in range(6)]))
    assert len(got) == 2
    assert second == []
    assert len(list(other.results())) == 6


def test_another_query_s_subscriber_can_let_a_query_leave() -> None:
    engine = Engine()
    first, second = engine.register(VALUES), engine.register(VALUES)
    first.subscribe(lambda _: engine.unregister(second) if second in engine._queries else None)
    engine.push_batch(STREAM, table([(time, "a", time) for time in range(6)]))
    assert list(second.results()) == []


@pytest.mark.parametrize("method", ["unregister", "connect", "update_static"])
def test_a_query_can_leave_while_what_waits_is_processed(method: str) -> None:
    """What was pushed is processed first, and a subscriber then lets the query leave."""
    engine = Engine(batch=10)
    query = engine.register(PREFIX + "CONSTRUCT { ?s :w ?v } { STREAM :s [NOW] { ?s :v ?v } }")
    other = engine.register(PREFIX + "SELECT * { STREAM :t [NOW] { ?s :w ?v } }")
    query.subscribe(lambda _: engine.unregister(query))
    engine.push(STREAM, [texts("a", 1)], time=1)
    if method == "unregister":
        engine.unregister(query)
    else:
        with pytest.raises(UsageError, match="not registered here, or no longer"):
            engine.connect(query, f"{EX}t") if method == "connect" else engine.update_static(query)
    with pytest.raises(UsageError, match="not registered here, or no longer"):
        engine.unregister(query)
    assert engine._runner.queries == [engine._queries[other]]


def test_who_leaves_gets_nothing_more_of_what_waits() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push_batch(STREAM, table(ROWS))
    got: list[Result] = []

    def take(result: Result) -> None:
        got.append(result)
        engine.unregister(query)

    query.subscribe(take)
    assert len(got) == 1


def test_a_query_that_has_left_feeds_no_other() -> None:
    """Its results of the step at hand come in several parts, as each report is long."""
    engine = Engine()
    feeding = engine.register(
        PREFIX + "REGISTER RSTREAM :t AS CONSTRUCT { ?s :v ?v } FROM NAMED WINDOW :w ON :s [RANGE PT1H STEP PT1S] "
        "WHERE { WINDOW :w { ?s :v ?v } }"
    )
    reading = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :t [ALL] { ?s :v ?v } }")
    feeding.subscribe_batches(lambda _: engine.unregister(feeding), ids=True)
    engine.push_batch(STREAM, table([(time * 1_000_000, f"x{time}", time) for time in range(200)]))
    last = [int(result.bindings["n"]) for result in reading.results()][-1]
    assert 1 < last < 10_000


def test_a_subscriber_can_push() -> None:
    """One query's results are another's stream."""
    engine = Engine()
    high = engine.register(PREFIX + "SELECT ?s ?v { STREAM :s [NOW] { ?s :v ?v } FILTER(?v > 1) }")
    count = engine.register(PREFIX + "SELECT (COUNT(*) AS ?n) { STREAM :t [ALL] { ?s :v ?v } }")
    high.subscribe(lambda r: engine.push(OTHER, [(r.bindings["s"], URIRef(EX + "v"), r.bindings["v"])], time=r.time))
    for time, value in enumerate((1, 2, 3, 0, 5)):
        engine.push(STREAM, [texts("a", value)], time=time)
    assert [(r.time, int(r.bindings["n"])) for r in count.results()] == [(1, 1), (2, 2), (4, 3)]


@pytest.mark.parametrize("method", ["register", "push_batch", "advance", "finish", "run"])
def test_what_a_subscriber_cannot_do(method: str) -> None:
    engine = Engine()
    query = engine.register(VALUES)
    calls: dict[str, Any] = {
        "register": lambda: engine.register(VALUES),
        "push_batch": lambda: engine.push_batch(STREAM, table(ROWS)),
        "advance": lambda: engine.advance(10),
        "finish": engine.finish,
        "run": lambda: engine.run({STREAM: table(ROWS)}),
    }
    query.subscribe(lambda _: calls[method]())
    with pytest.raises(UsageError, match=rf"{method}\(\) cannot be called by a subscriber.*push\(\) can"):
        engine.push(STREAM, [texts("a", 1)], time=1)
    assert engine.statistics.results == 1


def test_a_subscriber_that_fails_harms_nobody_else() -> None:
    engine = Engine(batch=2)
    failing, query = engine.register(VALUES), engine.register(VALUES)
    got: list[Result] = []
    calls = [0]

    def fail(result: Result) -> None:
        calls[0] += 1
        if calls[0] == 1:
            raise ZeroDivisionError("of the subscriber")

    failing.subscribe(fail)
    failing.subscribe(got.append)
    engine.push(STREAM, [texts("a", 1)], time=1)
    with pytest.raises(ZeroDivisionError, match="of the subscriber"):
        engine.push(STREAM, [texts("b", 2)], time=2)
    assert len(got) == len(list(query.results())) == 2
    engine.push(STREAM, [texts("c", 3)], time=3)
    engine.flush()
    assert len(got) == 3
    assert calls[0] == 2


# --- static data --------------------------------------------------------------------------------------------------------


@pytest.fixture
def turtle(tmp_path: Path) -> Path:
    file = tmp_path / "labels.ttl"
    file.write_text(f'@prefix : <{EX}> . :a :label "A" . :b :label "B" .', encoding="utf-8")
    return file


def labels(query: Query, engine: Engine) -> list[str]:
    for time, subject in enumerate("abc"):
        engine.push(STREAM, [texts(subject, 1)], time=time)
    return sorted(str(result.bindings["l"]) for result in query.results())


def test_static_data_in_every_form(turtle: Path) -> None:
    text = f'{iri("a")} {iri("label")} "A" .\n{iri("b")} {iri("label")} "B" .'.encode()
    triples = [(iri("a"), iri("label"), '"A"'), (URIRef(EX + "b"), URIRef(EX + "label"), Literal("B"))]
    graph = Graph().parse(turtle)
    forms: list[Any] = [
        turtle,
        str(turtle),
        text,
        graph,
        [turtle],
        [text],
        [triples],
        [graph],
        [triples[:1], triples[1:]],
    ]
    for form in forms:
        engine = Engine()
        assert labels(engine.register(LABELS, static=form), engine) == ["A", "B"]
    engine = Engine()
    assert labels(engine.register(LABELS), engine) == []


def test_named_graphs(turtle: Path) -> None:
    text = PREFIX + "SELECT ?l { STREAM :s [NOW] { ?s :v ?v } GRAPH :g { ?s :label ?l } }"
    for name in (EX + "g", URIRef(EX + "g")):
        engine = Engine()
        assert labels(engine.register(text, static_graphs={name: turtle}), engine) == ["A", "B"]
    engine = Engine()
    assert labels(engine.register(text, static=turtle), engine) == []
    named = text.replace("{ STREAM", "FROM NAMED :g { STREAM", 1)
    engine = Engine()
    assert labels(engine.register(named, static_graphs={EX + "g": turtle}), engine) == ["A", "B"]


def test_from_clauses_name_the_data(turtle: Path) -> None:
    text = LABELS.replace("SELECT ?l {", f"SELECT ?l FROM <{turtle.as_uri()}> {{")
    engine = Engine()
    assert labels(engine.register(text), engine) == ["A", "B"]
    with pytest.raises(UsageError, match=r"the query reads FROM <http://ex[.]org/g>, and no data"):
        engine.register(LABELS.replace("SELECT ?l {", "SELECT ?l FROM :g {"))
    with pytest.raises(UsageError, match=r"data was given for the graph <http://ex[.]org/h>"):
        engine.register(text, static_graphs={EX + "h": turtle})


def test_a_graph_of_from_is_no_named_graph(turtle: Path) -> None:
    text = PREFIX + "SELECT ?l FROM :g { STREAM :s [NOW] { ?s :v ?v } GRAPH ?g { ?s :label ?l } }"
    engine = Engine()
    assert labels(engine.register(text, static_graphs={EX + "g": turtle}), engine) == []


# --- lateness -----------------------------------------------------------------------------------------------------------


def test_late_elements_are_counted_and_reported() -> None:
    reports: list[DataError] = []
    engine = Engine(lateness=2, report=reports.append)
    query = engine.register(VALUES)
    for time in (5, 3, 2, 9, 6, 7):
        engine.push(STREAM, [texts("a", time)], time=time)
    engine.push_batch(STREAM, table([(1, "b", 1), (2, "b", 2), (12, "b", 12)]))
    engine.finish()
    assert [row[3] for row in seen(query.results())] == [3, 5, 7, 9, 12]
    assert (engine.statistics.late, engine.statistics.elements, engine.statistics.malformed) == (4, 9, 0)
    assert len(reports) == 3
    assert str(reports[0]).startswith(
        "1 element was dropped as late data: older than the newest element by more than the lateness of 2 micro"
    )
    assert str(reports[2]).startswith("2 elements were dropped")


def test_without_a_report_the_log_says_it(caplog: pytest.LogCaptureFixture) -> None:
    engine = Engine()
    engine.register(VALUES)
    with caplog.at_level(logging.WARNING, "cqels_py"):
        for time in (5, 4):
            engine.push(STREAM, [texts("a", time)], time=time)
    assert [record.getMessage()[:21] for record in caplog.records] == ["1 element was dropped"]


def test_the_log_has_the_first_ten_reports(caplog: pytest.LogCaptureFixture) -> None:
    reports: list[DataError] = []
    engines = Engine(on_error="skip"), Engine(on_error="skip", report=reports.append)
    with caplog.at_level(logging.WARNING, "cqels_py"):
        for engine in engines:
            engine.register(VALUES)
            engine.push(STREAM, [texts("a", 1)], time=100)
            for time in range(20):
                engine.push(STREAM, [texts("a", time)], time=time)
            engine.push(STREAM, [(*texts("a", 1)[:2], "words")], time=100)
            assert (engine.statistics.late, engine.statistics.malformed) == (20, 1)
    said = [record.getMessage() for record in caplog.records]
    assert [text.startswith("1 element was dropped") for text in said] == [True] * 10 + [False]
    assert said[-1] == "… further reports are counted, not shown, but for one a minute"
    assert len(reports) == 21


def test_time_may_stand_still_but_not_go_back() -> None:
    engine = Engine(report=lambda _: None)
    query = engine.register(VALUES)
    for time in (3, 3, 2, 3, -4, 4):
        engine.push(STREAM, [texts("a", time)], time=time)
    assert [row[0] for row in seen(query.results())] == [3, 3, 3, 4]
    assert engine.statistics.late == 2
    engine.advance(3)
    engine.advance(9)
    engine.advance(1)
    engine.push(STREAM, [texts("a", 8)], time=8)
    assert engine.statistics.late == 3


def test_times_before_1970_are_times() -> None:
    engine = Engine()
    query = engine.register(VALUES, changelog=True)
    for time in (-10, -5, 0):
        engine.push(STREAM, [texts("a", 1)], time=time)
    assert [(row[0], row[1]) for row in seen(query.results())] == [(-10, 1), (-6, -1), (-5, 1), (-1, -1), (0, 1)]


def test_windows_as_long_as_can_be_hold_the_furthest_times() -> None:
    furthest, step = 2**62 - 1, 2**61 - 1
    engine = Engine(lateness=furthest)
    query = engine.register(VALUES.replace("4us", f"{2**61}us STEP {step}us"), changelog=True)
    forever = engine.register(VALUES.replace("4us", f"{furthest}us"), changelog=True)
    engine.push(STREAM, [texts("a", 1)], time=-furthest)
    engine.push(STREAM, [texts("b", 2)], time=furthest)
    engine.finish()
    assert seen(query.results()) == [(-2 * step, 1, "a", 1), (-step, -1, "a", 1), (3 * step, 1, "b", 2)]
    assert seen(forever.results()) == [(-furthest, 1, "a", 1), (0, -1, "a", 1), (furthest, 1, "b", 2)]


# --- the end ------------------------------------------------------------------------------------------------------------


def test_the_end_gives_the_last_boundary() -> None:
    engine = Engine(batch=10)
    query = engine.register(VALUES.replace("4us", "10us STEP 10us"))
    engine.push(STREAM, [texts("a", 1)], time=3)
    engine.flush()
    assert list(query.results()) == []
    engine.finish()
    assert seen(query.results()) == [(10, 1, "a", 1)]
    engine.finish()
    assert list(query.results()) == []


def test_the_package_names_what_is_public() -> None:
    assert {cqels.Engine, cqels.Query, cqels.Result, cqels.UsageError} == {Engine, Query, Result, UsageError}


def test_windows_of_different_steps_end_at_one_instant() -> None:
    """What is delivered at the last boundary of one window is true of the other then too: there it holds (4, 12]."""
    engine = Engine()
    asked = """
        PREFIX : <http://ex.org/>
        SELECT ?x ?y WHERE {
            STREAM :s [RANGE 8s STEP 4s] { ?k :p ?x }
            STREAM :t [RANGE 20s STEP 6s] { ?k :q ?y }
        }
    """
    query = engine.register(asked, changelog=True)

    def value(predicate: str, number: int) -> list[tuple[str, str, str]]:
        return [("<http://ex.org/k>", f"<http://ex.org/{predicate}>", f'"{number}"^^<{XSD.integer}>')]

    for stream, second, predicate, number in (("s", 1, "p", 1), ("t", 1, "q", 10), ("t", 7, "q", 70), ("s", 8, "p", 8)):
        engine.push(f"http://ex.org/{stream}", value(predicate, number), time=second * 1_000_000)
    engine.finish()
    found = [(r.time // 1_000_000, r.sign, int(r.bindings["x"]), int(r.bindings["y"])) for r in query.results()]
    assert sorted(found) == [(6, 1, 1, 10), (8, 1, 8, 10), (12, -1, 1, 10), (12, 1, 8, 70)]
