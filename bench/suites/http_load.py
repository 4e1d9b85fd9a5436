"""A load of small requests that costs little itself: connections that stay open, and subscribers of server-sent events.

A client library takes longer for a request than the server that is measured. Both speak plain HTTP/1.1.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections import deque
from typing import Any, Self

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)
_VALUE = re.compile(rb'"value":"([^"]*)"')
_EVENT = b"data: {"


async def request(host: str, method: str, path: str, kind: str = "text/plain", body: bytes = b"") -> bytes:
    """The answer to a request, over a connection of its own. `host`: with the port."""
    name, _, port = host.partition(":")
    reader, writer = await asyncio.open_connection(name, int(port))
    head = f"{method} {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: {len(body)}\r\n"
    writer.write(head.encode() + b"Connection: close\r\n\r\n" + body)
    try:
        return await reader.read()
    finally:
        writer.close()


class Posts:
    """Bodies for a path, over so many connections: one that is answered takes the next body that waits.

    `failures`: answers other than 200, and of connections that were closed before one came.
    """

    def __init__(self, host: str, path: str, kind: str) -> None:
        self._host = host
        self._head = f"POST {path} HTTP/1.1\r\nHost: {host}\r\nContent-Type: {kind}\r\nContent-Length: ".encode()
        self._idle: list[_Connection] = []
        self._waiting: deque[bytes] = deque()
        self._unanswered = 0
        self._answered = asyncio.Event()
        self.failures: list[bytes] = []

    @classmethod
    async def connected(cls, host: str, path: str, kind: str, connections: int) -> Self:
        """`host`: with the port."""
        posts = cls(host, path, kind)
        name, _, port = host.partition(":")
        for _ in range(connections):
            _, connection = await asyncio.get_running_loop().create_connection(
                lambda: _Connection(posts), name, int(port)
            )
            posts._idle.append(connection)
        return posts

    def post(self, body: bytes) -> None:
        """Send a body, at once if a connection is idle."""
        self._unanswered += 1
        self._answered.clear()
        request = b"%b%d\r\n\r\n%b" % (self._head, len(body), body)
        if self._idle:
            self._idle.pop().send(request)
        else:
            self._waiting.append(request)

    def answered(self, connection: _Connection, answer: bytes) -> None:
        """A connection has an answer."""
        self._take(answer)
        if self._waiting:
            connection.send(self._waiting.popleft())
        else:
            self._idle.append(connection)

    def lost(self, connection: _Connection) -> None:
        """The server has closed a connection: one that was idle for long, otherwise its body has no answer."""
        if connection in self._idle:
            self._idle.remove(connection)
        else:
            self._take(b"the connection was closed")

    def _take(self, answer: bytes) -> None:
        if not answer.startswith(b"HTTP/1.1 200"):
            self.failures.append(answer)
        self._unanswered -= 1
        if not self._unanswered or self.failures:
            self._answered.set()

    async def all_answered(self) -> None:
        """Return when no body waits for its answer, or one has failed."""
        if self._unanswered and not self.failures:
            await self._answered.wait()

    def close(self) -> None:
        """End the connections, which are idle."""
        for connection in self._idle:
            connection.close()


class _Connection(asyncio.Protocol):
    def __init__(self, posts: Posts) -> None:
        self._posts = posts
        self._transport: Any = None
        self._found = b""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport

    def send(self, request: bytes) -> None:
        self._transport.write(request)

    def data_received(self, data: bytes) -> None:
        self._found += data
        end = self._found.find(b"\r\n\r\n")
        if end < 0:
            return
        length = _LENGTH.search(self._found, 0, end)
        assert length is not None, self._found
        if len(self._found) >= end + 4 + int(length[1]):
            found, self._found = self._found, b""
            self._posts.answered(self, found)

    def connection_lost(self, error: Exception | None) -> None:
        self._posts.lost(self)

    def close(self) -> None:
        self._transport.close()


class Subscriber(asyncio.Protocol):
    """Counts events. `seen`: where it is given, the time at which each value of a result came first."""

    def __init__(self, host: str, path: str, seen: dict[str, float] | None = None) -> None:
        self._request = f"GET {path} HTTP/1.1\r\nHost: {host}\r\nAccept: text/event-stream\r\n\r\n".encode()
        self._seen = seen
        self._transport: Any = None
        self._rest = b""
        self.count = 0
        self.ready = asyncio.get_running_loop().create_future()
        """Done when the response has begun."""

    @classmethod
    async def connected(cls, host: str, path: str, seen: dict[str, float] | None = None) -> Self:
        name, _, port = host.partition(":")
        _, subscriber = await asyncio.get_running_loop().create_connection(
            lambda: cls(host, path, seen), name, int(port)
        )
        await subscriber.ready
        return subscriber

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        transport.write(self._request)

    def data_received(self, data: bytes) -> None:
        if not self.ready.done():
            assert data.startswith(b"HTTP/1.1 200"), data
            self.ready.set_result(None)
        whole, newline, rest = data.rpartition(b"\n")
        if not newline:
            self._rest += rest
            return
        text, self._rest = self._rest + whole, rest
        self.count += text.count(_EVENT)
        if self._seen is not None:
            now = time.perf_counter()
            for value in _VALUE.findall(text):
                self._seen.setdefault(value.decode(), now)

    def close(self) -> None:
        self._transport.close()
