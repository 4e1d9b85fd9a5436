"""Properties that every algebra tree must have."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass

from cqels_py.algebra.nodes import Window, WindowVariable

MOST_NESTED = 200
"""Nodes above one another: what reads an algebra calls itself for each of them, and Python's stack is finite."""


def nesting(node: object) -> int:
    """How many nodes lie above one another at most, expressions included. Itself without recursion.

    >>> from cqels_py.algebra.nodes import BGP, Distinct
    >>> nesting(Distinct(Distinct(BGP(()))))
    3
    """
    return max(depth for _, depth in walk(node))


def asks_windows(node: object) -> bool:
    """Is any pattern in it asked of a window, be it in a subquery or in EXISTS?"""
    return any(isinstance(each, Window | WindowVariable) for each, _ in walk(node))


def walk(node: object) -> Iterator[tuple[object, int]]:
    """Every node, with how many nodes it and those above it are."""
    waiting: list[tuple[object, int]] = [(node, 1)]
    while waiting:
        current, depth = waiting.pop()
        if isinstance(current, tuple):
            waiting.extend((each, depth) for each in current)
        elif is_dataclass(current):
            yield current, depth
            waiting.extend((getattr(current, field.name), depth + 1) for field in fields(current))
