"""The ticks of a query and the content of its windows at each: plain Python over the case's elements, by the contract
alone.

Within one instant come expiries, then arrivals one by one, then boundaries. A window with STEP keeps the content of its
last boundary. The streams have ended: the first boundary at or after the last element is the last one.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass

from bench.suites.fuzz.case import Element, Triple, Window
from bench.suites.fuzz.vocabulary import ntriples

EXPIRY, ARRIVAL, BOUNDARY = range(3)
_MS = 1000
Patterns = Mapping[str, Sequence[tuple[str, ...]]]
"""By window: its triple patterns, with a fourth part where they are in a graph."""


@dataclass(frozen=True, order=True)
class Tick:
    """`seen`: the number of elements that have arrived, including the current one. `time` in microseconds."""

    time: int
    phase: int
    seen: int


def in_order(elements: Iterable[Element], lateness: int) -> list[Element]:
    """The elements that are not late, by time; ties in order of arrival."""
    kept, newest = [], None
    for element in elements:
        if newest is None or element.time >= newest - lateness:
            kept.append(element)
            newest = element.time if newest is None else max(newest, element.time)
    return sorted(kept, key=lambda element: element.time)


def ticks(windows: Sequence[Window], elements: Sequence[Element]) -> list[Tick]:
    """All ticks, in order. `elements`: those of the windows' streams, in order."""
    if not elements:
        return []
    last = elements[-1].time
    found = {Tick(e.time, ARRIVAL, n + 1) for n, e in enumerate(elements) if _changes(windows, elements, n)}
    arrivals = {tick.time for tick in found}
    for time in {time for window in windows for time in _expiries(window, elements)}:
        if time <= last and time not in arrivals:
            found.add(Tick(time, EXPIRY, sum(e.time < time for e in elements)))
    end = max([last, *(_next_boundary(window, last) for window in windows if _of_time(window) and window.step)])
    boundaries = {time for window in windows for time in _boundaries(window, elements[0].time, end)}
    boundaries |= {time for window in windows for time in _session_ends(window, elements) if time <= last}
    found |= {Tick(time, BOUNDARY, sum(e.time <= time for e in elements)) for time in boundaries}
    return sorted(found)


def content(
    window: Window, elements: Sequence[Element], tick: Tick, patterns: Patterns
) -> list[tuple[Element, Triple]]:
    """The triples in the window at the tick, a bag, each with its element."""
    mine = [element for element in elements[: tick.seen] if element.stream == window.stream]
    at = (tick.time, tick.phase)
    if window.kind == "TRIPLES":
        units = [(element, triple) for element in mine for triple in element.triples]
        if window.step:
            units = units[: len(units) // window.step * window.step]
        groups = _by_value(window, [(unit, unit[0], (unit[1],)) for unit in units], patterns)
        return _kept(units, [group[max(0, len(group) - window.size) :] for group in groups])
    if window.kind == "COUNT" and window.step:
        mine = mine[: len(mine) // window.step * window.step]
    if _of_time(window) and window.step:
        passed = [b for b in _boundaries(window, elements[0].time, tick.time) if (b, BOUNDARY) <= at]
        if not passed:
            return []
        at = (passed[-1], BOUNDARY)
        mine = [element for element in mine if element.time <= at[0]]
    groups = _by_value(window, [(element, element, element.triples) for element in mine], patterns)
    kept = _kept(mine, [_last(window, group, *at) for group in groups])
    return [(element, triple) for element in kept for triple in element.triples]


def _last(window: Window, mine: list[Element], time: int, phase: int) -> list[Element]:
    """The elements of one value that the window holds."""
    match window.kind:
        case "NOW":
            return [element for element in mine if element.time == time]
        case "RANGE":
            end = time - window.delay * _MS
            return [element for element in mine if end - window.size * _MS < element.time <= end]
        case "COUNT":
            return mine[max(0, len(mine) - window.size) :]
        case "SESSION":
            return _session(mine, window.size * _MS, time, phase)
    return mine


def _session(mine: list[Element], gap: int, time: int, phase: int) -> list[Element]:
    if not mine or (time - mine[-1].time, phase == BOUNDARY) >= (gap, True):
        return []
    start = len(mine) - 1
    while start and mine[start].time - mine[start - 1].time <= gap:
        start -= 1
    return mine[start:]


def _kept(units: list, groups: Iterable[list]) -> list:
    """The units that any group keeps, in order."""
    kept = {id(unit) for group in groups for unit in group}
    return [unit for unit in units if id(unit) in kept]


def _by_value(window: Window, units: list, patterns: Patterns) -> list[list]:
    """The units of each value of PARTITION BY, from units with their elements and triples; without PARTITION BY, all
    units.

    Blank nodes differ between elements.
    """
    if not window.partition:
        return [[unit for unit, _, _ in units]]
    groups: dict[tuple[str, ...], list] = {}
    having = [each for each in dict.fromkeys(patterns[window.name]) if set(window.partition) <= set(each)]
    for unit, element, triples in units:
        graph = None if element.graph is None else f"<{element.graph}>"
        values = {_values(each, (*triple, graph), window.partition) for each in having for triple in triples}
        for value in values - {None}:
            if any(term.startswith("_:") for term in value):
                value = (*value, str(id(element)))
            groups.setdefault(value, []).append(unit)
    return list(groups.values())


def _values(pattern: tuple[str, ...], quad: tuple[str | None, ...], variables: Sequence[str]) -> tuple[str, ...] | None:
    """The values that a triple gives by a pattern, which may have the graph as a fourth part."""
    found: dict[str, str] = {}
    for part, term in zip(pattern, quad, strict=False):
        if term is None:
            return None
        variable = part[0] in "?_"
        if (found.setdefault(part, term) if variable else ntriples(part)) != term:
            return None
    return tuple(found[variable] for variable in variables)


# --- which instants are ticks ---------------------------------------------------------------------


def _of_time(window: Window) -> bool:
    return window.kind in ("RANGE", "SESSION")


def _changes(windows: Sequence[Window], elements: Sequence[Element], number: int) -> bool:
    """Whether the arrival of this element is a tick."""
    arrived = elements[number]
    mine = [element for element in elements[: number + 1] if element.stream == arrived.stream]
    triples = sum(len(element.triples) for element in mine)
    for window in windows:
        if window.stream != arrived.stream:
            continue
        if not window.step or (window.kind == "COUNT" and len(mine) % window.step == 0):
            return True
        if window.kind == "TRIPLES" and triples // window.step > (triples - len(arrived.triples)) // window.step:
            return True
    return False


def _expiries(window: Window, elements: Sequence[Element]) -> Iterator[int]:
    """The instants at which a window without STEP changes by time alone."""
    if window.step or window.kind not in ("RANGE", "NOW"):
        return
    width = 1 if window.kind == "NOW" else window.size * _MS
    for element in elements:
        if element.stream == window.stream:
            yield element.time + window.delay * _MS + width
            if window.delay:
                yield element.time + window.delay * _MS


def _next_boundary(window: Window, time: int) -> int:
    step, start = window.step * _MS, (window.start or 0) * _MS
    return start - (start - time) // step * step


def _boundaries(window: Window, first: int, end: int) -> list[int]:
    if not (_of_time(window) and window.step):
        return []
    return list(range(_next_boundary(window, first), end + 1, window.step * _MS))


def _session_ends(window: Window, elements: Sequence[Element]) -> Iterator[int]:
    if window.kind != "SESSION" or window.step:
        return
    times = sorted({element.time for element in elements if element.stream == window.stream})
    for time, after in zip(times, [*times[1:], None], strict=False):
        if window.partition or after is None or after - time > window.size * _MS:
            yield time + window.size * _MS
