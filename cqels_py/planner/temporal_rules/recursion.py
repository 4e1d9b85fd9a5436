"""Which predicates a recursion with a delay goes through."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterable, Sequence

from cqels_py.algebra.temporal_rules import Atom
from cqels_py.planner.temporal_rules.normal_form import NOW, Join, NormalRule, Shift, SinceParts, Tested, Without

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
            if isinstance(rule, SinceParts) or (isinstance(rule, Shift) and rule.interval != NOW):
                moving.add((body, head))
    reached = {key: _reached(key, following) for key in [*following]}
    return frozenset(
        key
        for body, head in moving
        if body in reached.get(head, ())
        for key in reached[head]
        if head in reached.get(key, ())
    )


def strata(rules: Sequence[NormalRule]) -> dict[Key, int]:
    """For each predicate that follows from others how many NOT it is above at most. There is no cycle through NOT."""
    found: dict[Key, int] = defaultdict(int)
    changed = True
    while changed:
        changed = False
        for rule in rules:
            for body, head in _edges(rule):
                least = found[body] + (isinstance(rule, Without) and body == key_of(rule.absent))
                if found[head] < least:
                    found[head], changed = least, True
    return found


def _edges(rule: NormalRule) -> list[tuple[Key, Key]]:
    if isinstance(rule, Shift):
        return [(key_of(rule.body), key_of(rule.head))]
    if isinstance(rule, Join):
        return [(key_of(atom), key_of(rule.head)) for atom in (rule.left, rule.right)]
    if isinstance(rule, Tested):
        return [(key_of(rule.body), key_of(rule.head))]
    if isinstance(rule, Without):
        return [(key_of(rule.body), key_of(rule.head)), (key_of(rule.absent), key_of(rule.head))]
    parts = key_of(rule.parts)
    return [
        (key_of(rule.left), parts),
        (key_of(rule.right), parts),
        (key_of(rule.left), key_of(rule.head)),
        (parts, key_of(rule.head)),
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


def key_of(atom: Atom) -> Key:
    return atom.predicate, len(atom.terms)
