"""Properties that every algebra tree must have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from itertools import repeat

from cqels_py.algebra.nodes import (
    Constant,
    EventJoin,
    Match,
    State,
    TriplePattern,
    Values,
    VariableRef,
    Window,
    WindowVariable,
)

_LEAVES = frozenset({Constant, TriplePattern, Values, VariableRef})
"""Nodes that hold terms and variables alone. There may be 100,000 of these in one list."""

MOST_NESTED = 200
"""The greatest depth of an algebra: functions over it are recursive, and Python's stack is finite."""


def nesting(node: object) -> int:
    """The depth of an algebra, expressions included. The function itself is not recursive.

    >>> from cqels_py.algebra.nodes import BGP, Distinct
    >>> nesting(Distinct(Distinct(BGP(()))))
    3
    """
    return max(depth for _, depth in walk(node))


def asks_windows(node: object) -> bool:
    """Does any pattern in it ask a window, in subqueries and EXISTS too?"""
    return any(isinstance(each, Window | WindowVariable | Match | EventJoin | State) for each, _ in walk(node))


def walk(node: object) -> Iterator[tuple[object, int]]:
    """Every node, with its depth (1: the outermost)."""
    waiting: list[tuple[object, int]] = [(node, 1)]
    while waiting:
        current, depth = waiting.pop()
        if isinstance(current, tuple):
            waiting.extend(zip(current, repeat(depth)))
        elif type(current) in _LEAVES:
            yield current, depth
        elif is_dataclass(current):
            yield current, depth
            waiting.extend((getattr(current, field.name), depth + 1) for field in fields(current))
