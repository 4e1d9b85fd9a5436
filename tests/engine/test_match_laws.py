"""MATCH: the worked example of Pinto & Riveros, and laws that relate patterns to each other and to joins of windows."""

from __future__ import annotations

from collections import Counter
from random import Random

import pytest
from rdflib import RDF, Literal, URIRef

from cqels_py.algebra.nodes import Output
from tests.oracle.naive import Element
from tests.support.drawn_matches import EX, drawn_elements
from tests.support.harness import run_engine

PREFIX = f"PREFIX : <{EX}>\n"
SECOND = 1_000_000
S0 = [("S", 2, 11), ("T", 2), ("R", 1, 10), ("S", 2, 11), ("T", 1), ("R", 2, 11), ("S", 4, 13), ("T", 1)]
"""The stream of the paper's section 2."""
T, S, R = (
    "EVENT ON :s0 { ?t a :T ; :x ?x }",
    "EVENT ON :s0 { ?s a :S ; :x ?x ; :y ?y }",
    "EVENT ON :s0 { ?r a :R ; :x ?x ; :y ?y }",
)


def stream(tuples):
    """An element a second for each tuple (relation, x, y); its subject is its position."""
    found = []
    for place, (relation, *values) in enumerate(tuples):
        subject = URIRef(f"{EX}{place}")
        named = [(subject, URIRef(EX + name), Literal(value)) for name, value in zip("xy", values, strict=False)]
        found.append(Element(place * SECOND, URIRef(f"{EX}s0"), ((subject, RDF.type, URIRef(EX + relation)), *named)))
    return found


def valuations(pattern, within="1000 EVENTS"):
    """For each position with outputs the sets of positions that match there."""
    text = f"{PREFIX}SELECT ?t ?s ?r {{ MATCH WITHIN {within} {{ {pattern} }} }}"
    found: dict[int, list[set[int]]] = {}
    for result in run_engine(text, stream(S0)):
        places = {int(term.removeprefix(EX)) for _, term in result.mapping}
        found.setdefault(result.time // SECOND, []).append(places)
    return {place: sorted(each, key=sorted) for place, each in found.items()}


def test_example_2_1_a_chain():
    chain = f"{T} SEQ {S} SEQ {R}"
    assert valuations(chain) == {5: [{1, 3, 5}]}
    assert valuations(chain, "4 EVENTS") == {5: [{1, 3, 5}]}
    assert valuations(chain, "3 EVENTS") == {}


def test_example_3_3_a_parallel_automaton_finds_more_than_a_chain():
    parallel = f"{{ {T} AND {S} }} SEQ {R}"
    assert valuations(parallel) == {5: [{0, 1, 5}, {1, 3, 5}]}
    assert valuations(parallel, "4 EVENTS") == {5: [{1, 3, 5}]}


def test_the_hierarchical_query_of_section_4():
    assert valuations(f"{T} AND {S} AND {R}") == {5: [{0, 1, 5}, {1, 3, 5}]}


# --- laws ---------------------------------------------------------------------------------------------------------------

A, B, C = (f"EVENT ON :s0 {{ ?{x} a :{x.upper()} ; :k ?k }}" for x in "abc")
SEEDS = range(5)


def elements_of(seed):
    return [each for each in drawn_elements(Random(seed), 40) if each.stream == URIRef(f"{EX}s0")]


def told(pattern, elements, *, within="5s", select="?a ?b", output=None):
    """The changes of a pattern's matches."""
    return Counter(
        run_engine(f"{PREFIX}SELECT {select} {{ MATCH WITHIN {within} {{ {pattern} }} }}", elements, output=output)
    )


@pytest.mark.parametrize("output", [None, Output.CHANGELOG])
@pytest.mark.parametrize("seed", SEEDS)
def test_and_is_a_join_of_windows_a_microsecond_wider(seed, output):
    elements = elements_of(seed)
    window = "STREAM :s0 [RANGE 5000001us]"
    join = f"{PREFIX}SELECT ?a ?b {{ {window} {{ ?a a :A . ?a :k ?k }} {window} {{ ?b a :B . ?b :k ?k }} }}"
    # Triples of a window may come from several elements, but here each has a subject of its own.
    distinct = [each for each in elements if len(set(each.triples)) == len(each.triples)]
    assert told(f"{A} AND {B}", distinct, output=output) == Counter(run_engine(join, distinct, output=output))


@pytest.mark.parametrize("seed", SEEDS)
def test_and_is_the_sum_of_both_orders_and_of_the_same_element(seed):
    elements = elements_of(seed)
    orders = told(f"{A} SEQ {B}", elements) + told(f"{B} SEQ {A}", elements)
    assert told(f"{A} AND {B}", elements) == orders
    any_kind = "EVENT ON :s0 { ?b :k ?k }"
    both = Counter(
        run_engine(f"{PREFIX}SELECT ?a ?b {{ MATCH WITHIN 0s 0 EVENTS {{ {A} AND {any_kind} }} }}", elements)
    )
    orders = told(f"{A} SEQ {any_kind}", elements) + told(f"{any_kind} SEQ {A}", elements) + both
    assert told(f"{A} AND {any_kind}", elements) == orders


@pytest.mark.parametrize("seed", SEEDS)
def test_or_is_the_union(seed):
    elements = elements_of(seed)
    alone = told(f"{A} SEQ {B}", elements) + told(f"{C} SEQ {B}", elements, select="?b")
    assert told(f"{{ {A} OR {C} }} SEQ {B}", elements) == alone


@pytest.mark.parametrize("seed", SEEDS)
def test_what_not_forbids_are_the_matches_with_an_event_between(seed):
    elements = elements_of(seed)
    without = told(f"{A} SEQ NOT {C} SEQ {B}", elements)
    between = set(told(f"{A} SEQ {C} SEQ {B}", elements))
    assert set(without) | between == set(told(f"{A} SEQ {B}", elements))
    assert not set(without) & between


@pytest.mark.parametrize("seed", SEEDS)
def test_a_shift_of_time_shifts_the_matches(seed):
    elements = elements_of(seed)
    later = [Element(each.time + 7, each.stream, each.triples) for each in elements]
    shifted = Counter((result.time - 7, result.mapping) for result in told(f"{A} SEQ {B}", later).elements())
    assert shifted == Counter((result.time, result.mapping) for result in told(f"{A} SEQ {B}", elements).elements())


@pytest.mark.parametrize("seed", SEEDS)
def test_elements_that_match_nothing_change_nothing(seed):
    elements = elements_of(seed)
    other = [Element(each.time, each.stream, ((RDF.nil, RDF.type, RDF.nil),)) for each in elements]
    mixed = [element for pair in zip(elements, other, strict=True) for element in pair]
    assert told(f"{A} SEQ NOT {C} SEQ {B}", mixed) == told(f"{A} SEQ NOT {C} SEQ {B}", elements)


@pytest.mark.parametrize("seed", SEEDS)
def test_in_strict_time_the_order_of_an_instant_does_not_matter(seed):
    elements = elements_of(seed)
    turned = elements[::-1]
    turned.sort(key=lambda element: element.time)
    assert turned != elements
    pattern = f"{A} SEQ NOT {C} SEQ {B}"
    assert told(pattern, turned, within="5s STRICT TIME") == told(pattern, elements, within="5s STRICT TIME")
