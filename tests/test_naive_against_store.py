"""The oracle's operators against pyoxigraph, over each tick's windows as named graphs."""

from __future__ import annotations

import math
import re
from collections.abc import Iterable, Sequence
from dataclasses import fields, is_dataclass
from typing import Any

import pyoxigraph as ox
import pytest
from hypothesis import assume, given
from rdflib import BNode, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import ContinuousQuery, Dialect
from tests.conformance.files import to_rdflib
from tests.oracle import naive, naive_values
from tests.oracle.naive import Mapping, Static
from tests.oracle.naive_algebra import Triple
from tests.oracle.naive_values import ExpressionError, Term
from tests.support import harness
from tests.support.drawn_modifiers import MODIFIERS
from tests.support.generators import FEATURES, FEW, RSP_QL_WINDOWS, Scenario, scenarios
from tests.support.traces import EX
from tests.test_generators import plain_sparql
from tests.test_window_graphs_against_oracle import GROUPS, arriving, of_sets

SHARED = FEATURES - {"graph", "window_graph"} - MODIFIERS


def _term(term: Term) -> Any:
    if isinstance(term, URIRef):
        return ox.NamedNode(str(term))
    if isinstance(term, BNode):
        return ox.BlankNode(str(term))
    assert isinstance(term, Literal)
    if term.language:
        return ox.Literal(str(term), language=term.language)
    return ox.Literal(str(term), datatype=ox.NamedNode(str(naive_values.datatype_of(term))))


def _store(query: ContinuousQuery, arrived: Sequence[naive.Element], static: Static, moment: naive.Moment) -> ox.Store:
    store = ox.Store()
    graphs: list[tuple[Any, Iterable[Triple]]] = [(ox.DefaultGraph(), static.default)]
    graphs += [(ox.NamedNode(str(w.name)), naive.content(query, w, arrived, moment).triples) for w in query.windows]
    for graph, triples in graphs:
        for triple in triples:
            subject, predicate, object_ = (_term(term) for term in triple)
            store.add(ox.Quad(subject, predicate, object_, graph))
    return store


def _rows(query: ContinuousQuery, store: ox.Store, text: str) -> list[Mapping]:
    answer: Any = store.query(text)
    if query.form == "ASK":
        return [frozenset({(Variable("boolean"), naive_values.boolean(bool(answer)))})]
    names = [str(variable) for variable in query.variables]
    return [
        frozenset((Variable(name), to_rdflib(row[name])) for name in names if row[name] is not None) for row in answer
    ]


def _sort_key(mapping: Mapping) -> list[tuple[str, Any]]:
    """Numbers by type and rounded value: the store has its own precision of division."""
    return sorted((str(variable), _value(term)) for variable, term in mapping)


def _value(term: Term) -> tuple[str, str]:
    try:
        found = naive_values.number(term)
    except ExpressionError:
        return ("term", term.n3())
    value = float(found.value)
    return (str(found.kind), f"{value:.9g}" if math.isfinite(value) and value != 0 else "0")


def _minus_inside_of_exists(node: object, inside: bool = False) -> bool:
    """Is a MINUS inside of EXISTS drawn, which may share nothing but outer variables?

    18.6 puts values in their place, and then nothing is in common; the store lets all outer variables be in common.
    """
    if inside and isinstance(node, nodes.Minus):
        return True
    parts = node if isinstance(node, tuple) else ()
    if is_dataclass(node):
        parts = tuple(getattr(node, field.name) for field in fields(node))
    return any(_minus_inside_of_exists(part, inside or isinstance(node, nodes.Exists)) for part in parts)


@pytest.mark.parametrize("feature", [*sorted(SHARED), "all of them"])
def test_answers_are_those_of_an_independent_store(feature: str) -> None:
    features = SHARED if feature == "all of them" else {"join", feature}

    @FEW
    @given(scenarios(features, RSP_QL_WINDOWS, most_elements=12))
    def check(scenario: Scenario) -> None:
        text = scenario.texts[Dialect.RSP_QL]
        assume("GROUP_CONCAT" not in text)  # its order is free
        assume("|:other" not in text and "|^:other" not in text)  # the store forgets duplicates, 18.4 keeps them
        # The store has no path of length 0 to a constant that its graph has not; 18.4 has one.
        assume(not re.search(r"[*?] :\w+ \.", text))
        query = harness.parse(text)
        assert not query.bag_windows
        assume(not _minus_inside_of_exists(query.pattern))
        plain = re.sub(r"FROM NAMED :\w+\n", "", plain_sparql(text))
        arrived = naive.relevant(query, scenario.elements)
        answered = naive.ticks(query, scenario.elements, scenario.static)
        for tick, moment in zip(answered, naive.moments(query, arrived), strict=True):
            rows = _rows(query, _store(query, arrived, scenario.static, moment), plain)
            assert sorted(map(_sort_key, tick.rows)) == sorted(map(_sort_key, rows)), tick

    check()


OTHERWISE = (
    # 18.6 joins the graph's name around the group; the store binds it inside, where OPTIONAL, FILTER and MINUS then see it …
    *("OPTIONAL { ?s :q ?g }", "MINUS { ?x :q ?o }", "FILTER(?g = :g)"),
    # … and leaves it unbound around a subquery, inline data, and another graph.
    *("{ { SELECT", "VALUES", "{ GRAPH"),
    # It does not ask whether there is a graph whose group needs no triples.
    *("GRAPH :g {}", "GRAPH :absent {}"),
    # Rows beyond LIMIT may differ, and so may paths of length zero from constants that are not in the graph (18.4).
    *("LIMIT", ":nowhere", ":b :q*"),
)
"""Parts of groups that the store answers otherwise."""


@pytest.mark.parametrize("group", [each for each in GROUPS if not any(part in each for part in OTHERWISE)])
def test_a_window_with_its_graphs_is_a_dataset(group: str) -> None:
    """In each graph its own triples, in the default graph all of them."""
    query = harness.parse(of_sets(group, "RANGE PT2S STEP PT1S"))
    names = " ".join(f"?{variable}" for variable in query.variables)

    @FEW
    @given(arriving())
    def check(elements: list[naive.Element]) -> None:
        arrived = naive.relevant(query, elements)
        moments = naive.moments(query, arrived)
        for tick, moment in zip(naive.ticks(query, elements), moments, strict=True):
            held = naive.content(query, query.windows[0], arrived, moment)
            store = ox.Store()
            for graph, triples in [(ox.DefaultGraph(), held.triples), *((_term(g), t) for g, t in held.named.items())]:
                store.extend(ox.Quad(*map(_term, triple), graph) for triple in triples)
            rows = _rows(query, store, f"PREFIX : <{EX}> SELECT {names} {{ {group} }}")
            assert sorted(map(_sort_key, tick.rows)) == sorted(map(_sort_key, rows)), tick

    check()
