"""MATCH against the oracle, which tries all combinations of elements."""

from __future__ import annotations

import re
from collections import Counter
from dataclasses import replace
from random import Random

import numpy as np
import pytest
from rdflib import RDF, Literal, URIRef, Variable

import cqels_py as cqels
from cqels_py.algebra.nodes import Match, Output, Project
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery
from tests.oracle import naive, naive_matches
from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import Dataset
from tests.support.drawn_matches import EX, TYPES, MatchDrawer, drawn_elements
from tests.support.harness import assert_engine_right, parse, run_engine
from tests.test_saved_state import assert_goes_on


def told(text, elements):
    """The oracle's ISTREAM of a query that selects from a MATCH: times and rows."""
    query = parse(text)
    assert isinstance(query.pattern, Project)
    match, variables = query.pattern.pattern, query.pattern.variables
    assert isinstance(match, Match)
    arrived = naive.relevant(query, elements)
    dataset = Dataset({}, [], {}, bags=True, now=0)
    rows = naive_matches.told(query, arrived, match, dataset)
    return Counter((time, frozenset((v, row[v]) for v in variables if v in row)) for time, row in rows)


def drawn(seed, **options):
    """A drawn query that is not refused, and a stream."""
    random = Random(seed)
    while True:
        text = MatchDrawer(random, random.randint(1, 4)).text(**options)
        try:
            parse(text)
            run_engine(text, [])
        except UnsupportedQuery:
            continue
        if isinstance(parse(text).pattern, Project) and isinstance(parse(text).pattern.pattern, Match):
            streams = {window.stream for window in parse(text).windows}
            return text, [each for each in drawn_elements(random, random.randint(3, 12)) if each.stream in streams]


@pytest.mark.parametrize("seed", range(40))
def test_istream_tells_each_match_at_its_last_element(seed):
    text, elements = drawn(seed)
    expected = told(text, elements)
    for batch in (1, 3, None):
        found = Counter((result.time, result.mapping) for result in run_engine(text, elements, batch=batch))
        assert found == expected, (batch, text)


@pytest.mark.parametrize("seed", range(1000, 1030))
def test_the_changelog_is_the_difference_of_standing_matches(seed):
    text, elements = drawn(seed)
    assert_engine_right(text, elements, output=Output.CHANGELOG, batches=(1, 3, None))


POLICIES = [("LATEST", False), ("EARLIEST", False), ("", True), ("LATEST", True), ("EARLIEST", True)]


@pytest.mark.parametrize("seed", range(3000, 3040))
def test_policies_and_consume(seed):
    policy, consume = POLICIES[seed % len(POLICIES)]
    text, elements = drawn(seed, policy=policy, consume=consume)
    expected = told(text, elements)
    for batch in (1, 3, None):
        found = Counter((result.time, result.mapping) for result in run_engine(text, elements, batch=batch))
        assert found == expected, (batch, text)
    assert_engine_right(text, elements, output=Output.CHANGELOG, batches=(2, None))
    if elements:
        assert_goes_on(text, elements, [len(elements) // 2])


STRICT = [
    "{ :A? SEQ :B? } AND :C?",
    ":C? AND { :A? SEQ :B? } AND :A?",
    "{ :A? SEQ NOT :C? SEQ :B? } AND :C?",
    "{ :A? SEQ :B? } AND { :C? SEQ :A? }",
    "{ :A?+ SEQ :B? } AND :C?",
    "{ { :A? AND :B? } SEQ :C? } AND :A?",
    "{ { :A? SEQ :B? } AND :C? }+ SEQ :B?",
]


@pytest.mark.parametrize("policy", ["", "LATEST", "EARLIEST"])
@pytest.mark.parametrize("shape", STRICT)
def test_strict_time_inside_of_and(shape, policy):
    numbers = iter(range(20))
    pattern = re.sub(r":(\w)\?", lambda kind: f"EVENT ON :s0 {{ ?p{next(numbers)} a :{kind[1]} ; :k ?k }}", shape)
    inside = "+" in shape
    select = "?k" if inside else "?p0 ?p1 ?k"
    text = f"{PREFIX}SELECT {select} {{ MATCH {policy} WITHIN 9s STRICT TIME {{ {pattern} }} }}"
    found = 0
    for seed in range(4):
        random, time, elements = Random(seed), 0, []
        for each in many(random.choices("ABC", k=10)):
            time += random.choice((0, 0, 1)) * 1_000_000
            elements.append(replace(each, time=time))
        expected = told(text, elements)
        found += expected.total()
        for batch in (1, None):
            assert Counter((r.time, r.mapping) for r in run_engine(text, elements, batch=batch)) == expected
    assert found


# --- with other patterns, saved, and over a long time --------------------------------------------------------------

PREFIX = "PREFIX : <http://ex.org/>\n"
A, B, C = (f"EVENT ON :s0 {{ ?{x} a :{x.upper()} ; :k ?k }}" for x in "abc")
EX_S0 = URIRef(f"{EX}s0")
STATIC = Static([(URIRef(f"{EX}k{n}"), URIRef(f"{EX}name"), Literal(f"key {n}")) for n in range(2)])
ALERTS = f"{PREFIX}REGISTER ISTREAM :alerts AS CONSTRUCT {{ ?a :then ?b ; :k ?k }} WHERE {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }}"
LATE = "EVENT ON :s0 AT ?t { ?a :k ?k BIND(SECONDS(?t) AS ?m) FILTER(?m > 7 && NOW() = ?t) }"
COUNTED = f"SELECT ?k (COUNT(*) AS ?n) {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }} GROUP BY ?k"
COMPOSED = {
    "window": f"SELECT ?a ?b ?x {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} STREAM :s1 [RANGE 5s] {{ ?x :k ?k }} }}",
    "static": f"SELECT ?a ?b ?n {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} ?k :name ?n }}",
    "optional": f"SELECT ?a ?b ?n {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} OPTIONAL {{ ?k :name ?n }} }}",
    "minus": f"SELECT ?x ?k {{ STREAM :s1 [RANGE 5s] {{ ?x :k ?k }} MINUS {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }} }}",
    "values": f"SELECT ?a ?b {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} VALUES ?k {{ :k0 :k1 }} }}",
    "filter": f"SELECT ?a ?b {{ MATCH WITHIN 4s 5 EVENTS {{ {A} SEQ {B} SEQ {C} }} FILTER(?k != :k1) }}",
    "group": f"SELECT ?k (COUNT(*) AS ?n) {{ MATCH WITHIN 4s {{ {A} SEQ {{ {B} OR {C} }}+ }} }} GROUP BY ?k",
    "distinct": f"SELECT DISTINCT ?k {{ MATCH WITHIN 6 EVENTS {{ {A} AND {B} }} }}",
    "union": f"SELECT ?a ?b {{ {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }} UNION {{ MATCH WITHIN 1s {{ {B} SEQ {A} }} }} }}",
    "two": f"SELECT ?a ?b ?c {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} MATCH WITHIN 2s {{ {C} }} }}",
    "subquery": f"SELECT ?k ?n {{ ?k :name ?m {{ {COUNTED} }} }}",
    "step": f"SELECT ?a ?x {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} STREAM :s1 [RANGE 6s STEP 2s] {{ ?x :k ?k }} }}",
    "ask": f"ASK {{ MATCH WITHIN 2s {{ {A} SEQ {B} }} }}",
    "time": f"SELECT ?a ?m {{ MATCH WITHIN 9s {{ {LATE} }} }}",
    "c-sparql": f"SELECT ?a ?x FROM STREAM :s1 [RANGE 5s] {{ ?x :k ?k MATCH WITHIN 4s {{ {A} SEQ {B} }} }}",
    "nothing": "SELECT ?t { MATCH WITHIN 1s { EVENT ON :s0 AT ?t { } SEQ EVENT ON :s1 { } } }",
}


@pytest.mark.parametrize("name", COMPOSED)
def test_a_match_is_a_relation_like_any_other(name):
    elements = drawn_elements(Random(7), 40)
    used = {window.stream for window in parse(PREFIX + COMPOSED[name]).windows}
    elements = [each for each in elements if each.stream in used]
    assert_engine_right(PREFIX + COMPOSED[name], elements, STATIC, batches=(1, 5, None))
    assert_engine_right(PREFIX + COMPOSED[name], elements, STATIC, output=None, batches=(4,))


@pytest.mark.parametrize("output", ["DSTREAM", "RSTREAM"])
def test_other_outputs(output):
    text = f"{PREFIX}REGISTER {output} :q AS SELECT ?a ?b {{ MATCH WITHIN 3s 6 EVENTS {{ {A} SEQ {B} }} }}"
    elements = [each for each in drawn_elements(Random(3), 30) if each.stream == URIRef(f"{EX}s0")]
    assert_engine_right(text, elements, output=None, batches=(1, None))


def test_a_match_reads_the_alerts_of_another():
    events = "EVENT ON :alerts { ?a :k ?k } SEQ EVENT ON :alerts AT ?t { ?b :k ?k }"
    second = f"{PREFIX}SELECT ?a ?b ?t {{ MATCH WITHIN 100s {{ {events} }} }}"
    elements = [each for each in drawn_elements(Random(28), 90) if each.stream == URIRef(f"{EX}s0")]
    engine = cqels.Engine()
    engine.register(ALERTS)
    found = []
    engine.register(second).subscribe(lambda result: found.append(result.time))
    for element in elements:
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    # What is constructed at one tick is one element; matches that end in one element are found at one tick.
    graphs: dict[tuple[int, object], list[tuple[URIRef, URIRef, URIRef]]] = {}
    for time, row in rows_of(f"{PREFIX}SELECT ?a ?b ?k {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }}", elements):
        graphs.setdefault((time, row["b"]), []).append((row["a"], URIRef(f"{EX}k"), row["k"]))
    alerts = [Element(time, URIRef(f"{EX}alerts"), tuple(triples)) for (time, _), triples in graphs.items()]
    assert Counter(found) == Counter(time for time, _ in told(second, alerts).elements())
    assert found


def rows_of(text, elements):
    """The times and the bindings of a query's results, in order."""
    return [(result.time, {str(v): term for v, term in result.mapping}) for result in run_engine(text, elements)]


@pytest.mark.parametrize("seed", range(2000, 2012))
def test_the_state_can_be_saved_and_restored(seed):
    text, elements = drawn(seed)
    assert_goes_on(text, elements, [len(elements) // 3, 2 * len(elements) // 3], changelog=bool(seed % 2))


def test_memory_stays_the_same_over_ever_new_keys():
    engine = cqels.Engine(batch=100)
    query = engine.register(f"{PREFIX}SELECT ?a ?b {{ MATCH WITHIN 50s {{ {A} SEQ {B} }} }}", changelog=True)
    query.subscribe(lambda _: None)
    sizes = set()
    for number in range(12_000):
        subject = URIRef(f"{EX}e{number}")
        kind = URIRef(EX + TYPES[number % 2])
        key = URIRef(f"{EX}key{number // 2}")
        engine.push(f"{EX}s0", [(subject, RDF.type, kind), (subject, URIRef(f"{EX}k"), key)], time=number * 1_000_000)
        if number % 1_000 == 999:
            engine.flush()
            if number > 3_000:
                sizes.add(query.nbytes)
    assert len(sizes) == 1
    # 51 elements are within reach, each with a subject and a key.
    assert len(np.unique(np.concatenate(list(query._dataflow.live_ids())))) < 150


def test_explain_shows_the_automaton():
    engine = cqels.Engine()
    text = engine.register(f"{PREFIX}SELECT ?a {{ MATCH WITHIN 5m {{ {A} SEQ NOT {B} SEQ {C} }} }}").explain()
    assert "match WITHIN 5m; lists of runs by key" in text
    assert "event 1 = <http://ex.org/s0> { ?a <" in text
    assert "  MATCH WITHIN 5m on <http://ex.org/s0>\n" in text
    assert "states: 1 (begins), 2 (ends)" in text
    assert "transitions: 1 → 2 by ?k\n" in text
    assert "no event 3 after 1 by ?k: one look-up" in text
    assert "q-tree of the events: ?k(1 2)" in text
    assert "keys decide all comparisons" in text
    late = f"SELECT ?a {{ MATCH WITHIN 5m {{ {A} SEQ EVENT ON :s0 {{ ?b a :B }} SEQ {C} }} }}"
    assert "?k compared when matches are formed" in engine.register(PREFIX + late).explain()
    chain = "EVENT ON :s0 { ?x :p ?y } AND EVENT ON :s0 { ?y :p ?z } AND EVENT ON :s0 { ?z :p ?u ; :q ?y }"
    crossing = engine.register(f"{PREFIX}SELECT ?x {{ MATCH WITHIN 5m {{ {chain} }} }}").explain()
    assert "q-tree" in crossing
    path = "EVENT ON :s0 { ?x :p ?y } AND EVENT ON :s0 { ?y :p ?z } AND EVENT ON :s0 { ?z :q ?u }"
    crossing = engine.register(f"{PREFIX}SELECT ?x {{ MATCH WITHIN 5m {{ {path} }} }}").explain()
    assert "no q-tree, as the events are not hierarchical: ?y and ?z are together" in crossing
    assert "s1 has event 1 (begins)" in crossing


def test_the_automaton_is_drawn():
    engine = cqels.Engine()
    quoted = 'EVENT ON :s0 { ?c :k ?k ; :v "x\\"y" }'
    pattern = f"{A} SEQ NOT {B} SEQ {quoted}"
    query = engine.register(f"{PREFIX}SELECT ?a {{ MATCH LATEST WITHIN 5m STRICT TIME {{ {pattern} }} }}")
    dot = query.explain("dot")
    assert dot.startswith("digraph automata {")
    assert dot.count("{") == dot.count("}")
    assert 'm0_1 [label="2", shape=doublecircle];' in dot
    assert 'm0_0 -> m0_1 [label="by ?k at a later time\\lno 3 between\\l"];' in dot
    assert "MATCH LATEST WITHIN 5m STRICT TIME\\l1: :s0" in dot
    other = engine.register(f"{PREFIX}SELECT ?a {{ STREAM :s0 [NOW] {{ ?a :k ?k }} }}")
    assert other.explain("dot").startswith("digraph plan {")
    with pytest.raises(cqels.UsageError, match="'text', 'json', 'dot' or 'svg'"):
        query.explain("png")


def test_spark_divides_by_a_variable_that_all_events_have():
    def first_stage(text):
        return stages_of(compile_query(PREFIX + text).plan, 4)[0]

    within = f"SELECT ?a ?k {{ MATCH WITHIN 5m {{ {A} SEQ NOT EVENT ON :s0 {{ ?n a :N }} SEQ {B} }} }}"
    assert first_stage(within).shares.axes == (("k", 4),)
    assert "WITHIN … EVENTS counts" in first_stage(within.replace("5m", "9 EVENTS")).reason
    assert "LATEST compares matches" in first_stage(within.replace("MATCH", "MATCH LATEST")).reason
    assert (
        "not all events"
        in first_stage(within.replace("{ ?n a :N } SEQ", "{ ?n a :N } SEQ EVENT ON :s0 { ?m a :M } SEQ")).reason
    )


def many(kinds):
    """An element a second, of these types, all with one key."""
    found = []
    for number, kind in enumerate(kinds):
        subject = URIRef(f"{EX}e{number}")
        triples = ((subject, RDF.type, URIRef(EX + kind)), (subject, URIRef(f"{EX}k"), URIRef(f"{EX}k0")))
        found.append(Element(number * 1_000_000, URIRef(f"{EX}s0"), triples))
    return found


@pytest.mark.parametrize("output", [None, Output.CHANGELOG])
def test_many_matches_of_one_element(output):
    text = f"{PREFIX}SELECT ?a ?b {{ MATCH WITHIN 400s {{ {A} SEQ {B} }} }}"
    elements = [*many("A" * 300 + "B" * 20 + "C" * 2_000)]
    results = run_engine(text, elements, batch=500, output=output)
    told = [result for result in results if result.sign > 0]
    assert Counter(result.time for result in told) == {number * 1_000_000: 300 for number in range(300, 320)}
    withdrawn = Counter(result.time for result in results if result.sign < 0)
    left = {(number + 400) * 1_000_000 + 1: 20 for number in range(300)} if output else {}
    assert withdrawn == left


def test_the_latest_run_may_be_long():
    text = f"{PREFIX}SELECT ?b ?c {{ MATCH LATEST WITHIN 1h {{ {B} SEQ {A}+ SEQ {C} }} }}"
    (result,) = run_engine(text, many("BB" + "A" * 500 + "C"))
    assert dict(result.mapping)[Variable("b")] == URIRef(f"{EX}e1")


def test_events_in_many_parts_of_a_batch():
    text = f"{PREFIX}SELECT ?a ?b {{ MATCH LATEST WITHIN 5s {{ {A} SEQ NOT {C} SEQ {B} }} }}"
    random = Random(1)
    elements = many(random.choice("ABC") for _ in range(9_000))
    assert Counter(run_engine(text, elements)) == Counter(run_engine(text, elements, batch=97))


def test_an_event_with_many_triples():
    text = f"{PREFIX}SELECT ?v {{ MATCH WITHIN 1s {{ EVENT ON :s0 {{ ?a a :A ; :v ?v }} }} }}"
    subject = URIRef(f"{EX}e")
    values = [(subject, URIRef(f"{EX}v"), Literal(number % 100)) for number in range(400)]
    found = run_engine(text, [Element(0, URIRef(f"{EX}s0"), ((subject, RDF.type, URIRef(f"{EX}A")), *values))])
    assert len(found) == len(set(found)) == 100


def test_patterns_of_one_large_element_are_joined_by_hashing():
    event = "EVENT ON :s0 { ?a :p ?b . ?b :p ?c . ?c :q ?d }"
    text = f"{PREFIX}SELECT ?a ?b ?c ?d {{ MATCH WITHIN 1s {{ {event} }} }}"
    random = Random(4)

    def triple():
        a, b = random.sample(range(400), 2)
        return URIRef(f"{EX}n{a}"), URIRef(EX + random.choice("pq")), URIRef(f"{EX}n{b}")

    triples = tuple(triple() for _ in range(1_500))
    results = run_engine(text, [Element(0, EX_S0, triples)])
    found = {tuple(str(dict(result.mapping)[Variable(name)]) for name in "abcd") for result in results}
    edges = [{(str(s), str(o)) for s, p, o in triples if p == URIRef(EX + name)} for name in "pq"]
    after = [{}, {}]
    for place, pairs in enumerate(edges):
        for s, o in pairs:
            after[place].setdefault(s, []).append(o)
    expected = {(a, b, c, d) for a, b in edges[0] for c in after[0].get(b, ()) for d in after[1].get(c, ())}
    assert found == expected
    assert expected


def test_queries_share_scans_and_leave():
    texts = [
        f"{PREFIX}SELECT ?a ?b {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }}",
        f"{PREFIX}SELECT ?b ?c {{ MATCH WITHIN 4s {{ {B} SEQ {C} }} }}",
        f"{PREFIX}SELECT ?a {{ MATCH WITHIN 4s {{ {A} SEQ {B} }} }}",
    ]
    elements = [each for each in drawn_elements(Random(9), 60) if each.stream == URIRef(f"{EX}s0")]
    engine = cqels.Engine()
    queries = [engine.register(text) for text in texts]
    found = [[] for _ in texts]
    for query, rows in zip(queries, found, strict=True):
        query.subscribe(lambda result, rows=rows: rows.append((result.time, len(result.bindings))))
    for number, element in enumerate(elements):
        if number == len(elements) // 2:
            engine.flush()
            engine.unregister(queries[0])
        engine.push(str(element.stream), list(element.triples), time=element.time)
    engine.finish()
    half = elements[: len(elements) // 2]
    for text, rows, mine in zip(texts, found, (half, elements, elements), strict=True):
        assert Counter(time for time, _ in rows) == Counter(time for time, _ in told(text, mine).elements())
    assert all(found)


def test_a_match_with_entailment_is_refused():
    text = f"{PREFIX}SELECT ?a {{\n  MATCH WITHIN 5m {{ {A} }} }}"
    with pytest.raises(
        UnsupportedQuery, match=r"MATCH with entailment .* leave the entailment out, or ask for"
    ) as caught:
        cqels.Engine().register(text, entailment="rdfs", source="a.rq")
    line = 2 + PREFIX.count("\n")
    assert str(caught.value).startswith(f"a.rq:{line}:3: ")


@pytest.mark.parametrize("seed", range(10))
def test_not_over_a_variable_of_one_branch_is_a_union_of_matches(seed):
    """As the refusal says; in the branch without the variable, NOT has nothing to compare."""
    with_k, without = "EVENT ON :s0 { ?a a :A ; :k ?k }", "EVENT ON :s0 { ?a a :B }"
    absent, last = "EVENT ON :s0 { ?n a :C ; :k ?k ; :v 3 }", "EVENT ON :s0 { ?c a :A ; :v ?v }"
    with pytest.raises(UnsupportedQuery, match=r"a MATCH for each branch, \{ MATCH … \} UNION \{ MATCH … \}"):
        parse(
            f"{PREFIX}SELECT ?a ?c {{ MATCH WITHIN 9s {{ {{ {with_k} OR {without} }} SEQ NOT {absent} SEQ {last} }} }}"
        )
    branches = [f"{{ MATCH WITHIN 9s {{ {each} SEQ NOT {absent} SEQ {last} }} }}" for each in (with_k, without)]
    elements = [each for each in drawn_elements(Random(seed), 60) if str(each.stream) == f"{EX}s0"]
    results = run_engine(f"{PREFIX}SELECT ?a ?c {{ {' UNION '.join(branches)} }}", elements)
    expected = [told(f"{PREFIX}SELECT ?a ?c {each}", elements) for each in branches]
    assert Counter((result.time, result.mapping) for result in results) == expected[0] + expected[1]
    assert all(expected)
