"""Each optimisation of algebra, plan and planner can be left out: plans change, answers do not."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Sequence

import pytest
from hypothesis import given, settings
from rdflib import URIRef

from cqels_py.algebra.nodes import Dialect, Output
from cqels_py.engine.compile import OPTIMISATIONS, compile_query
from cqels_py.errors import UsageError
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.drawn_windows import WINDOWS
from tests.support.generators import FEATURES, NODES, VALUES, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS

PREFIX = f"PREFIX : <{EX}> "
ONE, TWO, THREE = (
    f"STREAM <{STREAMS}{name}> [{extent}]"
    for name, extent in (("one", "COUNT 2"), ("two", "RANGE 2s"), ("one", "COUNT 3"))
)

QUERIES = {
    "flatten_joins": f"SELECT * {{ {ONE} {{ ?a :int ?n ; :link ?b }} {{ {TWO} {{ ?b :int ?m }} {THREE} {{ ?b :dec ?k }} }} }}",
    "push_filters": f"SELECT * {{ {ONE} {{ ?a :int ?n }} {TWO} {{ ?a :dec ?k }} FILTER(?n > 0 && ?k > ?n) }}",
    "drop_duplicates": f"SELECT DISTINCT ?b {{ {ONE} {{ ?a :link ?b }} {TWO} {{ ?c :link ?b }} }}",
    "factorise_groups": (
        f"SELECT ?b (COUNT(*) AS ?n) (MAX(?c) AS ?m) {{ {ONE} {{ ?a :link ?b }} {TWO} {{ ?b :int ?c }} }} GROUP BY ?b"
    ),
    "split_by_boundness": (
        f"SELECT * {{ {{ {ONE} {{ ?a :int ?n }} OPTIONAL {{ {TWO} {{ ?a :link ?b }} }} }} {THREE} {{ ?b :dec ?k }} }}"
    ),
    "join_entities_first": (
        f"SELECT ?h ?v ?w {{ {ONE} {{ ?o :link ?h ; :int ?v ; :str 'x' . ?p :link ?h ; :dec ?w ; :str 'y' }} }}"
    ),
    "cut_joins_by_variables": (
        f"SELECT ?a ?b {{ {ONE} {{ ?a :int ?a1 ; :dec ?a2 ; :dbl ?a3 ; :num ?a4 ; :str ?a5 ; :link ?b . "
        "?b :int ?b1 ; :dec ?b2 ; :dbl ?b3 ; :num ?b4 ; :str ?b5 } }"
    ),
    "count_events": (
        f"SELECT ?v {{ EVENT ON <{STREAMS}one> [ALL] AT ?i {{ ?a :int ?n }} "
        f"EVENT ON <{STREAMS}one> [ALL] AT ?j {{ ?b :int ?v FILTER(?v IN (1, 2, 3)) }} FILTER(?i > ?j) }}"
    ),
}
"""For each optimisation a query whose plan has something of it."""


def changes(text: str, elements: Sequence[Element], static: Static | None, *without: str) -> Counter[object]:
    results = harness.run_engine(text, elements, static, output=Output.CHANGELOG, without=without)
    return Counter((result.time, result.sign, result.mapping) for result in results)


def described_things(text: str, count: int) -> list[Element]:
    """Elements of one thing each on the streams of a query, with a value for each property and a link to another thing."""
    rng = random.Random(7)
    properties = ("int", "dec", "dbl", "num", "str")
    streams = compile_query(text).plan.streams
    found = []
    for i in range(count):
        thing = rng.choice(NODES)
        content = [f"{thing} {p} {rng.choice(VALUES[p])}" for p in properties] + [f"{thing} link {rng.choice(NODES)}"]
        stream = URIRef(rng.choice(streams))
        found.append(Element(500_000 * i, stream, traces.triples(", ".join(content))))
    return found


def test_each_optimisation_has_its_query() -> None:
    assert set(QUERIES) == set(OPTIMISATIONS)


@pytest.mark.parametrize("name", OPTIMISATIONS)
def test_without_an_optimisation_the_plan_is_another_and_the_answer_the_same(name: str) -> None:
    text = PREFIX + QUERIES[name]
    plain = compile_query(text, without=[name])
    assert plain.plan.root != compile_query(text).plan.root
    # It stays left out when a query is compiled again.
    assert compile_query(plain, changelog=True).without == {name}
    elements = described_things(text, 24)
    expected = changes(text, elements, None)
    assert len(expected) > 2
    assert changes(text, elements, None, name) == expected


@pytest.mark.parametrize("name", OPTIMISATIONS)
def test_generated_queries_answer_alike_without_it(name: str) -> None:
    @settings(max_examples=5)
    @given(scenarios(FEATURES, WINDOWS, most_elements=6))
    def check(scenario: Scenario) -> None:
        text = scenario.texts[Dialect.CQELS_QL]
        with answerable():
            expected = changes(text, scenario.elements, scenario.static)
        assert changes(text, scenario.elements, scenario.static, name) == expected

    check()


def test_without_any_optimisation_answers_are_the_same() -> None:
    for query in QUERIES.values():
        text = PREFIX + query
        elements = described_things(text, 24)
        assert changes(text, elements, None, *OPTIMISATIONS) == changes(text, elements, None), query


def test_only_optimisations_can_be_left_out() -> None:
    with pytest.raises(
        UsageError, match="there is no optimisation 'push_windows' to leave out; there are flatten_joins, "
    ):
        compile_query(PREFIX + QUERIES["push_filters"], without=["push_windows"])
