"""The messages of a WebSocket as a stream."""

from __future__ import annotations

import logging
import socket
import threading
import time
from collections.abc import Sequence
from typing import Any
from urllib.parse import urlsplit

from cqels_py.connections.http import Endpoint, endpoint_of, may_pass
from cqels_py.connections.location import Location
from cqels_py.connections.reach import Reach
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import CqelsError, RunError
from cqels_py.sources.http import WebConnector
from cqels_py.sources.live import Message, MessageQueue
from cqels_py.sources.messages import MOST_BYTES, MessageFormat

_LOG = logging.getLogger("cqels_py")
_CLIENT_ERRORS = range(400, 500)
_PORTS = {"ws": 80, "wss": 443}
_CONNECT_SECONDS = 10.0


def websocket_source(location: Location) -> WebConnector:
    """`ws(s)://host/path?for=server#time=arrival`; the options stand behind "#"."""
    needed("websockets.sync.client", "websockets", "http", f"{location.scheme}://")
    endpoint, options = endpoint_of(location)
    connector = WebConnector(WebSocketReader, endpoint, MessageFormat.of(options), options.seconds("idle", "30s"))
    options.done()
    return connector


class WebSocketReader:
    """Reads messages into a queue; connects again when the connection has broken off.

    With `reach`, which is asked before anything is sent, it takes no proxy of the environment, and follows no redirect.
    """

    def __init__(self, endpoint: Endpoint, queue: MessageQueue, reach: Reach | None = None) -> None:
        self._client: Any = needed("websockets.sync.client", "websockets", "http", "ws://")
        self._errors: Any = needed("websockets.exceptions", "websockets", "http", "ws://")
        self._endpoint = endpoint
        self._queue = queue
        self._reach = reach
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
                if status in _CLIENT_ERRORS and not may_pass(status):
                    self._queue.fail(RunError(f"{self._endpoint.shown} answers with status {status}"))
                    return
                reason = f"status {status}"
            except CqelsError as error:
                self._queue.fail(RunError(error.message))
                return
            except ValueError as error:
                # A redirect that is not followed.
                self._queue.fail(RunError(f"{self._endpoint.shown}: {error}"))
                return
            except (OSError, self._errors.WebSocketException) as error:
                reason = str(error) or type(error).__name__
            if self._closed.is_set():
                return
            _LOG.warning("%s: %s; connecting again", self._endpoint.shown, reason)
            self._backoff.wait()

    def _read(self) -> None:
        with self._client.connect(
            self._endpoint.url,
            additional_headers=self._endpoint.headers,
            max_size=MOST_BYTES,
            sock=None if self._reach is None else _checked_socket(self._endpoint.url, self._reach),
        ) as connection:
            self._connection = connection
            if self._closed.is_set():
                # `close` did not see the connection.
                return
            self._backoff.reset()
            for message in connection:
                body = message.encode() if isinstance(message, str) else bytes(message)
                self._last = max(self._last, time.time_ns() // 1000)
                if not self._queue.put(Message(body, self._endpoint.url, None, self._last)):
                    return


def _checked_socket(url: str, reach: Reach) -> socket.socket:
    """A connection to the server of a URL, through which nothing has been sent."""
    reach.check(url)
    parts = urlsplit(url)
    made = socket.create_connection(
        (parts.hostname or "", parts.port or _PORTS[parts.scheme.lower()]), _CONNECT_SECONDS
    )
    try:
        reach.check_peer(url, made.getpeername()[0])
    except BaseException:
        made.close()
        raise
    made.settimeout(None)
    return made
