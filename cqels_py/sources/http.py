"""A response that does not end as a stream: server-sent events, or JSON, a line each."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any

from cqels_py.connections.http import Endpoint, endpoint_of, httpx_for
from cqels_py.connections.location import Location
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError
from cqels_py.sources.live import Client, LiveSource, Message, MessageQueue
from cqels_py.sources.messages import MOST_BYTES, MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_EVENTS = "text/event-stream"
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
_ACCEPT = f"{_EVENTS}, {', '.join(_LINES)}"
_TO_BE_TRIED_AGAIN = (408, 425, 429)
_CONNECT_SECONDS = 10.0


def http_source(location: Location) -> WebConnector:
    """`http(s)://host/path?for=server#time=arrival`; the options stand behind "#"."""
    httpx_for(location)
    endpoint, options = endpoint_of(location)
    connector = WebConnector(HttpReader, endpoint, MessageFormat.of(options), options.seconds("idle", "30s"))
    options.done()
    return connector


@dataclass(frozen=True, slots=True)
class WebConnector:
    """An address that sends messages, which `reader` puts into a queue."""

    reader: Callable[[Endpoint, MessageQueue], Client]
    endpoint: Endpoint
    format: MessageFormat
    idle: float

    def open(self, opening: Opening) -> LiveSource:
        """Begin to read, in a thread of its own."""
        decoder = MessageDecoder(opening, self.endpoint.shown, self.format)
        queue = MessageQueue()
        return LiveSource(self.reader(self.endpoint, queue), queue, decoder.elements, self.idle, opening.pause)


class HttpReader:
    """Reads responses into a queue; connects again, with the id of the last event, when one has broken off."""

    def __init__(self, endpoint: Endpoint, queue: MessageQueue) -> None:
        self._httpx: Any = needed("httpx", "httpx", "http", "http://")
        self._endpoint = endpoint
        self._queue = queue
        self._closed = threading.Event()
        self._backoff = Backoff(sleep=self._closed.wait)
        self._events = EventParser()
        self._last = 0
        timeout = self._httpx.Timeout(_CONNECT_SECONDS, read=None)
        self._client = self._httpx.Client(timeout=timeout, headers=endpoint.headers, follow_redirects=True)
        self._response: Any = None
        self._thread = threading.Thread(target=self._run, name="cqels http", daemon=True)
        self._thread.start()

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """The server does not ask for it."""

    def close(self) -> None:
        """End the response; the thread ends when the connection does."""
        self._closed.set()
        self._client.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                if self._read():
                    self._queue.end()
                    return
                reason = "the response ended"
            except RunError as error:
                self._queue.fail(error)
                return
            except Exception as error:
                # Whatever a broken connection makes of a response; also that of a client that is being closed.
                if self._closed.is_set():
                    return
                if not isinstance(error, self._httpx.HTTPError):
                    self._queue.fail(RunError(f"{self._endpoint.shown}: {error}"))
                    return
                reason = str(error) or type(error).__name__
            _LOG.warning("%s: %s; connecting again", self._endpoint.shown, reason)
            if self._events.pause is not None:
                self._closed.wait(self._events.pause)
            else:
                self._backoff.wait()

    def _read(self) -> bool:
        """Read one response. Is that all there is?"""
        headers = {"Accept": _ACCEPT, "Cache-Control": "no-cache"}
        if self._events.last_id:
            headers["Last-Event-ID"] = self._events.last_id
        with self._client.stream("GET", self._endpoint.url, headers=headers) as response:
            if response.status_code == 204:
                return True
            self._check(response)
            self._backoff.reset()
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            lines = lines_of(response.iter_bytes())
            if kind == _EVENTS:
                self._events.begin()
                self._put_all(self._events.events(lines), None)
                return False
            if kind not in _LINES:
                raise RunError(
                    f"{self._endpoint.shown} answers with {kind or 'no content type'}; read are {_EVENTS} and {_LINES[0]}"
                )
            self._put_all((line for line in lines if line.strip()), None)
            return True

    def _check(self, response: Any) -> None:
        status = response.status_code
        if status >= 500 or status in _TO_BE_TRIED_AGAIN:
            raise self._httpx.HTTPError(f"status {status}")
        if status != 200:
            raise RunError(f"{self._endpoint.shown} answers with status {status}")

    def _put_all(self, bodies: Iterable[bytes], kind: str | None) -> None:
        for body in bodies:
            self._last = max(self._last, time.time_ns() // 1000)
            if not self._queue.put(Message(body, self._endpoint.url, kind, self._last)):
                return


def lines_of(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines without their ends (\\n, \\r\\n). Of a line that is too long, a part that is too long too, so that it is malformed."""
    rest = b""
    for chunk in chunks:
        *whole, rest = (rest + chunk).split(b"\n")
        for line in whole:
            yield line.removesuffix(b"\r")
        if len(rest) > MOST_BYTES + 1:
            rest = rest[: MOST_BYTES + 1]
    if rest:
        yield rest


@dataclass(slots=True)
class EventParser:
    """Server-sent events, as HTML's standard describes them. `pause`: seconds before another connection, if the server says so."""

    last_id: str = ""
    pause: float | None = None
    _data: list[bytes] = field(default_factory=list)

    def begin(self) -> None:
        """A response begins: an event that had not been complete is dropped, and comes again."""
        self._data = []

    def events(self, lines: Iterable[bytes]) -> Iterator[bytes]:
        """The data of the events, whatever their types."""
        for line in lines:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                if self._data:
                    data, self._data = b"\n".join(self._data), []
                    yield data
            elif name == b"data":
                self._data.append(value)
            elif name == b"id" and b"\0" not in value:
                self.last_id = value.decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit():
                self.pause = int(value) / 1000
