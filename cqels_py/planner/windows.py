"""Window definitions to planned windows: bounds for the clock, texts for explain."""

from __future__ import annotations

from datetime import datetime, timedelta

from rdflib import URIRef

from cqels_py.algebra.nodes import (
    ContinuousQuery,
    EachInstant,
    ElementCount,
    Everything,
    Extent,
    Pattern,
    Session,
    TimeRange,
    TripleCount,
    WindowDefinition,
)
from cqels_py.algebra.partitions import partition_of
from cqels_py.errors import UnsupportedQuery
from cqels_py.event_time.windows import Bounds, Measure
from cqels_py.plan.nodes import PlannedPartition, PlannedWindow
from cqels_py.planner.texts import pattern_text

_UNITS = ((86_400_000_000, "d"), (3_600_000_000, "h"), (60_000_000, "m"), (1_000_000, "s"), (1_000, "ms"), (1, "us"))


def duration_text(micros: int) -> str:
    """A duration in the largest unit that divides it.

    >>> duration_text(90_000_000), duration_text(3_600_000_000)
    ('90s', '1h')
    """
    for size, unit in _UNITS:
        if micros % size == 0:
            return f"{micros // size}{unit}"
    raise AssertionError(micros)


def bounds_of(extent: Extent) -> Bounds:
    match extent:
        case TimeRange(width, step, start, delay):
            return Bounds(Measure.TIME, width, step, start, delay)
        case Session(gap, step, start):
            return Bounds(Measure.SESSION, gap, step, start)
        case ElementCount(count, step):
            return Bounds(Measure.ELEMENTS, count, step)
        case TripleCount(count, step):
            return Bounds(Measure.TRIPLES, count, step)
        case Everything():
            return Bounds(Measure.TIME, None)
        case EachInstant():
            # Each instant is a boundary, which is passed when a later one begins.
            return Bounds(Measure.TIME, None, 1)


def start_text(micros: int) -> str:
    """The instant at which steps begin.

    >>> start_text(1_500_000)
    '1970-01-01T00:00:01.500000Z'
    """
    moment = datetime(1970, 1, 1) + timedelta(microseconds=micros)
    return f"{moment.isoformat()}Z"


def extent_text(extent: Extent) -> str:
    """The extent as CQELS-QL writes it.

    >>> extent_text(TimeRange(5_000_000, 1_000_000))
    '[RANGE 5s STEP 1s]'
    """
    match extent:
        case TimeRange(1, None, delay=0):
            return "[NOW]"
        case TimeRange(width, step, start, delay):
            size = f"RANGE {duration_text(width)}"
            if delay:
                size = f"FROM NOW-{duration_text(delay + width)} TO NOW-{duration_text(delay)}"
            return f"[{size}{_every(step, start)}]"
        case Session(gap, step, start):
            return f"[SESSION {duration_text(gap)}{_every(step, start)}]"
        case ElementCount(count, step):
            return f"[COUNT {count}]" if step is None else f"[COUNT {count} STEP {step}]"
        case TripleCount(count, step):
            return f"[TRIPLES {count}]" if step is None else f"[TRIPLES {count} STEP {step}]"
        case Everything() | EachInstant():
            return "[ALL]"


def _every(step: int | None, start: int) -> str:
    if step is None:
        return ""
    return f" STEP {duration_text(step)}{f' START {start_text(start)}' if start else ''}"


def _window_text(definition: WindowDefinition) -> str:
    text = extent_text(definition.extent)
    if not definition.partition_by:
        return text
    return f"{text[:-1]} PARTITION BY {' '.join(f'?{variable}' for variable in definition.partition_by)}]"


def _partition(pattern: Pattern, definition: WindowDefinition) -> PlannedPartition:
    found = partition_of(pattern, definition)
    if not found.alternatives:
        names = " ".join(f"?{variable}" for variable in definition.partition_by)
        raise UnsupportedQuery(f"PARTITION BY {names}: no connected triple patterns of the window have all of them")
    alternatives = tuple(
        tuple(pattern_text(each.triple, each.graph) for each in patterns) for patterns in found.alternatives
    )
    return PlannedPartition(tuple(map(str, definition.partition_by)), alternatives)


class StreamTable:
    """The streams a query reads, numbered, with the windows over them."""

    def __init__(self, query: ContinuousQuery) -> None:
        self.streams: list[str] = []
        self.windows: list[PlannedWindow] = []
        self._by_name: dict[URIRef, int] = {}
        self._predicates: dict[str, str] = {}
        for definition in query.windows:
            self._add(definition, query.pattern)
        if query.rules is not None:
            self.streams += [name for name in map(str, query.rules.streams) if name not in self.streams]

    def _add(self, definition: WindowDefinition, pattern: Pattern) -> None:
        stream = str(definition.stream)
        if stream not in self.streams:
            self.streams.append(stream)
        if definition.time_predicate is not None:
            given = self._predicates.setdefault(stream, str(definition.time_predicate))
            if given != str(definition.time_predicate):
                raise UnsupportedQuery(
                    f"the stream <{stream}> has one event time, but windows take it from <{given}> and from "
                    f"<{definition.time_predicate}>"
                )
        self._by_name[definition.name] = len(self.windows)
        self.windows.append(
            PlannedWindow(
                str(definition.name),
                self.streams.index(stream),
                bounds_of(definition.extent),
                _window_text(definition),
                _partition(pattern, definition) if definition.partition_by else None,
            )
        )

    def number(self, name: URIRef) -> int:
        return self._by_name[name]

    def expires_fifo(self, name: URIRef) -> bool:
        """Do mappings leave this window in the order in which they came?"""
        return self.windows[self.number(name)].partition is None

    def expires(self, name: URIRef) -> bool:
        """Do mappings ever leave this window?"""
        return self.windows[self.number(name)].bounds.size is not None

    @property
    def time_predicates(self) -> tuple[str | None, ...]:
        return tuple(self._predicates.get(stream) for stream in self.streams)
