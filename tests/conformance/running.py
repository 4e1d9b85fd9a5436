"""Runs a SPARQL test as a continuous query, over the data at once, one by one, and beside the window; and asks the oracle."""

from __future__ import annotations

import itertools
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field, fields, is_dataclass
from typing import Any, TypeAlias

from rdflib import BNode, Graph, Literal, URIRef, Variable
from rdflib.term import Node

from cqels_py.algebra import nodes
from tests.conformance.answers import Answer, Row, differences, out_of_order
from tests.conformance.results import graph_answer
from tests.conformance.windows import HOUR, at_once, continuous, one_by_one
from tests.oracle import naive
from tests.oracle.naive import Element, Mapping, Static
from tests.oracle.naive_algebra import Triple
from tests.support import harness

BEFORE, AT_ONCE, EXPIRED, END = HOUR, 3 * HOUR, 4 * HOUR, 6 * HOUR


Graphs: TypeAlias = dict[URIRef, Sequence[Triple]]


@dataclass(frozen=True)
class Asked:
    """A SPARQL query, its data and the answer to it. `data`: of the default graph. `merged`: graphs that the query's FROM names."""

    text: str
    data: Sequence[Triple]
    expected: Answer
    named: Graphs = field(default_factory=dict)
    merged: Graphs = field(default_factory=dict)
    base: str | None = None

    @property
    def continuous_text(self) -> str:
        return continuous(self.text, self.base)


# --- the ways to run it -------------------------------------------------------------------------------------------------


def check_at_once(asked: Asked) -> None:
    """The data arrives and expires as one element: the answer appears and is retracted, as in the oracle."""
    text = asked.continuous_text
    query = harness.parse(text)
    elements = at_once(asked.data)
    results = harness.run_engine(text, elements, _static(asked), None, nodes.Output.CHANGELOG)
    nothing = _oracle_answers(query, elements, asked)[BEFORE]
    _check(query, nothing, _sum(query, results, BEFORE), "before the data arrives")
    _check(query, asked.expected, _sum(query, results, AT_ONCE), "when the data arrives")
    _check(query, nothing, _sum(query, results, EXPIRED), "when the data has expired")
    _check(query, nothing, _sum(query, results, END), "at the end")


def check_one_by_one(asked: Asked, seed: int) -> None:
    """The data arrives triple by triple and expires so: the answer is there in between."""
    text = asked.continuous_text
    query = harness.parse(text)
    elements = one_by_one(asked.data, seed)
    results = harness.run_engine(text, elements, _static(asked), 2, nodes.Output.CHANGELOG)
    _check(query, asked.expected, _sum(query, results, elements[-2].time), "when all data has arrived")
    _check(query, _sum(query, results, BEFORE), _sum(query, results, END), "when all data has expired")


def check_static(asked: Asked) -> None:
    """The data stands beside an empty window: the answer is there from the first tick, and stays."""
    text = asked.continuous_text
    query = harness.parse(text)
    results = harness.run_engine(text, at_once([]), _static(asked, asked.data), None, nodes.Output.CHANGELOG)
    _check(query, asked.expected, _sum(query, results, BEFORE), "at the first tick")
    _check(query, asked.expected, _sum(query, results, END), "at the last tick")


def check_order(asked: Asked) -> None:
    """RSTREAM delivers the rows in the order of ORDER BY."""
    text = asked.continuous_text
    query = harness.parse(text)
    keys = order_keys(query)
    results = harness.run_engine(text, at_once(asked.data), _static(asked))
    actual = answer_of(query, [result.mapping for result in results if result.time == AT_ONCE])
    problem = out_of_order(asked.expected, actual, keys or (), computed_variables(query))
    assert problem is None, problem


def check_oracle(asked: Asked) -> None:
    """The oracle, against which everything else is tested, gives the same answer."""
    query = harness.parse(asked.continuous_text)
    answers = _oracle_answers(query, at_once(asked.data), asked)
    _check(query, asked.expected, answers[AT_ONCE], "says the oracle")


CHECKS: dict[str, Callable[[Asked], None]] = {
    "at once": check_at_once,
    "one by one": lambda asked: check_one_by_one(asked, seed=len(asked.data)),
    "static": check_static,
    "oracle": check_oracle,
}


# --- answers ------------------------------------------------------------------------------------------------------------


def answer_of(query: nodes.ContinuousQuery, mappings: Iterable[Mapping]) -> Answer:
    """Mappings as the query's form delivers them."""
    rows = [{str(variable): term for variable, term in mapping} for mapping in mappings]
    if query.form == "ASK":
        return Answer(boolean=rows == [{"boolean": Literal(True)}])
    if query.form == "CONSTRUCT":
        graph = Graph()
        for row in rows:
            for triple in _instances(query.template, row):
                graph.add(triple)
        return graph_answer(graph)
    return Answer(rows)


def _instances(template: Sequence[nodes.TriplePattern], row: Row) -> Iterator[tuple[Node, Node, Node]]:
    """The template's triples for one solution, those that are triples."""
    fresh: dict[Variable, BNode] = {}

    def term(slot: nodes.TermOrVariable) -> Node | None:
        if not isinstance(slot, Variable):
            return slot
        return fresh.setdefault(slot, BNode()) if slot.startswith("_:") else row.get(str(slot))

    for pattern in template:
        subject, predicate, object_ = map(term, (pattern.subject, pattern.predicate, pattern.object))
        if isinstance(subject, URIRef | BNode) and isinstance(predicate, URIRef) and object_ is not None:
            yield subject, predicate, object_


def computed_variables(query: nodes.ContinuousQuery) -> frozenset[str]:
    """The variables whose values the query computes rather than finds; of CONSTRUCT the object where there is such a one."""
    names = {str(variable) for variable in _computed(query.pattern)}
    return frozenset({"o"} if query.form == "CONSTRUCT" and names else names)


def _computed(node: Any) -> Iterator[Variable]:
    match node:
        case nodes.Extend(_, variable, _):
            yield variable
        case nodes.Group(_, _, aggregates):
            yield from (variable for variable, _ in aggregates)
    if is_dataclass(node):
        for each in fields(node):
            yield from _computed(getattr(node, each.name))
    elif isinstance(node, tuple):
        yield from itertools.chain.from_iterable(map(_computed, node))


def order_keys(query: nodes.ContinuousQuery) -> tuple[str, ...] | None:
    """The variables by which the answer is ordered; None where it is not, or not by selected variables alone."""
    pattern = query.pattern
    while isinstance(pattern, nodes.Slice | nodes.Distinct | nodes.Reduced | nodes.Project):
        pattern = pattern.pattern
    if not isinstance(pattern, nodes.OrderBy):
        return None
    keys = [condition for condition, _ in pattern.conditions]
    names = [
        str(key.variable) for key in keys if isinstance(key, nodes.VariableRef) and key.variable in query.variables
    ]
    return tuple(names) if len(names) == len(keys) else None


def _sum(query: nodes.ContinuousQuery, results: Sequence[harness.Result], until: int) -> Answer:
    """The answer that the changes up to an instant amount to."""
    bag: list[Mapping] = []
    for result in results:
        if result.time <= until and result.sign > 0:
            bag.append(result.mapping)
        elif result.time <= until:
            assert result.mapping in bag, f"withdrawn, but never there: {result.mapping}"
            bag.remove(result.mapping)
    return answer_of(query, bag)


def _oracle_answers(query: nodes.ContinuousQuery, elements: Sequence[Element], asked: Asked) -> dict[int, Answer]:
    default = [triple for triples in asked.merged.values() for triple in triples]
    ticks = naive.ticks(query, elements, Static(default, asked.named))
    return {tick.time: answer_of(query, tick.answer.elements()) for tick in ticks}


def _check(query: nodes.ContinuousQuery, expected: Answer, actual: Answer, when: str) -> None:
    problem = differences(expected, actual, computed_variables(query), isinstance(query.pattern, nodes.Reduced))
    assert problem is None, f"{when}: {problem}"


def _static(asked: Asked, default: Sequence[Triple] = ()) -> Static:
    return Static(default, asked.named | asked.merged)
