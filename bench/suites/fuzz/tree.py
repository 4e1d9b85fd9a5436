"""Traversal of a case's tree, and its variants that are one step smaller."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from typing import Any

from bench.suites.fuzz import case as tree


def inside(node: Any, but: tuple[type, ...] = ()) -> Iterator[Any]:
    """All nodes of a tree, itself first, without those inside of `but`."""
    if isinstance(node, but):
        return
    if is_dataclass(node):
        yield node
        parts = [getattr(node, each.name) for each in fields(node)]
    else:
        parts = list(node) if isinstance(node, tuple) else []
    for part in parts:
        if is_dataclass(part) or isinstance(part, tuple):
            yield from inside(part, but)


_MAY_BE_EMPTY = frozenset(
    {"where", "inner", "patterns", "static", "named", "elements", "having", "order", "grouped", "rows", "partition"}
)
"""Fields whose parts may be removed one by one."""
_MAY_BE_NONE = frozenset({"limit", "offset", "graph", "start"})


def smaller(node: Any) -> Iterator[Any]:
    """The tree with one part removed, or with one part instead of its enclosing part; larger steps first."""
    for each in fields(node):
        value = getattr(node, each.name)
        for found in _smaller_field(each.name, value):
            yield replace(node, **{each.name: found})


def _smaller_field(name: str, value: Any) -> Iterator[Any]:
    if value is None:
        return
    if name in _MAY_BE_NONE:
        yield None
    if name == "modifier" and value:
        yield ""
    if isinstance(value, tuple) and value and not isinstance(value[0], str):
        yield from _smaller_tuple(name, value)
    elif is_dataclass(value) and not isinstance(value, type):
        yield from smaller(value)


def _smaller_tuple(name: str, value: tuple[Any, ...]) -> Iterator[Any]:
    removable = name in _MAY_BE_EMPTY or len(value) > 1
    if removable and name not in ("windows", "groups"):
        size = len(value) // 2
        while size:
            for start in range(0, len(value), size):
                yield value[:start] + value[start + size :]
            size //= 2
        if len(value) == 1:
            yield ()
    for at, part in enumerate(value):
        if isinstance(part, tree.Optional | tree.Nested | tree.StaticGraph | tree.ElementGraph | tree.Block):
            yield value[:at] + part.inner + value[at + 1 :]
        if isinstance(part, tree.Union):
            for branch in part.branches:
                yield value[:at] + branch + value[at + 1 :]
        if is_dataclass(part):
            for found in smaller(part):
                yield (*value[:at], found, *value[at + 1 :])
        elif isinstance(part, tuple) and part and not isinstance(part[0], str):
            for found in _smaller_tuple("inner", part):
                yield (*value[:at], found, *value[at + 1 :])
