"""SERVICE: other endpoints are asked once, when a query is registered. Their answers become inline data."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from itertools import count

from rdflib import BNode, Variable

from cqels_py.algebra.nodes import ContinuousQuery, Pattern, Service, Values
from cqels_py.algebra.traverse import map_children
from cqels_py.algebra.variables import possible_variables
from cqels_py.errors import DataError
from cqels_py.sources.sparql_protocol import Solution, select

TIMEOUT = 30.0
"""The default timeout of an endpoint, in seconds without an answer."""

_ANSWERS = count(1)


def answer_services(query: ContinuousQuery, timeout: float = TIMEOUT) -> ContinuousQuery:
    """The query with the endpoints' answers in the place of its SERVICE clauses.

    Each clause is asked once, as it stands. One that fails is DataError, with SILENT the one empty mapping (SPARQL 1.1
    Federated Query, 2.3).
    """
    return replace(query, pattern=_answered(query.pattern, timeout))


def _answered(pattern: Pattern, timeout: float) -> Pattern:
    if not isinstance(pattern, Service):
        return map_children(pattern, lambda child: _answered(child, timeout))
    try:
        solutions = select(str(pattern.endpoint), pattern.text, timeout=timeout)
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
