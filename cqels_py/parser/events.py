"""`EVENT ON <stream> AT ?t {…}`: the block is found and checked, and becomes `GRAPH <marker> {…}` for SPARQL's grammar."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from rdflib import URIRef, Variable

from cqels_py.algebra.nodes import BGP, Event, Expression, Extend, Filter, Join, Pattern, TriplePattern
from cqels_py.algebra.variables import expression_variables, has_exists, variables_of_event
from cqels_py.parser.source import Source
from cqels_py.parser.tokens import Cursor, Kind, Token

ONLY = "an EVENT takes triple patterns, FILTER and BIND of one element"
_NOT_IN_EVENTS = (
    *("OPTIONAL", "GRAPH", "SERVICE", "MINUS", "UNION", "SELECT", "VALUES", "EXISTS", "GROUP"),
    *("STREAM", "WINDOW", "MATCH", "EVENT", "SEQ", "WITHIN"),
)


@dataclass(frozen=True, slots=True)
class EventBlock:
    """The head of an EVENT block: `name` is that of its window, `start` to `opening` its place in the source.

    `keep_all`: it says [ALL], which blocks outside of MATCH may.
    """

    stream: URIRef
    name: URIRef
    time: Variable | None
    start: int
    opening: int
    keep_all: bool = False


def read_event(
    cursor: Cursor,
    resolve: Callable[[Token], URIRef],
    name_of_window: Callable[[URIRef], URIRef],
    *,
    in_match: bool = True,
) -> EventBlock:
    """Read a block at the word EVENT, through its closing brace. `in_match`: it is an event of MATCH.

    Raises QuerySyntaxError and UnsupportedQuery, at the token.
    """
    start = cursor.take().start
    if not cursor.take_word("ON"):
        cursor.fail("which stream? Write EVENT ON <stream> { … }")
    token = cursor.take()
    if token.kind is Kind.VARIABLE:
        raise cursor.source.refusal(f"a stream is an IRI, not a variable: '{token.text}'", token.start)
    if token.kind not in (Kind.IRI, Kind.NAME):
        raise cursor.source.error(
            f"expected the stream's IRI after EVENT ON, such as <http://ex.org/stream>, found {token}", token.start
        )
    stream = resolve(token)
    keep_all = not in_match and _take_all(cursor, token)
    if cursor.here.is_mark("["):
        raise cursor.source.refusal(
            "an EVENT has no window of its own: the distance of events is given once, as in MATCH WITHIN 5m { … }",
            cursor.here.start,
        )
    time = None
    if cursor.take_word("AT"):
        token = cursor.take()
        if token.kind is not Kind.VARIABLE:
            raise cursor.source.error(
                f"expected a variable for the element's time after AT, such as ?t, found {token}", token.start
            )
        time = Variable(token.text[1:])
    opening = cursor.before.end
    _pass_body(cursor)
    return EventBlock(stream, name_of_window(stream), time, start, opening, keep_all)


def _take_all(cursor: Cursor, stream: Token) -> bool:
    """[ALL] behind the stream; QuerySyntaxError for any other window."""
    opened = cursor.here
    if not cursor.take_mark("["):
        return False
    if not cursor.take_word("ALL") or not cursor.take_mark("]"):
        raise cursor.source.refusal(
            f"an EVENT outside of MATCH takes all elements: write EVENT ON {stream.text} {{ … }}, or EVENT ON {stream.text} [ALL] "
            f"{{ … }} if memory may grow with them; for a window write STREAM {stream.text} [RANGE 10m] {{ … }}",
            opened.start,
        )
    return True


def _pass_body(cursor: Cursor) -> None:
    if not cursor.here.is_mark("{"):
        cursor.fail("expected '{' and triple patterns after EVENT ON <stream>")
    opened = cursor.take()
    while not cursor.here.is_mark("}"):
        if cursor.at_end:
            raise cursor.source.error("the '{' of this EVENT is never closed: expected '}'", opened.start)
        if cursor.here.is_mark("{") or cursor.here.is_word(*_NOT_IN_EVENTS):
            raise cursor.source.refusal(f"{ONLY}, not {cursor.here}", cursor.here.start)
        cursor.take()
    cursor.take()


def event_of(block: EventBlock, pattern: Pattern, source: Source) -> Event:
    """The event of a block and of the group in it. Raises QuerySyntaxError and UnsupportedQuery, at the block."""
    conditions: list[Expression] = []
    bindings: list[tuple[Variable, Expression]] = []
    while isinstance(pattern, Filter | Extend):
        if isinstance(pattern, Filter):
            conditions.insert(0, pattern.condition)
        else:
            bindings.insert(0, (pattern.variable, pattern.expression))
        pattern = pattern.pattern
    triples = _triples(pattern)
    expressions = (*conditions, *(expression for _, expression in bindings))
    if triples is None or any(map(has_exists, expressions)):
        raise source.refusal(ONLY, block.start)
    event = Event(block.name, triples, tuple(bindings), tuple(conditions), block.time, block.start, block.keep_all)
    _check_scope(event, block, source)
    return event


def _triples(pattern: Pattern) -> tuple[TriplePattern, ...] | None:
    """The triple patterns of a group; None if it has anything else."""
    match pattern:
        case BGP(triples):
            return triples
        case Join(left, right):
            first, second = _triples(left), _triples(right)
            return None if first is None or second is None else (*first, *second)
        case _:
            return None


def _check_scope(event: Event, block: EventBlock, source: Source) -> None:
    """Expressions see the variables of their event alone; its time is bound by AT alone."""
    known = variables_of_event(Event(event.window, event.triples, time=event.time))
    if event.time is not None and event.time in variables_of_event(Event(event.window, event.triples)):
        raise source.error(
            f"AT ?{event.time}: the triple patterns of the EVENT bind ?{event.time} already; take another name for its time",
            block.start,
        )
    for variable, expression in event.bindings:
        if variable in known:
            raise source.error(
                f"AS ?{variable}: the variable ?{variable} already has a value here; take another name", block.start
            )
        _check_seen(expression, known, block, source)
        known |= {variable}
    for condition in event.conditions:
        _check_seen(condition, known, block, source)


def _check_seen(expression: Expression, known: frozenset[Variable], block: EventBlock, source: Source) -> None:
    for variable in sorted(expression_variables(expression) - known):
        raise source.error(
            f"?{variable} is not a variable of this EVENT, whose FILTER and BIND see its own variables only: write the FILTER "
            "outside of it, behind the MATCH if there is one",
            block.start,
        )
