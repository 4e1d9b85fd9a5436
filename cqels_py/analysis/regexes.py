"""Constant regular expressions of a query that are invalid: SPARQL makes each use of one an error value, without a message."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TypeGuard

from rdflib import Literal

from cqels_py.algebra.nodes import Call, Constant, ContinuousQuery, Expression
from cqels_py.algebra.validate import walk
from cqels_py.functions.regexes import compile_pattern
from cqels_py.functions.terms import ExpressionError

_FLAGS = {"REGEX": 2, "REPLACE": 3}
"""The position of the flags among the arguments; the pattern is the second argument."""


def invalid_regexes(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each constant pattern that is invalid with its flags, in alphabetical order."""
    return tuple(sorted(set(_wrong(query))))


def _wrong(query: ContinuousQuery) -> Iterator[str]:
    for node, _ in walk(query.pattern):
        if isinstance(node, Call) and node.function in _FLAGS:
            _, pattern, *others = node.arguments
            flags = others[_FLAGS[node.function] - 2 :] or [Constant(Literal(""))]
            if _is_text(pattern) and _is_text(flags[0]):
                try:
                    compile_pattern(str(pattern.term), str(flags[0].term))
                except ExpressionError as error:
                    yield f"{node.function} is an error for every argument: {error}"


def _is_text(expression: Expression) -> TypeGuard[Constant]:
    return isinstance(expression, Constant) and isinstance(expression.term, Literal)
