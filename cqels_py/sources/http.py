"""A response that does not end as a stream: server-sent events, lines of JSON, or RDF."""

from __future__ import annotations

import logging
import threading
import time
from collections import deque
from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass, field, replace
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, empty_elements, slice_elements
from cqels_py.connections.http import Endpoint, endpoint_of, httpx_for, may_pass
from cqels_py.connections.location import Location
from cqels_py.connections.reach import Reach, httpx_hooks
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import CqelsError, RunError
from cqels_py.formats.encodings import without_mark
from cqels_py.sources.http_bodies import BODY_FORMATS, MEDIA_TYPES, BodyPart, BodyReader, put_parts
from cqels_py.sources.live import Client, LiveSource, Message, MessageColumns, MessageQueue
from cqels_py.sources.malformed import CountedReports
from cqels_py.sources.messages import MOST_BYTES, MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_EVENTS = "text/event-stream"
_LINES = ("application/x-ndjson", "application/ndjson", "application/jsonl", "application/json-lines")
_ACCEPT = ", ".join([_EVENTS, *_LINES, *(f"{kind};q=0.5" for kind in MEDIA_TYPES)])
_CONNECT_SECONDS = 10.0


def http_source(location: Location) -> HttpConnector:
    """`http(s)://host/path?for=server#time=arrival`; the options stand behind "#"."""
    httpx_for(location)
    endpoint, options = endpoint_of(location)
    connector = HttpConnector(endpoint, MessageFormat.of(options), options.seconds("idle", "30s"))
    options.done()
    return connector


@dataclass(frozen=True, slots=True)
class HttpConnector:
    """An address whose responses are read."""

    endpoint: Endpoint
    format: MessageFormat
    idle: float

    def open(self, opening: Opening) -> HttpSource:
        """Begin to read, in a thread of its own."""
        return HttpSource(self, opening)


@dataclass(frozen=True, slots=True)
class WebConnector:
    """An address that sends messages, which `reader` puts into a queue."""

    reader: Callable[[Endpoint, MessageQueue, Reach | None], Client]
    endpoint: Endpoint
    format: MessageFormat
    idle: float

    def open(self, opening: Opening) -> LiveSource:
        """Begin to read, in a thread of its own."""
        decoder = MessageDecoder(opening, self.endpoint.shown, self.format)
        queue = MessageQueue()
        reader = self.reader(self.endpoint, queue, opening.reach)
        return LiveSource(reader, queue, decoder.elements, self.idle, opening.pause)


class HttpSource:
    """The elements of responses. Its position is the id of an event, and how many elements and malformed messages are behind it:
    None without ids.
    """

    resumes = True
    beginning = ("", 0, 0)
    """The position before all events, once it is known that they have ids."""

    def __init__(self, of: HttpConnector, opening: Opening, clock: Callable[[], float] = time.monotonic) -> None:
        self._opening = opening
        self._idle = of.idle
        self._clock = clock
        self._last = clock()
        self._shown = of.endpoint.shown
        # Each message of Jelly comes as N-Quads.
        format_ = MessageFormat(None, of.format.arrival) if of.format.format == "jelly" else of.format
        begin = opening.position if isinstance(opening.position, list | tuple) else ("", 0)
        # Positions of earlier versions do not count malformed messages.
        self._id, self._behind, *told = begin
        self._reports = CountedReports(*told)
        # Without what may be secret: relative IRIs need neither user nor query.
        opening = replace(opening, base=of.endpoint.base)
        counted = replace(opening, report=self._reports.through(opening.report))
        self._decoder = MessageDecoder(counted, self._shown, format_)
        self._queue = MessageQueue()
        self._incoming: deque[Message] = deque()
        self._body: BodyReader | None = None
        self._skip = self._behind
        self._reader = HttpReader(of, self._queue, opening.map is not None, self._id, opening.reach)

    @property
    def idle(self) -> bool:
        return self._clock() - self._last >= self._idle

    def poll(self) -> ElementBatch | None:
        if self._body is None and not self._incoming:
            taken = self._queue.take(self._opening.pause)
            if taken is None:
                return None
            self._incoming.extend(taken)
        if self._body is None and self._incoming and isinstance(self._incoming[0].token, BodyPart):
            self._body = BodyReader(self._opening, self._shown, self._incoming, self._queue)
        batch = self._of_messages() if self._body is None else self._body.next()
        if batch is None:
            self._body = None
            return empty_elements()
        if len(batch):
            self._last = self._clock()
        return batch

    def position(self) -> tuple[str, int, int] | None:
        return (self._id, self._behind, self._reports.count) if self._id else None

    def commit(self, position: object) -> None:
        """The server does not ask for it."""

    def close(self) -> None:
        self._queue.close()
        self._reader.close()

    def _of_messages(self) -> ElementBatch:
        """The elements of the messages that have come; those behind the last one with an id of its own are counted."""
        messages: list[Message] = []
        while self._incoming and not isinstance(self._incoming[0].token, BodyPart):
            messages.append(self._incoming.popleft())
        last = max((at for at, message in enumerate(messages, 1) if message.token is not None), default=0)
        up_to = self._decoder.elements(MessageColumns.of(messages[:last]))
        if last:
            self._reports.begin()
        behind = self._decoder.elements(MessageColumns.of(messages[last:]))
        found = concatenate_elements([up_to, behind])
        skipped = min(self._skip, len(found))
        self._skip -= skipped
        if last:
            self._id, self._behind = str(messages[last - 1].token), len(behind)
        else:
            self._behind += len(behind) - skipped
        return slice_elements(found, skipped, len(found))


class HttpReader:
    """Reads responses into a queue; connects again, with the id of the last event, when one has broken off.

    `mapped`: the stream has a map, which is for JSON. `last_id`: that of the event behind which it begins; empty: it has none.
    """

    def __init__(self, of: HttpConnector, queue: MessageQueue, mapped: bool, last_id: str, reach: Reach | None) -> None:
        self._httpx: Any = needed("httpx", "httpx", "http", "http://")
        self._endpoint = endpoint = of.endpoint
        self._format = of.format
        self._mapped = mapped
        self._queue = queue
        self._closed = threading.Event()
        self._backoff = Backoff(sleep=self._closed.wait)
        self._events = EventParser(last_id)
        self._last = 0
        timeout = self._httpx.Timeout(_CONNECT_SECONDS, read=None)
        self._client = self._httpx.Client(
            timeout=timeout,
            headers=endpoint.headers,
            follow_redirects=True,
            event_hooks=httpx_hooks(reach),
            trust_env=reach is None,
        )
        self._response: Any = None
        self._thread = threading.Thread(target=self._run, name="cqels http", daemon=True)
        self._thread.start()

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
            except CqelsError as error:
                self._queue.fail(error if isinstance(error, RunError) else RunError(error.message))
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
        headers: dict[str, str | bytes] = {"Accept": _ACCEPT, "Cache-Control": "no-cache"}
        if self._events.last_id:
            # UTF-8, as HTML's standard has it; a header neither begins nor ends with spaces.
            headers["Last-Event-ID"] = self._events.last_id.encode().strip(b" \t")
        with self._client.stream("GET", self._endpoint.url, headers=headers) as response:
            if response.status_code == 204:
                return True
            self._check(response)
            self._backoff.reset()
            kind = response.headers.get("content-type", "").partition(";")[0].strip().lower()
            if kind == _EVENTS:
                self._events.begin()
                self._put_events(event_lines(response.iter_bytes()))
                return False
            if kind in _LINES:
                lines = lines_of(without_mark(response.iter_bytes()))
                self._put_all((line for line in lines if line.strip()), None)
                return True
            form = self._body_format(kind)
            return put_parts(form, response.iter_bytes(), self._endpoint.url, self._queue)

    def _body_format(self, kind: str) -> str:
        """The format of a response that is RDF. RunError for another type."""
        asked = self._format.format
        form = asked if asked in BODY_FORMATS else MEDIA_TYPES.get(kind)
        if form is None:
            known = ", ".join([_EVENTS, _LINES[0], *MEDIA_TYPES])
            raise RunError(f"{self._endpoint.shown} answers with {kind or 'no content type'}; read are {known}")
        if self._mapped:
            raise RunError(f"{self._endpoint.shown} answers with RDF: leave the map out, which is for JSON")
        if self._format.arrival:
            raise RunError(
                f"{self._endpoint.shown} answers with RDF whose elements have their own times: leave time= out"
            )
        return form

    def _check(self, response: Any) -> None:
        status = response.status_code
        if may_pass(status):
            raise self._httpx.HTTPError(f"status {status}")
        if status != 200:
            raise RunError(f"{self._endpoint.shown} answers with status {status}")

    def _put_events(self, lines: Iterable[bytes]) -> None:
        for body, own_id in self._events.events(lines):
            self._last = max(self._last, time.time_ns() // 1000)
            if not self._queue.put(Message(body, self._endpoint.url, None, self._last, own_id)):
                return

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


def event_lines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """Lines of an event stream without their ends, one of which may also be a \\r alone, and without a byte order mark."""
    return lines_of(_newlines(without_mark(chunks)))


def _newlines(chunks: Iterable[bytes]) -> Iterator[bytes]:
    """The chunks with \\n for each end of a line. A \\r ends one at once: whether a \\n follows may be known much later."""
    returned = False
    for chunk in chunks:
        if not chunk:
            continue
        text = chunk.removeprefix(b"\n") if returned else chunk
        returned = chunk.endswith(b"\r")
        yield text.replace(b"\r\n", b"\n").replace(b"\r", b"\n")


@dataclass(slots=True)
class EventParser:
    """Server-sent events, as HTML's standard describes them. `pause`: seconds before another connection, if the server says so.

    `last_id`: that of the last event that was complete.
    """

    last_id: str = ""
    pause: float | None = None
    _data: list[bytes] = field(default_factory=list)
    _id: str | None = None

    def begin(self) -> None:
        """A response begins: an event that had not been complete is dropped, and comes again."""
        self._data, self._id = [], None

    def events(self, lines: Iterable[bytes]) -> Iterator[tuple[bytes, str | None]]:
        """The data of the events, whatever their types, each with its id if it has one of its own."""
        for line in lines:
            name, _, value = line.partition(b":")
            value = value.removeprefix(b" ")
            if not line:
                data, self._data = self._data, []
                own, self._id = self._id, None
                self.last_id = self.last_id if own is None else own
                if data:
                    yield b"\n".join(data), own
            elif name == b"data":
                self._data.append(value)
            elif name == b"id" and b"\0" not in value:
                self._id = value.decode("utf-8", "replace")
            elif name == b"retry" and value.isdigit():
                self.pause = int(value) / 1000
