"""The messages of a WebSocket as a stream."""

from __future__ import annotations

import logging
import threading
import time
from collections.abc import Sequence
from typing import Any

from cqels_py.connections.http import Endpoint, endpoint_of
from cqels_py.connections.location import Location
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError
from cqels_py.sources.http import WebConnector
from cqels_py.sources.live import Message, MessageQueue
from cqels_py.sources.messages import MOST_BYTES, MessageFormat

_LOG = logging.getLogger("cqels_py")
_CLIENT_ERRORS = range(400, 500)


def websocket_source(location: Location) -> WebConnector:
    """`ws(s)://host/path?for=server#time=arrival`; the options stand behind "#"."""
    needed("websockets.sync.client", "websockets", "http", f"{location.scheme}://")
    endpoint, options = endpoint_of(location)
    connector = WebConnector(WebSocketReader, endpoint, MessageFormat.of(options), options.seconds("idle", "30s"))
    options.done()
    return connector


class WebSocketReader:
    """Reads messages into a queue; connects again when the connection has broken off."""

    def __init__(self, endpoint: Endpoint, queue: MessageQueue) -> None:
        self._client: Any = needed("websockets.sync.client", "websockets", "http", "ws://")
        self._errors: Any = needed("websockets.exceptions", "websockets", "http", "ws://")
        self._endpoint = endpoint
        self._queue = queue
        self._closed = threading.Event()
        self._backoff = Backoff(sleep=self._closed.wait)
        self._last = 0
        self._connection: Any = None
        self._thread = threading.Thread(target=self._run, name="cqels websocket", daemon=True)
        self._thread.start()

    def acknowledge(self, tokens: Sequence[object]) -> None:
        """The server does not ask for it."""

    def close(self) -> None:
        """Close the connection."""
        self._closed.set()
        if self._connection is not None:
            self._connection.close()

    def _run(self) -> None:
        while not self._closed.is_set():
            try:
                self._read()
                reason = "the server closed the connection"
            except self._errors.InvalidStatus as error:
                status = error.response.status_code
                if status in _CLIENT_ERRORS:
                    self._queue.fail(RunError(f"{self._endpoint.shown} answers with status {status}"))
                    return
                reason = f"status {status}"
            except (OSError, self._errors.WebSocketException) as error:
                reason = str(error) or type(error).__name__
            if self._closed.is_set():
                return
            _LOG.warning("%s: %s; connecting again", self._endpoint.shown, reason)
            self._backoff.wait()

    def _read(self) -> None:
        with self._client.connect(
            self._endpoint.url, additional_headers=self._endpoint.headers, max_size=MOST_BYTES
        ) as connection:
            self._connection = connection
            self._backoff.reset()
            for message in connection:
                body = message.encode() if isinstance(message, str) else bytes(message)
                self._last = max(self._last, time.time_ns() // 1000)
                if not self._queue.put(Message(body, self._endpoint.url, None, self._last)):
                    return
