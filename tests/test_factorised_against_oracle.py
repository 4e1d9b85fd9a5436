"""Aggregates below joins, through whole queries: what the engine says of generated streams and queries, and which plans it takes."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import URIRef

from cqels_py.engine.compile import compile_query
from cqels_py.plan.nodes import FactorisedGroups, Node, inputs_of
from tests.oracle.naive import Element, Static
from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import typed
from tests.support import harness
from tests.support.generators import FEW
from tests.support.traces import EX, STREAMS

PREFIX = f"PREFIX : <{EX}>\n"
WINDOWS = ("[RANGE 3s]", "[COUNT 2]", "[RANGE 4s STEP 2s]", "[TRIPLES 3]", "[COUNT 4 STEP 2]")
NUMBERS = [
    *(typed(text, f"http://www.w3.org/2001/XMLSchema#{kind}") for text, kind in (("1", "integer"), ("-7", "integer"))),
    *(typed(text, "http://www.w3.org/2001/XMLSchema#decimal") for text in ("0.5", "12345.25")),
    typed("2.5E-1", "http://www.w3.org/2001/XMLSchema#double"),
    typed("1.5", "http://www.w3.org/2001/XMLSchema#double"),
    typed("0.5", "http://www.w3.org/2001/XMLSchema#float"),
    typed("NaN", "http://www.w3.org/2001/XMLSchema#double"),
]
KEYS = [URIRef(EX + name) for name in "ab"]
EXACT = NUMBERS[:4]
TERMS = [*NUMBERS, KEYS[0], typed("x", "http://www.w3.org/2001/XMLSchema#string")]
PREDICATES = ("p", "q", "r")
SHAPES = {
    "by a variable of one input": ("?x", "?x", "?k :p ?x", "?k :q ?y", "?y"),
    "by the key": ("?k", "?k", "?k :p ?x", "?k :q ?y", "?x"),
    "as one group": ("", "", "?k :p ?x", "?k :q ?y", "?y"),
    "by key and variable": ("?k ?y", "?y ?k", "?k :p ?x", "?k :q ?y", "?x"),
    "by an expression of one input": ("?e", "(STR(?x) AS ?e)", "?k :p ?x", "?k :q ?y", "?y"),
    "without a key": ("?x", "?x", "?k :p ?x", "?m :q ?y", "?y"),
}
AGGREGATES = (
    "COUNT(*)",
    "COUNT({})",
    "SUM({})",
    "AVG({})",
    "MIN({})",
    "MAX({})",
    "SAMPLE({})",
    "SUM({} * 2)",
    "MIN(STR({}))",
)


def factorised(node: Node) -> bool:
    return isinstance(node, FactorisedGroups) or any(map(factorised, inputs_of(node)))


def triple(values: list[URIRef]) -> st.SearchStrategy[Triple]:
    predicates = st.sampled_from([URIRef(EX + name) for name in PREDICATES])
    return st.tuples(st.sampled_from(KEYS), predicates, st.sampled_from(values))


@st.composite
def element_lists(draw: st.DrawFn, *pools: list[URIRef]) -> list[Element]:
    values = draw(st.sampled_from(pools))
    time, found = 0, []
    for _ in range(draw(st.integers(3, 9))):
        time += draw(st.sampled_from([0, 500_000, 1_000_000]))
        stream = URIRef(STREAMS + draw(st.sampled_from(["one", "two"])))
        found.append(Element(time, stream, tuple(draw(st.lists(triple(values), min_size=1, max_size=3, unique=True)))))
    return found


@st.composite
def queries(draw: st.DrawFn, shape: str) -> str:
    shown, by, left, right, argument = SHAPES[shape]
    one, two = (draw(st.sampled_from(WINDOWS)) for _ in range(2))
    chosen = draw(st.lists(st.sampled_from(AGGREGATES), min_size=1, max_size=4, unique=True))
    columns = " ".join(f"({call.format(argument)} AS ?a{n})" for n, call in enumerate(chosen))
    third = draw(st.sampled_from(["", f"STREAM <{STREAMS}two> [COUNT 3] {{ ?k :r ?z }}", "?k :r ?z"]))
    if shape == "without a key":
        third = ""
    group = f"GROUP BY {by}" if by else ""
    having = draw(st.sampled_from(["", "HAVING(COUNT(*) > 1)"]))
    return (
        f"{PREFIX}SELECT {shown} {columns} {{ STREAM <{STREAMS}one> {one} {{ {left} }} "
        f"STREAM <{STREAMS}two> {two} {{ {right} }} {third} }} {group} {having}"
    )


@pytest.mark.parametrize("shape", SHAPES)
def test_generated_queries(shape: str) -> None:
    @FEW
    @given(queries(shape), element_lists(TERMS, NUMBERS, EXACT), st.lists(triple(NUMBERS), max_size=4, unique=True))
    def check(text: str, elements: list[Element], static: list[Triple]) -> None:
        assert factorised(compile_query(text).plan.root)
        harness.assert_engine_right(text, elements, Static(static), batches=(1, 3, None))

    check()


ONE = f"STREAM <{STREAMS}one> [RANGE 5s]"
TWO = f"STREAM <{STREAMS}two> [RANGE 5s]"


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(
            f"SELECT (COUNT(DISTINCT ?y) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} }}", id="distinct"
        ),
        pytest.param(f"SELECT (GROUP_CONCAT(?y) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} }}", id="texts"),
        pytest.param(f"SELECT (SUM(?x * ?y) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} }}", id="two inputs"),
        pytest.param(
            f"SELECT ?x ?y (COUNT(*) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} }} GROUP BY ?x ?y",
            id="groups of two",
        ),
        pytest.param(
            f"SELECT (COUNT(*) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} FILTER(?x < ?y) }}", id="filter"
        ),
        pytest.param(
            f"SELECT ?x (COUNT(*) AS ?n) {{ {ONE} {{ ?k :p ?x }} OPTIONAL {{ {TWO} {{ ?k :q ?y }} }} }} GROUP BY ?x",
            id="optional",
        ),
        pytest.param(
            f"SELECT ?k (COUNT(*) AS ?n) {{ {ONE} {{ ?k :p ?x }} {TWO} {{ ?k :q ?y }} {TWO} {{ ?y :r ?z }} }} GROUP BY ?k",
            id="chain",
        ),
        pytest.param(
            f"SELECT ?k (COUNT(*) AS ?n) {{ {ONE} {{ ?k :p ?x OPTIONAL {{ ?k :r ?y }} }} {TWO} {{ ?k :q ?y }} }} GROUP BY ?k",
            id="perhaps unbound",
        ),
    ],
)
def test_where_results_are_needed_they_are_made(text: str) -> None:
    @FEW
    @given(element_lists(EXACT, [*EXACT, *TERMS[-2:]]))
    def check(elements: list[Element]) -> None:
        harness.assert_engine_right(PREFIX + text, elements, batches=(1, None))

    assert not factorised(compile_query(PREFIX + text).plan.root)
    check()


def test_static_data_may_change() -> None:
    text = f"{PREFIX}SELECT ?room (AVG(?v) AS ?mean) (MIN(?v) AS ?least) {{ {ONE} {{ ?k :p ?v }} ?k :r ?room }} GROUP BY ?room"
    assert factorised(compile_query(text).plan.root)
    rooms = [(key, URIRef(EX + "r"), room) for key in KEYS for room in KEYS]
    elements = [
        Element(n * 1_000_000, URIRef(STREAMS + "one"), ((KEYS[n % 2], URIRef(EX + "p"), NUMBERS[n % 3]),))
        for n in range(8)
    ]
    updates = [(2, Static(rooms[:3])), (4, Static(())), (6, Static(rooms[1:]))]
    harness.assert_engine_right(text, elements, Static(rooms[:2]), updates=updates)
