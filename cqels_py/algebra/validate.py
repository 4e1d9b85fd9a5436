"""Properties that every algebra tree must have."""

from __future__ import annotations

from dataclasses import fields, is_dataclass

MOST_NESTED = 200
"""Nodes above one another: what reads an algebra calls itself for each of them, and Python's stack is finite."""


def nesting(node: object) -> int:
    """How many nodes lie above one another at most, expressions included. Itself without recursion.

    >>> from cqels_py.algebra.nodes import BGP, Distinct
    >>> nesting(Distinct(Distinct(BGP(()))))
    3
    """
    deepest = 0
    waiting: list[tuple[object, int]] = [(node, 1)]
    while waiting:
        current, depth = waiting.pop()
        if isinstance(current, tuple):
            waiting.extend((each, depth) for each in current)
        elif is_dataclass(current):
            deepest = max(deepest, depth)
            waiting.extend((getattr(current, field.name), depth + 1) for field in fields(current))
    return deepest
