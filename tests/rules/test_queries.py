"""STATE beside other patterns: joins, aggregates, output operators, chained queries, saved state, refusals."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import RDF, RDFS, XSD, Literal, URIRef, Variable

import cqels_py as cqels
from cqels_py.algebra.nodes import Output
from cqels_py.dataflow.step_program import CALLS
from cqels_py.engine.compile import compile_query
from tests.oracle.naive import Element, Static
from tests.support.harness import run_engine
from tests.test_saved_state import assert_goes_on

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
HOT = "RULES ON :s { RULE { ?x a :Hot } FOR [0s, 3s) WHERE { ?x :temp ?v FILTER(?v > 30) } }\n"


def iri(name: str) -> URIRef:
    return URIRef(EX + name)


def number(value: int) -> Literal:
    return Literal(str(value), datatype=XSD.integer)


def element(seconds: float, stream: str, subject: str, predicate: str, value: Any) -> Element:
    object_ = number(value) if isinstance(value, int) else iri(value)
    triple = (iri(subject), RDF.type if predicate == "a" else iri(predicate), object_)
    return Element(int(seconds * 1_000_000), iri(stream), (triple,))


ELEMENTS = [
    element(1, "s", "a", "temp", 35),
    element(2, "s", "b", "temp", 20),
    element(2, "s", "a", "temp", 36),
    element(2.5, "t", "a", "seen", "door"),
    element(3, "s", "c", "temp", 40),
    element(10, "s", "clock", "says", "tick"),
    element(10, "t", "clock", "says", "tick"),
]
"""Hot is a in [1, 5), c in [3, 6)."""
STATIC = Static(
    [(iri("a"), iri("room"), iri("r1")), (iri("c"), iri("room"), iri("r2")), (iri("d"), RDF.type, iri("Hot"))]
)


def told(text: str, output: Output | None = Output.CHANGELOG, static: Static | None = None) -> list[str]:
    """The results as `time ± row`, in order; they are the same for all sizes of batches."""
    streams = {name for name in ("s", "t") if f":{name} " in text}
    elements = [each for each in ELEMENTS if str(each.stream).removeprefix(EX) in streams]
    found = []
    for batch in (1, 2, None):
        results = run_engine(PREFIX + text, elements, static, batch, output)
        assert [r.time for r in results] == sorted(r.time for r in results)
        found.append(sorted((r.time, r.sign, row_text(r.mapping)) for r in results))
    assert found[0] == found[1] == found[2]
    return [f"{time / 1_000_000:.10g} {'+' if sign > 0 else '-'} {row}" for time, sign, row in found[0]]


def row_text(mapping: frozenset[tuple[Variable, Any]]) -> str:
    values = {str(variable): str(term[-1] if isinstance(term, tuple) else term) for variable, term in mapping}
    return " ".join(f"{name}={value.removeprefix(EX)}" for name, value in sorted(values.items()))


STATE = "STATE { ?x a :Hot }"
CASES = {
    "alone": (f"SELECT ?x {{ {STATE} }}", ["1 + x=a", "3 + x=c", "5 - x=a", "6 - x=c"]),
    "window": (
        f"SELECT ?x ?y {{ {STATE} STREAM :t [RANGE 2s] {{ ?x :seen ?y }} }}",
        ["2.5 + x=a y=door", "4.5 - x=a y=door"],
    ),
    "window with STEP": (
        f"SELECT ?x ?y {{ {STATE} STREAM :t [RANGE 4s STEP 2s] {{ ?x :seen ?y }} }}",
        ["4 + x=a y=door", "5 - x=a y=door"],
    ),
    "aggregate": (
        f"SELECT (COUNT(*) AS ?n) {{ {STATE} }}",
        ["1 + n=1", "3 - n=1", "3 + n=2", "5 - n=2", "5 + n=1", "6 - n=1", "6 + n=0"],
    ),
    "minus": (
        f"SELECT ?x {{ STREAM :t [RANGE 6s] {{ ?x :seen ?y }} MINUS {{ {STATE} }} }}",
        ["5 + x=a", "8.5 - x=a"],
    ),
    "optional, a fact of a point": (
        f"SELECT ?x ?v {{ {STATE} OPTIONAL {{ STATE {{ ?x :temp ?v }} }} FILTER(?x = :c) }}",
        ["3 + v=40 x=c", "3.000001 - v=40 x=c", "3.000001 + x=c", "6 - x=c"],
    ),
    "two patterns at one time": (
        "SELECT ?x ?y { STATE { ?x a :Hot . ?y a :Hot } FILTER(STR(?x) < STR(?y)) }",
        ["3 + x=a y=c", "5 - x=a y=c"],
    ),
    "step": ("SELECT ?x { STATE [STEP 2s] { ?x a :Hot } }", ["2 + x=a", "4 + x=c", "6 - x=a", "6 - x=c"]),
    "match": (
        f"SELECT ?x {{ {STATE} MATCH WITHIN 2s {{ EVENT ON :t {{ ?x :seen ?y }} }} }}",
        ["2.5 + x=a", "4.500001 - x=a"],
    ),
}


@pytest.mark.parametrize("name", CASES)
def test_what_holds_is_a_relation_like_any_other(name: str) -> None:
    text, expected = CASES[name]
    assert sorted(told(HOT + text)) == sorted(expected)
    begun = [each for each in expected if " + " in each]
    assert sorted(told(HOT + text, None)) == sorted(begun), "ISTREAM"


def test_static_facts_hold_always_and_join() -> None:
    assert told(f"{HOT}SELECT ?x {{ {STATE} }}", static=STATIC) == [
        "1 + x=a",
        "1 + x=d",
        "3 + x=c",
        "5 - x=a",
        "6 - x=c",
    ]
    assert told(f"{HOT}SELECT ?x ?r {{ {STATE} ?x :room ?r }}", static=STATIC) == [
        "1 + r=r1 x=a",
        "3 + r=r2 x=c",
        "5 - r=r1 x=a",
        "6 - r=r2 x=c",
    ]


def test_output_operators() -> None:
    assert told(f"{HOT}REGISTER DSTREAM :o AS SELECT ?x {{ {STATE} }}", None) == ["5 - x=a", "6 - x=c"]
    assert told(f"{HOT}REGISTER RSTREAM :o AS SELECT ?x {{ STATE [STEP 2s] {{ ?x a :Hot }} }}", None) == [
        "2 + x=a",
        "4 + x=a",
        "4 + x=c",
    ]
    each_instant = told(f"{HOT}REGISTER RSTREAM :o AS SELECT ?x {{ {STATE} }}", None)
    assert each_instant == ["1 + x=a", "2 + x=a", "3 + x=a", "3 + x=c", "5 + x=c"]


def test_values_are_computed_and_tested() -> None:
    rules = (
        "RULES ON :s { RULE { ?x :twice ?w } FOR [0s, 1s] WHERE { ?x :temp ?v BIND(?v * 2 AS ?w) FILTER(?w > 60) } }"
    )
    found = told(f"{rules} SELECT ?w {{ STATE {{ ?x :twice ?w FILTER(?w < 75) }} }}")
    assert found == ["1 + w=70", "2 + w=72", "2.000001 - w=70", "3.000001 - w=72"]


def test_advance_tells_what_ceases_after_the_last_element() -> None:
    engine, found = cqels.Engine(batch=1), []
    query = engine.register(f"{PREFIX}{HOT}SELECT ?x {{ {STATE} }}", changelog=True)
    query.subscribe(lambda result: found.append((result.time, result.sign)))
    engine.push(EX + "s", list(ELEMENTS[0].triples), time=1_000_000)
    engine.advance(4_000_000)
    assert found == [(1_000_000, 1)]
    engine.advance(4_000_001)
    assert found == [(1_000_000, 1), (4_000_000, -1)]


def test_what_has_held_before_the_first_element_comes_behind_its_arrival() -> None:
    text = f"{HOT}SELECT ?x {{ STREAM :s [RANGE 1s] {{ ?x :temp ?v }} MINUS {{ {STATE} }} }}"
    static = Static([(iri("a"), RDF.type, iri("Hot"))])
    assert sorted(each for each in told(text, static=static) if each.startswith("1 ")) == ["1 + x=a", "1 - x=a"]


def test_time_begins_at_the_first_advance() -> None:
    """Facts that hold always, and those given for a time, are told from there on."""
    engine, found = cqels.Engine(), []
    always = [[(iri("d"), RDF.type, iri("Hot"))]]
    text = f"{PREFIX}{HOT}SELECT ?x {{ {STATE} }}"
    engine.register(text, static=always).subscribe(lambda result: found.append(("static", result.time, result.sign)))
    rules = engine.register_rules("Warm(X):-Hot(X)", facts="Hot(oven)@[0,7)", streams=EX + "s", namespace=EX)
    given = rules.state("Warm", changelog=True)
    given.subscribe(lambda result: found.append(("given", result.time, result.sign)))
    engine.advance(5_000_000)
    assert not found, "elements may still come at that instant"
    engine.advance(5_000_001)
    assert sorted(found) == [("given", 5_000_000, 1), ("static", 5_000_000, 1)]
    engine.push(EX + "s", list(ELEMENTS[0].triples), time=6_000_000)
    engine.advance(8_000_000)
    assert sorted(found)[1:] == [("given", 7_000_000, -1), ("static", 5_000_000, 1), ("static", 6_000_000, 1)]


def test_a_recursion_below_not_over_facts_that_always_hold() -> None:
    """What follows from the beginning of time does not go on from there second by second."""
    rules = """RULES ON :s {
      RULE { ?x a :Hot } WHERE { ?x a :Seen NOT { ?x :seen ?y } } RULE { ?x a :Hot } WHERE { SOMETIME [1s, 3s] { ?x a :Hot } } }"""
    static = Static([(iri("z"), RDF.type, iri("Seen"))])
    assert told(f"{rules} SELECT ?x {{ {STATE} }}", static=static) == ["1 + x=z"]


def test_results_do_not_wait_for_the_boundary_of_a_window() -> None:
    engine, found = cqels.Engine(batch=1), []
    text = f"{HOT}SELECT ?x {{ {{ {STATE} }} UNION {{ STREAM :s [RANGE 1h STEP 1h] {{ ?x :seen ?y }} }} }}"
    engine.register(PREFIX + text).subscribe(found.append)
    for each in ELEMENTS[:2]:
        engine.push(str(each.stream), list(each.triples), time=each.time)
    assert [result.time for result in found] == [1_000_000]


@pytest.mark.parametrize("steps", ["", "calls"])
def test_a_change_is_seen_at_its_boundary_not_at_an_arrival_of_the_same_instant(
    steps: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """What becomes of b at 7s is seen at the boundary of 8s; elements of 8s have ticks of their own before that."""
    monkeypatch.setenv(CALLS, steps)
    rules = "RULES ON :s { RULE { ?x :level ?v } UNTIL REPLACED BY ?x WITHIN 4s WHERE { ?x :temp ?v } }\n"
    text = f"{PREFIX}{rules}SELECT ?m {{ STREAM :s [COUNT 1] {{ ?x :mark ?m }} MINUS {{ STATE [STEP 2s] {{ ?y :level ?m }} }} }}"
    elements = [
        element(3, "s", "b", "temp", 2),
        element(7, "s", "b", "temp", 1),
        element(8, "s", "a", "mark", 1),
        element(8, "s", "a", "mark", 2),
        element(9, "s", "a", "mark", 2),
        element(13, "s", "a", "mark", 2),
    ]
    for batch in (1, 2, 3, None):
        found = [
            (r.time // 1_000_000, r.sign, row_text(r.mapping))
            for r in run_engine(text, elements, None, batch, Output.CHANGELOG)
        ]
        assert found == [(8, 1, "m=1"), (8, -1, "m=1"), (8, 1, "m=2")]


def test_rules_read_what_other_rules_construct() -> None:
    for batch in (1, 3, 100):
        engine, found = cqels.Engine(batch=batch), []
        engine.register(f"{PREFIX}{HOT}REGISTER ISTREAM :hot AS CONSTRUCT {{ ?x a :Alarm }} WHERE {{ {STATE} }}")
        rules = "RULES ON :hot, :s { RULE { ?x :first ?v } WHERE { ?x a :Alarm ; :temp ?v } }"
        query = engine.register(f"{PREFIX}{rules} SELECT ?x ?v {{ STATE {{ ?x :first ?v }} }}")
        query.subscribe(found.append)
        for each in ELEMENTS:
            if each.stream == iri("s"):
                engine.push(str(each.stream), list(each.triples), time=each.time)
        engine.finish()
        rows = [(result.time, str(result.bindings["x"]), int(result.bindings["v"])) for result in found]
        assert rows == [(1_000_000, EX + "a", 35), (3_000_000, EX + "c", 40)]


SAVED = {
    "filter": f"{HOT}SELECT ?x {{ {STATE} }}",
    "window": f"{HOT}SELECT ?x ?y {{ {STATE} STREAM :s [RANGE 2s] {{ ?x :temp ?y }} }}",
    "two": f"{HOT}SELECT ?x {{ {STATE} MINUS {{ STATE {{ ?x :temp 36 }} }} }}",
    "not": "RULES ON :s { RULE { ?x a :Cold } WHERE { SOMETIME [0s, 4s] { ?x :temp ?v } NOT { ?x a :Hot } } "
    "RULE { ?x a :Hot } WHERE { ?x :temp ?v FILTER(?v > 30) } RULE { ?x a :Hot } WHERE { SOMETIME [1s] { ?x a :Hot } } } "
    "SELECT ?x { STATE { ?x a :Cold } }",
    "step": f"{HOT}REGISTER RSTREAM :o AS SELECT ?x {{ STATE [STEP 2s] {{ ?x a :Hot }} }}",
}


@pytest.mark.parametrize("name", SAVED)
def test_state_is_saved_and_restored(name: str) -> None:
    elements = [each for each in ELEMENTS if each.stream == iri("s")]
    for cut in range(1, len(elements)):
        assert assert_goes_on(PREFIX + SAVED[name], elements, [cut], batch=1, changelog=name != "step")


def test_memory_is_bounded_by_how_far_rules_look() -> None:
    def memory(rules: str) -> str:
        return str(compile_query(f"{PREFIX}RULES ON :s {{ {rules} }} SELECT ?x {{ STATE {{ ?x a :P }} }}").memory)

    within = "RULE { ?x a :P } FOR [0s, 3s] WHERE { SOMETIME [1s, 2s] { ?x a :A } }"
    assert memory(within) == "bounded by what comes in 5s (constant if the rate is) on <http://ex.org/s>"
    for rules in (
        "RULE { ?x a :P } WHERE { SOMETIME [0s, FOREVER) { ?x a :A } }",
        "RULE { ?x a :P } WHERE { ?x a :A } RULE { ?x a :P } WHERE { SOMETIME [1s] { ?x a :P } }",
    ):
        assert memory(rules).startswith("not bounded, by the rules <http://ex.org/P> may hold for ever"), rules


def test_what_is_not_supported_is_refused() -> None:
    compiled = compile_query(f"{PREFIX}{HOT}SELECT ?x {{ {STATE} }}")
    engine = cqels.Engine()
    with pytest.raises(cqels.UnsupportedQuery, match="STATE with entailment"):
        engine.register(compiled.text, static=[[(iri("Hot"), RDFS.subClassOf, iri("Warm"))]], entailment="rdfs")
    query = engine.register(compiled)
    with pytest.raises(cqels.UsageError, match="of a query with rules cannot be replaced"):
        query.update_static(static=[list(STATIC.default)])


REFUSED = {
    "WHERE { ALWAYS [5s, 2s] { ?x a :A } }": "[5s, 2s]: the interval ends before it begins: write [2s, 5s]",
    "WHERE { SOMETIME (3s, 3s] { ?x a :A } }": "(3s, 3s]: this interval is empty",
    "WHERE { ALWAYS [0s, FOREVER) { ?x a :A } }": "nothing is known of the time before the stream began",
    "WHERE { { ?x a :B } SINCE [0s, 1s] { ?y a :A } }": "?x is not bound: a positive pattern has to have it",
    "WHERE { ?y a :A NOT { ?x a :B } }": "?x is not bound: a positive pattern has to have it",
    "WHERE { FUTURE [0s, 1s] { ?x a :A } }": "bodies look back: later conclusions are said in the head, FOR [0s, 3s]",
    "WHERE { ?x a :A . NOT { ?x a :P } }": "a recursion through NOT has no meaning, here of <http://ex.org/P>",
    "WHERE { ?x a :A OPTIONAL { ?x :p ?y } }": "not OPTIONAL: write one rule with the pattern and one without it",
    "WHERE { { ?x a :A } UNION { ?x a :B } }": "not UNION: write one rule for each branch",
    "WHERE { ?x a :A FILTER NOT EXISTS { ?x a :B } }": "not EXISTS: write NOT { … } in the body",
    "WHERE { ?x :p/:q ?y }": "a property path in a rule is not supported",
    "WHERE { ?x :p+ ?y }": "a property path in a rule is not supported",
    "WHERE { ?x ?p ?y }": "?p as a predicate is not supported in rules",
    "WHERE { ?x a ?y }": "the class of ?x a … is an IRI in rules",
    "WHERE { ?x a :A FILTER(?y > 3) }": "?y is not bound in the group of this FILTER or BIND",
    "WHERE { ?x :v ?y SOMETIME [0s, 1s] { ?x a :A FILTER(?y > 3) } }": "?y is not bound",
    "WHERE { ?x :v ?y FILTER(NOW() > ?y) }": "NOW() in a rule is not supported: its value would change while its facts hold",
    "WHERE { ?x :v ?y FILTER(?y > (1 + rand())) }": "RAND() in a rule is not supported",
    "WHERE { ?x :v ?y BIND(UUID() AS ?z) }": "UUID() in a rule is not supported",
    "WHERE { ?x :v ?y BIND(STR(STRUUID()) AS ?z) }": "STRUUID() in a rule is not supported",
    "WHERE { ?x :v ?y BIND(BNODE() AS ?z) }": "BNODE() in a rule is not supported",
    "WHERE { SOMETIME [0s, 1s] { ?x :v ?y BIND(:f(?y) AS ?z) } }": "unknown function http://ex.org/f",
    "WHERE { ?x :v ?y FILTER(<http://www.w3.org/2001/XMLSchema#integer>(?y, 3) > 1) }": "takes 1 arguments, not 2",
    "WHERE { ?x :v ?y FILTER(COUNT(?y) > 1) }": "not COUNT: aggregate over STATE",
    "WHERE { NEXT [0s, 1s] { ?x a :A } }": "bodies look back: later conclusions are said in the head, FOR [0s, 3s]",
    "WHERE { ?x a :A } GROUP BY ?x": "expected",
    "WHERE { ?x a :A GROUP BY ?x }": "not GROUP: aggregate over STATE",
    "WHERE { ?x a :A MINUS { ?x a :B } }": "not MINUS: write NOT { … }",
    "WHERE { SELECT ?x { ?x a :A } }": "not SELECT",
    "WHERE { ?x a :A FILTER EXISTS { ?x a :B } }": "not EXISTS: write NOT { … } in the body",
    "FOR [3s, 1s] WHERE { ?x a :A }": "[3s, 1s]: the interval ends before it begins: write [1s, 3s]",
    "FOR (1s) WHERE { ?x a :A }": "(1s): this interval is empty",
    "WHERE { }": "the group of the rule has no triple pattern that has to hold",
    "WHERE { ?x a :A NOT { SOMETIME [0s, 1s] { ?x a :B } } }": "NOT takes triple patterns",
    "UNTIL REPLACED BY ?y WHERE { ?x :p ?y }": "UNTIL REPLACED BY takes variables of the rule's head",
    "UNTIL REPLACED BY ?x WHERE { ?x a :P }": "a recursion through NOT has no meaning, here of <http://ex.org/P>",
    "WHERE { ?x a :A } RULE { [] a :P } WHERE { ?x a :A }": "a blank node in a rule's head",
    "WHERE { ?x a :A } RULE { ?x :n ?z } WHERE { ?x :n ?y BIND(?y + 1 AS ?z) }": "BIND in a recursive rule could make new terms",
}


@pytest.mark.parametrize("body", REFUSED)
def test_refusals_name_the_reason(body: str) -> None:
    with pytest.raises(cqels.QueryError) as error:
        compile_query(f"{PREFIX}RULES ON :s {{\nRULE {{ ?x a :P }} {body} }}\nSELECT ?x {{ STATE {{ ?x a :P }} }}")
    assert REFUSED[body] in str(error.value)
    assert ":3:" in str(error.value), "the line of the rule"


PLACES = {
    "WHERE { ?x a :A . ALWAYS [5s, 2s] { ?x a :B } }": "ALWAYS [5s",
    "WHERE { ?x a :A . NOT { ?y a :B } ALWAYS [0s, FOREVER) { ?x a :B } }": "ALWAYS",
    "WHERE { ?x a :A OPTIONAL { ?x :p ?y } }": "OPTIONAL",
    "WHERE { ?x a :A . EVENTUALLY [0s, 1s] { ?x a :B } }": "EVENTUALLY",
    "WHERE { ?x :p ?y FILTER(?y > NOW()) }": "NOW",
    "WHERE { ?x :p ?y FILTER(?y > 3 && ?y < RAND()) }": "RAND",
    "WHERE { ?x a :A } RULE { [] a :P } WHERE { ?x a :A }": "[] a",
    "WHERE { ?x a :A } RULE { ?x a :Q } WHERE { ?x a :A . NOT { ?x a :Q } }": "RULE { ?x a :Q",
}


@pytest.mark.parametrize("body", PLACES)
def test_refusals_name_the_column(body: str) -> None:
    rule = f"RULE {{ ?x a :P }} {body}"
    with pytest.raises(cqels.QueryError) as error:
        compile_query(f"{PREFIX}RULES ON :s {{\n{rule} }}\nSELECT ?x {{ STATE {{ ?x a :P }} }}")
    column = rule.index(PLACES[body]) + 1 + (7 if "5s" in PLACES[body] else 0)
    assert str(error.value).startswith(f"<query>:3:{column}: "), str(error.value)


WHOLE = {
    f"{HOT}SELECT ?x {{ STREAM :s [NOW] {{ ?x a :P }} }}": "nothing asks what the rules say",
    f"SELECT ?x {{ {STATE} }}": "STATE asks what rules say, and there are none",
    f"SELECT ?x {{ {STATE} }} {HOT}": "RULES stand once, behind the prefixes",
    f"{HOT}{HOT}SELECT ?x {{ {STATE} }}": "RULES stand once, behind the prefixes",
    HOT.replace(":s", "?s") + f"SELECT ?x {{ {STATE} }}": "a stream is an IRI, not a variable: '?s'",
    HOT.replace(":s", ":s [NOW]") + f"SELECT ?x {{ {STATE} }}": "rules have no window",
    f"{HOT}SELECT ?x {{ STATE {{ ?x a :P OPTIONAL {{ ?x :p ?y }} }} }}": "STATE takes triple patterns, FILTER and BIND",
    f"{HOT}SELECT ?x {{ STREAM :s [NOW] {{ STATE {{ ?x a :P }} }} }}": "STATE inside of a window",
    f"{HOT}SELECT ?x {{ STATE [STEP 1s START 2024-01-01T00:00:00Z] {{ ?x a :P }} }}": "START in STATE is not supported",
    f"{HOT}DESCRIBE ?x {{ {STATE} }}": "DESCRIBE with STATE is not supported",
    f"{HOT}SELECT ?x {{ {STATE} EVENT ON :t {{ ?x a :B }} }}": "EVENT outside of MATCH beside STATE is not supported",
}


@pytest.mark.parametrize("text", WHOLE)
def test_refusals_of_whole_queries(text: str) -> None:
    with pytest.raises(cqels.QueryError, match=r"^<query>:\d+:\d+: ") as error:
        compile_query(PREFIX + text)
    assert WHOLE[text] in str(error.value)


def test_explain_shows_the_normal_form() -> None:
    rules = (
        "RULES ON :s { RULE { ?x a :P } FOR [0s, 3s) WHERE { ?x :temp ?v . SOMETIME [1s, FOREVER) { ?x a :P } FILTER(?v > 3) } "
        "RULE { ?x a :Q } WHERE { { ?x a :P } SINCE (0s, 2s] { ?x :near :a } NOT { ?x a :R } } }"
    )
    query = cqels.Engine().register(f"{PREFIX}{rules} SELECT ?x {{ STATE {{ ?x a :Q }} }}")
    section = query.explain().partition("rules\n")[2].partition("\n\n")[0].splitlines()
    assert [line.strip().replace(EX, "") for line in section] == EXPLAINED
    assert query.explain().startswith("memory: not bounded, by the rules <http://ex.org/P>")


EXPLAINED = [
    "facts are the triples of <s> and of the static data; a triple that comes twice at one time is one fact",
    "<P>(?v0) ← SOMETIME [0s, 3s) @1(?v0)",
    "@3(?v0) ← SOMETIME [1s, FOREVER) <P>(?v0)",
    "@5 ← <P> SINCE (0s, 2s] @6",
    "@2(?v0, ?w1) ← @3(?v0), <temp>(?v0, ?w1)",
    "@4(?v0, ?v1) ← @2(?v0, ?v1)",
    "@1(?v0) ← @4(?v0, ?v1), FILTER ?v > 3 (?v = ?v1)",
    "@6(?v0) ← <near>(?v0, <a>)",
    "<Q>(?v0) ← @5(?v0), NOT @8(?v0)",
    "@8(?v0) ← <R>(?v0)",
    "@state0(?v0) ← <Q>(?v0)",
    "2 strata: NOT is applied when the strata below are final",
    "recursive with a delay, so that consequences wait for their time: <P>",
    "for each combination of values SOMETIME, ALWAYS and FOR keep at most 4 intervals",
    "the paper's bounds (Theorems 12 and 15) are for programs without SINCE and NOT",
]
