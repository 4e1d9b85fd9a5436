"""An event pattern as an automaton whose runs are chains of events: one state for each place that an event has in the pattern.

    A SEQ B      A → B
    A OR B       both alternatives
    A+           A → A
    A AND B      A → B and B → A: parts in every order. An element that serves several parts counts as if it came for the first part
                 first, so that each choice of elements is one chain.

So each match is exactly one run (the automaton is unambiguous), and each event prolongs one earlier run. Pinto & Riveros
translate AND alone into transitions with several sources (Theorem 4.1), which compare more by key; chains of every order are
larger, and also give AND inside of SEQ and around it.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from cqels_py.algebra.nodes import (
    Event,
    EventAlternatives,
    EventConjunction,
    EventPattern,
    EventRepetition,
    EventSequence,
)
from cqels_py.algebra.variables import Variables, local_variables
from cqels_py.errors import UnsupportedQuery

MOST_TRANSITIONS = 128
"""By one event: an arrival tries each of them."""
MOST_STATES = 2000
MOST_IN_ALL = 1 << 15
"""Transitions, those from no state included: kernels number them in two bytes."""


@dataclass(frozen=True, slots=True)
class Edge:
    """From state to state; see `plan.nodes.MatchTransition`. `absent` is a number of `Automaton.absent`."""

    source: int
    target: int
    same_element: bool = False
    later: bool = False
    absent: int = -1
    fresh: Variables = frozenset()
    later_than: tuple[int, ...] = ()


@dataclass(slots=True)
class Fragment:
    """The automaton of a part: its states by number, with their events."""

    event_of: dict[int, int]
    first: list[int]
    last: list[int]
    edges: list[Edge]


@dataclass(slots=True)
class Automaton:
    """Of a whole pattern. `events` in the order of the text, those of NOT last; `absent`: (event, the events it may follow)."""

    fragment: Fragment
    events: list[Event] = field(default_factory=list)
    absent: list[tuple[int, tuple[int, ...]]] = field(default_factory=list)


def automaton_of(pattern: EventPattern, *, strict_time: bool) -> Automaton:
    """The automaton of a pattern. UnsupportedQuery if it is too large."""
    return _Builder(pattern, strict_time).run(pattern)


class _Builder:
    def __init__(self, pattern: EventPattern, strict_time: bool) -> None:
        self._strict = strict_time
        self._events: list[Event] = []
        self._nothing: list[tuple[Event, tuple[int, ...]]] = []
        self._local = local_variables(pattern)
        self._repetitions = 0
        self._states = 0

    def run(self, pattern: EventPattern) -> Automaton:
        fragment = self._build(pattern)
        absent = []
        for event, after in self._nothing:
            absent.append((len(self._events), after))
            self._events.append(event)
        _check_size(fragment, len(absent))
        return Automaton(fragment, self._events, absent)

    def _state(self) -> int:
        self._states += 1
        if self._states > MOST_STATES:
            raise UnsupportedQuery(f"the event pattern has more than {MOST_STATES} states: {_SMALLER}")
        return self._states - 1

    def _build(self, pattern: EventPattern) -> Fragment:
        match pattern:
            case Event():
                self._events.append(pattern)
                state = self._state()
                return Fragment({state: len(self._events) - 1}, [state], [state], [])
            case EventAlternatives(parts):
                return _alternatives([self._build(part) for part in parts])
            case EventSequence(parts, absent):
                return self._sequence([self._build(part) for part in parts], absent)
            case EventRepetition(part):
                fresh = self._local[self._repetitions]
                self._repetitions += 1
                return self._repetition(self._build(part), fresh)
            case EventConjunction(parts):
                return self._conjunction([self._build(part) for part in parts])

    def _sequence(self, parts: list[Fragment], absent: tuple[Event | None, ...]) -> Fragment:
        whole = parts[0]
        for part, event in zip(parts[1:], absent, strict=True):
            number = -1
            if event is not None:
                number = len(self._nothing)
                self._nothing.append((event, tuple(sorted({whole.event_of[state] for state in whole.last}))))
            between = [Edge(s, t, later=self._strict, absent=number) for s in whole.last for t in part.first]
            edges = [*whole.edges, *part.edges, *between]
            whole = Fragment(whole.event_of | part.event_of, whole.first, part.last, edges)
        return whole

    def _repetition(self, part: Fragment, fresh: Variables) -> Fragment:
        again = [Edge(s, t, later=self._strict, fresh=fresh) for s in part.last for t in part.first]
        return replace(part, edges=[*part.edges, *again])

    def _conjunction(self, parts: list[Fragment]) -> Fragment:
        """The chains in which the parts' chains are mixed: states are a state of each part, or none yet, and who moved last."""
        product = _Product(parts)
        numbers: dict[_Place, int] = {}
        whole = Fragment({}, [], [], [])
        waiting: list[_Place] = []

        def number_of(place: _Place) -> int:
            if place not in numbers:
                numbers[place] = self._state()
                whole.event_of[numbers[place]] = product.event_of(place)
                waiting.append(place)
                if product.is_last(place):
                    whole.last.append(numbers[place])
            return numbers[place]

        whole.first.extend(number_of(place) for place in product.first())
        while waiting:
            place = waiting.pop()
            for following, edge in product.moves(place):
                whole.edges.append(replace(edge, source=numbers[place], target=number_of(following)))
        return whole


_SMALLER = "write fewer parts of AND, or a SEQ where the order is known"
_Place = tuple[tuple[int | None, ...], int]


class _Product:
    """Chains of several parts, mixed. A place: each part's state, and which part moved last."""

    def __init__(self, parts: list[Fragment]) -> None:
        self._parts = parts

    def event_of(self, place: _Place) -> int:
        states, mover = place
        state = states[mover]
        assert state is not None
        return self._parts[mover].event_of[state]

    def is_last(self, place: _Place) -> bool:
        return all(state in part.last for state, part in zip(place[0], self._parts, strict=True))

    def first(self) -> Iterator[_Place]:
        nothing: tuple[int | None, ...] = (None,) * len(self._parts)
        for number, part in enumerate(self._parts):
            for state in part.first:
                yield _moved(nothing, number, state)

    def moves(self, place: _Place) -> Iterator[tuple[_Place, Edge]]:
        states, mover = place
        for number, part in enumerate(self._parts):
            here = states[number]
            own = [Edge(-1, state, True) for state in part.first] if here is None else []
            own += [edge for edge in part.edges if edge.source == here]
            for edge in own:
                # Of parts that one element serves, the first one comes first.
                same = edge.same_element if number == mover else number > mover
                moved = replace(edge, same_element=same)
                if edge.later and number != mover:
                    # Later than the event before it in its own part, which events of other parts may have followed.
                    assert here is not None
                    moved = replace(moved, later=False, later_than=(part.event_of[here],))
                yield _moved(states, number, edge.target), moved


def _moved(states: tuple[int | None, ...], number: int, state: int) -> _Place:
    return (*states[:number], state, *states[number + 1 :]), number


def _alternatives(parts: list[Fragment]) -> Fragment:
    whole = Fragment({}, [], [], [])
    for part in parts:
        whole.event_of |= part.event_of
        whole.first += part.first
        whole.last += part.last
        whole.edges += part.edges
    return whole


def _check_size(fragment: Fragment, absent: int) -> None:
    """`absent`: the number of NOTs, which have a transition each."""
    in_all = len(fragment.first) + len(fragment.edges) + absent
    if in_all > MOST_IN_ALL:
        raise UnsupportedQuery(
            f"the event pattern has {in_all:,} transitions, more than {MOST_IN_ALL:,}: {_SMALLER}; or one MATCH for each branch of "
            "an OR, joined by UNION"
        )
    counts: dict[int, int] = {}
    for edge in fragment.edges:
        event = fragment.event_of[edge.target]
        counts[event] = counts.get(event, 0) + 1
    most = max(counts.values(), default=0)
    if most > MOST_TRANSITIONS:
        raise UnsupportedQuery(
            f"one event of the pattern has {most} transitions, more than {MOST_TRANSITIONS}, each of which every arrival would "
            f"try: {_SMALLER}"
        )
