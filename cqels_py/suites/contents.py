"""The content of windows at an instant, kept as graphs of a pyoxigraph store: plain Python, from the files and the
algebra.

The elements come from pyoxigraph's parser. A window's content is always a run of its stream's triples. Its bounds are
computed anew at each instant: at the instant's end, after all its arrivals and its boundary, or, while it is not
`over`, among its arrivals.
"""

from __future__ import annotations

import heapq
from bisect import bisect_right
from collections import Counter, deque
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from typing import Any

import pyoxigraph as ox

from cqels_py.algebra import nodes

Triple = tuple[ox.NamedNode | ox.BlankNode, ox.NamedNode, ox.NamedNode | ox.BlankNode | ox.Literal]

GENERATED_AT = ox.NamedNode("http://www.w3.org/ns/prov#generatedAtTime")
_POSITIVE = (1 << 63) - 1
_RELEASED_AT_ONCE = 1 << 14
_TAKEN_BETWEEN_RELEASES = 1024
_EPOCH = datetime(1970, 1, 1, tzinfo=UTC)


@dataclass(frozen=True, slots=True)
class Element:
    """`time` in microseconds; `quads` are its triples in the graph named after it."""

    time: int
    stream: str
    quads: list[ox.Quad]


def elements_of(files: Mapping[str, str]) -> Iterator[Element]:
    """The elements of N-Quads files by stream, in order of time; ties in the order of the streams."""
    return heapq.merge(*(_read(iri, path) for iri, path in files.items()), key=lambda element: element.time)


def _read(stream: str, path: str) -> Iterator[Element]:
    element: Element | None = None
    for quad in ox.parse(path=path, format=ox.RdfFormat.N_QUADS):
        if isinstance(quad.graph_name, ox.DefaultGraph):
            assert quad.predicate == GENERATED_AT
            if element is not None:
                yield element
            element = Element(_microseconds(quad.object.value), stream, [])
        else:
            assert element is not None
            element.quads.append(quad)
    if element is not None:
        yield element


def _triple(quad: ox.Quad, stream: str) -> Triple:
    """A blank node belongs to its file, which is that of the stream."""
    subject, predicate, object_, _ = quad
    return _scoped(subject, stream), predicate, _scoped(object_, stream)


def _scoped(term: Any, stream: str) -> Any:
    return ox.BlankNode(f"{term.value}e{hash(stream) & _POSITIVE:x}") if isinstance(term, ox.BlankNode) else term


def _microseconds(text: str) -> int:
    return (datetime.fromisoformat(text) - _EPOCH) // timedelta(microseconds=1)


class _Stream:
    """A stream's elements so far, as long as a window may still need them.

    `times[i]` is the time of element number `dropped + i`, `first[i]` the number of its first triple.
    """

    def __init__(self) -> None:
        self.times: list[int] = []
        self.first: list[int] = []
        self.dropped = 0
        self.quads: list[ox.Quad] = []
        self.released = 0

    @property
    def seen(self) -> int:
        return self.dropped + len(self.times)

    @property
    def seen_triples(self) -> int:
        return self.released + len(self.quads)

    def add(self, element: Element) -> None:
        self.times.append(element.time)
        self.first.append(self.seen_triples)
        self.quads.extend(element.quads)

    def through(self, time: int) -> int:
        """The number of elements with times up to `time`."""
        return self.dropped + bisect_right(self.times, time)

    def starts(self, element: int) -> int:
        """The number of an element's first triple; for an element to come, the number of triples."""
        at = max(element - self.dropped, 0)
        return self.first[at] if at < len(self.first) else self.seen_triples

    def release(self, start: int, unread: int) -> None:
        """No window will start before triple `start` any more, nor read triples before `unread`."""
        if unread - self.released < _RELEASED_AT_ONCE:
            return
        del self.quads[: unread - self.released]
        self.released = unread
        # Sessions need the element before.
        past = max(bisect_right(self.first, start) - 2, 0)
        del self.times[:past], self.first[:past]
        self.dropped += past


def _boundary(step: int, start: int, time: int, over: bool) -> int:
    """The last boundary that has passed. The boundary of an instant passes when the instant is over."""
    return start + ((time if over else time - 1) - start) // step * step


class _Window:
    def __init__(self, definition: nodes.WindowDefinition, stream: _Stream) -> None:
        self.definition = definition
        self.graph = ox.NamedNode(str(definition.name))
        self._stream = stream
        self._held: deque[Triple] = deque()
        self._counts: Counter[Triple] = Counter()
        self._start = 0

    @property
    def repeated(self) -> bool:
        """Whether it holds a triple twice."""
        return len(self._counts) < len(self._held)

    def bounds(self, time: int, over: bool) -> tuple[int, int]:
        """The first and the last triple (numbers) that the window holds at this instant. Neither ever decreases."""
        stream, extent = self._stream, self.definition.extent
        match extent:
            case nodes.TimeRange(width, step, start, delay):
                end = (time if step is None else _boundary(step, start, time, over)) - delay
                return stream.starts(stream.through(end - width)), stream.starts(stream.through(end))
            case nodes.ElementCount(count, step):
                through = stream.seen - stream.seen % (step or 1)
                return stream.starts(max(through - count, 0)), stream.starts(through)
            case nodes.TripleCount(count, step):
                triples = stream.seen_triples - stream.seen_triples % (step or 1)
                return max(triples - count, 0), triples
            case nodes.Session(gap, None):
                return self._session(time, gap, over)
            case nodes.Session(gap, int(step), start):
                return self._session(_boundary(step, start, time, over), gap, over=True)
            case _:
                return 0, stream.seen_triples

    def _session(self, time: int, gap: int, over: bool) -> tuple[int, int]:
        """The session that is open at this instant, if any."""
        times = self._stream.times
        through = self._stream.through(time)
        end = self._stream.starts(through)
        at = through - self._stream.dropped - 1
        # An element at the very instant at which a session would end continues the session.
        if at < 0 or time - times[at] >= (gap if over else gap + 1):
            return end, end
        while at > 0 and times[at] - times[at - 1] <= gap:
            at -= 1
        return self._stream.first[at], end

    def move(self, time: int, over: bool, store: ox.Store) -> None:
        """Make the store's graph equal the window's content at this instant."""
        start, end = self.bounds(time, over)
        held = self._start + len(self._held)
        for _ in range(min(start, held) - self._start):
            self._drop(self._held.popleft(), store)
        base = self._stream.released
        stream, quads = str(self.definition.stream), self._stream.quads[max(start, held) - base : max(end - base, 0)]
        new = [_triple(quad, stream) for quad in quads]
        self._held.extend(new)
        self._start = start
        fresh = [triple for triple in dict.fromkeys(new) if triple not in self._counts]
        self._counts.update(new)
        store.extend([ox.Quad(*triple, self.graph) for triple in fresh])

    def _drop(self, triple: Triple, store: ox.Store) -> None:
        self._counts[triple] -= 1
        if not self._counts[triple]:
            del self._counts[triple]
            store.remove(ox.Quad(*triple, self.graph))

    def needs(self, time: int) -> tuple[int, int]:
        """The first triple that the window may still hold from `time` on, and the first that it has not read yet."""
        start = self.bounds(time, over=False)[0]
        return start, max(start, self._start + len(self._held))


class Contents:
    """The content of windows in a store with the static data. Elements of the streams are added one after another."""

    def __init__(self, windows: Iterable[nodes.WindowDefinition], static: str) -> None:
        self.store = ox.Store()
        self.store.bulk_load(path=static, format=ox.RdfFormat.N_QUADS)
        definitions = list(windows)
        self._streams = {str(window.stream): _Stream() for window in definitions}
        self._windows = [_Window(window, self._streams[str(window.stream)]) for window in definitions]
        self._taken = 0

    @property
    def repeated(self) -> bool:
        """Whether a window holds a triple twice. In a store's graph it is there once."""
        return any(window.repeated for window in self._windows)

    def take(self, element: Element) -> None:
        """Add the next element in order of time."""
        self._streams[element.stream].add(element)
        self._taken += 1
        if self._taken % _TAKEN_BETWEEN_RELEASES == 0:
            self._release(element.time)

    def seen(self, stream: str) -> tuple[int, int]:
        """The number of elements of a stream so far, and the number of their triples."""
        return self._streams[stream].seen, self._streams[stream].seen_triples

    def move(self, time: int, *, over: bool = True) -> None:
        """Move to this instant: no element after it has been added, and all up to it if it is over."""
        for window in self._windows:
            window.move(time, over, self.store)

    def _release(self, time: int) -> None:
        for iri, stream in self._streams.items():
            mine = [window for window in self._windows if str(window.definition.stream) == iri]
            starts, unread = zip(*(window.needs(time) for window in mine), strict=True)
            stream.release(min(starts), min(unread))
