"""Re-evaluation as a peer: pyoxigraph answers the query anew at each tick, over a store that is kept up to date.

It reads the same files. Windows are full when the clock starts: the first half of the stream is loaded before. A tick is an arrival
that a window without STEP sees, or a boundary; expiries between arrivals are left out, in its favour.
"""

from __future__ import annotations

import time
from collections.abc import Iterator, Sequence

from cqels_py.algebra import nodes
from cqels_py.suites.asked import Asked
from cqels_py.suites.contents import Contents, Element, elements_of
from cqels_py.suites.task import Measured, Task

SECONDS = 2.0


def measure(task: Task, question: Asked, measured: Measured, *, seconds: float = SECONDS) -> None:
    """Fill in its triples a second, over about so many seconds, and the ratio to it."""
    contents = Contents(question.query.windows, task.static)
    streams = {str(window.stream): task.streams[str(window.stream)] for window in question.query.windows}
    elements = elements_of(streams)
    time_before = None
    for _ in range(measured.elements // 2):
        element = next(elements)
        contents.take(element)
        time_before = element.time
    if time_before is None:
        return
    contents.move(time_before)
    rate = _rate(question, contents, elements, time_before, seconds)
    if rate is not None and measured.triples_per_second is not None:
        measured.peer_triples_per_second = rate
        measured.peer_ratio = measured.triples_per_second / rate


def _rate(question: Asked, contents: Contents, elements: Iterator[Element], last: int, seconds: float) -> float | None:
    windows = question.query.windows
    eager = {str(window.stream) for window in windows if _is_eager(window.extent)}
    triples = 0
    started = time.perf_counter()
    for element in elements:
        for boundary in _boundaries(windows, last, element.time):
            _answer(question, contents, boundary)
        contents.take(element)
        if element.stream in eager or _is_full(windows, contents, element.stream):
            _answer(question, contents, element.time)
        triples += len(element.triples)
        last = element.time
        if time.perf_counter() - started > seconds:
            break
    return triples / (time.perf_counter() - started) if triples else None


def _answer(question: Asked, contents: Contents, instant: int) -> None:
    contents.move(instant)
    for _ in question.rows(contents.store):
        pass


def _is_eager(extent: nodes.Extent) -> bool:
    return not isinstance(extent, nodes.TimeRange | nodes.ElementCount) or extent.step is None


def _is_full(windows: Sequence[nodes.WindowDefinition], contents: Contents, stream: str) -> bool:
    """Does a window that counts take its content now?"""
    return any(
        isinstance(window.extent, nodes.ElementCount) and contents.seen(stream) % (window.extent.step or 1) == 0
        for window in windows
        if str(window.stream) == stream
    )


def _boundaries(windows: Sequence[nodes.WindowDefinition], last: int, now: int) -> list[int]:
    """Boundaries from `last` until before `now`."""
    found: set[int] = set()
    for window in windows:
        extent = window.extent
        if isinstance(extent, nodes.TimeRange) and extent.step is not None:
            first = extent.start - (extent.start - last) // extent.step * extent.step
            found.update(range(first, now, extent.step))
    return sorted(found)
