"""The oracle's aggregates (SPARQL 1.1, 18.5.1): a list of solutions in, a term or unbound out."""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from decimal import Decimal
from fractions import Fraction
from typing import Any, TypeAlias

from rdflib import XSD, BNode, Literal, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_values as values
from tests.oracle.naive_values import ExpressionError, Number, Term

Solution: TypeAlias = Mapping[Variable, Term]


def evaluate(
    aggregate: nodes.AggregateCall,
    members: Sequence[Solution],
    value: Callable[[nodes.Expression, Any], Term],
) -> Term | None:
    """The aggregate over a group's solutions; None: unbound. tests.oracle.naive defines the effect of errors."""
    if aggregate.argument is None:
        # A solution does not contain the blank nodes of a pattern.
        rows: list[Any] = [frozenset((v, t) for v, t in mu.items() if not v.startswith("_:")) for mu in members]
        return _integer(len(set(rows) if aggregate.distinct else rows))
    terms: list[Term] = []
    errors = False
    for mu in members:
        try:
            terms.append(value(aggregate.argument, mu))
        except ExpressionError:
            errors = True
    if aggregate.distinct:
        terms = list(dict.fromkeys(terms))
    if errors and aggregate.function in ("SUM", "AVG"):
        return None
    try:
        return _over(aggregate, terms)
    except ExpressionError:
        return None


def _over(aggregate: nodes.AggregateCall, terms: list[Term]) -> Term | None:
    match aggregate.function:
        case "COUNT":
            return _integer(len(terms))
        case "SUM" | "AVG" if any(map(values.is_duration, terms)):
            return _of_durations(terms, by=1 if aggregate.function == "SUM" else len(terms))
        case "SUM":
            return values.number_literal(_sum(terms))
        case "AVG":
            return _average(terms)
        case "MIN" | "SAMPLE":
            return min(terms, key=values.order_key, default=None)
        case "MAX":
            return max(terms, key=values.order_key, default=None)
        case "GROUP_CONCAT":
            separator = " " if aggregate.separator is None else aggregate.separator
            return Literal(separator.join(_text(term) for term in sorted(terms, key=values.order_key)))
    raise NotImplementedError(f"the oracle does not know the aggregate {aggregate.function}")


def _integer(count: int) -> Literal:
    return values.typed(str(count), XSD.integer)


def _sum(terms: Sequence[Term]) -> Number:
    """Exact for integers and decimals. A sum of doubles is rounded once, so the order of the terms does not matter."""
    numbers = [values.number(term) for term in terms]
    kind = max((n.kind for n in numbers), default=values.INTEGER)
    if kind == values.INTEGER:
        return Number(kind, sum(n.value for n in numbers))
    if kind == values.DECIMAL:
        total = Decimal(0)
        for n in numbers:
            total = values.EXACT.add(total, Decimal(n.value))
        return Number(kind, total)
    total_float = _float_sum([float(n.value) for n in numbers])
    return Number(kind, values.to_float32(total_float) if kind == values.FLOAT else total_float)


def _float_sum(numbers: list[float]) -> float:
    """The double next to the exact sum; infinite if the sum is beyond all doubles."""
    if not all(map(math.isfinite, numbers)):
        return sum(number for number in numbers if not math.isfinite(number))
    total = sum(map(Fraction, numbers))
    try:
        return float(total)
    except OverflowError:
        return math.inf if total > 0 else -math.inf


def _average(terms: Sequence[Term]) -> Term:
    if not terms:
        return _integer(0)
    return values.number_literal(values.arithmetic("/", _sum(terms), Number(values.INTEGER, len(terms))))


def _of_durations(terms: Sequence[Term], by: int) -> Term:
    """fn:sum and fn:avg (F&O 3.1, 14.4): all values have one of the two types that have a sum."""
    datatypes = {values.datatype_of(term) if isinstance(term, Literal) else None for term in terms}
    if datatypes == {XSD.yearMonthDuration}:
        # Half a month is rounded towards positive infinity, as fn:round does.
        half_more = 2 * sum(values.duration(term).months for term in terms) + by
        found = values.duration_literal(half_more // (2 * by), Fraction(0), XSD.yearMonthDuration)
    elif datatypes == {XSD.dayTimeDuration}:
        seconds = sum((values.duration(term).seconds for term in terms), Fraction(0))
        found = values.duration_literal(0, seconds / by, XSD.dayTimeDuration)
    else:
        raise ExpressionError("a sum of values of different kinds")
    values.duration(found)
    return found


def _text(term: Term) -> str:
    if isinstance(term, BNode):
        raise ExpressionError("GROUP_CONCAT of a blank node")
    return str(term)
