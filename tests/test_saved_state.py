"""The state of a query, taken out as data and put back into a new engine, goes on as if nothing had been.

Each test runs a trace twice, with the same flushes: undisturbed, and with the state written to bytes after some elements and read
back into a new engine. Results are to be the same ones in the same order, within a tick too.

    elements    ● ● ● ● ✂ ● ● ● ✂ ● ●        ✂: state to bytes, new engine, bytes to state
"""

from __future__ import annotations

import inspect
import io
import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from importlib import import_module
from pathlib import Path
from pkgutil import walk_packages
from random import Random
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from rdflib import URIRef

import cqels_py as cqels
from cqels_py import operators
from cqels_py.algebra.nodes import Dialect
from cqels_py.dataflow.saved_state import DataflowState, dictionary_state, restore_dictionary
from cqels_py.dictionary import Dictionary
from cqels_py.engine.durable.saved_state import restore_engine, state_of_engine
from cqels_py.errors import RunError, UsageError
from cqels_py.state.named_values import values_of
from tests.oracle.naive import Element, Static
from tests.oracle.naive_values import typed
from tests.support import harness
from tests.support.drawn_events import STATIC as EVENT_DATA
from tests.support.drawn_events import EventDrawer, drawn_elements
from tests.support.generators import C_SPARQL_WINDOWS, FEATURES, FEW, SOAKING, WINDOWS, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS, iri

PREFIX = f"PREFIX : <{EX}> "
SOME = settings() if SOAKING else settings(max_examples=8)
ONE, TWO = (f"STREAM <{STREAMS}{name}>" for name in ("one", "two"))


# --- to bytes and back --------------------------------------------------------------------------------------------


def written(state: DataflowState) -> tuple[bytes, bytes]:
    """The arrays as a file of numpy without objects, the rest as JSON."""
    arrays = {f"{p}|{n}": v for p, values in state.items() for n, v in values.items() if isinstance(v, np.ndarray)}
    plain = {p: {n: v for n, v in values.items() if not isinstance(v, np.ndarray)} for p, values in state.items()}
    out = io.BytesIO()
    np.savez(out, allow_pickle=False, **arrays)
    return out.getvalue(), json.dumps(plain, allow_nan=False).encode()


def read(arrays: bytes, plain: bytes) -> DataflowState:
    state: DataflowState = json.loads(plain)
    with np.load(io.BytesIO(arrays), allow_pickle=False) as found:
        for key in found.files:
            path, name = key.split("|")
            state[path][name] = found[key]
    return state


# --- a trace with cuts --------------------------------------------------------------------------------------------


class Run:
    """Queries over a trace, in an engine that may be replaced by another one with the same state."""

    def __init__(self, texts: Sequence[str], static: Static, *, batch: int, changelog: bool, lateness: int = 0) -> None:
        self._texts = texts
        self._how = {"batch": batch, "lateness": lateness}
        self._given = {
            **({"static": [list(static.default)]} if static.default else {}),
            "static_graphs": {str(name): list(triples) for name, triples in static.named.items()},
            "changelog": changelog,
        }
        self.results: list[list[Any]] = [[] for _ in texts]
        self._open(None, [])

    def _open(self, engine_state: tuple[bytes, bytes] | None, states: Sequence[tuple[bytes, bytes]]) -> None:
        self._engine = cqels.Engine(**self._how)
        if engine_state is not None:
            restore_engine(self._engine, read(*engine_state))
        self.queries = [self._engine.register(text, **self._given) for text in self._texts]
        for query, state in zip(self.queries, states, strict=False):
            dataflow_of(query).restore(read(*state))
        for query, results in zip(self.queries, self.results, strict=True):
            query.subscribe(lambda r, results=results: results.append((r.time, r.sign, r.boolean, shown(r.bindings))))

    def replace(self) -> None:
        """Go on in a new engine."""
        states = [written(dataflow_of(query).state()) for query in self.queries]
        self._open(written(state_of_engine(self._engine)), states)

    def push(self, trace: Sequence[Element]) -> Run:
        timed = {w.stream for text in self._texts for w in harness.parse(text).windows if w.time_predicate is not None}
        for element in trace:
            time = None if element.stream in timed else element.time
            if any(str(element.stream) in query.streams for query in self.queries):
                self._engine.push(str(element.stream), list(element.triples), time=time, graph=element.graph)
        self._engine.flush()
        return self

    def through(self, trace: Sequence[Element], cuts: Sequence[int], *, replace: bool) -> list[list[Any]]:
        """The results of the whole trace; flushed after so many elements, and from there on in a new engine if wanted."""
        done = 0
        for cut in cuts:
            self.push(trace[done:cut])
            done = cut
            if replace:
                self.replace()
        self.push(trace[done:])
        self._engine.finish()
        return self.results


def shown(bindings: dict[str, Any]) -> tuple[tuple[str, str], ...]:
    return tuple((name, term.n3()) for name, term in bindings.items() if term is not None)


def dataflow_of(query: cqels.Query) -> Any:
    return query._dataflow


def assert_goes_on(
    texts: str | Sequence[str],
    trace: Sequence[Element],
    cuts: Sequence[int],
    static: Static | None = None,
    *,
    batch: int = 3,
    changelog: bool = True,
    lateness: int = 0,
) -> int:
    """The same results with and without replacing the engine; returns how many there are."""
    texts = [texts] if isinstance(texts, str) else texts
    given = texts, static or Static()
    one, other = (Run(*given, batch=batch, changelog=changelog, lateness=lateness) for _ in range(2))
    expected = one.through(trace, cuts, replace=False)
    assert other.through(trace, cuts, replace=True) == expected
    return sum(map(len, expected))


# --- all kinds of queries -----------------------------------------------------------------------------------------


def check(
    scenario: Scenario, data: st.DataObject, dialect: Dialect = Dialect.CQELS_QL, *, changelog: bool = True
) -> None:
    if dialect not in scenario.texts:
        return
    trace = scenario.elements
    cuts = sorted(data.draw(st.sets(st.integers(1, max(1, len(trace))), min_size=1, max_size=2), label="cuts"))
    batch = data.draw(st.sampled_from([1, 4, 100]), label="batch")
    with answerable():
        assert_goes_on(scenario.texts[dialect], trace, cuts, scenario.static, batch=batch, changelog=changelog)


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_each_feature(feature: str) -> None:
    @SOME
    @given(scenarios({"join", feature}, {"range", "count", "triples"}), st.data())
    def run(scenario: Scenario, data: st.DataObject) -> None:
        check(scenario, data)

    run()


@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_each_window(window: str) -> None:
    @SOME
    @given(scenarios({"join", "aggregate"}, {window}), st.data())
    def run(scenario: Scenario, data: st.DataObject) -> None:
        check(scenario, data)

    run()


@FEW
@given(scenarios(FEATURES, WINDOWS), st.data())
def test_everything_together(scenario: Scenario, data: st.DataObject) -> None:
    check(scenario, data)


@FEW
@given(scenarios({"join", "filter", "aggregate", "order"}, C_SPARQL_WINDOWS), st.data())
def test_whole_answers(scenario: Scenario, data: st.DataObject) -> None:
    check(scenario, data, Dialect.C_SPARQL, changelog=False)


# --- state that has grown -----------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(8))
def test_events_without_windows(seed: int) -> None:
    random = Random(seed)
    drawn = EventDrawer(random)
    texts = [drawn.text(), drawn.text(), drawn.aggregates()]
    assert_goes_on(texts, drawn_elements(random, 24), [5, 13], EVENT_DATA, batch=random.choice((1, 4)))


def long_trace(count: int, keys: int) -> list[Element]:
    """Elements of two streams, in turn, with keys and numbers that come again now and then, and some new terms."""
    rng = np.random.default_rng(7)
    found = []
    for number in range(count):
        key, value = iri(f"k{rng.integers(keys)}"), int(rng.integers(50))
        literal = typed(str(value), "http://www.w3.org/2001/XMLSchema#integer")
        text = typed(f"text {number % 300}", "http://www.w3.org/2001/XMLSchema#string")
        triples = ((key, iri("p"), literal), (key, iri("q"), iri(f"k{rng.integers(keys)}")), (key, iri("name"), text))
        found.append(Element(number * 1000, URIRef(STREAMS + ("two", "one")[number % 2]), triples))
    return found


LARGE = {
    "join": f"SELECT * {{ {ONE} [RANGE 300ms] {{ ?k :p ?x }} {TWO} [COUNT 200] {{ ?k :p ?y ; :q ?z }} }}",
    "chain": f"SELECT * {{ {ONE} [RANGE 200ms] {{ ?k :q ?l }} {TWO} [RANGE 100ms] {{ ?l :q ?m . ?m :p ?x }} }}",
    "extremes": f"SELECT ?k (MIN(?n) AS ?a) (MAX(?x) AS ?b) {{ {ONE} [COUNT 300] {{ ?k :p ?x ; :name ?n }} }} GROUP BY ?k",
    "bags": f"SELECT ?x (MIN(?n) AS ?a) (GROUP_CONCAT(?n) AS ?c) {{ {ONE} [COUNT 5 PARTITION BY ?k] {{ ?k :p ?x ; :name ?n }} }} "
    "GROUP BY ?x",
    "factorised": f"SELECT ?x (SUM(?y) AS ?s) (COUNT(*) AS ?n) (MAX(?y) AS ?m) {{ {ONE} [RANGE 500ms] {{ ?k :p ?x }} "
    f"{TWO} [RANGE 500ms] {{ ?k :p ?y }} }} GROUP BY ?x",
    "by the key": f"SELECT ?k (SUM(?y) AS ?s) (AVG(?x) AS ?n) {{ {ONE} [RANGE 500ms] {{ ?k :p ?x }} "
    f"{TWO} [RANGE 500ms] {{ ?k :p ?y }} }} GROUP BY ?k",
    "distinct": f"SELECT DISTINCT ?n (COUNT(DISTINCT ?x) AS ?c) {{ {ONE} [COUNT 400] {{ ?k :p ?x ; :name ?n }} }} GROUP BY ?n",
    "minus": f"SELECT * {{ {ONE} [COUNT 400] {{ ?k :p ?x }} MINUS {{ {TWO} [COUNT 30] {{ ?k :q ?y }} }} }}",
    "optional": f"SELECT * {{ {ONE} [COUNT 90] {{ ?k :p ?x }} OPTIONAL {{ {TWO} [COUNT 90] {{ ?k :name ?y }} }} }}",
    "paths": f"SELECT * {{ {ONE} [COUNT 60] {{ ?k :q+ ?l }} }}",
    "top": f"SELECT ?k ?x {{ {ONE} [COUNT 500] {{ ?k :p ?x }} }} ORDER BY DESC(?x) ?k LIMIT 7",
    "sessions": f"SELECT * {{ {ONE} [SESSION 40ms PARTITION BY ?k] {{ ?k :p ?x }} }}",
}


@pytest.mark.parametrize("name", LARGE)
def test_state_that_has_grown(name: str) -> None:
    trace = long_trace(900, 40)
    assert assert_goes_on(PREFIX + LARGE[name], trace, [2, 450, 700], batch=50) > 50


# --- several queries, other terms, static data --------------------------------------------------------------------


def test_queries_that_share_scans_and_sub_plans() -> None:
    join = f"{ONE} [COUNT 30] {{ ?k :p ?x }} {TWO} [COUNT 30] {{ ?k :p ?y }}"
    texts = [
        f"{PREFIX} SELECT * {{ {join} }}",
        f"{PREFIX} SELECT DISTINCT ?x ?y {{ {join} }}",
        f"{PREFIX} SELECT * {{ {join} FILTER(?x > 40) }}",
        f"{PREFIX} SELECT * {{ {ONE} [COUNT 30] {{ :nobody :p ?x }} {TWO} [COUNT 30] {{ ?k :p ?x }} }}",
    ]
    assert assert_goes_on(texts, long_trace(200, 6), [1, 60, 130], batch=1) > 100


def test_a_sub_plan_that_a_query_reads_twice() -> None:
    text = f"{PREFIX} SELECT * {{ {ONE} [COUNT 5] {{ ?a :p ?x }} {ONE} [COUNT 5] {{ ?b :p ?x }} }}"
    assert assert_goes_on(text, long_trace(60, 4), [21, 40]) > 50


def test_elements_that_wait_for_the_watermark() -> None:
    """Out of order by up to four places; some are late and dropped, before and after."""
    trace = long_trace(120, 4)
    order = sorted(range(len(trace)), key=lambda place: place + 5 * (place * 7 % 5))
    text = f"{PREFIX} SELECT * {{ {ONE} [RANGE 9ms] {{ ?k :p ?x }} }}"
    assert assert_goes_on(text, [trace[place] for place in order], [31, 77], lateness=9000, batch=5) > 50


def test_static_data_may_change_afterwards() -> None:
    text = f"{PREFIX} SELECT ?k ?l {{ {ONE} [COUNT 3] {{ ?k :p ?x }} ?k :label ?l }}"
    label = {number: (iri(f"k{number}"), iri("label"), iri(f"l{number}")) for number in range(4)}
    found = []
    for replace in (False, True):
        run = Run([text], Static([label[0], label[1]]), batch=1, changelog=True)
        run.push(long_trace(12, 4))
        if replace:
            run.replace()
        run.queries[0].update_static(static=[[label[1], label[2], label[3]]])
        found.append(run.push(long_trace(24, 4)[12:]).results)
    assert found[0] == found[1]
    assert found[0][0]


@pytest.mark.parametrize("bits", [3, 60])
def test_terms_keep_their_ids(bits: int) -> None:
    terms = [f"<http://e.org/{n}>" for n in range(40)]
    before, after = Dictionary(hash_bits=bits), Dictionary(hash_bits=bits)
    ids = before.encode(terms)
    before.next_document()
    restore_dictionary(after, read(*written({"terms": dictionary_state(before)}))["terms"])
    assert after.decode(ids) == terms
    assert after.encode(terms).tolist() == ids.tolist()
    more = [f"<http://e.org/more/{n}>" for n in range(40)]
    assert after.encode(more).tolist() == before.encode(more).tolist()
    assert after.next_document() == before.next_document()


# --- what is refused ----------------------------------------------------------------------------------------------


JOIN = f"{PREFIX} SELECT * {{ {ONE} [COUNT 3] {{ ?k :p ?x }} ?k :label ?l }}"
STATIC = [[(iri("k0"), iri("label"), iri("l"))]]


def running(text: str = JOIN, static: Any = STATIC) -> tuple[cqels.Engine, cqels.Query]:
    engine = cqels.Engine()
    query = engine.register(text, static=static)
    for element in long_trace(20, 3):
        if str(element.stream) in query.streams:
            engine.push(str(element.stream), list(element.triples), time=element.time)
    return engine, query


def fresh(text: str = JOIN, static: Any = STATIC) -> Any:
    return dataflow_of(cqels.Engine().register(text, static=static))


def test_another_plan_is_refused() -> None:
    state = dataflow_of(running()[1]).state()
    with pytest.raises(UsageError, match="its plan was another one"):
        fresh(JOIN.replace("COUNT 3", "COUNT 4")).restore(state)


def test_other_static_data_is_refused() -> None:
    state = dataflow_of(running()[1]).state()
    with pytest.raises(UsageError, match="static data differs"):
        fresh(static=[[(iri("k1"), iri("label"), iri("l"))]]).restore(state)


def test_a_state_is_restored_once_and_first() -> None:
    engine, query = running()
    with pytest.raises(UsageError, match="before the first element"):
        dataflow_of(query).restore(dataflow_of(query).state())
    with pytest.raises(UsageError, match="before a dictionary has any"):
        restore_dictionary(engine.dictionary, dictionary_state(engine.dictionary))


def test_what_is_missing_of_another_type_or_left_over_is_named() -> None:
    state = dataflow_of(running()[1]).state()
    path = next(path for path, values in state.items() if "window.varints" in values)
    for name, value, message in (
        ("window.varints", np.zeros(3), f"{path}: .* no array of 1 dimensions of uint8 as window.varints"),
        ("window.start", np.zeros(3), "an array as window.start"),
        ("window.other", 3, r"are not used here: window\.other"),
    ):
        with pytest.raises(UsageError, match=message):
            fresh().restore({**state, path: {**state[path], name: value}})
    without = {name: value for name, value in state[path].items() if name != "window.end"}
    with pytest.raises(UsageError, match=r"no window\.end"):
        fresh().restore({**state, path: without})
    with pytest.raises(UsageError, match="nothing for clock"):
        fresh().restore({path: values for path, values in state.items() if path != "clock"})
    with pytest.raises(UsageError, match="format 0; this version reads 2"):
        fresh().restore({**state, "dataflow": {**state["dataflow"], "format": 0}})


def test_a_query_beside_a_restored_one_is_restored_too() -> None:
    text = f"{PREFIX} SELECT * {{ {ONE} [COUNT 3] {{ ?k :p ?x }} }}"
    state = dataflow_of(running(text, ())[1]).state()
    engine = cqels.Engine()
    first, _ = engine.register(text), engine.register(text.replace("?x", "?y"))
    dataflow_of(first).restore(state)
    with pytest.raises(RunError, match="was not restored"):
        engine.push(f"{STREAMS}one", [(iri("k"), iri("p"), iri("x"))], time=10**9)


def classes_of_operators() -> Iterator[type]:
    for module in walk_packages(operators.__path__, f"{operators.__name__}."):
        for _, each in inspect.getmembers(import_module(module.name), inspect.isclass):
            if each.__module__ == module.name and {"process", "live_ids"} <= set(dir(each)):
                yield each


def test_every_operator_says_what_its_state_is() -> None:
    found = {each for each in classes_of_operators() if not getattr(each, "_is_protocol", False)}
    assert len(found) > 15
    assert [each.__name__ for each in found if not hasattr(each, "STATE")] == []


def test_a_plan_has_the_same_digest_in_every_process() -> None:
    """The order in which sets are gone through differs from process to process."""
    program = (
        "from pathlib import Path; from cqels_py.engine.compile import compile_query; from cqels_py.plan.digest import digest_of\n"
        "for path in sorted(Path('queries/srbench').glob('*.rq')): print(digest_of(compile_query(path.read_text()).plan))"
    )
    found = {
        subprocess.run(
            [sys.executable, "-c", program],
            env={**os.environ, "PYTHONHASHSEED": seed},
            capture_output=True,
            check=True,
            cwd=Path(__file__).parents[1],
        ).stdout
        for seed in ("1", "2")
    }
    (digests,) = found
    assert len(set(digests.split())) > 5


def replaced(engine: cqels.Engine, text: str, **options: Any) -> tuple[cqels.Engine, cqels.Query]:
    """Another engine with the state of this one and of its query."""
    other = cqels.Engine(**options)
    (before,) = engine._queries
    state = written(dataflow_of(before).state())
    restore_engine(other, read(*written(state_of_engine(engine))))
    query = other.register(text)
    dataflow_of(query).restore(read(*state))
    return other, query


def test_blank_nodes_of_elements_pushed_later_are_other_ones() -> None:
    text = PREFIX + f"SELECT (COUNT(DISTINCT ?s) AS ?n) {{ {ONE} [ALL] {{ ?s :p ?o }} }}"
    engine = cqels.Engine()
    engine.register(text)
    engine.push(f"{STREAMS}one", [("_:b", iri("p"), '"1"')], time=1)
    engine, query = replaced(engine, text)
    engine.push(f"{STREAMS}one", [("_:b", iri("p"), '"1"')], time=2)
    assert [int(result.bindings["n"]) for result in query.results()] == [2]


def test_counts_go_on_and_reports_that_are_made_once_are_not_repeated(caplog: pytest.LogCaptureFixture) -> None:
    text = PREFIX + f"SELECT (SUM(?o) AS ?n) {{ {ONE} [ALL] {{ ?s :p ?o }} }}"
    reports: list[str] = []
    options = {"report": lambda error: reports.append(str(error))}
    engine = cqels.Engine(**options)
    engine.register(text)

    def push(engine: cqels.Engine, value: str, time: int) -> None:
        engine.push(f"{STREAMS}one", [(iri("s"), iri("p"), value)], time=time)

    # A time of seconds; a term that is no number, and a number that is too large.
    push(engine, '"x"', 1_714_564_800)
    push(engine, f'"{10**40}"^^<http://www.w3.org/2001/XMLSchema#integer>', 1_714_564_801)
    push(engine, '"late"', 1)
    before, logged = engine.statistics, len(caplog.records)
    assert (before.elements, before.late, before.no_numbers) == (3, 1, 2)
    kinds = ("seconds?", "is not a number", "dropped as late data")
    assert sorted(kind for report in reports for kind in kinds if kind in report) == sorted(kinds)
    assert len(reports) == 3
    assert logged == 1
    engine, _ = replaced(engine, text, **options)
    assert engine.statistics == before
    reports.clear()
    push(engine, '"x"', 1_714_564_802)
    push(engine, f'"{10**41}"^^<http://www.w3.org/2001/XMLSchema#integer>', 1_714_564_803)
    push(engine, '"late"', 1)
    assert [("dropped as late data" in report) for report in reports] == [True]
    assert len(caplog.records) == logged
    assert engine.statistics.no_numbers == 4


def test_what_has_no_state_to_tell_is_refused() -> None:
    class Silent:
        STATE = ("_secret",)
        _secret = object()

    with pytest.raises(UsageError, match="state of object cannot be taken out"):
        values_of(Silent())
