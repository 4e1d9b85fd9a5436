"""Documents that an engine takes in as a whole or not at all, and the keys under which each is taken in once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import partial
from itertools import groupby, pairwise
from typing import TYPE_CHECKING, Any

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements, slice_elements
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import CqelsError, DataError, UsageError
from cqels_py.formats.joined_documents import Joined
from cqels_py.mappings.context import RowMap
from cqels_py.sources.documents import JOINED, document_elements, joined_elements
from cqels_py.sources.protocol import Opening

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

KEPT_SECONDS = 24 * 3600
"""Seconds for which a key is kept."""
MOST_KEYS = 100_000
"""The keys that are kept; beyond them the oldest are forgotten earlier."""
_SMALL = 1 << 16
"""Bytes of a document that is read together with others."""


@dataclass(frozen=True, slots=True)
class Document:
    """A body with its format (see `sources.documents.FORMATS`). `map`: for JSON and tables that are no RDF. `key`: taken in once."""

    body: bytes
    format: str
    map: RowMap | None = None
    key: str | None = None
    source: str = "<body>"


@dataclass(frozen=True, slots=True)
class Taken:
    """How many elements a document had, and how many of them were dropped: `late`, or `ahead` of the clock by too much.

    `repeated`: it had been taken in before, under its key. `unread`: no query reads the stream.
    """

    elements: int
    late: int = 0
    ahead: int = 0
    repeated: bool = False
    unread: bool = False


@dataclass(frozen=True, slots=True)
class Once:
    """A document that was taken in under a key of its stream. `digest`: of its body; `at`: seconds since the epoch."""

    stream: str
    key: str
    digest: str
    at: float
    elements: int


class OnceKeys:
    """The keys of the last 24 hours, in the order in which they came."""

    def __init__(self) -> None:
        self._kept: dict[tuple[str, str], Once] = {}

    def add(self, once: Once) -> None:
        """Keep a key, and forget old ones."""
        self._kept[once.stream, once.key] = once
        while self._kept:
            first = next(iter(self._kept.values()))
            if len(self._kept) <= MOST_KEYS and first.at > once.at - KEPT_SECONDS:
                return
            del self._kept[first.stream, first.key]

    def found(self, stream: str, key: str, digest: str) -> Once | None:
        """The answer to the document that was taken in under the key. UsageError if that was another body."""
        once = self._kept.get((stream, key))
        if once is None or once.at <= time.time() - KEPT_SECONDS:
            return None
        if once.digest != digest:
            raise UsageError(f"another body was taken in under the key {key!r}: give each body a key of its own")
        return once

    def plain(self) -> list[dict[str, Any]]:
        """All keys as plain data."""
        return [asdict(once) for once in self._kept.values()]


def take_documents(engine: Engine, given: Sequence[tuple[str, Document]]) -> list[Taken | CqelsError]:
    """Take in documents, each with its stream, in order; an error stands in its document's place. The caller holds `_turn`.

    Small ones that follow each other are read in one go.
    """
    found: list[Taken | CqelsError] = []
    for (stream, _), together in groupby(given, _joined_by):
        documents = [document for _, document in together]
        arrival = engine._clocks.wall.hold()
        joined = _read_together(engine, stream, documents, arrival) if len(documents) > 1 else None
        if joined is None:
            found += [_answer(partial(_take_alone, engine, stream, each)) for each in documents]
        elif (joined.batch.time == arrival).all():
            found += _take_in_a_step(engine, stream, joined)
        else:
            found += [
                _answer(partial(_take, engine, stream, slice_elements(joined.batch, start, end)))
                for start, end in pairwise([0, *joined.ends])
            ]
    return found


def _take_in_a_step(engine: Engine, stream: str, joined: Joined) -> list[Taken | CqelsError]:
    """Take in documents whose elements all have the time of their arrival: all of them are late, or none is."""
    taken = _answer(partial(_take, engine, stream, joined.batch))
    if isinstance(taken, CqelsError):
        return [taken] * len(joined.ends)
    counts = np.diff(joined.ends, prepend=0).tolist()
    return [
        Taken(count, count if taken.late else 0, count if taken.ahead else 0, unread=taken.unread) for count in counts
    ]


def _joined_by(given: tuple[str, Document]) -> tuple[str, object]:
    """Documents that follow each other with an equal one can be read in one go."""
    stream, document = given
    is_small = len(document.body) <= _SMALL
    if is_small and document.format in JOINED and document.key is None and document.map is None:
        return stream, document.format
    return stream, object()


def _read_together(engine: Engine, stream: str, documents: Sequence[Document], arrival: int) -> Joined | None:
    """Their elements; None if each has to be read alone, also as one of them cannot be read."""
    try:
        return joined_elements(
            [each.body for each in documents],
            documents[0].format,
            _opening(engine, stream, None),
            source=documents[0].source,
            arrival=arrival,
        )
    except DataError:
        return None


def _take_alone(engine: Engine, stream: str, document: Document) -> Taken:
    """Take the elements in, in one step. Errors as of `Engine.push_document`."""
    once = None
    if document.key is not None:
        digest = hashlib.sha256(document.body).hexdigest()[:32]
        if (known := engine._once.found(stream, document.key, digest)) is not None:
            return Taken(known.elements, repeated=True)
        once = Once(stream, document.key, digest, time.time(), 0)
    batch = document_elements(
        document.body,
        document.format,
        _opening(engine, stream, document.map),
        source=document.source,
        arrival=engine._clocks.wall.hold(),
    )
    return _take(engine, stream, batch, once)


def _take(engine: Engine, stream: str, batch: ElementBatch, once: Once | None = None) -> Taken:
    """Take elements in, in one step."""
    if engine.watched is not None:
        engine.watched.take(stream, batch)
    elements, counters = len(batch), engine._counters
    late, ahead = counters.late, counters.ahead
    unread = stream not in engine._registry.streams.numbers
    if unread:
        batch = empty_elements()
    if once is not None:
        once = replace(once, elements=elements)
    if len(batch) or once is not None:
        engine._process(batch, once=once)
    if once is not None:
        engine._once.add(once)
    return Taken(elements, counters.late - late, counters.ahead - ahead, unread=unread)


def _answer(call: Callable[[], Taken]) -> Taken | CqelsError:
    try:
        return call()
    except CqelsError as error:
        return error


def _opening(engine: Engine, stream: str, map: RowMap | None) -> Opening:
    streams = engine._registry.streams
    number, predicate = streams.numbers.get(stream, 0), streams.time_predicates.get(stream)
    return replace(opening_of(engine, stream, predicate, _raise, map, number=number), on_error="stop")


def _raise(error: DataError) -> None:
    raise error
