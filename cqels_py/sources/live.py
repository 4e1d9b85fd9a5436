"""Sources that do not end: a client's thread puts messages into a bounded queue, from which polls take them."""

from __future__ import annotations

import threading
import time
from collections import deque
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import NamedTuple, Protocol

from cqels_py.batches.elements import ElementBatch
from cqels_py.errors import CqelsError

MOST_MESSAGES, MOST_BYTES = 65_535, 64 << 20
"""The most that a queue holds; then its client waits."""
_AT_ONCE = 16_384


class Message(NamedTuple):
    """A message as it came. `origin`: its topic or address; `kind`: its media type, if it has one; `arrived`: microseconds since
    the epoch; `token`: the value that its client acknowledges."""

    body: bytes
    origin: str
    kind: str | None
    arrived: int
    token: object = None


@dataclass(frozen=True, slots=True)
class MessageColumns:
    """n messages, a column for each part of `Message` that their elements may need; so many of them are no objects of their own.
    None: it is not known."""

    bodies: Sequence[bytes]
    origins: Sequence[str | None]
    kinds: Sequence[str | None]
    arrived: Sequence[int | None]

    @classmethod
    def of(cls, messages: Sequence[Message]) -> MessageColumns:
        bodies, origins, kinds, arrived, _ = zip(*messages, strict=True) if messages else ((), (), (), (), ())
        return cls(bodies, origins, kinds, arrived)

    def at(self, places: Sequence[int]) -> MessageColumns:
        """The messages at these places."""
        return MessageColumns(
            [self.bodies[place] for place in places],
            [self.origins[place] for place in places],
            [self.kinds[place] for place in places],
            [self.arrived[place] for place in places],
        )

    def __len__(self) -> int:
        return len(self.bodies)


class MessageQueue:
    """Messages in order of arrival, at most so many and so many bytes."""

    def __init__(self, messages: int = MOST_MESSAGES, bytes: int = MOST_BYTES) -> None:
        self._most, self._most_bytes = messages, bytes
        self._messages: deque[Message] = deque()
        self._bytes = 0
        self._changed = threading.Condition()
        self._error: CqelsError | None = None
        self._ended = self._closed = False

    def put(self, message: Message) -> bool:
        """Add a message; waits while the queue is full. False if it has been closed."""
        return self.put_all((message,))

    def put_all(self, messages: Sequence[Message]) -> bool:
        """Add some messages; waits while the queue is full, before the first of them. False if it has been closed."""
        with self._changed:
            self._changed.wait_for(self._has_room)
            if self._closed:
                return False
            self._messages += messages
            self._bytes += sum([len(message.body) for message in messages])
            self._changed.notify_all()
            return True

    def _has_room(self) -> bool:
        return self._closed or (len(self._messages) < self._most and self._bytes < self._most_bytes)

    def fail(self, error: CqelsError) -> None:
        """The source has failed for good: the error is raised once the messages before it have been taken."""
        with self._changed:
            self._error = self._error or error
            self._changed.notify_all()

    def end(self) -> None:
        """There are no more messages."""
        with self._changed:
            self._ended = True
            self._changed.notify_all()

    def close(self) -> None:
        """Nobody takes messages any more."""
        with self._changed:
            self._closed = True
            self._changed.notify_all()

    def take(self, wait: float) -> list[Message] | None:
        """The next messages; none after waiting in vain, None at the end. Raises the error of `fail`."""
        with self._changed:
            self._changed.wait_for(lambda: self._messages or self._ended or self._error, wait)
            if not self._messages:
                if self._error is not None:
                    raise self._error
                return None if self._ended else []
            taken = [self._messages.popleft() for _ in range(min(_AT_ONCE, len(self._messages)))]
            self._bytes -= sum(len(message.body) for message in taken)
            self._changed.notify_all()
            return taken


class Client(Protocol):
    """The connection that fills the queue."""

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """These messages are no longer needed."""
        ...

    def close(self) -> None:
        """End the connection and its thread."""
        ...


class LiveSource:
    """The messages of a client as elements. Its position is the number of messages taken, which only `commit` understands.

    `idle` after so many seconds without a message; a poll that finds nothing returns after `pause` seconds.
    """

    def __init__(
        self,
        client: Client,
        queue: MessageQueue,
        decode: Callable[[MessageColumns], ElementBatch],
        idle: float,
        pause: float,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._client = client
        self._queue = queue
        self._decode = decode
        self._idle = idle
        self._pause = pause
        self._clock = clock
        self._last = clock()
        self._taken = self._committed = 0
        self._uncommitted: deque[object] = deque()

    @property
    def idle(self) -> bool:
        return self._clock() - self._last >= self._idle

    @property
    def behind(self) -> bool:
        """Has the other side messages that have not come, as far as is known? Then nothing in the queue does not mean that."""
        return bool(getattr(self._client, "behind", False))

    def poll(self) -> ElementBatch | None:
        messages = self._queue.take(self._pause)
        if messages is None:
            return None
        if messages:
            self._last = self._clock()
            self._taken += len(messages)
            self._uncommitted += [message.token for message in messages]
        return self._decode(MessageColumns.of(messages))

    def position(self) -> object:
        return self._taken

    def commit(self, position: object) -> None:
        assert isinstance(position, int)
        count = position - self._committed
        self._committed = position
        self._client.acknowledge([self._uncommitted.popleft() for _ in range(count)])

    def close(self) -> None:
        self._queue.close()
        self._client.close()
