"""Rules that say less than they seem to: STATE of predicates that no rule is about, and ALWAYS of facts that never last."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Sequence

from rdflib import RDF, URIRef

from cqels_py.algebra.nodes import ContinuousQuery, State
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
    atoms_of,
)
from cqels_py.algebra.validate import walk
from cqels_py.suggestions import similar


def unknown_states(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each class or property that a STATE asks for and no rule has, in a head or in a body."""
    if query.rules is None:
        return ()
    derived = [rule.head.predicate for rule in query.rules.rules if not rule.head.predicate.startswith("@")]
    derived += [atom.predicate for atom, _ in query.rules.facts]
    known = {*derived, *(atom.predicate for rule in query.rules.rules for each in rule.body for atom in atoms_of(each))}
    asked = [
        f"{CLASS}{triple.object}" if triple.predicate == RDF.type else str(triple.predicate)
        for node, _ in walk(query.pattern)
        if isinstance(node, State)
        for triple in node.triples
        if isinstance(triple.object if triple.predicate == RDF.type else triple.predicate, URIRef)
    ]
    by_local_name = {_local(each): each for each in derived}
    return tuple(
        f"STATE asks for {_name(each)}, which no rule derives or reads, so only triples of the streams and of the static data "
        f"count{_meant(each, by_local_name)}"
        for each in dict.fromkeys(asked)
        if each not in known
    )


def points_that_should_last(query: ContinuousQuery) -> tuple[str, ...]:
    """A message for each ALWAYS over an interval of facts that hold at single points only."""
    if query.rules is None:
        return ()
    rules = query.rules.rules
    given = {atom.predicate for atom, interval in query.rules.facts if interval.lo < interval.hi}
    lasting = _lasting(rules, given)
    return tuple(
        dict.fromkeys(
            f"ALWAYS of {', '.join(_name(atom.predicate) for atom in atoms_of(each.inner))} never holds for triples of streams: "
            "each is a fact at its own instant only, so say how long it lasts: RULE { … } FOR [0s, 5s] WHERE { … }, or SOMETIME "
            "[0s, 5s] { … } inside of ALWAYS"
            for rule in rules
            for part in rule.body
            for each in _always(part)
            if each.interval.lo < each.interval.hi and not _lasts(each.inner, lasting)
        )
    )


def _lasting(rules: Sequence[Rule], given: Iterable[str]) -> set[str]:
    """The predicates that may hold for longer than a point: some of heads, and those of given facts."""
    found = set(given)
    for _ in rules:
        found |= {
            rule.head.predicate
            for rule in rules
            if any(span.lo < span.hi for span in rule.spans) or any(_lasts(each, found) for each in rule.body)
        }
    return found


def _lasts(formula: Formula, lasting: set[str]) -> bool:
    match formula:
        case Atom(predicate):
            return predicate in lasting
        case Since():
            return True
        case Sometime(interval, inner):
            return interval.lo < interval.hi or _lasts(inner, lasting)
        case Always(_, inner):
            return _lasts(inner, lasting)
        case Conjunction(parts):
            # One part may be static.
            return any(_lasts(part, lasting) for part in parts)
        case Not() | Condition() | Computed():
            return False


def _always(formula: Formula) -> Iterator[Always]:
    match formula:
        case Always(_, inner):
            yield formula
            yield from _always(inner)
        case Sometime(_, inner):
            yield from _always(inner)
        case Since(left, _, right):
            yield from _always(left)
            yield from _always(right)
        case Conjunction(parts):
            for part in parts:
                yield from _always(part)
        case _:
            pass


def _meant(predicate: str, by_local_name: dict[str, str]) -> str:
    """IRIs of one namespace are always similar, so only their last parts are compared."""
    found = similar(_local(predicate), by_local_name)
    return f"; did you mean {_name(by_local_name[found])}?" if found else ""


def _local(predicate: str) -> str:
    return re.split("[#/ ]", predicate)[-1]


def _name(predicate: str) -> str:
    return f"a <{predicate.removeprefix(CLASS)}>" if predicate.startswith(CLASS) else f"<{predicate}>"
