"""Which predicates a recursion with a delay goes through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable

from cqels_py.algebra.temporal_rules import Atom
from cqels_py.planner.temporal_rules.normal_form import NOW, Join, NormalRule, Shift

Key = tuple[str, int]
"""A predicate: its name and its number of arguments."""


def delayed_predicates(rules: Iterable[NormalRule]) -> frozenset[Key]:
    """The predicates of all strongly connected components in which a rule moves facts in time.

    Without a delay a component only intersects intervals, of which there are finitely many.
    """
    following: dict[Key, set[Key]] = defaultdict(set)
    moving: set[tuple[Key, Key]] = set()
    for rule in rules:
        for body, head in _edges(rule):
            following[body].add(head)
            if not isinstance(rule, Join) and not (isinstance(rule, Shift) and rule.interval == NOW):
                moving.add((body, head))
    reached = {key: _reached(key, following) for key in [*following]}
    return frozenset(
        key
        for body, head in moving
        if body in reached.get(head, ())
        for key in reached[head]
        if head in reached.get(key, ())
    )


def _edges(rule: NormalRule) -> list[tuple[Key, Key]]:
    if isinstance(rule, Shift):
        return [(_key(rule.body), _key(rule.head))]
    if isinstance(rule, Join):
        return [(_key(atom), _key(rule.head)) for atom in (rule.left, rule.right)]
    parts = _key(rule.parts)
    return [
        (_key(rule.left), parts),
        (_key(rule.right), parts),
        (_key(rule.left), _key(rule.head)),
        (parts, _key(rule.head)),
    ]


def _reached(key: Key, following: dict[Key, set[Key]]) -> set[Key]:
    """All that follow from a predicate in one step or more."""
    found: set[Key] = set()
    waiting = [key]
    while waiting:
        for head in following.get(waiting.pop(), ()):
            if head not in found:
                found.add(head)
                waiting.append(head)
    return found


def _key(atom: Atom) -> Key:
    return atom.predicate, len(atom.terms)
