"""Window clauses: found, understood, and lifted out of the text.

    STREAM <s> [RANGE 5s] {…}                     →  GRAPH <marker> {…}
    WINDOW <w> {…}                                →  GRAPH <marker> {…}
    FROM NAMED WINDOW <w> ON <s> [RANGE PT5S]     →  FROM NAMED <marker>
    FROM STREAM <s> [RANGE 5s STEP 1s]            →  FROM NAMED <marker>
    MATCH WITHIN 5m { EVENT ON <s> {…} SEQ … }    →  GRAPH <marker> { GRAPH <marker> {…} … }
    EVENT ON <s> {…}                              →  GRAPH <marker> {…}
    STATE [STEP 1s] {…}                           →  GRAPH <marker> {…}
    RULES ON <s> { RULE … }                       →  nothing
    REGISTER RSTREAM <name> AS                    →  nothing

The rest is SPARQL 1.1, whose grammar also checks the positions of the clauses. A marker is an IRI that the
text does not contain; `Lifted.blocks` has its meaning.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field, replace

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import Dialect, EachInstant, Extent, Output, Session, TimeRange, WindowDefinition
from cqels_py.parser.dialects import DEFAULTS, Clause, Defaults, clause_at
from cqels_py.parser.events import EventBlock, read_event
from cqels_py.parser.extents import read_extent
from cqels_py.parser.matches import MatchBlock, MatchReader
from cqels_py.parser.partitions import partition_variables, read_partition
from cqels_py.parser.prologue import Prologue
from cqels_py.parser.rules import RulesBlock, RulesReader
from cqels_py.parser.services import Remote, read_services
from cqels_py.parser.source import Edit, Source
from cqels_py.parser.states import StateBlock, read_step
from cqels_py.parser.times import read_duration
from cqels_py.parser.tokens import Cursor, Kind, Token, Tokens

_FORMS = ("SELECT", "CONSTRUCT", "ASK", "DESCRIBE")
_OPERATORS = ("ISTREAM", "DSTREAM", "RSTREAM")
_REFUSED = {
    "PAST": "PAST windows are",
    "FUTURE": "FUTURE windows are",
    "EMIT": "EMIT is",
    "LATENESS": "LATENESS in the query is",
}
_INSTEAD = {
    "PAST": "PAST windows are not supported: a window that ended an hour ago is [FROM NOW-2h TO NOW-1h]",
    "LATENESS": "LATENESS in a query is not supported: how long to wait for late elements is a setting (--lateness 5s)",
}


@dataclass(frozen=True, slots=True)
class Block:
    """A window block: the window it asks, or the variable over all of them, and where it begins in the source."""

    target: URIRef | Variable
    offset: int


@dataclass(slots=True)
class Lifted:
    """The content of the window clauses.

    `merged`: the windows that make up the default graph (FROM STREAM). `named`: the windows that GRAPH names
    (FROM NAMED STREAM). `sources`: the markers of FROM clauses. `edits`: they turn the source into SPARQL 1.1.
    `partitions`: the variables of each PARTITION BY, in the order of the windows. `services`: the endpoints
    by their markers. `matches`: the MATCH clauses by their markers. `events`: the EVENT blocks outside of MATCH by their markers,
    with `event_windows`.
    by their markers. `matches`, `states`: the MATCH and STATE clauses by their markers. `rules`: the RULES block.
    """

    windows: list[WindowDefinition] = field(default_factory=list)
    blocks: dict[URIRef, Block] = field(default_factory=dict)
    sources: set[URIRef] = field(default_factory=set)
    merged: list[URIRef] = field(default_factory=list)
    named: list[URIRef] = field(default_factory=list)
    edits: list[Edit] = field(default_factory=list)
    name: str | None = None
    output: Output | None = None
    partitions: list[tuple[Token, ...]] = field(default_factory=list)
    services: dict[URIRef, Remote] = field(default_factory=dict)
    matches: dict[URIRef, MatchBlock] = field(default_factory=dict)
    events: dict[URIRef, EventBlock] = field(default_factory=dict)
    event_windows: list[WindowDefinition] = field(default_factory=list)
    rules: RulesBlock | None = None
    states: dict[URIRef, StateBlock] = field(default_factory=dict)

    @property
    def all_windows(self) -> tuple[WindowDefinition, ...]:
        """The windows of the clauses, and those of MATCH and EVENT."""
        of_matches = (window for match in self.matches.values() for window in match.windows.values())
        return (*self.windows, *of_matches, *self.event_windows)


def lift(source: Source, tokens: Tokens, prologue: Prologue, dialect: Dialect) -> Lifted:
    """Lift every window clause. Raises QuerySyntaxError and UnsupportedQuery, at the clause."""
    lifted = _Lifter(source, tokens, prologue, DEFAULTS[dialect]).run()
    lifted.services, edits = read_services(source, tokens.tokens, prologue)
    lifted.edits += edits
    return lifted


class _Lifter:
    def __init__(self, source: Source, tokens: Tokens, prologue: Prologue, defaults: Defaults) -> None:
        self._source = source
        self._tokens = tokens.tokens
        self._cursor = Cursor(source, tokens.tokens)
        self._prologue = prologue
        self._defaults = defaults
        self._markers = _fresh_iris(source.text, "urn:cqels:block:")
        self._names = _fresh_iris(source.text, "urn:cqels:window:")
        self._result = Lifted()
        self._uses: list[Token] = []
        self._period: tuple[int, int] | None = None
        self._registered = False
        self._form_seen = False

    def run(self) -> Lifted:
        while not self._cursor.at_end:
            token = self._cursor.here
            if token.kind is not Kind.WORD:
                self._cursor.take()
                continue
            if token.is_word(*_OPERATORS) and self._cursor.before.is_word(*_FORMS, "DISTINCT", "REDUCED"):
                self._operator()
                continue
            self._refuse(token)
            clause = self._clause_starting(self._cursor.position)
            if token.is_word("REGISTER"):
                self._register()
            elif token.is_word("MATCH"):
                self._match()
            elif token.is_word("EVENT"):
                self._event()
            elif token.is_word("RULES"):
                self._rules()
            elif token.is_word("STATE"):
                self._state()
            elif clause is Clause.INLINE:
                self._inline()
            elif clause is Clause.FROM:
                self._from_stream()
            elif clause is Clause.BLOCK and token.is_word("FROM"):
                self._declaration()
            elif clause is Clause.BLOCK:
                self._block()
            else:
                self._form_seen |= token.is_word(*_FORMS)
                self._cursor.take()
        self._check_declared()
        self._apply_period()
        self._check_beside_events()
        return self._result

    def _clause_starting(self, at: int) -> Clause | None:
        """The clause that begins at this token: at STREAM or WINDOW, or at the FROM [NAMED] in front of it."""
        if not self._tokens[at].is_word("FROM"):
            return clause_at(self._tokens, at)
        for ahead in (1, 2):
            following = self._tokens[min(at + ahead, len(self._tokens) - 1)]
            if following.is_word("STREAM", "WINDOW"):
                return clause_at(self._tokens, at + ahead)
            if not following.is_word("NAMED"):
                return None
        return None

    def _refuse(self, token: Token) -> None:
        """Refuse by name constructs of other engines that this one does not have."""
        word = token.text.upper()
        if token.is_word(*_REFUSED):
            raise self._source.refusal(_INSTEAD.get(word, f"{_REFUSED[word]} not supported"), token.start)
        if token.is_word("SEQ"):
            raise self._source.error(
                f"{word} can only be used inside of MATCH: "
                "write MATCH WITHIN 5m { EVENT ON <s> { … } SEQ EVENT ON <s> { … } }",
                token.start,
            )
        if token.is_word(*_OPERATORS):
            raise self._source.error(
                f"{word} must be in front of the query: REGISTER {word} <name> AS SELECT …", token.start
            )

    def _operator(self) -> None:
        """`SELECT ISTREAM …`, as drafts of RSP-QL have it; in front of DISTINCT or behind."""
        token = self._cursor.take()
        if self._result.output is not None:
            raise self._source.error(f"{token} is the second output operator of the query: leave one out", token.start)
        self._result.output = Output[token.text.upper()]
        self._cut(token.start, token.end)

    # --- REGISTER ------------------------------------------------------------------------------------------------

    def _register(self) -> None:
        cursor, start = self._cursor, self._cursor.here.start
        if self._registered or self._form_seen:
            raise self._source.error(
                "REGISTER can only be used once, in front of SELECT, CONSTRUCT, ASK or DESCRIBE", start
            )
        self._registered = True
        cursor.take()
        kind = cursor.take_word("QUERY", "STREAM", *_OPERATORS)
        if kind is None:
            kind = cursor.fail("expected QUERY, STREAM, ISTREAM, DSTREAM or RSTREAM after REGISTER")
        if kind.is_word(*_OPERATORS):
            self._result.output = Output[kind.text.upper()]
        self._result.name = self._registered_name(kind)
        if cursor.take_word("COMPUTED"):
            cursor.expect_word("EVERY", "COMPUTED")
            offset = cursor.here.start
            self._period = read_duration(cursor, bare_milliseconds=self._defaults.bare_milliseconds), offset
        end = cursor.expect_word("AS", "the name of the query" if self._period is None else "the period").end
        self._cut(start, end)

    def _registered_name(self, kind: Token) -> str:
        token = self._cursor.take()
        if token.kind in (Kind.IRI, Kind.NAME):
            return str(self._prologue.resolve(token))
        if token.kind is Kind.STRING:
            return token.text.strip("\"'")
        if token.kind is Kind.WORD and not token.is_word("AS", "COMPUTED"):
            return token.text
        raise self._source.error(f"expected a name after REGISTER {kind.text.upper()}, found {token}", token.start)

    def _match(self) -> None:
        reader = MatchReader(self._source, self._cursor, self._prologue.resolve, self._markers, self._names)
        marker, block = reader.read()
        self._result.matches[marker] = block
        self._result.edits += reader.edits

    def _event(self) -> None:
        """A block outside of MATCH, with a window of its own."""
        block = read_event(self._cursor, self._prologue.resolve, lambda _: next(self._names), in_match=False)
        marker = next(self._markers)
        self._result.events[marker] = block
        self._result.event_windows.append(WindowDefinition(block.name, block.stream, EachInstant()))
        self._result.edits.append((block.start, block.opening, f"GRAPH <{marker}> "))

    def _check_beside_events(self) -> None:
        """Events without windows are answered at the ends of instants, windows and MATCH at each arrival."""
        result = self._result
        if not result.events:
            return
        block = next(iter(result.events.values()))
        if result.windows or result.matches or result.states:
            other = "MATCH" if result.matches else "STATE" if result.states else "windows"
            raise self._source.refusal(
                f"EVENT outside of MATCH beside {other} is not supported: give this block a window, as in STREAM "
                f"<{block.stream}> [RANGE 10m] {{ … }}, or read one query's results as a stream in another",
                block.start,
            )
        if result.output in (Output.RSTREAM, Output.DSTREAM):
            raise self._source.refusal(
                f"{result.output.value} with EVENT outside of MATCH is not supported: its results come once and never go, which is "
                "ISTREAM; leave the word out",
                block.start,
            )
        if self._period is not None:
            raise self._source.refusal(
                "COMPUTED EVERY with EVENT outside of MATCH is not supported: results come at the end of each instant; leave it out",
                self._period[1],
            )

    def _rules(self) -> None:
        start = self._cursor.here.start
        if self._result.rules is not None or self._registered or self._form_seen:
            raise self._source.error(
                "RULES stand once, behind the prefixes and in front of REGISTER, SELECT, CONSTRUCT, ASK or DESCRIBE",
                start,
            )
        block = RulesReader(self._source, self._cursor, self._prologue.resolve, self._markers).read()
        self._result.rules = block
        self._cut(block.start, block.end)

    def _state(self) -> None:
        start = self._cursor.take().start
        step = read_step(self._cursor)
        if not self._cursor.here.is_mark("{"):
            self._cursor.fail("expected '{' and triple patterns after STATE")
        marker = next(self._markers)
        self._result.states[marker] = StateBlock(start, step)
        self._result.edits.append((start, self._cursor.before.end, f"GRAPH <{marker}> "))

    # --- window clauses --------------------------------------------------------------------------------------------

    def _inline(self) -> None:
        start = self._cursor.take().start
        definition = self._window_on(self._stream("STREAM"), next(self._names))
        self._result.windows.append(definition)
        self._open_block(start, definition.name)

    def _from_stream(self) -> None:
        start = self._cursor.take().start
        named = self._cursor.take_word("NAMED")
        self._cursor.take()
        token = self._cursor.here
        stream = self._stream("STREAM")
        definition = self._window_on(stream, stream if named else next(self._names))
        if named:
            self._declare(definition, token)
            self._result.named.append(definition.name)
        else:
            self._result.windows.append(definition)
            self._result.merged.append(definition.name)
        self._mark_source(start)

    def _declaration(self) -> None:
        cursor = self._cursor
        start = cursor.take().start
        if not cursor.take_word("NAMED"):
            cursor.fail("a window is declared by FROM NAMED WINDOW: expected NAMED")
        cursor.take()
        named = None if cursor.here.is_word("ON") else self._window_name()
        cursor.expect_word("ON", "the window's name")
        cursor.take_word("STREAM")
        window = self._window_on(self._stream("ON"), next(self._names))
        if named is None:
            cursor.expect_word("AS", "the window, as in FROM NAMED WINDOW ON <stream> [RANGE 10s] AS <w>")
            named = self._window_name()
        token, name = named
        self._declare(replace(window, name=name), token)
        self._mark_source(start)

    def _window_name(self) -> tuple[Token, URIRef]:
        if self._cursor.here.kind not in (Kind.IRI, Kind.NAME):
            self._cursor.fail("expected the window's name, as in FROM NAMED WINDOW <w> ON <stream> [RANGE 10s]")
        token = self._cursor.take()
        return token, self._prologue.resolve(token)

    def _declare(self, definition: WindowDefinition, token: Token) -> None:
        if any(window.name == definition.name for window in self._result.windows):
            raise self._source.error(f"the window {token.text} is declared twice", token.start)
        self._result.windows.append(definition)

    def _block(self) -> None:
        start = self._cursor.take().start
        token = self._cursor.here
        if token.kind is Kind.VARIABLE:
            self._uses.append(self._cursor.take())
            self._open_block(start, Variable(token.text[1:]))
            return
        if token.kind not in (Kind.IRI, Kind.NAME):
            self._cursor.fail("expected the window's name or a variable after WINDOW")
        self._uses.append(self._cursor.take())
        self._open_block(start, self._prologue.resolve(token))

    def _stream(self, after: str) -> URIRef:
        token = self._cursor.here
        if token.kind is Kind.VARIABLE:
            raise self._source.refusal(
                f"a stream is an IRI, not a variable: '{token.text}' would mean every stream", token.start
            )
        if token.kind not in (Kind.IRI, Kind.NAME):
            self._cursor.fail(f"expected the stream's IRI after {after}, such as <http://ex.org/stream>")
        return self._prologue.resolve(self._cursor.take())

    def _window_on(self, stream: URIRef, name: URIRef) -> WindowDefinition:
        """`[extent]`, with `@ predicate` inside of the brackets or behind them."""
        cursor = self._cursor
        cursor.expect_mark("[", "and a window after the stream, such as [RANGE 10s]")
        self._refuse(cursor.here)
        extent: Extent = read_extent(cursor, bare_milliseconds=self._defaults.bare_milliseconds)
        predicate = self._time_predicate()
        partition = read_partition(cursor, extent)
        predicate = predicate or self._time_predicate()
        self._refuse(cursor.here)
        cursor.expect_mark("]", "at the end of the window")
        predicate = predicate or self._time_predicate()
        if cursor.here.is_word("PARTITION"):
            cursor.fail(
                "PARTITION BY must be inside of the window's brackets, as in [COUNT 10 PARTITION BY ?v]: expected '{'"
            )
        if partition:
            self._result.partitions.append(partition)
        return WindowDefinition(name, stream, extent, predicate, partition_variables(partition))

    def _time_predicate(self) -> URIRef | None:
        if not self._cursor.take_mark("@"):
            return None
        if self._cursor.here.kind not in (Kind.IRI, Kind.NAME):
            self._cursor.fail("expected the property that carries the event time after '@'")
        return self._prologue.resolve(self._cursor.take())

    def _open_block(self, start: int, target: URIRef | Variable) -> None:
        self._refuse(self._cursor.here)
        if not self._cursor.here.is_mark("{"):
            self._cursor.fail("expected '{' and a pattern after the window")
        marker = next(self._markers)
        self._result.blocks[marker] = Block(target, start)
        self._result.edits.append((start, self._cursor.before.end, f"GRAPH <{marker}> "))

    def _mark_source(self, start: int) -> None:
        marker = next(self._markers)
        self._result.sources.add(marker)
        self._result.edits.append((start, self._cursor.before.end, f"FROM NAMED <{marker}> "))

    def _cut(self, start: int, end: int) -> None:
        self._result.edits.append((start, end, " "))

    # --- afterwards --------------------------------------------------------------------------------------------------

    def _check_declared(self) -> None:
        declared = {window.name for window in self._result.windows}
        for token in self._uses:
            known = declared if token.kind is Kind.VARIABLE else declared & {self._prologue.resolve(token)}
            if not known:
                name = "<w>" if token.kind is Kind.VARIABLE else token.text
                raise self._source.error(
                    f"the window {token.text} is not declared: add FROM NAMED WINDOW {name} ON <stream> [RANGE 10s] "
                    "before WHERE",
                    token.start,
                )

    def _apply_period(self) -> None:
        """COMPUTED EVERY is the STEP of windows without one."""
        if self._period is None:
            return
        period, offset = self._period
        if self._result.states:
            raise self._source.refusal(
                "COMPUTED EVERY beside STATE is not supported: write STATE [STEP 1s] { … } and leave COMPUTED EVERY out",
                offset,
            )
        if self._result.matches:
            raise self._source.refusal(
                "COMPUTED EVERY beside MATCH is not supported: a match is reported at its last event; leave COMPUTED EVERY out",
                offset,
            )
        self._result.windows = [self._with_period(window, period, offset) for window in self._result.windows]

    def _with_period(self, window: WindowDefinition, period: int, offset: int) -> WindowDefinition:
        extent = window.extent
        if not isinstance(extent, TimeRange | Session):
            raise self._source.refusal(
                "COMPUTED EVERY over a window of triples or elements, or [ALL] is not supported: "
                "use a [RANGE …] window, or leave COMPUTED EVERY out",
                offset,
            )
        if extent.step not in (None, period):
            raise self._source.refusal(
                "COMPUTED EVERY differs from the STEP of a window: results are reported at each STEP, "
                "so give both the same duration, or leave COMPUTED EVERY out",
                offset,
            )
        return replace(window, extent=replace(extent, step=period))


def _fresh_iris(text: str, prefix: str) -> Iterator[URIRef]:
    """`prefix` 1, 2, 3 …, without those that the text contains."""
    number = 0
    while True:
        number += 1
        if f"{prefix}{number}>" not in text:
            yield URIRef(f"{prefix}{number}")
