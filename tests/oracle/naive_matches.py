"""The oracle of MATCH: all combinations of elements, tried one by one.

Elements of the streams that the pattern names have positions, from 0, in order of arrival. An event has a row for each solution over
the set of triples of one element. A match is a choice of rows, one for each event:

* Variables of the same name agree. A variable that only events of one `+` have agrees within each repetition alone, and is not seen
  outside.
* `A SEQ B`: all positions of A are before all of B; STRICT TIME: all times are. `A AND B`: any positions, also the same.
  `A OR B`: the matches of both. `A+`: A SEQ … SEQ A, of any length.
* `A SEQ NOT N SEQ C`: no element with a row of N that agrees with the match lies strictly between the last of A and the first of C;
  STRICT TIME: strictly between their times.
* LATEST, EARLIEST: of the matches with the same last element only that whose positions, from last to first, are the greatest or the
  least list (of two that begin alike, the longer is greater); of several with the same positions the first in the order of their
  terms, variable by variable in the order of the names.
* CONSUME: after a match has been told, no element up to its last one is in a match with the same values of the variables that all
  events (but for those of NOT) have. All matches with the same last element are told.
* WITHIN: the last and the first element are so far apart at most, in time and in positions, ends included.

At a tick a match stands if all its elements have arrived and its first one is no further away than WITHIN says, from the tick's time
and from the last position.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING

from rdflib import Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_algebra, naive_values
from tests.oracle.naive_values import Term

if TYPE_CHECKING:
    from tests.oracle.naive import Element

Solution = dict[Variable, Term]


@dataclass(frozen=True)
class Found:
    """A match of a part of the pattern. `gaps`: for each NOT passed its event, and the positions before and after it."""

    solution: Solution
    places: tuple[int, ...]
    gaps: tuple[tuple[nodes.Event, int, int], ...] = ()


def standing(
    query: nodes.ContinuousQuery, arrived: Sequence[Element], match: nodes.Match, dataset: naive_algebra.Dataset
) -> list[Solution]:
    """The solutions of the matches that stand at the tick."""
    matcher = Matcher(query, arrived, match, dataset)
    last = len(matcher.elements) - 1
    return [found.solution for found in matcher.matches() if matcher.is_near(min(found.places), last, dataset.now)]


def told(
    query: nodes.ContinuousQuery, arrived: Sequence[Element], match: nodes.Match, dataset: naive_algebra.Dataset
) -> list[tuple[int, Solution]]:
    """ISTREAM of the pattern alone: for each match the time of its last element, and its solution."""
    matcher = Matcher(query, arrived, match, dataset)
    return [(matcher.elements[max(found.places)].time, found.solution) for found in matcher.matches()]


class Matcher:
    def __init__(
        self,
        query: nodes.ContinuousQuery,
        arrived: Sequence[Element],
        match: nodes.Match,
        dataset: naive_algebra.Dataset,
    ) -> None:
        self._streams = {window.name: window.stream for window in query.windows}
        mine = {self._streams[name] for name in match.windows}
        self.elements = [element for element in arrived if element.stream in mine]
        self._match = match
        self._dataset = dataset

    def is_near(self, first: int, last: int, time: int) -> bool:
        """Is the first element near enough to the last position, and to this time?"""
        match = self._match
        if match.within is not None and time - self.elements[first].time > match.within:
            return False
        return match.within_events is None or last - first <= match.within_events

    def matches(self) -> list[Found]:
        """The matches that are told, after policy and CONSUME."""
        waiting = self._all_matches()
        told: list[Found] = []
        consumed: dict[tuple[Term | None, ...], int] = {}
        shared = sorted(self._of_all_events(self._match.pattern) - self._hidden())

        def key(found: Found) -> tuple[Term | None, ...]:
            return tuple(found.solution.get(v) for v in shared)

        for last in sorted({max(found.places) for found in waiting}):
            ending = [found for found in waiting if max(found.places) == last]
            if self._match.consume:
                ending = [found for found in ending if min(found.places) > consumed.get(key(found), -1)]
            if ending and self._match.policy != "ALL":
                choose = max if self._match.policy == "LATEST" else min
                best = choose(sorted(found.places, reverse=True) for found in ending)
                tied = [found for found in ending if sorted(found.places, reverse=True) == best]
                names = sorted({v for found in tied for v in found.solution if not v.startswith("_:")})
                ending = [min(tied, key=lambda found: [naive_values.order_key(found.solution.get(v)) for v in names])]
            told += ending
            consumed.update((key(found), last) for found in ending)
        return told

    def _hidden(self) -> set[Variable]:
        """The variables that only one `+` has."""
        pattern = self._match.pattern
        return set().union(*(_variables(each) - _others(pattern, each) for each in _repetitions(pattern)))

    def _of_all_events(self, pattern: nodes.EventPattern) -> set[Variable]:
        match pattern:
            case nodes.Event():
                return _variables(pattern)
            case nodes.EventRepetition(part):
                return self._of_all_events(part)
            case _:
                return set.intersection(*map(self._of_all_events, pattern.parts))

    def _all_matches(self) -> list[Found]:
        return [
            found
            for found in self._found(self._match.pattern)
            if self.is_near(min(found.places), max(found.places), self.elements[max(found.places)].time)
            and all(self._is_absent(found, *gap) for gap in found.gaps)
        ]

    def _found(self, pattern: nodes.EventPattern) -> list[Found]:
        match pattern:
            case nodes.Event():
                return [
                    Found(row, (place,)) for place in range(len(self.elements)) for row in self._rows(pattern, place)
                ]
            case nodes.EventAlternatives(parts):
                return [found for part in parts for found in self._found(part)]
            case nodes.EventConjunction(parts):
                found = self._found(parts[0])
                for part in parts[1:]:
                    more = self._found(part)
                    found = [joined for one in found for other in more if (joined := _joined(one, other))]
                return found
            case nodes.EventSequence(parts, absent):
                found = self._found(parts[0])
                for part, nothing in zip(parts[1:], absent, strict=True):
                    found = list(self._followed(found, self._found(part), nothing))
                return found
            case nodes.EventRepetition(part):
                local = _variables(part) - _others(self._match.pattern, pattern)
                once = [
                    replace(f, solution={v: x for v, x in f.solution.items() if v not in local})
                    for f in self._found(part)
                ]
                found, longer = list(once), list(once)
                while longer:
                    longer = list(self._followed(longer, once, None))
                    found += longer
                return found

    def _followed(self, one: list[Found], other: list[Found], absent: nodes.Event | None) -> Iterator[Found]:
        for first in one:
            for second in other:
                before, after = max(first.places), min(second.places)
                if self._is_before(before, after) and (joined := _joined(first, second)):
                    gap = () if absent is None else ((absent, before, after),)
                    yield replace(joined, gaps=(*joined.gaps, *gap))

    def _is_before(self, one: int, other: int) -> bool:
        if self._match.strict_time:
            return self.elements[one].time < self.elements[other].time
        return one < other

    def _is_absent(self, found: Found, event: nodes.Event, before: int, after: int) -> bool:
        return not any(
            _agree(found.solution, row)
            for place in range(before + 1, after)
            if self._is_before(before, place) and self._is_before(place, after)
            for row in self._rows(event, place)
        )

    def _rows(self, event: nodes.Event, place: int) -> list[Solution]:
        element = self.elements[place]
        if element.stream != self._streams[event.window]:
            return []
        pattern: nodes.Pattern = nodes.BGP(event.triples)
        dataset = replace(self._dataset, now=element.time)
        scope = naive_algebra.Scope(dataset, list(dict.fromkeys((*element.triples, *element.about))))
        rows = naive_algebra.evaluate(pattern, scope)
        if event.time is not None:
            rows = [row | {event.time: naive_values.date_time_literal(element.time)} for row in rows]
        for variable, expression in event.bindings:
            rows = naive_algebra._extend(rows, variable, expression, scope)
        return [row for row in rows if all(naive_algebra._holds(each, row, scope) for each in event.conditions)]


def _repetitions(pattern: nodes.EventPattern) -> list[nodes.EventRepetition]:
    match pattern:
        case nodes.Event():
            return []
        case nodes.EventRepetition():
            return [pattern]
        case _:
            return [found for part in pattern.parts for found in _repetitions(part)]


def _agree(one: Solution, other: Solution) -> bool:
    return all(one[v] == other[v] for v in one.keys() & other.keys())


def _joined(one: Found, other: Found) -> Found | None:
    if not _agree(one.solution, other.solution):
        return None
    return Found(one.solution | other.solution, (*one.places, *other.places), (*one.gaps, *other.gaps))


def _variables(pattern: nodes.EventPattern) -> set[Variable]:
    match pattern:
        case nodes.Event(_, triples, bindings, _, time):
            positions = {p for t in triples for p in (t.subject, t.predicate, t.object) if isinstance(p, Variable)}
            return positions | {v for v, _ in bindings} | ({time} if time is not None else set())
        case nodes.EventRepetition(part):
            return _variables(part)
        case _:
            return set().union(*map(_variables, pattern.parts))


def _others(pattern: nodes.EventPattern, but: nodes.EventRepetition) -> set[Variable]:
    """The variables of the events outside of a repetition."""
    if pattern is but:
        return set()
    match pattern:
        case nodes.Event():
            return _variables(pattern)
        case nodes.EventRepetition(part):
            return _others(part, but)
        case _:
            return set().union(*(_others(part, but) for part in pattern.parts))
