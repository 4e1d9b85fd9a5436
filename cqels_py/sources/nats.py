"""Subjects of a NATS JetStream stream as a stream. Its position is the number that JetStream gives each message, and when the
stream was made: one that was made anew counts from 1 again.

The messages are read by a consumer that the server keeps for this connection alone: whenever it is lost, or has left messages out,
another one begins behind the last message that came, so that none is lost and none comes twice.
"""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.connections.location import Location
from cqels_py.connections.nats import CONNECTED_WITHIN, NatsConnection, NatsServers, nats_module, said
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.times import NO_TIME, time_of_text
from cqels_py.sources.live import LiveSource, Message, MessageQueue
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_EARLIEST, _LATEST = "earliest", "latest"
_BUCKET = "cqels-positions"
_AT_ONCE = 4096
_WAIT, _LOOK_EVERY, _PAUSE = 1.0, 5, 1.0
"""Seconds for which a request waits; so many in vain, and the consumer is looked for; seconds before a new one is made."""
_KEPT_WITHOUT_REQUESTS = 300.0
_LATER_THAN_ALL = 253_402_300_800_000_000
"""Microseconds of the year 10000, which no date of Python has."""


def nats_source(location: Location) -> NatsConnector:
    """`nats://host:4222/rooms.*.temperature?start=earliest`; the subject may have `*` and `>`."""
    servers = NatsServers.of(location)
    options = location.options
    start = options.text("start", _EARLIEST)
    assert start is not None
    if start not in (_EARLIEST, _LATEST) and time_of_text(start) == NO_TIME:
        raise UsageError(
            f"{location.shown}: the option start is earliest, latest or a time like 2024-05-01T12:00:00Z, not {start!r}"
        )
    return NatsConnector(
        servers,
        start,
        stream=options.text("stream"),
        key=options.text("position"),
        idle=options.seconds("idle", "30s"),
        format=MessageFormat.of(options),
    )


@dataclass(frozen=True, slots=True)
class NatsConnector:
    """Subjects of a stream. `start`: earliest, latest or a time. `key`: under which the server keeps the position of commits."""

    servers: NatsServers
    start: str
    stream: str | None
    key: str | None
    idle: float
    format: MessageFormat

    def open(self, opening: Opening) -> NatsSource:
        """Connect, and find where to begin. RunError if no server is there, it refuses, or has no such stream."""
        return NatsSource(self, opening)


Position = tuple[int, int]
"""The number of a message, and when the stream was made, in microseconds; 0: unknown, as in positions of earlier versions."""


def _position(given: Any) -> Position:
    """One as it was logged, or kept at the server."""
    if isinstance(given, bytes):
        given = given.split()
    number, made = (*given, 0)[:2] if isinstance(given, list | tuple) else (given, 0)
    return int(number), int(made)


class NatsSource(LiveSource):
    """The messages as elements."""

    resumes = True

    def __init__(self, connector: NatsConnector, opening: Opening) -> None:
        decoder = MessageDecoder(opening, connector.servers.shown, connector.format)
        queue = MessageQueue()
        self._reader = NatsReader(connector, queue)
        try:
            self._at = self._reader.begin(opening.position)
        except BaseException:
            self._reader.close()
            raise
        super().__init__(self._reader, queue, decoder.elements, connector.idle, opening.pause)

    def poll(self) -> ElementBatch | None:
        batch = super().poll()
        if self._uncommitted:
            self._at = _position(self._uncommitted[-1])
            self._uncommitted.clear()
        return batch

    def position(self) -> Position:
        return self._at

    def commit(self, position: object) -> None:
        """Let the server keep the position, if it is to."""
        self._reader.keep(_position(position))


class NatsReader:
    """Fills a queue. `_next`: the number from which on messages are read, of the stream made at `_made`; `_pending`: as many
    messages were behind the last one. `_kept`: the position that the server was given last.

    `behind`: as of `LiveSource`.
    """

    def __init__(self, connector: NatsConnector, queue: MessageQueue) -> None:
        self._nats = nats_module()
        self._connector = connector
        self._queue = queue
        self._shown = connector.servers.shown
        self._closed = False
        self.behind = True
        self._next = self._made = self._pending = 0
        self._kept: Position | None = None
        self._bucket: Any = None
        self._stream = ""
        self._reading: Any = None
        self._connection = NatsConnection(connector.servers)
        self._jetstream = self._connection.client.jetstream(timeout=CONNECTED_WITHIN)

    def begin(self, position: object) -> Position:
        """Find where to begin, and read from there; the position of the last message before. RunError if that is not possible."""
        try:
            self._next = self._connection.run(self._first(position))
        except (self._nats.errors.Error, self._nats.js.errors.Error) as error:
            raise RunError(f"{self._shown}: {said(error)}") from None
        before = self._next - 1, self._made
        self._reading = self._connection.start(self._read())
        return before

    def keep(self, position: Position) -> None:
        """Keep the position at the server; if it is away, the next commit will."""
        if self._bucket is None or position == self._kept:
            return
        try:
            self._connection.run(self._bucket.put(self._connector.key, b"%d %d" % position))
            self._kept = position
        except (self._nats.errors.Error, self._nats.js.errors.Error) as error:
            _LOG.warning("%s: the position could not be kept: %s", self._shown, said(error))

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """The server does not ask for it."""

    def close(self) -> None:
        """Disconnect."""
        self._closed = True
        if self._reading is not None:
            self._reading.cancel()
        self._connection.close()

    # --- in the connection's thread -----------------------------------------------------------------------------------

    async def _first(self, position: object) -> int:
        connector = self._connector
        try:
            self._stream = connector.stream or await self._jetstream.find_stream_name_by_subject(
                connector.servers.subject
            )
            info = await self._jetstream.stream_info(self._stream)
        except self._nats.js.errors.NotFoundError:
            raise RunError(
                f"{self._shown}: JetStream has no stream for {connector.servers.subject!r}: make one, or name it with stream="
            ) from None
        if connector.key is not None:
            self._bucket = await self._jetstream.create_key_value(bucket=_BUCKET)
            with suppress(self._nats.js.errors.KeyNotFoundError):
                kept = (await self._bucket.get(connector.key)).value
                position = kept if position is None else position
        if position is not None:
            number, self._made = _position(position)
            return self._behind(number, info)
        state, self._made = info.state, _made(info)
        if connector.start == _EARLIEST:
            return max(1, int(state.first_seq))
        if connector.start == _LATEST:
            return int(state.last_seq) + 1
        return await self._since(time_of_text(connector.start), int(state.last_seq) + 1)

    def _behind(self, number: int, info: Any) -> int:
        """The number of the first message behind this one, of the stream as it is now. A warning tells how many may be lost."""
        state, made = info.state, _made(info)
        known, first = self._made or made, max(1, int(state.first_seq))
        self._made = made
        if known != made or number > state.last_seq:
            least = f", at least {self._pending}," if self._pending else ""
            _LOG.warning(
                "%s: the stream %s was made anew, and is read from its beginning: messages%s of the former one "
                "behind number %d are lost",
                self._shown, self._stream, least, number,
            )  # fmt: skip
            return first
        if number + 1 < first:
            _LOG.warning(
                "%s: the stream %s has the messages from number %d on: up to %d messages behind number %d are lost",
                self._shown, self._stream, first, first - 1 - number, number,
            )  # fmt: skip
            return first
        return number + 1

    async def _since(self, time: int, none: int) -> int:
        """The number of the first message of a time or later; `none` if there is none."""
        if time >= _LATER_THAN_ALL:
            return none
        # No message is older than the epoch, and times may be older than all dates of Python.
        time = max(time, 0)
        policy = self._nats.js.api.DeliverPolicy.BY_START_TIME
        consumer = await self._consumer(deliver_policy=policy, opt_start_time=datetime.fromtimestamp(time / 1e6, UTC))
        try:
            (message,) = await consumer.fetch(1, timeout=_WAIT)
        except self._nats.errors.TimeoutError:
            return none
        finally:
            await consumer.unsubscribe()
        return int(message.metadata.sequence.stream)

    async def _consumer(self, **where: Any) -> Any:
        api = self._nats.js.api
        config = api.ConsumerConfig(
            ack_policy=api.AckPolicy.NONE, inactive_threshold=_KEPT_WITHOUT_REQUESTS, mem_storage=True, **where
        )
        return await self._jetstream.pull_subscribe(self._connector.servers.subject, stream=self._stream, config=config)

    async def _read(self) -> None:
        while not self._closed:
            self.behind = True
            try:
                self._next = self._behind(self._next - 1, await self._jetstream.stream_info(self._stream))
                by_number = self._nats.js.api.DeliverPolicy.BY_START_SEQUENCE
                consumer = await self._consumer(deliver_policy=by_number, opt_start_seq=self._next)
                await self._read_from(consumer)
                with suppress(self._nats.errors.Error):
                    await consumer.unsubscribe()
            except (TimeoutError, OSError, self._nats.errors.Error, self._nats.js.errors.Error) as error:
                if self._connection.failure is not None:
                    self._queue.fail(self._connection.failure)
                    return
                _LOG.debug("%s: %s", self._shown, said(error))
                await asyncio.sleep(_PAUSE)
            except Exception as error:
                self._queue.fail(RunError(f"{self._shown}: {said(error)}"))
                return

    async def _read_from(self, consumer: Any) -> None:
        """Read until messages were left out, or the consumer is lost, which is an exception of nats-py."""
        expected, in_vain = 1, 0
        while not self._closed:
            try:
                messages = await consumer.fetch(_AT_ONCE, timeout=_WAIT)
            except self._nats.errors.TimeoutError:
                messages = []
            if not messages:
                # The library may also return none, without an exception.
                self.behind = not self._connection.client.is_connected
                in_vain += 1
                if in_vain % _LOOK_EVERY == 0:
                    await consumer.consumer_info()
                continue
            in_vain = 0
            found = []
            for message in messages:
                metadata = message.metadata
                if metadata.sequence.consumer != expected:
                    break
                expected += 1
                number = int(metadata.sequence.stream)
                kind = message.headers.get("Content-Type") if message.headers else None
                arrived = int(metadata.timestamp.timestamp() * 1_000_000)
                found.append(Message(message.data, message.subject, kind, arrived, (number, self._made)))
            if found:
                self._next = number + 1
                if not await asyncio.to_thread(self._queue.put_all, found):
                    return
            self._pending = int(messages[-1].metadata.num_pending)
            self.behind = self._pending > 0
            if len(found) < len(messages):
                return


def _made(info: Any) -> int:
    """When a stream was made, in microseconds."""
    return int(info.created.timestamp() * 1_000_000)
