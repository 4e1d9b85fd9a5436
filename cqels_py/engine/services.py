"""SERVICE: other endpoints are asked once, when a query is registered. Their answers become inline data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count
from typing import Protocol

from rdflib import BNode, Variable

from cqels_py.algebra.nodes import ContinuousQuery, Pattern, Service, Values
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import possible_variables
from cqels_py.connections.reach import Reach
from cqels_py.errors import DataError
from cqels_py.sources.sparql_protocol import Solution, select
from cqels_py.terms.rdf import from_rdflib, to_rdflib

TIMEOUT = 30.0
"""The default timeout of an endpoint, in seconds without an answer."""

_ANSWERS = count(1)


class Ask(Protocol):
    """Asks an endpoint; DataError if there is no answer."""

    def __call__(self, endpoint: str, query: str, *, timeout: float) -> Sequence[Solution]: ...


class Answers:
    """Answers that are kept as plain data, in the order in which they were asked for; None: there was none.

    >>> answers = Answers([[{"x": "<http://ex.org/a>"}]])
    >>> answers.again("http://ex.org/sparql", "SELECT * { ?x ?y ?z }", timeout=1)
    [{'x': rdflib.term.URIRef('http://ex.org/a')}]
    """

    def __init__(self, given: Sequence[list[dict[str, str]] | None] = ()) -> None:
        self.given = list(given)
        self._next = 0

    def ask(self, endpoint: str, query: str, *, timeout: float, reach: Reach | None = None) -> Sequence[Solution]:
        """Ask the endpoint, and keep the answer. `reach`: which addresses may be connected to."""
        try:
            solutions = select(endpoint, query, timeout=timeout, reach=reach)
        except DataError:
            self.given.append(None)
            raise
        self.given.append([{name: from_rdflib(term) for name, term in solution.items()} for solution in solutions])
        return solutions

    def again(self, endpoint: str, query: str, *, timeout: float) -> Sequence[Solution]:
        """The next answer that was kept."""
        answer = self.given[self._next] if self._next < len(self.given) else None
        self._next += 1
        if answer is None:
            raise DataError(f"no answer of {endpoint} was kept: register a query with SERVICE by its text")
        return [{name: to_rdflib(text) for name, text in solution.items()} for solution in answer]


def answer_services(query: ContinuousQuery, timeout: float = TIMEOUT, ask: Ask = select) -> ContinuousQuery:
    """The query with the endpoints' answers in the place of its SERVICE clauses.

    Each clause is asked once, as it stands. One that fails is DataError, with SILENT the one empty mapping (SPARQL 1.1
    Federated Query, 2.3).
    """
    return replace(query, pattern=_answered(query.pattern, timeout, ask))


def _answered(pattern: Pattern, timeout: float, ask: Ask) -> Pattern:
    if not isinstance(pattern, Service):
        return map_children(pattern, lambda child: _answered(child, timeout, ask))
    try:
        solutions = ask(str(pattern.endpoint), pattern.text, timeout=timeout)
    except DataError:
        if not pattern.silent:
            raise
        return Values((), ((),))
    variables = sorted(v for v in possible_variables(pattern.pattern) if not v.startswith("_:"))
    return _rows(variables, solutions)


def _rows(variables: Sequence[Variable], solutions: Sequence[Solution]) -> Values:
    """Inline data; blank nodes are those of this answer alone."""
    answer = next(_ANSWERS)
    blanks: dict[BNode, BNode] = {}
    rows = []
    for solution in solutions:
        row = []
        for variable in variables:
            term = solution.get(str(variable))
            if isinstance(term, BNode):
                term = blanks.setdefault(term, BNode(f"service{answer}n{len(blanks)}"))
            row.append(term)
        rows.append(tuple(row))
    return Values(tuple(variables), tuple(rows))
