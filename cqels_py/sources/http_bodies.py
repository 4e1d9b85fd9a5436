"""RDF as the body of a response, which is read while it comes.

A client's thread makes N-Quads or N-Triples of it, and of each frame of grouped Jelly a message; the source reads these lines.
"""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import Final

from cqels_py.batches.elements import ElementBatch
from cqels_py.errors import DataError
from cqels_py.formats.input_wait import InputWait
from cqels_py.formats.jelly import DOCUMENTS, jelly_texts
from cqels_py.formats.turtle import put_nquads
from cqels_py.sources.files import elements_of_chunks, handling
from cqels_py.sources.live import Message, MessageQueue
from cqels_py.sources.protocol import Opening

MEDIA_TYPES: Final = {
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "application/trig": "trig",
    "text/turtle": "ttl",
    "application/x-jelly-rdf": "jelly",
}
"""Formats of bodies by media type."""
BODY_FORMATS: Final = tuple(MEDIA_TYPES.values())
_LINES_OF: Final = {"nq": "nq", "nt": "nt", "trig": "nq", "ttl": "nt"}
_FLUSH_AFTER: Final = 0.2
_DOCUMENT: Final = "application/n-quads"


@dataclass(frozen=True, slots=True)
class BodyPart:
    """The token of a message that is a part of a body: its next bytes, an `error` in it, or that it has `ended`, or is `broken`."""

    error: DataError | None = None
    ended: bool = False
    broken: bool = False


_MORE, _ENDED, _BROKEN = BodyPart(), BodyPart(ended=True), BodyPart(broken=True)


def put_parts(form: str, chunks: Iterator[bytes], url: str, queue: MessageQueue) -> bool:
    """Put a body into a queue as it comes. Was it whole? The errors of a broken connection are raised; then the body begins anew."""
    kind = _LINES_OF.get(form, "")

    def put(text: bytes, kind: str = kind, token: BodyPart | None = _MORE) -> None:
        queue.put(Message(text, url, kind, time.time_ns() // 1000, token))

    def put_error(error: DataError) -> None:
        put(b"", token=BodyPart(error=error))

    broken: list[Exception] = []

    def watched() -> Iterator[bytes]:
        try:
            yield from chunks
        except Exception as error:
            # A parser would take it for damaged input.
            broken.append(error)
            raise

    body = watched()
    try:
        if form == "jelly":
            for kind, text in jelly_texts(body, url):
                if kind == DOCUMENTS:
                    put(text, _DOCUMENT, None)
                else:
                    put(text, kind)
        elif form in ("trig", "ttl"):
            put_nquads(body, form, url, put_error, put, url)
        else:
            for chunk in body:
                put(chunk)
    except Exception as error:
        if broken:
            put(b"", token=_BROKEN)
            raise broken[0] from None
        if not isinstance(error, DataError):
            raise
        # Bytes that cannot be read any further.
        put_error(error)
    if kind != DOCUMENTS:
        put(b"", token=_ENDED)
    return True


class _Broken(Exception):
    """The body has broken off: the element that had begun is not complete."""


class BodyReader:
    """The elements of a body. `incoming`: messages that were taken out of the queue, those of the body first."""

    def __init__(self, opening: Opening, source: str, incoming: deque[Message], queue: MessageQueue) -> None:
        self._wait = opening.wait or InputWait(_FLUSH_AFTER)
        self._malformed = handling(opening.on_error, opening.report)
        self._incoming = incoming
        self._queue = queue
        form = incoming[0].kind or "nq"
        self._elements = elements_of_chunks(form, self._chunks(), replace(opening, wait=self._wait), source)

    def next(self) -> ElementBatch | None:
        """The next elements; None at the end of the body, or where it has broken off."""
        try:
            return next(self._elements, None)
        except _Broken:
            return None

    def _chunks(self) -> Iterator[bytes]:
        """The text of the body; empty where nothing comes for now."""
        while True:
            while self._incoming:
                message = self._incoming.popleft()
                part = message.token
                if not isinstance(part, BodyPart) or part.ended:
                    return
                if part.broken:
                    raise _Broken
                if part.error is not None:
                    self._malformed(part.error)
                elif message.body:
                    self._wait.came(message.body)
                    yield message.body
            taken = self._queue.take(self._wait.pause)
            if taken is None:
                return
            self._incoming.extend(taken)
            if not taken:
                yield b""
