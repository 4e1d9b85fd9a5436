"""Walks over plans."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace

from cqels_py.plan.nodes import (
    ChangelogRead,
    CountedJoin,
    EventRows,
    FactorisedGroups,
    GraphNames,
    JoinAll,
    MatchRows,
    Negate,
    Node,
    PlannedEvent,
    Rows,
    Scan,
    Shared,
    StateRows,
    StaticScan,
    UnionRows,
    inputs_of,
    is_variable,
)

Rule = Callable[[Node], Node]


def nodes_of(node: Node, visited: set[int] | None = None) -> Iterator[Node]:
    """A node and all below it; a shared sub-plan once."""
    visited = set() if visited is None else visited
    if isinstance(node, Shared):
        if node.number in visited:
            return
        visited.add(node.number)
    yield node
    for child in inputs_of(node):
        yield from nodes_of(child, visited)


def scans_of(node: Node) -> Iterator[Scan]:
    """The triple patterns over streams in a plan's node, with those of events."""
    for each in nodes_of(node):
        if isinstance(each, Scan):
            yield each
        elif isinstance(each, MatchRows | CountedJoin):
            yield from _scans_of_events(each.events)
        elif isinstance(each, EventRows):
            yield from _scans_of_events((each.event,))


def states_of(node: Node) -> tuple[StateRows, ...]:
    """The STATEs in a plan's node."""
    return tuple(each for each in nodes_of(node) if isinstance(each, StateRows))


def _scans_of_events(events: tuple[PlannedEvent, ...]) -> Iterator[Scan]:
    for event in events:
        for pattern in event.patterns:
            yield Scan(event.window, pattern, tuple(dict.fromkeys(text[1:] for text in pattern if is_variable(text))))


def bottom_up(node: Node, rule: Rule) -> Node:
    """Apply `rule` to a node and all below it, inputs first; to a shared sub-plan once.

    >>> from cqels_py.plan.nodes import DistinctRowsOf, Rows
    >>> union = UnionRows((Shared(1, DistinctRowsOf(Rows((), ()))),) * 2, ())
    >>> found = bottom_up(union, lambda node: node.input if isinstance(node, DistinctRowsOf) else node)
    >>> found == UnionRows((Shared(1, Rows((), ())),) * 2, ())
    True
    """
    return _bottom_up(node, rule, {})


def _bottom_up(node: Node, rule: Rule, shared: dict[int, Node]) -> Node:
    if isinstance(node, Shared):
        if node.number not in shared:
            shared[node.number] = rule(Shared(node.number, _bottom_up(node.input, rule, shared)))
        return shared[node.number]
    match node:
        case JoinAll(inputs=inputs) | UnionRows(inputs=inputs) | FactorisedGroups(inputs=inputs):
            return rule(replace(node, inputs=tuple(_bottom_up(each, rule, shared) for each in inputs)))
        case Negate(left=left, right=right):
            return rule(replace(node, left=_bottom_up(left, rule, shared), right=_bottom_up(right, rule, shared)))
        case CountedJoin(statics=statics):
            return rule(replace(node, statics=tuple(_bottom_up(each, rule, shared) for each in statics)))
        case Scan() | MatchRows() | StateRows() | EventRows() | ChangelogRead() | StaticScan() | GraphNames() | Rows():
            return rule(node)
        case _:
            return rule(replace(node, input=_bottom_up(node.input, rule, shared)))
