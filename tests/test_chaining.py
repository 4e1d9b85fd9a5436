"""Chained queries: a query reads the results of a CONSTRUCT query, in the engine and from file to file."""

from __future__ import annotations

import itertools
import os
import subprocess
import sys
from collections import Counter
from pathlib import Path
from random import Random

import pyarrow as pa
import pytest
from hypothesis import given, reject
from hypothesis import strategies as st
from rdflib import BNode, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.cli.main import main
from cqels_py.engine.waiting import MOST_OF_A_FEED
from cqels_py.errors import UsageError
from tests.oracle import naive_chains
from tests.oracle.naive import Element
from tests.support import harness, traces
from tests.support.generators import FEW, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS

OUT = URIRef(f"{EX}out")
PREFIX = f"PREFIX : <{EX}> "
CONSTRUCT = "CONSTRUCT { ?s :seen ?n } WHERE { STREAM <%s> %s { ?s :p ?n } }"
SECOND = 1_000_000

READERS = [
    f"SELECT ?s ?n {{ STREAM <{OUT}> [RANGE 3s] {{ ?s :seen ?n }} }}",
    f"SELECT ?s (COUNT(*) AS ?k) {{ STREAM <{OUT}> [COUNT 3] {{ ?s :seen ?n }} }} GROUP BY ?s",
    f"SELECT (COUNT(*) AS ?k) {{ STREAM <{OUT}> [RANGE 4s STEP 2s] {{ ?s :seen ?n }} }}",
    f"SELECT * {{ STREAM <{OUT}> [RANGE 3s] {{ ?s :seen ?n }} STREAM <{STREAMS}s> [NOW] {{ ?t :p ?n }} }}",
    f"SELECT * {{ STREAM <{OUT}> [NOW] {{ ?s :seen ?n }} STREAM <{STREAMS}s> [COUNT 1] {{ ?t :p ?m }} }}",
]
FEEDERS = [
    ("ISTREAM", "[RANGE 2s]"),
    ("ISTREAM", "[RANGE 4s STEP 2s]"),
    ("RSTREAM", "[COUNT 2]"),
    ("RSTREAM", "[RANGE 2s]"),
    ("RSTREAM", "[RANGE 3s STEP 1s]"),
]


def elements() -> list[Element]:
    rows = [
        (0, "a", 1),
        (0, "b", 1),
        (1, "a", 2),
        (1, "a", 1),
        (3, "b", 2),
        (3, "c", 1),
        (3, "a", 1),
        (4, "a", 5),
        (9, "b", 1),
    ]
    return [
        Element(time * SECOND, URIRef(STREAMS + "s"), ((traces.term(s), traces.term("p"), traces.term(str(n))),))
        for time, s, n in rows
    ]


def feeder(output: str, window: str) -> str:
    return f"{PREFIX}REGISTER {output} <{OUT}> AS {CONSTRUCT % (STREAMS + 's', window)}"


def run_chain(texts: list[str], pushed: list[Element], batch: int | None, read: int = -1) -> list[harness.Result]:
    """Results of one of the queries, the last one by default."""
    engine = cqels_py.Engine(batch=batch or len(pushed) or 1)
    queries = [engine.register(text, changelog=place == len(texts) - 1) for place, text in enumerate(texts)]
    delivered: list[harness.Result] = []
    queries[read].subscribe(lambda result: delivered.append(harness._result(result)))
    for element in pushed:
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    return delivered


def check_chain(first: str, second: str, pushed: list[Element]) -> None:
    asked = harness.parse(first)
    made = naive_chains.constructed(asked, pushed, OUT)
    expected = harness.expected_changes(
        harness.parse(second), naive_chains.merged(pushed, made), None, Output.CHANGELOG
    )
    for batch in (1, 3, None):
        harness.check_equal(expected, run_chain([first, second], pushed, batch), f"batch {batch}")


@pytest.mark.parametrize("reader", range(len(READERS)))
@pytest.mark.parametrize(("output", "window"), FEEDERS)
def test_a_query_reads_the_results_of_a_construct(output: str, window: str, reader: int) -> None:
    check_chain(feeder(output, window), PREFIX + READERS[reader], elements())


@FEW
@given(scenarios({"join", "filter", "distinct"}, {"range", "count"}, most_elements=10), st.sampled_from(READERS[:3]))
def test_drawn_queries_feed(scenario: Scenario, reader: str) -> None:
    text = scenario.texts[Dialect.CQELS_QL]
    body = text[text.index("WHERE") :]
    asked = harness.parse(text)
    if len(asked.variables) < 2 or "@ :at" in text:
        reject()
    one, other = asked.variables[:2]
    prologue = text[: text.index("SELECT")]
    first = f"{prologue} REGISTER ISTREAM <{OUT}> AS CONSTRUCT {{ ?{one} :seen ?{other} }} {body}"
    with answerable():
        check_chain(first, PREFIX + reader, list(scenario.elements))


FED_BY = [
    ("?s :p ?n . ?s :q ?m", "W { ?s :p ?n } W { ?s :q ?m }"),
    ("?s :p ?n . ?s :q ?m", "W { ?s :p ?n OPTIONAL { ?s :q ?m } }"),
    ("_:each :of ?s ; :p ?n", "{ W { ?s :p ?n } } UNION { W { ?s :q ?n } }"),
]


@pytest.mark.parametrize("output", ["ISTREAM", "RSTREAM"])
@pytest.mark.parametrize(("template", "body"), FED_BY)
def test_windows_of_triples_do_not_depend_on_batches(template: str, body: str, output: str) -> None:
    """They see in which order an element has its triples: not that in which results of a tick were found."""
    random = Random(17)
    window = f"STREAM <{STREAMS}s> [TRIPLES 2 PARTITION BY ?s]"
    first = f"{PREFIX}REGISTER {output} <{OUT}> AS CONSTRUCT {{ {template} }} {{ {body.replace('W', window)} }}"
    second = f"{PREFIX}SELECT ?p ?n {{ STREAM <{OUT}> [TRIPLES 2] {{ ?s ?p ?n }} }}"
    for _ in range(6):
        pushed = [
            Element(time * SECOND, URIRef(STREAMS + "s"), tuple(_drawn_triple(random) for _ in range(3)))
            for time in itertools.accumulate(random.choice([0, 1, 2]) for _ in range(10))
        ]
        found = [Counter(run_chain([first, second], pushed, batch)) for batch in (1, 3, None)]
        assert found[0] and found[0] == found[1] == found[2]


def _drawn_triple(random: Random) -> naive_chains.Triple:
    subject, predicate, number = random.choice("abc"), random.choice("pq"), random.randrange(6)
    return traces.term(subject), traces.term(predicate), traces.term(str(number))


def test_three_in_a_row_in_any_order_of_registration() -> None:
    last = URIRef(f"{EX}last")
    template = f"REGISTER RSTREAM <{last}> AS CONSTRUCT {{ ?s :again ?n }}"
    middle = f"{PREFIX}{template} {{ STREAM <{OUT}> [COUNT 2] {{ ?s :seen ?n }} }}"
    end = f"{PREFIX}SELECT ?s ?n {{ STREAM <{last}> [RANGE 2s] {{ ?s :again ?n }} }}"
    first = feeder("ISTREAM", "[RANGE 2s]")
    once = naive_chains.constructed(harness.parse(first), elements(), OUT)
    twice = naive_chains.constructed(harness.parse(middle), [element for _, element in once], last)
    expected = harness.expected_changes(harness.parse(end), [element for _, element in twice])
    for batch in (1, 3, None):
        for texts, read in (([first, middle, end], 2), ([end, middle, first], 0)):
            engine = cqels_py.Engine(batch=batch or 100)
            queries = [engine.register(text) for text in texts]
            for element in elements():
                engine.push(str(element.stream), list(element.triples), time=element.time)
            engine.finish()
            harness.check_equal(expected, [harness._result(result) for result in queries[read].results()])


def test_other_streams_of_the_reader_move_the_time_on() -> None:
    """An expiry in the feeding query is delivered before its reader sees a later element of another stream."""
    first = f"{PREFIX}REGISTER RSTREAM <{OUT}> AS {CONSTRUCT % (STREAMS + 's', '[RANGE 2s]')}"
    second = (
        f"{PREFIX}SELECT * {{ STREAM <{OUT}> [COUNT 1] {{ ?s :seen ?n }} STREAM <{STREAMS}t> [NOW] {{ ?t :q ?m }} }}"
    )
    source = [
        (0, "s", "a p 1"),
        (1, "s", "b p 1"),
        (10, "t", "x q 1"),
        (10, "s", "c p 1"),
        (11, "t", "x q 2"),
    ]
    pushed = [
        Element(t * SECOND, URIRef(STREAMS + name), (tuple(map(traces.term, triple.split())),))  # type: ignore[arg-type]
        for t, name, triple in source
    ]
    told = {
        batch: [(r.time, r.sign, r.mapping) for r in run_chain([first, second], pushed, batch)]
        for batch in (1, 2, 3, None)
    }
    assert told[1] == told[2] == told[3] == told[None]
    joined = [
        (time // SECOND, str(dict(mapping)[harness.Variable("s")])[-1]) for time, sign, mapping in told[1] if sign > 0
    ]
    # At 2 s the answer is b alone, at 10 c, which comes after the other stream's element.
    assert joined == [(10, "b"), (10, "c"), (11, "c")]


GONE = f"""{PREFIX}REGISTER ISTREAM :gone AS CONSTRUCT {{ ?x :gone ?y }} FROM NAMED WINDOW :w ON <{STREAMS}s> [RANGE PT5S]
    FROM NAMED WINDOW :v ON <{STREAMS}s> [RANGE PT100S]
    WHERE {{ WINDOW :v {{ ?x :p ?y }} FILTER NOT EXISTS {{ WINDOW :w {{ ?x :p ?y }} }} }}"""
HERE = (
    PREFIX + "REGISTER ISTREAM :here AS CONSTRUCT {{ ?x :here ?y }} {{ STREAM {source} [RANGE 5s] {{ ?x {said} ?y }} }}"
)
BOTH = f"{PREFIX}SELECT ?x ?z {{ STREAM :gone [ALL] {{ ?x :gone ?y }} STREAM :here [RANGE 3s] {{ ?z :here ?q }} }}"
BETWEEN = (
    f"{PREFIX}REGISTER ISTREAM :between AS CONSTRUCT {{ ?x :q ?y }} {{ STREAM <{STREAMS}t> [RANGE 5s] {{ ?x :p ?y }} }}"
)
_SAID = [(0, "s", "a"), (4, "t", "k"), (10, "t", "c"), (11, "s", "e"), (12, "t", "g"), (30, "s", "e")]


@pytest.mark.parametrize("between", [False, True])
def test_two_feeders_of_one_reader_in_any_order_of_registration(between: bool) -> None:
    """Results of one query as time passes come before later results of another one, whatever streams move the time."""
    pushed = [
        Element(time * SECOND, URIRef(STREAMS + s), ((traces.term(x), traces.term("p"), traces.term("b")),))
        for time, s, x in _SAID
    ]
    direct = HERE.format(source=f"<{STREAMS}t>", said=":p")
    other = HERE.format(source=":between", said=":q") if between else direct
    gone = naive_chains.constructed(harness.parse(GONE), pushed, URIRef(f"{EX}gone"))
    # The query between passes elements on, so it makes no difference.
    here = naive_chains.constructed(harness.parse(direct), pushed, URIRef(f"{EX}here"))
    expected = harness.expected_changes(
        harness.parse(BOTH), naive_chains.merged(pushed, [*here, *gone]), None, Output.CHANGELOG
    )
    texts = [GONE, other, BOTH, *([BETWEEN] if between else [])]
    for order in itertools.permutations(texts):
        for batch in (1, 2, None):
            engine = cqels_py.Engine(batch=batch or 100)
            queries = {text: engine.register(text, changelog=text is BOTH) for text in order}
            for element in pushed:
                engine.push(str(element.stream), list(element.triples), time=element.time)
            engine.finish()
            told = [harness._result(result) for result in queries[BOTH].results()]
            harness.check_equal(expected, told, f"{[text[:60] for text in order]}, batch {batch}")


def test_an_element_pushed_to_a_fed_stream_moves_the_time_on() -> None:
    reader = f"{PREFIX}SELECT ?x {{ STREAM :gone [COUNT 1] {{ ?x ?p ?y }} }}"
    a, p = URIRef(EX + "a"), URIRef(EX + "p")
    for batch in (1, 10):
        engine = cqels_py.Engine(batch=batch)
        engine.register(GONE)
        query = engine.register(reader)
        engine.push(STREAMS + "s", [(a, p, a)], time=0)
        engine.push(EX + "gone", [(URIRef(EX + "x"), p, a)], time=10 * SECOND)
        engine.push(STREAMS + "s", [(URIRef(EX + "b"), p, a)], time=11 * SECOND)
        engine.finish()
        assert [(r.time // SECOND, str(r.bindings["x"])[-1]) for r in query.results()] == [(5, "a"), (10, "x")]


def test_an_update_of_static_data_has_the_time_of_the_last_element_that_reached_the_readers() -> None:
    first = f"""{PREFIX}REGISTER ISTREAM :gone AS CONSTRUCT {{ ?x :gone ?n }}
        {{ STREAM <{STREAMS}s> [RANGE 100s] {{ ?x :p ?y }} ?x :name ?n }}"""
    second = HERE.format(source=f"<{STREAMS}t>", said=":p")
    a, p = URIRef(EX + "a"), URIRef(EX + "p")
    for order in itertools.permutations([first, second, BOTH]):
        engine = cqels_py.Engine()
        queries = {text: engine.register(text) for text in order}
        engine.push(STREAMS + "s", [(a, p, a)], time=0)
        engine.push(STREAMS + "t", [(a, p, a)], time=10 * SECOND)
        queries[first].update_static(static=[[(a, URIRef(EX + "name"), Literal("A"))]])
        assert [result.time // SECOND for text in (first, BOTH) for result in queries[text].results()] == [10, 10]


def test_an_update_of_static_data_feeds_too() -> None:
    engine = cqels_py.Engine()
    name = (URIRef(EX + "a"), URIRef(EX + "name"), Literal("A"))
    first = engine.register(
        f"{PREFIX}REGISTER ISTREAM <{OUT}> AS CONSTRUCT {{ ?s :seen ?n }} {{ STREAM <{STREAMS}s> [ALL] {{ ?s :p ?x }} ?s :name ?n }}"
    )
    second = engine.register(PREFIX + READERS[0])
    engine.push(STREAMS + "s", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(1))], time=5)
    first.update_static(static=[[name]])
    assert [(result.time, str(result.bindings["n"])) for result in second.results()] == [(5, "A")]


def test_connected_by_hand() -> None:
    engine = cqels_py.Engine()
    first = engine.register(PREFIX + CONSTRUCT % (STREAMS + "s", "[RANGE 2s]"))
    second = engine.register(PREFIX + READERS[0])
    engine.connect(first, str(OUT))
    engine.push(STREAMS + "s", [(URIRef(EX + "a"), URIRef(EX + "p"), Literal(1))], time=5)
    assert [result.bindings["n"] for result in second.results()] == [Literal(1)]
    engine.unregister(first)
    engine.push(str(OUT), [(URIRef(EX + "b"), URIRef(EX + "seen"), Literal(2))], time=6)
    assert [result.bindings["n"] for result in second.results()] == [Literal(2)]


def test_blank_nodes_of_a_template_are_new_for_each_solution() -> None:
    engine = cqels_py.Engine()
    template = f"REGISTER ISTREAM <{OUT}> AS CONSTRUCT {{ _:x :about ?s . _:x :seen ?n }}"
    engine.register(f"{PREFIX}{template} {{ STREAM <{STREAMS}s> [RANGE 9s] {{ ?s :p ?n }} }}")
    query = engine.register(f"{PREFIX}SELECT * {{ STREAM <{OUT}> [ALL] {{ ?x :about ?s ; :seen ?n }} }}")
    a, b, p = URIRef(EX + "a"), URIRef(EX + "b"), URIRef(EX + "p")
    engine.push(STREAMS + "s", [(a, p, Literal(1)), (b, p, Literal(2))], time=5)
    engine.push(STREAMS + "s", [(a, p, Literal(1))], time=6)
    found = list(query.results())
    assert [(r.bindings["s"], r.bindings["n"]) for r in found] == [(a, Literal(1)), (b, Literal(2)), (a, Literal(1))]
    assert len({r.bindings["x"] for r in found}) == 3
    assert all(isinstance(r.bindings["x"], BNode) for r in found)


@pytest.mark.parametrize(
    ("text", "changelog", "message"),
    [
        (
            f"{PREFIX}REGISTER ISTREAM <{OUT}> AS SELECT ?s {{ STREAM <{STREAMS}s> [NOW] {{ ?s :p ?n }} }}",
            False,
            "SELECT query",
        ),
        (feeder("DSTREAM", "[RANGE 2s]"), False, "the DSTREAM of a query"),
        (feeder("ISTREAM", "[RANGE 2s]"), True, "the CHANGELOG of a query"),
        (
            f"{PREFIX}REGISTER ISTREAM <{OUT}> AS CONSTRUCT {{ ?s :seen ?n }} {{ STREAM <{OUT}> [RANGE 2s] {{ ?s :seen ?n }} }}",
            False,
            "in a cycle",
        ),
    ],
)
def test_queries_that_cannot_feed_a_stream_are_refused(text: str, changelog: bool, message: str) -> None:
    engine = cqels_py.Engine()
    reader = engine.register(PREFIX + READERS[0])
    with pytest.raises(UsageError, match=message):
        engine.register(text, changelog=changelog)
    # A refused query leaves no trace.
    engine.push(str(OUT), [(URIRef(EX + "b"), URIRef(EX + "seen"), Literal(2))], time=6)
    assert len(list(reader.results())) == 1


def test_a_fed_stream_has_its_own_time() -> None:
    engine = cqels_py.Engine()
    engine.register(feeder("ISTREAM", "[RANGE 2s]"))
    with pytest.raises(UsageError, match="leave out @"):
        engine.register(f"{PREFIX}SELECT * {{ STREAM <{OUT}> [RANGE 2s] @ :when {{ ?s :seen ?n }} }}")


# --- from file to file --------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("format_", ["nquads", "trig"])
def test_through_files_it_is_the_same(format_: str, tmp_path: Path) -> None:
    first, second = feeder("RSTREAM", "[RANGE 2s]"), PREFIX + READERS[1]
    cells = [
        [str(element.time), f"<urn:element:{number}>", *(term.n3() for term in triple)]
        for number, element in enumerate(elements())
        for triple in element.triples
    ]
    source = tmp_path / "s.tsv"
    source.write_text("\n".join(map("\t".join, [["time", "graph", "subject", "predicate", "object"], *cells])) + "\n")
    made = tmp_path / ("made.nq" if format_ == "nquads" else "made.trig")
    options = ["--stream", f"{STREAMS}s={source}", "--format", format_, "--output", str(made)]
    assert main(["run", "-q", first, *options]) == 0
    engine = cqels_py.Engine()
    query = engine.register(second)
    engine.run({str(OUT): str(made)})
    found = [harness._result(result) for result in query.results()]
    assert found == [result for result in run_chain([first, second], elements(), 1) if result.sign > 0]


def test_through_a_pipe(tmp_path: Path) -> None:
    source = tmp_path / "s.csv"
    source.write_text('time,subject,predicate,object\n1000000,<http://ex.org/a>,<http://ex.org/p>,"""1"""\n')
    run = [sys.executable, "-m", "cqels_py", "run"]
    environment = {**os.environ, "COLUMNS": "80"}
    first = subprocess.Popen(
        [*run, "-q", feeder("ISTREAM", "[RANGE 2s]"), "--stream", f"{STREAMS}s={source}"],
        stdout=subprocess.PIPE, env=environment,
    )  # fmt: skip
    finished = subprocess.run(
        [*run, "-q", PREFIX + READERS[0], "--stream", f"{OUT}=-", "--format", "csv"],
        stdin=first.stdout, capture_output=True, text=True, env=environment, check=True,
    )  # fmt: skip
    assert first.wait() == 0
    assert finished.stdout.splitlines() == ["time,sign,s,n", "1970-01-01T00:00:01Z,+,http://ex.org/a,1"]


def test_of_a_query_that_feeds_others_the_last_results_wait() -> None:
    engine = cqels_py.Engine()
    first = engine.register(
        f"PREFIX : <{EX}> REGISTER ISTREAM :o AS CONSTRUCT {{ ?s :x ?v }} {{ STREAM :s [NOW] {{ ?s :p ?v }} }}"
    )
    second = engine.register(f"PREFIX : <{EX}> SELECT ?v {{ STREAM :o [NOW] {{ ?s :x ?v }} }}")
    taken: list[int] = []
    second.subscribe_batches(lambda batch: taken.append(len(batch)), ids=True)
    rows = MOST_OF_A_FEED + 5_000
    engine.push_batch(
        EX + "s",
        pa.table(
            {
                "time": range(rows),
                "subject": [f"<{EX}a>"] * rows,
                "predicate": [f"<{EX}p>"] * rows,
                "object": [f'"{n}"^^<http://www.w3.org/2001/XMLSchema#integer>' for n in range(rows)],
            }
        ),
    )
    assert sum(taken) == rows
    waiting = list(first.results())
    assert [result.time for result in waiting] == list(range(5_000, rows))
    assert first.dropped == 5_000
    engine.push(EX + "s", [(f"<{EX}a>", f"<{EX}p>", '"new"')], time=rows)
    assert [str(result.bindings["v"]) for result in first.results()] == ["new"]


def _told_by(order: str, batch: int, queries: dict[str, str]) -> list[tuple[int, str]]:
    """The results of the reader R over two streams, whose queries are registered in this order."""
    engine = cqels_py.Engine(batch=batch)
    (reader,) = [engine.register(PREFIX + queries[name]) for name in order.split()][-1:]
    for time, stream, name in [(0, "s1", "a"), (4, "s2", "k"), (10, "s2", "c"), (11, "s1", "e"), (12, "s2", "g")]:
        engine.push(EX + stream, [(URIRef(EX + name), URIRef(EX + "p"), URIRef(EX + "b"))], time=time * SECOND)
    engine.finish()
    return [(result.time // SECOND, str(result.bindings["z"]).removeprefix(EX)) for result in reader.results()]


def test_time_begins_with_the_first_element_where_queries_are_connected_before_it() -> None:
    engine = cqels_py.Engine()
    feeder = engine.register(f"{PREFIX} CONSTRUCT {{ ?x :q ?y }} WHERE {{ STREAM :s1 [RANGE 5s] {{ ?x :p ?y }} }}")
    reader = engine.register(f"{PREFIX} SELECT (COUNT(*) AS ?n) WHERE {{ STREAM :fed [RANGE 5s] {{ ?x :q ?y }} }}")
    engine.connect(feeder, EX + "fed")
    for time in (8, 9):
        engine.push(EX + "s1", [(URIRef(f"{EX}a{time}"), URIRef(EX + "p"), URIRef(EX + "b"))], time=time * SECOND)
    assert [(each.time // SECOND, int(each.bindings["n"])) for each in reader.results()] == [(8, 1), (9, 2)]


@pytest.mark.parametrize("order", ["F1 F2 R", "F2 F1 R"])
def test_a_feeder_keeps_up_with_other_feeders_of_its_readers(order: str) -> None:
    """F1 has a result as time passes, and time is moved by elements that only F2 reads."""
    block = "FROM NAMED WINDOW :w ON :s%d [RANGE PT5S]"
    queries = {
        "F1": f"REGISTER ISTREAM :out1 AS CONSTRUCT {{ ?x :gone ?y }} {block % 1} FROM NAMED WINDOW :v ON :s1 [RANGE PT100S] "
        "WHERE { WINDOW :v { ?x :p ?y } FILTER NOT EXISTS { WINDOW :w { ?x :p ?y } } }",
        "F2": f"REGISTER ISTREAM :out2 AS CONSTRUCT {{ ?x :here ?y }} {block % 2} WHERE {{ WINDOW :w {{ ?x :p ?y }} }}",
        "R": "SELECT ?x ?z { STREAM :out1 [ALL] { ?x :gone ?y } STREAM :out2 [RANGE 3s] { ?z :here ?q } }",
    }
    for batch in (1, 2, 3, 100):
        assert _told_by(order, batch, queries) == [(5, "k"), (10, "c"), (12, "g")]
