"""Checks of rules: every variable has a value where it is needed, and no recursion goes through NOT or BIND."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Collection, Sequence

from cqels_py.algebra.temporal_rules import (
    CLASS,
    Always,
    Atom,
    Computed,
    Condition,
    Conjunction,
    Formula,
    Not,
    Rule,
    Since,
    Sometime,
    Variable,
    all_parts,
    bound_by,
    exported_by,
    parts_of,
    variables_of,
)
from cqels_py.parser.source import Source


def check_positive(parts: Sequence[Formula], word: str, source: Source, start: int) -> None:
    """Raise UnsupportedQuery for a group that has no pattern beside NOT, FILTER and BIND."""
    if not any(isinstance(part, Atom | Always | Sometime | Since | Conjunction) for part in parts):
        raise source.refusal(
            f"the group of {word} has no triple pattern that has to hold: NOT, FILTER and BIND only choose among its solutions",
            start,
        )


def check_scopes(
    parts: Sequence[Formula], source: Source, start: int, outside: Collection[Variable] = frozenset()
) -> None:
    """Raise QuerySyntaxError for a variable of NOT, FILTER, BIND, or of the left side of a SINCE, that is used elsewhere and has
    no value in its group. `outside`: the variables around the group."""
    for place, part in enumerate(parts):
        others = [each for other, each in enumerate(parts) if other != place]
        bound = {variable for each in others for variable in bound_by(each)}
        used = {variable for each in others for variable in variables_of(each)}.union(outside)
        match part:
            case Condition() | Computed():
                _require(part.variables, bound, "of this FILTER or BIND", source, start)
            case Not():
                _require(used.intersection(variables_of(part)), bound, "of this NOT", source, start)
            case Since(left, _, right):
                hidden = set(variables_of(part)).difference(exported_by(part))
                _require(hidden & used, bound, "", source, start)
                check_scopes(parts_of(left), source, start, used.union(variables_of(right)))
                check_scopes(parts_of(right), source, start, used.union(variables_of(left)))
            case Always(_, inner) | Sometime(_, inner):
                _require(used.intersection(variables_of(part)).difference(exported_by(part)), (), "", source, start)
                check_scopes(parts_of(inner), source, start, used)
            case _:
                pass


def _require(
    variables: Collection[Variable], bound: Collection[Variable], where: str, source: Source, start: int
) -> None:
    for variable in sorted(set(variables).difference(bound), key=lambda each: each.name):
        group = f" in the group {where}" if where else ""
        raise source.error(
            f"?{variable.name} is not bound{group}: a positive pattern{' of the same group' if where else ''} has to have it",
            start,
        )


def check_recursion(rules: Sequence[Rule], starts: Sequence[int], source: Source) -> None:
    """Raise UnsupportedQuery for a recursion through NOT, which would have no meaning, or BIND, which could go on for ever."""
    following: dict[str, set[str]] = defaultdict(set)
    for rule in rules:
        for name, _ in _predicates(rule.body):
            following[name].add(rule.head.predicate)
    for rule, start in zip(rules, starts, strict=True):
        head = rule.head.predicate
        for name, negated in _predicates(rule.body):
            path = _path(head, name, following)
            if path is None:
                continue
            if negated:
                names = ", ".join(f"<{each.removeprefix(CLASS)}>" for each in path if not each.startswith("@"))
                raise source.refusal(
                    f"a recursion through NOT has no meaning, here of {names}: a negated atom must not follow from the head",
                    start,
                )
            if any(isinstance(part, Computed) for part in all_parts(rule.body)):
                raise source.refusal(
                    "BIND in a recursive rule could make new terms for ever: compute the value in a rule of its own",
                    start,
                )


def _predicates(body: Sequence[Formula]) -> list[tuple[str, bool]]:
    """The predicates of a body, and whether they are negated."""
    found: list[tuple[str, bool]] = []
    for part in all_parts(body):
        if isinstance(part, Atom):
            found.append((part.predicate, False))
        elif isinstance(part, Not):
            found += [(atom.predicate, True) for atom in part.atoms]
    return found


def _path(start: str, end: str, following: dict[str, set[str]]) -> list[str] | None:
    """The predicates from one to another that follows from it, both included; None: it does not."""
    paths = {start: [start]}
    waiting = [start]
    while waiting:
        name = waiting.pop(0)
        if name == end:
            return paths[name]
        for head in sorted(following[name]):
            if head not in paths:
                paths[head] = [*paths[name], head]
                waiting.append(head)
    return None
