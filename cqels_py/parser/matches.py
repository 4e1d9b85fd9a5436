"""`MATCH WITHIN 5m {…}`: the clause is read, and its markers become an event pattern.

MATCH WITHIN 5m { EVENT ON <s> {…} SEQ EVENT ON <s> {…} }  →  GRAPH <marker> { GRAPH <marker> {…} GRAPH <marker> {…} }
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import NoReturn, TypeAlias

from rdflib import URIRef, Variable

from cqels_py.algebra.match_automaton import automaton_of
from cqels_py.algebra.nodes import (
    Event,
    EventAlternatives,
    EventConjunction,
    EventPattern,
    EventRepetition,
    EventSequence,
    Everything,
    Extent,
    Match,
    TimeRange,
    WindowDefinition,
)
from cqels_py.algebra.variables import event_variables, repeated_variables, variables_of_event
from cqels_py.errors import UnsupportedQuery
from cqels_py.parser.events import EventBlock, read_event
from cqels_py.parser.source import Edit, Source
from cqels_py.parser.times import MOST, read_duration
from cqels_py.parser.tokens import Cursor, Kind, Token

_NO_WITHIN = "a match may then wait for ever: write WITHIN 5m or WITHIN 100 EVENTS"
_WHERE_NOT_STANDS = "NOT stands between two events: A SEQ NOT N SEQ C"
_NOT_AT_THE_END = (
    f"{_WHERE_NOT_STANDS}. For an A that no N follows within 5 minutes write STREAM <a> [FROM NOW-301s TO NOW-5m] {{ … }} "
    "FILTER NOT EXISTS { STREAM <n> [RANGE 5m] { … } }"
)
_POLICIES = ("ALL", "LATEST", "EARLIEST")
_WORDS = ("SEQ", "AND", "OR")


@dataclass(frozen=True, slots=True)
class Leaf:
    """An EVENT block, by its marker."""

    marker: URIRef


@dataclass(frozen=True, slots=True)
class Unit:
    """Units joined by `word` (SEQ, AND, OR), or one that repeats ("+"). `absent`: NOT's blocks between those of SEQ."""

    word: str
    parts: tuple[Leaf | Unit, ...]
    absent: tuple[Leaf | None, ...] = ()
    start: int = 0


Shape: TypeAlias = Leaf | Unit


@dataclass(slots=True)
class MatchBlock:
    """A MATCH clause. `shape`: its events' markers; `events`: their heads. `repeated`: variables that only a `+` in it has."""

    start: int
    end: int = 0
    within: int | None = None
    within_events: int | None = None
    strict_time: bool = False
    policy: str = "ALL"
    consume: bool = False
    shape: Shape | None = None
    events: dict[URIRef, EventBlock] = field(default_factory=dict)
    windows: dict[URIRef, WindowDefinition] = field(default_factory=dict)
    repeated: frozenset[Variable] = frozenset()

    @property
    def extent(self) -> Extent:
        """That of a window in which an element is as long as matches with it stand."""
        return Everything() if self.within is None else TimeRange(self.within + 1)


class MatchReader:
    """Reads one MATCH clause at the cursor. `edits`: they turn it into SPARQL."""

    def __init__(
        self,
        source: Source,
        cursor: Cursor,
        resolve: Callable[[Token], URIRef],
        markers: Iterator[URIRef],
        names: Iterator[URIRef],
    ) -> None:
        self._source = source
        self._cursor = cursor
        self._resolve = resolve
        self._markers = markers
        self._names = names
        self.edits: list[Edit] = []

    def read(self) -> tuple[URIRef, MatchBlock]:
        cursor = self._cursor
        self._block = block = MatchBlock(cursor.take().start)
        if policy := cursor.take_word(*_POLICIES):
            block.policy = policy.text.upper()
        self._check_head()
        cursor.take()
        self._within()
        if cursor.take_word("STRICT"):
            cursor.expect_word("TIME", "STRICT")
            block.strict_time = True
        block.consume = cursor.take_word("CONSUME") is not None
        marker = next(self._markers)
        self.edits.append((block.start, cursor.before.end, f"GRAPH <{marker}> "))
        if cursor.here.is_word(*_POLICIES):
            word = cursor.here.text.upper()
            raise self._source.error(f"{word} comes before WITHIN: MATCH {word} WITHIN 5m {{ … }}", cursor.here.start)
        opened = cursor.expect_mark("{", "and events after MATCH WITHIN …")
        block.shape = self._pattern()
        if not cursor.take_mark("}"):
            line = self._source.place(opened.start).line
            self._fail_behind_unit(f"the '}}' of the group that begins in line {line}")
        block.end = cursor.before.end
        return marker, block

    def _check_head(self) -> None:
        """WITHIN comes now."""
        cursor = self._cursor
        if cursor.here.is_word("WITHIN"):
            return
        if cursor.here.is_word("CONSUME"):
            raise self._source.error("CONSUME comes after WITHIN: MATCH WITHIN 5m CONSUME { … }", cursor.here.start)
        if cursor.here.kind is Kind.WORD:
            cursor.fail("expected ALL, LATEST or EARLIEST, or WITHIN, as in MATCH LATEST WITHIN 5m")
        raise self._source.error(_NO_WITHIN, cursor.here.start)

    def _fail_behind_unit(self, end: str) -> NoReturn:
        cursor = self._cursor
        if cursor.here.is_word("FILTER", "BIND"):
            word = cursor.here.text.upper()
            raise self._source.error(
                f"{word} stands in the braces of an EVENT, of which it sees the variables, or behind the MATCH, as in "
                f"MATCH WITHIN 5m {{ … }} {word}(…)",
                cursor.here.start,
            )
        if cursor.here.is_mark("*") or cursor.here.is_mark("?"):
            raise self._source.error(
                "only + repeats an event, once or more often: A SEQ B+ SEQ C, or without any, A SEQ C",
                cursor.here.start,
            )
        raise self._source.error(f"expected SEQ, AND, OR or {end}, found {cursor.here}", cursor.here.start)

    def _within(self) -> None:
        cursor, block = self._cursor, self._block
        if cursor.here.kind is Kind.NUMBER and cursor.ahead().is_word("EVENTS"):
            block.within_events = self._events()
            return
        block.within = self._duration()
        if cursor.here.kind is Kind.NUMBER:
            if not cursor.ahead().is_word("EVENTS"):
                cursor.take()
                cursor.fail("expected EVENTS, as in WITHIN 5m 100 EVENTS")
            block.within_events = self._events()

    def _duration(self) -> int:
        """A duration, which may be zero: within one instant."""
        here = self._cursor.here
        if here.kind is Kind.NUMBER and here.text.lstrip("0") in ("s", "ms", "us", "m", "h", "d", "min"):
            self._cursor.take()
            return 0
        return read_duration(self._cursor)

    def _events(self) -> int:
        number = self._cursor.take()
        self._cursor.take()
        if not number.text.isascii() or not number.text.isdigit() or len(number.text) > 18 or int(number.text) >= MOST:
            raise self._source.error(f"WITHIN {number.text} EVENTS: expected a whole number of elements", number.start)
        return int(number.text)

    # --- the pattern ---------------------------------------------------------------------------------------------

    def _pattern(self) -> Shape:
        """Units joined by one operator."""
        cursor, start = self._cursor, self._cursor.here.start
        parts: list[Shape] = [self._unit()]
        absent: list[Leaf | None] = []
        word: str | None = None
        while cursor.here.is_word(*_WORDS):
            token = cursor.take()
            if word is not None and not token.is_word(word):
                other = token.text.upper()
                raise self._source.error(
                    f"{word} and {other} in one group: write {{ A {word} B }} {other} C or A {word} {{ B {other} C }}",
                    token.start,
                )
            word = token.text.upper()
            self._cut(token)
            absent.append(self._absent(word))
            parts.append(self._unit())
        if word is None:
            return parts[0]
        return Unit(word, tuple(parts), tuple(absent) if word == "SEQ" else (), start)

    def _absent(self, word: str) -> Leaf | None:
        cursor = self._cursor
        if not cursor.here.is_word("NOT"):
            return None
        token = cursor.take()
        if word != "SEQ":
            raise self._source.error(_WHERE_NOT_STANDS, token.start)
        self._cut(token)
        if not cursor.here.is_word("EVENT"):
            cursor.fail(f"expected EVENT after NOT; {_WHERE_NOT_STANDS}")
        leaf = self._event()
        if not cursor.here.is_word("SEQ") or cursor.ahead().is_word("NOT"):
            message = _WHERE_NOT_STANDS if cursor.here.is_word("SEQ") else _NOT_AT_THE_END
            raise self._source.error(message, token.start)
        self._cut(cursor.take())
        return leaf

    def _unit(self) -> Shape:
        cursor, start = self._cursor, self._cursor.here.start
        shape: Shape
        if cursor.here.is_word("EVENT"):
            shape = self._event()
        elif cursor.here.is_word("NOT"):
            raise self._source.error(_WHERE_NOT_STANDS, start)
        elif cursor.take_mark("{"):
            shape = self._pattern()
            if not cursor.take_mark("}"):
                self._fail_behind_unit("'}'")
        else:
            cursor.fail("expected EVENT ON <stream> { … } or '{'")
        if cursor.here.is_mark("+"):
            self._cut(cursor.take())
            shape = Unit("+", (shape,), (), start)
        return shape

    def _event(self) -> Leaf:
        marker = next(self._markers)
        event = read_event(self._cursor, self._resolve, self._window)
        self._block.events[marker] = event
        self.edits.append((event.start, event.opening, f"GRAPH <{marker}> "))
        return Leaf(marker)

    def _window(self, stream: URIRef) -> URIRef:
        """The clause's window over a stream."""
        if stream not in self._block.windows:
            self._block.windows[stream] = WindowDefinition(next(self._names), stream, self._block.extent)
        return self._block.windows[stream].name

    def _cut(self, token: Token) -> None:
        self.edits.append((token.start, token.end, " "))


def match_of(block: MatchBlock, events: dict[URIRef, Event], source: Source) -> Match:
    """The algebra of a clause, from its events by marker. Raises QuerySyntaxError and UnsupportedQuery."""
    assert block.shape is not None
    pattern = _built(block.shape, events, source)
    windows = tuple(window.name for window in block.windows.values())
    _check_absent(pattern, source)
    block.repeated = repeated_variables(pattern)
    try:
        automaton_of(pattern, strict_time=block.strict_time)
    except UnsupportedQuery as error:
        raise source.refusal(error.message, block.start) from None
    return Match(
        pattern, windows, block.within, block.within_events, block.strict_time, block.policy, block.consume, block.start
    )


def check_repeated(block: MatchBlock, tokens: Sequence[Token], source: Source) -> None:
    """Refuse a variable outside of a MATCH that only a `+` inside of it has."""
    names = {f"{sign}{variable}" for variable in block.repeated for sign in "?$"}
    for token in tokens:
        outside = not block.start <= token.start < block.end
        if outside and token.kind is Kind.VARIABLE and token.text in names:
            raise source.refusal(
                f"{token.text} is inside of +, so it has many values: take another name, or leave the + out",
                token.start,
            )


def _built(shape: Shape, events: dict[URIRef, Event], source: Source) -> EventPattern:
    if isinstance(shape, Leaf):
        return events[shape.marker]
    parts = tuple(_built(part, events, source) for part in shape.parts)
    match shape.word:
        case "SEQ":
            return EventSequence(parts, tuple(None if leaf is None else events[leaf.marker] for leaf in shape.absent))
        case "AND":
            return EventConjunction(parts)
        case "OR":
            return EventAlternatives(parts)
        case _:
            if _repeats(parts[0]):
                raise source.refusal(
                    "a '+' inside of a '+' could find the same events in several ways: leave one of them out",
                    shape.start,
                )
            return EventRepetition(parts[0])


def _repeats(pattern: EventPattern) -> bool:
    match pattern:
        case EventRepetition():
            return True
        case Event():
            return False
        case _:
            return any(map(_repeats, pattern.parts))


def absent_events(pattern: EventPattern) -> Iterator[Event]:
    """The events of NOT."""
    match pattern:
        case Event():
            return
        case EventRepetition(part):
            yield from absent_events(part)
        case _:
            if isinstance(pattern, EventSequence):
                yield from (event for event in pattern.absent if event is not None)
            for part in pattern.parts:
                yield from absent_events(part)


def _check_absent(pattern: EventPattern, source: Source) -> None:
    """NOT compares variables that every match has one value of."""
    certain, possible = event_variables(pattern, certain=True), event_variables(pattern)
    repeated = repeated_variables(pattern)
    for event in absent_events(pattern):
        for variable in sorted(variables_of_event(event)):
            if variable in repeated:
                raise source.refusal(
                    f"NOT EVENT compares ?{variable}, which is inside of + and has many values: give it another name, or a "
                    "value outside of +",
                    event.offset,
                )
            if variable in possible and variable not in certain:
                raise source.refusal(
                    f"NOT EVENT compares ?{variable}, which some matches have no value of: bind it in every branch of OR, "
                    "or write a MATCH for each branch, { MATCH … } UNION { MATCH … }",
                    event.offset,
                )
