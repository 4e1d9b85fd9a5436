"""The last elements of streams, as texts for people who look at them; of fast streams a few each second."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass, field

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.dictionary import Dictionary

KEPT = 50
"""Elements of a stream that are kept."""
A_SECOND = 20
"""Elements of a stream that are turned into text in a second."""
_MOST_TRIPLES, _MOST_CHARACTERS, _MOST_TERMS = 50, 4_000, 500
_TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"


@dataclass(frozen=True, slots=True)
class SeenElement:
    """`time`: microseconds. `quads`: subject, predicate, object, and the graph or None, as in N-Quads. `whole`: are these all?"""

    time: int
    quads: Sequence[tuple[str, str, str, str | None]]
    whole: bool

    @property
    def text(self) -> str:
        """Its triples, a line each."""
        lines = [" ".join(term for term in quad if term is not None) + " ." for quad in self.quads]
        return "\n".join([*lines, *([] if self.whole else ["…"])])


@dataclass(slots=True)
class _Seen:
    """Of one stream. `room`: so many elements may be turned into text at the time `at`."""

    elements: deque[SeenElement] = field(default_factory=lambda: deque(maxlen=KEPT))
    terms: dict[str, None] = field(default_factory=dict)
    room: float = A_SECOND
    at: float = 0.0
    latest: int | None = None


class LastElements:
    """The last elements of streams: `take` is called while the terms of the elements are in the dictionary.

    `clock`: seconds.
    """

    def __init__(self, dictionary: Dictionary, clock: Callable[[], float] = time.monotonic) -> None:
        self._dictionary = dictionary
        self._clock = clock
        self._streams: dict[str, _Seen] = {}
        self._lock = threading.Lock()

    def take(self, stream: str, batch: ElementBatch) -> None:
        """Remember the last ones of these elements of a stream, by its IRI."""
        with self._lock:
            seen, now = self._streams.setdefault(stream, _Seen()), self._clock()
            seen.room = min(float(A_SECOND), seen.room + (now - seen.at) * A_SECOND)
            seen.at = now
            if len(batch):
                latest = int(batch.time.max())
                seen.latest = latest if seen.latest is None else max(seen.latest, latest)
            count = min(len(batch), int(seen.room))
            seen.room -= count
            for at in range(len(batch) - count, len(batch)):
                self._remember(seen, slice_elements(batch, at, at + 1))

    def of(self, stream: str) -> list[SeenElement]:
        """Those of a stream that are kept, the oldest first."""
        with self._lock:
            return list(self._streams[stream].elements) if stream in self._streams else []

    def latest(self, stream: str) -> int | None:
        """The greatest time that an element of a stream has had, in microseconds."""
        with self._lock:
            return self._streams[stream].latest if stream in self._streams else None

    def terms_of(self, stream: str) -> list[str]:
        """Properties and classes that its elements had, as in N-Quads; the first five hundred."""
        with self._lock:
            return list(self._streams[stream].terms) if stream in self._streams else []

    def _remember(self, seen: _Seen, element: ElementBatch) -> None:
        shown = min(element.triples, _MOST_TRIPLES)
        subjects, predicates, objects = (
            self._dictionary.decode(ids[:shown]) for ids in (element.subject, element.predicate, element.object)
        )
        graphs = [None] * shown if element.graph is None else self._dictionary.decode(element.graph[:shown])
        whole, quads = shown == element.triples, []
        for subject, predicate, value, graph in zip(subjects, predicates, objects, graphs, strict=True):
            assert subject is not None and predicate is not None and value is not None
            if max(len(subject), len(predicate), len(value), len(graph or "")) > _MOST_CHARACTERS:
                whole = False
                continue
            quads.append((subject, predicate, value, graph))
            term = value if predicate == _TYPE else predicate
            if len(seen.terms) < _MOST_TERMS and term.startswith("<"):
                seen.terms.setdefault(term)
        seen.elements.append(SeenElement(int(element.time[0]), tuple(quads), whole))
