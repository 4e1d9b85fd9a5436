"""The connection to NATS servers that a URL names, for sources and sinks: nats-py, in an event loop of its own thread."""

from __future__ import annotations

import asyncio
import logging
import ssl
import threading
from collections.abc import Coroutine
from contextlib import suppress
from dataclasses import dataclass
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.connections.schemes import needed
from cqels_py.errors import RunError, UsageError

CONNECTED_WITHIN = 10.0
_PORT = 4222
_PAUSE = 1
"""Seconds between two attempts to connect again."""

_LOG = logging.getLogger("cqels_py")


def nats_module() -> Any:
    """The module nats. MissingExtra if it is missing."""
    return needed("nats", "nats-py", "nats", "nats://")


@dataclass(frozen=True, slots=True)
class NatsServers:
    """Where the servers are, and a subject. `settings`: of the connection."""

    shown: str
    subject: str
    settings: dict[str, Any]

    @classmethod
    def of(cls, location: Location) -> NatsServers:
        """`nats://user@host:4222,host:4222/subject` with the options token, creds, tls and ca. MissingExtra without nats-py."""
        nats_module()
        if not location.path or location.fragment is not None:
            raise UsageError(
                f"{location.shown} names no subject: put one behind the host, as in nats://localhost/rooms.kitchen"
            )
        host = location.host or "localhost"
        hosts = host.split(",") if location.port is None else [f"{host}:{location.port}"]
        options = location.options
        ca, token, creds = (options.text(name) for name in ("ca", "token", "creds"))
        tls = options.choice("tls", ("no", "yes"), "no") == "yes" or ca is not None
        settings: dict[str, Any] = {
            "servers": [f"nats://{each if ':' in each else f'{each}:{_PORT}'}" for each in hosts],
            "user": location.user,
            "password": location.password,
            "token": token,
            "user_credentials": creds,
        }
        if tls:
            try:
                settings["tls"] = ssl.create_default_context(cafile=ca)
            except OSError as error:
                raise UsageError(f"{location.shown}: the certificates cannot be read: {error}") from None
        return cls(
            location.shown, location.path, {name: value for name, value in settings.items() if value is not None}
        )


class NatsConnection:
    """A connection that comes back by itself. Methods are called by other threads than its own, but for those with `_on`."""

    def __init__(self, servers: NatsServers) -> None:
        """Connect. RunError if no server is there, or it refuses."""
        self._servers = servers
        self._loop = asyncio.new_event_loop()
        self._said = ""
        self.failure: RunError | None = None
        self._closing = False
        self._thread = threading.Thread(target=self._loop.run_forever, name="cqels nats", daemon=True)
        self._thread.start()
        self.client: Any = nats_module().NATS()
        try:
            self.run(self._connect())
        except BaseException:
            self.close()
            raise

    def run(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """The value of a coroutine, which runs in the connection's thread."""
        return self.start(coroutine).result()

    def start(self, coroutine: Coroutine[Any, Any, Any]) -> Any:
        """Let a coroutine run in the connection's thread; returns its future."""
        return asyncio.run_coroutine_threadsafe(coroutine, self._loop)

    def close(self) -> None:
        """Disconnect, and end the thread."""
        if self._closing:
            return
        self._closing = True
        with suppress(Exception):
            self.start(self._end()).result(CONNECTED_WITHIN)
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join(CONNECTED_WITHIN)

    async def _end(self) -> None:
        others = asyncio.all_tasks() - {asyncio.current_task()}
        await self.client.close()
        for task in others:
            task.cancel()
        await asyncio.gather(*others, return_exceptions=True)

    async def _connect(self) -> None:
        options = {
            **self._servers.settings,
            "name": "cqels",
            "max_reconnect_attempts": -1,
            "reconnect_time_wait": _PAUSE,
            "error_cb": self._on_error,
            "disconnected_cb": self._on_disconnected,
            "reconnected_cb": self._on_reconnected,
        }
        try:
            await asyncio.wait_for(self.client.connect(**options), CONNECTED_WITHIN)
        except (TimeoutError, OSError, nats_module().errors.Error) as error:
            raise self.failure or RunError(
                f"{self._servers.shown}: cannot connect to {', '.join(self._servers.settings['servers'])}: "
                f"{self._said or said(error)}"
            ) from None

    async def _on_error(self, error: Exception) -> None:
        self._said = said(error)
        if isinstance(error, nats_module().errors.AuthorizationError):
            self.failure = RunError(f"{self._servers.shown}: the server refuses the user or the password")

    async def _on_disconnected(self) -> None:
        if not self._closing and self.client.is_reconnecting:
            _LOG.warning("%s: disconnected; connecting again until the server is there", self._servers.shown)

    async def _on_reconnected(self) -> None:
        _LOG.warning("%s: connected again", self._servers.shown)


def said(error: BaseException) -> str:
    """The message of an exception of nats-py."""
    return str(error).removeprefix("nats: ") or type(error).__name__
