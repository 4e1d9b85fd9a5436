"""Documents that an engine takes in as a whole or not at all, and the keys under which each is taken in once."""

from __future__ import annotations

import hashlib
import time
from collections.abc import Iterator, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, replace
from itertools import accumulate, chain, groupby, pairwise
from typing import TYPE_CHECKING, Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, empty_elements, slice_elements
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import CqelsError, DataError, UsageError
from cqels_py.mappings.context import RowMap
from cqels_py.sources.documents import document_elements, joined_elements
from cqels_py.sources.protocol import Opening

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

KEPT_SECONDS = 24 * 3600
"""Seconds for which a key is kept."""
MOST_KEYS = 100_000
"""The keys that are kept; beyond them the oldest are forgotten earlier."""
_SMALL = 1 << 16
"""Bytes of a document that is taken in together with others."""


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
        # One that comes again after its time is the last one now.
        self._kept.pop((once.stream, once.key), None)
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

    Small ones of a stream that follow each other are read in one go, where their format allows it, and make one step, unless their
    elements have times of their own.
    """
    return [answer for stream, documents in _together(given) for answer in _take_all(engine, stream, documents)]


def _together(given: Sequence[tuple[str, Document]]) -> Iterator[tuple[str, list[Document]]]:
    """Documents that may share a step, with their stream: small ones, no two of which have one key."""
    group, group_stream, keys = list[Document](), "", set[str]()
    for stream, document in given:
        small = len(document.body) <= _SMALL
        if group and (stream != group_stream or not small or document.key in keys):
            yield group_stream, group
            group, keys = [], set()
        group_stream = stream
        group.append(document)
        if document.key is not None:
            keys.add(document.key)
        if not small:
            yield group_stream, group
            group, keys = [], set()
    if group:
        yield group_stream, group


@dataclass(slots=True)
class _Read:
    """A document on its way into the engine. `once`: that of its key. `answer`: once it is known."""

    document: Document
    once: Once | None = None
    answer: Taken | CqelsError | None = None


@dataclass(frozen=True, slots=True)
class _Part:
    """Documents that were read, and their elements. `ends`: how many elements there are up to the end of each."""

    read: Sequence[_Read]
    batch: ElementBatch
    ends: Sequence[int]

    def single(self) -> Iterator[_Part]:
        """Each document by itself."""
        for each, (start, end) in zip(self.read, pairwise([0, *self.ends]), strict=True):
            yield _Part([each], slice_elements(self.batch, start, end), [end - start])


def _take_all(engine: Engine, stream: str, documents: Sequence[Document]) -> list[Taken | CqelsError]:
    """Take in documents of one stream."""
    arrival = engine._clocks.wall.hold()
    found = [_Read(each) for each in documents]
    for each in found:
        if each.document.key is not None:
            _look_up(engine, stream, each)
    parts = list[_Part]()
    for _, same in groupby((each for each in found if each.answer is None), _form):
        parts += _read_all(engine, stream, list(same), arrival)
    if all((part.batch.time == arrival).all() for part in parts):
        # All of these elements are late, or none is.
        parts = _joined(parts)
    else:
        parts = [single for part in parts for single in part.single()]
    # Steps release terms that are nowhere else.
    with engine.dictionary.holding(lambda: chain.from_iterable(part.batch.live_ids() for part in parts)):
        for part in parts:
            _take(engine, stream, part)
    return [each.answer for each in found if each.answer is not None]


def _form(read: _Read) -> tuple[str, int]:
    return read.document.format, id(read.document.map)


def _joined(parts: Sequence[_Part]) -> list[_Part]:
    if len(parts) < 2:
        return list(parts)
    before = accumulate((len(part.batch) for part in parts), initial=0)
    return [
        _Part(
            [each for part in parts for each in part.read],
            concatenate_elements([part.batch for part in parts]),
            [start + end for start, part in zip(before, parts, strict=False) for end in part.ends],
        )
    ]


def _look_up(engine: Engine, stream: str, read: _Read) -> None:
    """Has a document with this key been taken in before?"""
    key = read.document.key
    assert key is not None
    digest = hashlib.sha256(read.document.body).hexdigest()[:32]
    try:
        known = engine._once.found(stream, key, digest)
    except CqelsError as error:
        read.answer = error
        return
    if known is not None:
        read.answer = Taken(known.elements, repeated=True)
    read.once = Once(stream, key, digest, time.time(), 0)


def _read_all(engine: Engine, stream: str, same: Sequence[_Read], arrival: int) -> list[_Part]:
    """Read documents of one format: in one go, or each alone where that cannot be, also as one of them cannot be read."""
    first = same[0].document
    opening = _opening(engine, stream, first.map)
    if len(same) > 1:
        with suppress(DataError):
            bodies = [each.document.body for each in same]
            joined = joined_elements(bodies, first.format, opening, source=first.source, arrival=arrival)
            if joined is not None:
                return [_Part(same, joined.batch, joined.ends)]
    parts = list[_Part]()
    for each in same:
        document = each.document
        try:
            batch = document_elements(document.body, document.format, opening, source=document.source, arrival=arrival)
        except CqelsError as error:
            each.answer = error
        else:
            parts.append(_Part([each], batch, [len(batch)]))
    return parts


def _take(engine: Engine, stream: str, part: _Part) -> None:
    """Take elements in, in one step."""
    batch = part.batch
    if engine.watched is not None:
        engine.watched.take(stream, batch)
    counts = [end - start for start, end in pairwise([0, *part.ends])]
    once = [
        replace(each.once, elements=count)
        for each, count in zip(part.read, counts, strict=True)
        if each.once is not None
    ]
    counters = engine._counters
    late, ahead = counters.late, counters.ahead
    unread = stream not in engine._registry.streams.numbers
    if unread:
        batch = empty_elements()
    try:
        if len(batch) or once:
            engine._process(batch, once=once)
    except CqelsError as error:
        for each in part.read:
            each.answer = error
        return
    for key in once:
        engine._once.add(key)
    late, ahead = counters.late - late, counters.ahead - ahead
    if len(part.read) == 1:
        part.read[0].answer = Taken(len(part.batch), late, ahead, unread=unread)
        return
    for each, count in zip(part.read, counts, strict=True):
        each.answer = Taken(count, count if late else 0, count if ahead else 0, unread=unread)


def _opening(engine: Engine, stream: str, map: RowMap | None) -> Opening:
    streams = engine._registry.streams
    number, predicate = streams.numbers.get(stream, 0), streams.time_predicates.get(stream)
    return replace(opening_of(engine, stream, predicate, _raise, map, number=number), on_error="stop")


def _raise(error: DataError) -> None:
    raise error
