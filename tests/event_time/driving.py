"""Elements cut into batches at random, and the clock's steps over them."""

from __future__ import annotations

import random
from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import numpy as np
from rdflib import URIRef

from cqels_py.algebra import nodes
from cqels_py.event_time.clock import ClockedWindow, Step, TickClock
from cqels_py.planner.windows import bounds_of
from tests.oracle.naive import Element
from tests.support import traces

NAMES = ("one", "two")


@dataclass(frozen=True)
class Cut:
    """Elements that come together, then perhaps the promise that none before `advance` follows."""

    elements: Sequence[Element]
    advance: int | None = None


def random_elements(rng: random.Random, count: int, streams: int) -> list[Element]:
    """Times with ties and gaps, also before the epoch; up to three triples each, numbered."""
    time, number = rng.randrange(-20, 20), 0
    found: list[Element] = []
    for _ in range(count):
        time += rng.choice((0, 0, 1, 1, 2, 3, 11))
        triples = []
        for _ in range(rng.choice((0, 1, 1, 1, 2, 3))):
            triples.append((traces.iri("s"), traces.iri("p"), traces.term(str(number))))
            number += 1
        found.append(Element(time, URIRef(traces.STREAMS + NAMES[rng.randrange(streams)]), tuple(triples)))
    return found


def random_extent(rng: random.Random) -> nodes.Extent:
    size, step = rng.randrange(1, 9), rng.randrange(1, 7)
    return rng.choice(
        (
            nodes.TimeRange(size),
            nodes.TimeRange(1),
            nodes.TimeRange(size, step),
            nodes.TimeRange(size, step, rng.randrange(-5, 5)),
            nodes.TimeRange(size, None, 0, rng.randrange(1, 9)),
            nodes.TimeRange(size, step, rng.randrange(-5, 5), rng.randrange(1, 9)),
            nodes.Session(rng.randrange(1, 4)),
            nodes.Session(rng.randrange(1, 4), step, rng.randrange(-5, 5)),
            nodes.ElementCount(size),
            nodes.ElementCount(size, step),
            nodes.TripleCount(size),
            nodes.TripleCount(size, step),
            nodes.Everything(),
        )
    )


def query_of(extents: Sequence[nodes.Extent]) -> nodes.ContinuousQuery:
    """A query with a window over each stream in turn."""
    windows = [traces.window(f"w{i}", NAMES[i % len(NAMES)], extent) for i, extent in enumerate(extents)]
    return traces.query(nodes.BGP(()), "", windows)


def clock_of(query: nodes.ContinuousQuery, *, every_boundary: bool) -> TickClock:
    windows = [ClockedWindow(stream_number(w.stream), bounds_of(w.extent)) for w in query.windows]
    return TickClock(windows, len(NAMES), every_boundary=every_boundary)


def stream_number(stream: URIRef) -> int:
    return NAMES.index(stream.removeprefix(traces.STREAMS))


def whole(elements: Sequence[Element]) -> list[Cut]:
    return [Cut(elements)]


def one_by_one(elements: Sequence[Element]) -> list[Cut]:
    return [Cut([element]) for element in elements]


def at_random(rng: random.Random, elements: Sequence[Element]) -> list[Cut]:
    """Batches of any size, empty ones too, and promises of any strength between them."""
    found: list[Cut] = []
    at = 0
    while at < len(elements):
        size = rng.choice((0, 1, 1, 2, 5))
        batch = elements[at : at + size]
        at += size
        last = elements[min(at, len(elements)) - 1].time if at else elements[0].time
        following = elements[at].time if at < len(elements) else last
        found.append(Cut(batch, rng.randint(last, following) if at and rng.random() < 0.5 else None))
    return found


def columns(elements: Sequence[Element]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Times, stream numbers, and where each element's triples begin."""
    return (
        np.array([element.time for element in elements], np.int64),
        np.array([stream_number(element.stream) for element in elements], np.int32),
        np.cumsum([0, *(len(element.triples) for element in elements)], dtype=np.int64),
    )


def steps(clock: TickClock, cuts: Sequence[Cut]) -> Iterator[tuple[Sequence[Element], Step]]:
    """Every step with the elements that came in it; the streams end at last."""
    for cut in cuts:
        yield cut.elements, clock.step(*columns(cut.elements))
        if cut.advance is not None:
            yield [], clock.advance(cut.advance)
    yield [], clock.finish()
