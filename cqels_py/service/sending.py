"""Results on their way to subscribers, over HTTP and as messages of a WebSocket."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from contextlib import contextmanager

from starlette.types import Receive, Scope, Send
from starlette.websockets import WebSocket, WebSocketDisconnect, WebSocketState

from cqels_py.service.failures import Gone, TooMany
from cqels_py.service.following import Cut, Hub
from cqels_py.service.limits import Limits
from cqels_py.service.result_forms import Form, form_of
from cqels_py.service.service import ServedQuery

_BEHIND, _STOPPED = 4410, 1001


class ResultResponse:
    """A response that does not end: an ASGI application, since a client that takes nothing has to be cut off."""

    def __init__(self, hub: Hub, limits: Limits, query: ServedQuery, number: int, kind: str) -> None:
        self._hub = hub
        self._limits = limits
        self._query = query
        self._number = number
        self._kind = kind

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["method"] == "HEAD":
            # There is no body whose end would be waited for: the connection is free for the next request.
            await self._begin(send, form_of(self._kind))
            await send({"type": "http.response.body", "body": b"", "more_body": False})
            return
        with subscribed(self._hub, self._limits, self._query):
            sending = asyncio.create_task(self._send(send))
            gone = asyncio.create_task(_until_gone(receive))
            try:
                await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
            finally:
                for task in (sending, gone):
                    task.cancel()
                await asyncio.gather(sending, gone, return_exceptions=True)

    async def _begin(self, send: Send, form: Form) -> None:
        headers = [
            (b"content-type", form.content_type.encode()),
            (b"cache-control", b"no-store"),
            (b"x-accel-buffering", b"no"),
            (b"x-cqels-query", self._query.name.encode()),
        ]
        await send({"type": "http.response.start", "status": 200, "headers": headers})

    async def _send(self, send: Send) -> None:
        form = form_of(self._kind)
        await self._begin(send, form)
        # The first bytes, so that proxies and clients see at once that it has begun.
        body, ends = form.begin(), False
        following = self._hub.follow(self._query, self._number)
        while not ends:
            async with asyncio.timeout(self._limits.stalled):
                await send({"type": "http.response.body", "body": body, "more_body": True})
            found = await anext(following)
            if isinstance(found, Cut):
                body, ends = form.end(found), True
            elif form.takes_long and found[1]:
                body = await asyncio.to_thread(form.results, *found)
            else:
                body = form.results(*found)
        await send({"type": "http.response.body", "body": body, "more_body": False})


async def send_to_socket(socket: WebSocket, hub: Hub, limits: Limits, query: ServedQuery, number: int) -> None:
    """Send results to a WebSocket, a message each."""
    with subscribed(hub, limits, query):
        await socket.accept()
        sending = asyncio.create_task(_send_messages(socket, hub, limits, query, number))
        gone = asyncio.create_task(_until_closed(socket))
        try:
            await asyncio.wait((sending, gone), return_when=asyncio.FIRST_COMPLETED)
        finally:
            for task in (sending, gone):
                task.cancel()
            await asyncio.gather(sending, gone, return_exceptions=True)


async def _send_messages(socket: WebSocket, hub: Hub, limits: Limits, query: ServedQuery, number: int) -> None:
    async for found in hub.follow(query, number):
        if isinstance(found, Cut):
            code = _STOPPED if hub.ending else _BEHIND
            reason = json.dumps({"last": found.last, "reason": found.reason})
            await socket.close(code, reason.encode()[:120].decode("utf-8", "ignore"))
            return
        for line in found[1]:
            async with asyncio.timeout(limits.stalled):
                await socket.send_text(line.decode())


@contextmanager
def subscribed(hub: Hub, limits: Limits, query: ServedQuery) -> Iterator[None]:
    """Inside, there is one subscriber more. TooMany."""
    if hub.count >= limits.subscribers:
        raise TooMany(f"there are {limits.subscribers} subscribers already (--max-subscribers)")
    hub.count += 1
    query.subscribers += 1
    try:
        yield
    finally:
        hub.count -= 1
        query.subscribers -= 1


def first_number(query: ServedQuery, from_: str | None, last_event: str | None) -> int:
    """The number of the first result that a subscriber wants: `from`, or behind that of its last event; else the next.

    Gone where results from there on are no longer kept.
    """
    store = query.store
    asked: int | None = None
    if last_event is not None and last_event.isdecimal() and len(last_event) < 19:
        asked = int(last_event) + 1
    elif from_ is not None:
        asked = int(from_)
    if asked is None:
        return store.last + 1
    if asked == 0:
        return store.first
    if asked < store.first:
        raise Gone(
            f"the results before number {store.first} are no longer kept: ask from={store.first}", first=store.first
        )
    return asked


async def _until_gone(receive: Receive) -> None:
    while (await receive())["type"] != "http.disconnect":
        pass


async def _until_closed(socket: WebSocket) -> None:
    """Messages of a client are passed over."""
    try:
        while socket.client_state is WebSocketState.CONNECTED:
            await socket.receive()
    except (WebSocketDisconnect, RuntimeError):
        return
