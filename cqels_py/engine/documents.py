"""Documents that an engine takes in as a whole or not at all, and the keys under which each is taken in once."""

from __future__ import annotations

import hashlib
import time
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from cqels_py.batches.rearrange import empty_elements
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import DataError, UsageError
from cqels_py.mappings.context import RowMap
from cqels_py.sources.documents import document_elements

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

KEPT_SECONDS = 24 * 3600
"""Seconds for which a key is kept."""
MOST_KEYS = 100_000
"""The keys that are kept; beyond them the oldest are forgotten earlier."""
_SECOND = 1_000_000


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


def take_document(engine: Engine, stream: str, document: Document) -> Taken:
    """Take the elements in, in one step. The caller holds `_turn`. Errors as of `Engine.push_document`."""
    once = None
    if document.key is not None:
        digest = hashlib.sha256(document.body).hexdigest()[:32]
        if (known := engine._once.found(stream, document.key, digest)) is not None:
            return Taken(known.elements, repeated=True)
        once = Once(stream, document.key, digest, time.time(), 0)
    streams = engine._registry.streams
    unread = stream not in streams.numbers
    opening = opening_of(
        engine, stream, streams.time_predicates.get(stream), _raise, document.map, number=streams.numbers.get(stream, 0)
    )
    batch = document_elements(
        document.body,
        document.format,
        replace(opening, on_error="stop"),
        source=document.source,
        arrival=engine._clocks.wall.hold(),
    )
    if engine.watched is not None:
        engine.watched.take(stream, batch)
    elements, counters = len(batch), engine._counters
    late, ahead = counters.late, counters.ahead
    if unread:
        batch = empty_elements()
    if once is not None:
        once = replace(once, elements=elements)
    if len(batch) or once is not None:
        engine._process(batch, once=once)
    if once is not None:
        engine._once.add(once)
    return Taken(elements, counters.late - late, counters.ahead - ahead, unread=unread)


def _raise(error: DataError) -> None:
    raise error
