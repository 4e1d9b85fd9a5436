"""Postfix programs evaluated over terms, one row at a time: the reference for the interpreter kernel."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TypeAlias

from cqels_py.functions.dates import instant_text
from cqels_py.functions.limits import NO_REPORTS, Limits, is_longer, too_long
from cqels_py.functions.table import FUNCTIONS
from cqels_py.functions.terms import (
    XSD_DATETIME,
    ExpressionError,
    LimitExceeded,
    NotAnIri,
    Term,
    boolean,
    literal,
    parse_term,
)
from cqels_py.functions.values import equal, truth_of

Step: TypeAlias = tuple[str, int | str]
"""("variable" or "bound", input number), ("constant", N-Triples text), ("now", 0), or (function, argument count)."""


def evaluate_program(
    steps: Sequence[Step], row: Sequence[Term | None], now: int | None, limits: Limits = NO_REPORTS
) -> Term | None:
    """The value of a program over one row of terms (None: unbound); None is an error. `now`: microseconds."""
    stack: list[Term | None] = []
    for name, argument in steps:
        if name == "variable":
            stack.append(row[int(argument)])
        elif name == "constant":
            stack.append(parse_term(str(argument)))
        elif name == "bound":
            stack.append(boolean(row[int(argument)] is not None))
        elif name == "now":
            assert now is not None
            stack.append(literal(instant_text(now), XSD_DATETIME))
        else:
            start = len(stack) - int(argument)
            arguments = stack[start:]
            del stack[start:]
            stack.append(_call(name, arguments, limits))
    return stack[0]


def is_true(term: Term | None) -> bool:
    """Whether the effective boolean value is true. Errors are false."""
    return _truth(term) is True


def _truth(term: Term | None) -> bool | None:
    if term is None:
        return None
    try:
        return truth_of(term)
    except ExpressionError:
        return None


def _call(name: str, arguments: list[Term | None], limits: Limits) -> Term | None:
    if name in ("||", "&&"):
        return _logical(name == "||", arguments)
    if name in ("IN", "NOT-IN"):
        return _is_in(name == "IN", arguments)
    if name == "IF":
        condition = _truth(arguments[0])
        return None if condition is None else arguments[1 if condition else 2]
    if name == "COALESCE":
        return next((term for term in arguments if term is not None), None)
    terms = [term for term in arguments if term is not None]
    if len(terms) < len(arguments):
        return None
    call, _, _, grows = FUNCTIONS[name]
    try:
        found = call(*terms, max_text=limits.max_text) if grows else call(*terms)
        if len(found.text) > limits.max_text >> 2 and is_longer(found.text, limits.max_text):
            raise too_long(name, limits.max_text)
    except LimitExceeded as error:
        limits.report(str(error))
        return None
    except NotAnIri as error:
        limits.report_iri(str(error))
        return None
    except ExpressionError:
        return None
    return found


def _logical(deciding: bool, arguments: list[Term | None]) -> Term | None:
    truths = [_truth(term) for term in arguments]
    if deciding in truths:
        return boolean(deciding)
    return None if None in truths else boolean(not deciding)


def _is_in(wanted: bool, arguments: list[Term | None]) -> Term | None:
    """True if equal to a candidate; otherwise an error if a comparison is an error."""
    sought, *others = arguments
    failed = False
    for other in others:
        try:
            if sought is None or other is None:
                failed = True
            elif equal(sought, other):
                return boolean(wanted)
        except ExpressionError:
            failed = True
    return None if failed else boolean(not wanted)
