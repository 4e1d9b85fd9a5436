"""The oracle: a continuous query's answer by re-evaluation from scratch at every tick.

Slow and plain. It shares only the algebra's nodes, its input, with the engine. The following
rules are the contract of every runner, at every batch size.

Ticks
    Within one instant: the expiry, then the arrivals one by one in arrival order, then the boundary.

    * An arrival is a tick where a window without STEP reads the element's stream. All triples of an element
      enter together. Elements of the same instant are ticks of their own. Arrivals that only STEP windows
      read are no ticks.
    * `[COUNT n STEP m]`: the arrival that brings the stream's count of elements to a multiple of m is a
      tick, and the content then becomes the last n elements. Other arrivals on that stream are none (unless
      another window makes one). `[TRIPLES n STEP m]`: the arrival that brings the count of triples to a
      multiple of m, or past it, is a tick, and the content becomes the last n triples up to that multiple.
    * A window in the past, `[FROM NOW-a TO NOW-b]`, holds at τ the elements with τ-a < t <= τ-b. The instants t + b
      and t + a of each element of its stream are ticks like expiries; with STEP it takes its
      content at the same boundaries as any other window. Arrivals on its stream are ticks too.
    * `[SESSION d]` holds the elements since the last gap longer than d between two elements of its stream, in
      arrival order. An element exactly d after the last one belongs to the session. Otherwise all of it
      leaves at the end of the instant last + d, a tick like a boundary, after that instant's arrivals on
      other streams. An end after the last element is no tick. With STEP it takes its content at boundaries,
      as any other window: the content without STEP at the end of the boundary's instant.
    * An expiry: the instant t + d for each element of a stream that a `[RANGE d]` without STEP reads,
      matched by the query or not. Where an arrival is a tick at exactly that instant, the expiry is part of
      the first such tick, and happens before the insertion. An expiry after the last element (of any of the
      query's streams) is no tick. `[NOW]` is `[RANGE 1 µs]`.
    * A boundary: the instants start + k·s (k any integer) of a RANGE window with STEP, after all arrivals
      with t <= b, as a tick of its own even where there was another tick at that instant. The content is
      b-d < t <= b. The first boundary is the first at or after the first element of any of the query's
      streams. A boundary at or after the last element's time is not a tick until the streams have ended;
      then the first one at or after the last element is the last, of windows with different STEPs the latest
      of theirs. These tick at the union of their boundaries; each keeps the content of its own last boundary
      in between.
    * EVENT blocks outside of MATCH see the elements of instants that have ended: the ends of the instants of
      the query's elements are ticks like boundaries.
    * A boundary after the last element has `[RANGE d]` windows without STEP at their content of that
      instant.
    * `[COUNT n]`, `[TRIPLES n]` and `[ALL]` change at arrivals only. A triple that an element holds twice
      counts twice.
    * `[COUNT n PARTITION BY ?v …]`: naive_partitions says which values an element has; the window holds the
      elements that for any of their values are among the last n with that value, as wholes. `[TRIPLES n
      PARTITION BY ?v …]`: the same of triples. Elements and triples without a value are never in. `[SESSION d
      PARTITION BY ?v …]`: each value has sessions of its own, of the elements that have it; an element stays, as
      a whole, while a session of any of its values that it belongs to has not ended. Ticks are the ends of the
      instants t + d of all elements of the stream, whether or not a session ends there. With STEP each of
      these windows has the content that it had without STEP at its last boundary: every m elements or triples of the stream,
      or every k·s.
    * `@ :p`: the element's time is the value of that property in it.

Graphs
    * An element may name the graph that its triples are in. Patterns outside of GRAPH match all triples of a window; GRAPH inside
      of a window's block matches those of the graphs that its elements name, where elements of one name make up one graph. An
      element without a name is in none. A graph is there while it has triples. Where windows are sets a triple counts once
      outside of GRAPH and once in each graph; where they are bags each counts everywhere.
    * `about`: triples of the default graph that belong to the element. They are in no graph, and are not counted by `[TRIPLES n]`:
      they enter and leave the window with the last triple of the element's graph. An element that has no others has no name.
    * In C-SPARQL, GRAPH matches static graphs, and windows that are named graphs.

Matches
    * MATCH holds the matches that stand: naive_matches. Its windows, one for each stream, are as wide as a match stands, so
      that their expiries are ticks.

Answers
    * R before the first tick is empty. The implicit group exists from the first tick: COUNT without GROUP
      BY has the row 0.
    * NOW() is the tick's time. A dateTime without time zone counts as UTC.
    * ASK's answer is the one row {boolean: true or false}. CONSTRUCT's are the mappings of the template's
      variables.
    * Property paths: `*`, `+`, `?` give each pair once; all others as often as there are ways through the
      window.
    * The answer's columns are the query's variables; bags are compared with exact terms, and a plain
      literal is an xsd:string.
    * ORDER BY compares values: naive_values.value_key. Rows that it leaves equal are put in the order of their
      terms, column by column, as they are selected; LIMIT and OFFSET without ORDER BY keep the first rows in
      that order. ORDER BY without LIMIT is the order of each report of RSTREAM, and makes no difference
      elsewhere. REDUCED keeps all rows.

Values (where SPARQL 1.1 leaves room)
    * Order of terms: naive_values.order_key, a total order. MIN and MAX use it. Doubles and floats stand in it as
      the shortest decimals that read as them: promotion would not be transitive. SAMPLE is the least value
      and GROUP_CONCAT joins the values in this order, so neither depends on the order of arrival.
    * SUM and AVG are exact over integers and decimals. A quotient of them that ends within 37 significant digits
      (or as many as the dividend has) keeps them all; any other is rounded half to even to 19, never left of the
      units. Computed decimals are canonical (no trailing zeros, no point when integral: "5"^^xsd:decimal). The
      exact sum of doubles is rounded once. A number's derived type becomes xsd:integer in arithmetic.
      xsd:decimal of a float or double is the shortest decimal that reads as the same double.
    * Over no values: COUNT, SUM and AVG are 0 (xsd:integer), GROUP_CONCAT "", MIN, MAX and SAMPLE unbound.
    * Errors in an aggregate's argument (unbound included): 18.5.1.2 removes them for COUNT. Sum and Avg add
      all values with op:numeric-add, where an error or a value that is no number is an error: unbound. The
      text leaves ToList of an error undefined for the others: MIN, MAX, SAMPLE and GROUP_CONCAT leave
      errors out.
    * DISTINCT, also inside aggregates, compares terms, not values.
    * `=`: values of different known types differ ("1" and 1, a date and a dateTime). A literal of an unknown type
      or with a wrong lexical form is an error beside another literal, unless that has a language tag: then
      they differ.

Output
    ISTREAM R(τ) - R(τ-1) with sign +, DSTREAM R(τ-1) - R(τ) with sign -, CHANGELOG both, RSTREAM R(τ) with
    sign +; differences of bags.
"""

from __future__ import annotations

import itertools
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass, field, replace
from enum import IntEnum
from functools import partial
from typing import TypeAlias

from rdflib import URIRef, Variable

from cqels_py.algebra import nodes
from tests.oracle import naive_events, naive_matches, naive_partitions
from tests.oracle.naive_algebra import Content, Dataset, Quad, Scope, Triple, evaluate
from tests.oracle.naive_values import Term, boolean, canonical, instant

Mapping: TypeAlias = frozenset[tuple[Variable, Term]]


@dataclass(frozen=True)
class Element:
    """An element of a stream at one instant (microseconds): triples, perhaps in a graph of this name, and others `about` it."""

    time: int
    stream: URIRef
    triples: tuple[Triple, ...]
    graph: URIRef | None = None
    about: tuple[Triple, ...] = ()

    @property
    def quads(self) -> tuple[Quad, ...]:
        return (*((*triple, self.graph) for triple in self.triples), *((*triple, None) for triple in self.about))

    @property
    def counted(self) -> tuple[Element, ...]:
        """The triples that `[TRIPLES n]` counts, each as an element; triples that are not counted are with the last of them."""
        if not self.triples:
            return tuple(replace(self, triples=(triple,), graph=None, about=()) for triple in self.about)
        single = [replace(self, triples=(triple,), about=()) for triple in self.triples]
        return (*single[:-1], replace(single[-1], about=self.about))


@dataclass(frozen=True)
class Static:
    """The default graph and the named graphs."""

    default: Sequence[Triple] = ()
    named: dict[URIRef, Sequence[Triple]] = field(default_factory=dict)


class Phase(IntEnum):
    """The order of ticks within one instant."""

    EXPIRY = 0
    ARRIVAL = 1
    BOUNDARY = 2


@dataclass(frozen=True)
class Moment:
    """A tick that is not answered yet: `seen` elements have arrived, including the current one."""

    time: int
    phase: Phase
    seen: int


@dataclass(frozen=True)
class Tick:
    """The answer at one tick: a bag of mappings, and the same mappings as rows in the order of ORDER BY."""

    time: int
    phase: Phase
    answer: Counter[Mapping]
    rows: tuple[Mapping, ...]


@dataclass(frozen=True)
class Change:
    """A result: the tick's time, its position among the ticks, +1 or -1, and the mapping."""

    time: int
    tick: int
    sign: int
    mapping: Mapping


def ticks(
    query: nodes.ContinuousQuery,
    elements: Sequence[Element],
    static: Static | None = None,
    ended: bool = True,
) -> list[Tick]:
    """The answers at all ticks, in order. `elements` are in arrival order, and their times do not decrease."""
    arrived = relevant(query, elements)
    return [answer(query, arrived, static or Static(), moment) for moment in moments(query, arrived, ended)]


def output(query: nodes.ContinuousQuery, answered: Sequence[Tick]) -> list[Change]:
    """The query's result stream."""
    before: Counter[Mapping] = Counter()
    changes: list[Change] = []
    for index, tick in enumerate(answered):
        signed: list[tuple[int, Mapping]] = []
        if query.output is nodes.Output.RSTREAM:
            signed += [(1, mapping) for mapping in tick.rows]
        if query.output in (nodes.Output.DSTREAM, nodes.Output.CHANGELOG):
            signed += [(-1, mapping) for mapping in (before - tick.answer).elements()]
        if query.output in (nodes.Output.ISTREAM, nodes.Output.CHANGELOG):
            signed += [(1, mapping) for mapping in (tick.answer - before).elements()]
        changes += [Change(tick.time, index, sign, mapping) for sign, mapping in signed]
        before = tick.answer
    return changes


def relevant(query: nodes.ContinuousQuery, elements: Iterable[Element]) -> list[Element]:
    """The elements of the query's streams, with one spelling for each term; checks their order."""
    streams = {window.stream for window in query.windows}
    arrived = [element for element in elements if element.stream in streams]
    assert all(a.time <= b.time for a, b in itertools.pairwise(arrived)), "elements out of order"
    for window in query.windows:
        assert all(_carries_its_time(e, window.time_predicate) for e in arrived if e.stream == window.stream)
    return [replace(e, triples=tuple(map(_spell, e.triples)), about=tuple(map(_spell, e.about))) for e in arrived]


def _carries_its_time(element: Element, predicate: URIRef | None) -> bool:
    times = [instant(o).seconds * 1_000_000 for _, p, o in element.triples if p == predicate]
    return predicate is None or times == [element.time]


def _spell(triple: Triple) -> Triple:
    subject, predicate, object_ = triple
    return canonical(subject), canonical(predicate), canonical(object_)


# --- which instants are ticks ---------------------------------------------------------------------


def is_eager(window: nodes.WindowDefinition) -> bool:
    if isinstance(window.extent, nodes.EachInstant):
        return False
    return isinstance(window.extent, nodes.Everything) or window.extent.step is None


def moments(query: nodes.ContinuousQuery, arrived: Sequence[Element], ended: bool = True) -> list[Moment]:
    """The ticks in order; `arrived` holds elements of the query's streams only."""
    if not arrived:
        return []
    arrivals = [Moment(e.time, Phase.ARRIVAL, i + 1) for i, e in enumerate(arrived) if _is_tick(query, arrived, i)]
    with_arrival = {moment.time for moment in arrivals}
    expiries = {t for t in _expiries(query, arrived, ended) if t not in with_arrival}
    end = _end(query, arrived) if ended else arrived[-1].time - 1
    boundaries = {b for window in query.windows for b in _boundaries(window, arrived, end)}
    boundaries |= {end for window in query.windows for end in _session_ends(window, arrived, ended)}
    found = arrivals
    found += [Moment(t, Phase.EXPIRY, sum(e.time < t for e in arrived)) for t in expiries]
    found += [Moment(b, Phase.BOUNDARY, sum(e.time <= b for e in arrived)) for b in boundaries]
    return sorted(found, key=lambda moment: (moment.time, moment.phase, moment.seen))


def _is_tick(query: nodes.ContinuousQuery, arrived: Sequence[Element], index: int) -> bool:
    """Whether this element's arrival is a tick."""
    stream = arrived[index].stream
    number = sum(element.stream == stream for element in arrived[: index + 1])
    for window in query.windows:
        if window.stream != stream:
            continue
        if is_eager(window):
            return True
        if isinstance(window.extent, nodes.ElementCount) and number % (window.extent.step or 1) == 0:
            return True
        if isinstance(window.extent, nodes.TripleCount):
            through = sum(len(element.counted) for element in arrived[: index + 1] if element.stream == stream)
            step = window.extent.step or 1
            if through // step > (through - len(arrived[index].counted)) // step:
                return True
    return False


def _expiries(query: nodes.ContinuousQuery, arrived: Sequence[Element], ended: bool) -> Iterator[int]:
    """The instants at which a RANGE window without STEP changes by time alone: expiries, and delayed insertions."""
    for window in query.windows:
        extent = window.extent
        if isinstance(extent, nodes.TimeRange) and is_eager(window):
            changes = [extent.delay + extent.width] + ([extent.delay] if extent.delay else [])
            instants = {e.time + after for e in arrived if e.stream == window.stream for after in changes}
            yield from _passed(instants, arrived, ended)


def _session_ends(window: nodes.WindowDefinition, arrived: Sequence[Element], ended: bool) -> list[int]:
    """The instants at whose ends the sessions of a window end, or may end."""
    if not isinstance(window.extent, nodes.Session) or not is_eager(window):
        return []
    gap = window.extent.gap
    times = {element.time for element in arrived if element.stream == window.stream}
    if window.partition_by:
        return _passed({t + gap for t in times}, arrived, ended)
    return _passed({t + gap for t in times if not any(t < other <= t + gap for other in times)}, arrived, ended)


def _passed(instants: Iterable[int], arrived: Sequence[Element], ended: bool) -> list[int]:
    """The instants that the streams have passed; when the streams have ended, the last element's instant has passed too."""
    last = arrived[-1].time
    return [instant for instant in instants if (instant <= last if ended else instant < last)]


def _boundary(window: nodes.WindowDefinition, instant: int) -> int | None:
    """The first boundary at or after an instant, of a time window with STEP."""
    extent = window.extent
    if not isinstance(extent, nodes.TimeRange | nodes.Session) or extent.step is None:
        return None
    return extent.start + -((extent.start - instant) // extent.step) * extent.step


def _end(query: nodes.ContinuousQuery, arrived: Sequence[Element]) -> int:
    """The last instant at which there is a tick once the streams have ended."""
    last = arrived[-1].time
    following = [_boundary(window, last) for window in query.windows]
    return max([last, *(boundary for boundary in following if boundary is not None)])


def _boundaries(window: nodes.WindowDefinition, arrived: Sequence[Element], end: int) -> list[int]:
    """The instants at which a time window with STEP takes its content, up to the end."""
    if isinstance(window.extent, nodes.EachInstant):
        return sorted({element.time for element in arrived if element.time <= end})
    boundary = _boundary(window, arrived[0].time)
    found = []
    while boundary is not None and boundary <= end:
        found.append(boundary)
        boundary = _boundary(window, boundary + 1)
    return found


# --- the answer at a tick -------------------------------------------------------------------------


def answer(query: nodes.ContinuousQuery, arrived: Sequence[Element], static: Static, moment: Moment) -> Tick:
    dataset = Dataset(
        windows={window.name: content(query, window, arrived, moment) for window in query.windows},
        default=_graph(static.default),
        named={name: _graph(triples) for name, triples in static.named.items()},
        bags=query.bag_windows,
        now=moment.time,
        matches=partial(naive_matches.standing, query, arrived[: moment.seen]),
        events=partial(naive_events.rows, query, arrived[: moment.seen]),
    )
    solutions = evaluate(query.pattern, Scope(dataset, dataset.default))
    if query.form == "ASK":
        rows: list[Mapping] = [frozenset({(Variable("boolean"), boolean(bool(solutions)))})]
    else:
        rows = [frozenset((v, mu[v]) for v in query.variables if v in mu) for mu in solutions]
    return Tick(moment.time, moment.phase, Counter(rows), tuple(rows))


def _graph(triples: Iterable[Triple]) -> list[Triple]:
    return list(dict.fromkeys(_spell(triple) for triple in triples))


def content(
    query: nodes.ContinuousQuery, window: nodes.WindowDefinition, arrived: Sequence[Element], moment: Moment
) -> Content:
    """The content of the window at the tick: bags of triples, or sets if the query's windows are RDF graphs."""
    mine = [element for element in arrived[: moment.seen] if element.stream == window.stream]
    extent = window.extent
    if isinstance(extent, nodes.TripleCount):
        mine = [single for element in mine for single in element.counted]
    if isinstance(extent, nodes.TripleCount | nodes.ElementCount):
        mine = mine[: len(mine) - len(mine) % (extent.step or 1)]
    end: Moment | None = moment
    if isinstance(extent, nodes.TimeRange | nodes.Session) and extent.step is not None:
        boundary = _last_boundary(window, arrived, moment)
        end = None if boundary is None else Moment(boundary, Phase.BOUNDARY, moment.seen)
        mine = [element for element in mine if boundary is not None and element.time <= boundary]
    if end is None:
        kept = []
    elif window.partition_by:
        kept = naive_partitions.kept(query.pattern, window, mine, partial(_last, extent, end))
    else:
        kept = _last(extent, end, mine)
    quads = [quad for element in kept for quad in element.quads]
    quads = quads if query.bag_windows else list(dict.fromkeys(quads))
    triples = [(s, p, o) for s, p, o, _ in quads]
    named: dict[Term, list[Triple]] = {}
    for s, p, o, graph in quads:
        if graph is not None:
            named.setdefault(graph, []).append((s, p, o))
    return Content(triples if query.bag_windows else list(dict.fromkeys(triples)), named)


def _last(extent: nodes.Extent, moment: Moment, mine: Sequence[Element]) -> list[Element]:
    """The elements (or triples, each as an element) that a window of this extent holds, without STEP."""
    match extent:
        case nodes.TimeRange(width, _, _, delay):
            end = moment.time - delay
            return [element for element in mine if end - width < element.time <= end]
        case nodes.Session(gap):
            return _session(mine, gap, moment)
        case nodes.ElementCount(count) | nodes.TripleCount(count):
            return list(mine[max(0, len(mine) - count) :])
        case nodes.Everything():
            return list(mine)
        case nodes.EachInstant():
            # Its elements are not asked together, but one by one.
            return []


def _session(mine: Sequence[Element], gap: int, moment: Moment) -> list[Element]:
    kept: list[Element] = []
    for element in reversed(mine):
        if kept and kept[-1].time - element.time > gap:
            break
        kept.append(element)
    quiet = moment.time - mine[-1].time if mine else 0
    ended = quiet > gap or (quiet == gap and moment.phase is Phase.BOUNDARY)
    return [] if ended else kept[::-1]


def _last_boundary(window: nodes.WindowDefinition, arrived: Sequence[Element], moment: Moment) -> int | None:
    """The window's own last boundary. At a boundary's instant, arrivals still see the previous one."""
    passed = [
        boundary
        for boundary in _boundaries(window, arrived, moment.time)
        if boundary < moment.time or (boundary == moment.time and moment.phase is Phase.BOUNDARY)
    ]
    return passed[-1] if passed else None
