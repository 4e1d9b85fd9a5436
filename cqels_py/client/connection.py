"""The server that a client speaks to, and the common parts of both clients."""

from __future__ import annotations

import ipaddress
import os
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any
from urllib.parse import urlsplit

from cqels_py.client.failures import Unreachable
from cqels_py.client.following import SILENCE
from cqels_py.errors import MissingExtra, UsageError
from cqels_py.service.names import VISIBLE

SERVER = "http://127.0.0.1:8737"
"""The address at which `cqels serve` listens."""
ADDRESS = "CQELS_SERVER"
"""The variable of the environment with the address of another one."""
TIMEOUT = 300.0
"""Seconds: a query of a new kind may have to be compiled first."""


class Connection:
    """`token`: that of the server, if it needs one. `timeout`: seconds for which an answer is waited for."""

    def __init__(self, server: str | None, token: str | None, timeout: float) -> None:
        try:
            import httpx
        except ImportError:
            raise MissingExtra("the client needs the package httpx: pip install 'cqels_py[client]'") from None
        self.httpx: Any = httpx
        server = os.environ.get(ADDRESS, SERVER) if server is None else server
        if token is not None and not VISIBLE.fullmatch(token):
            # Without the token: messages are kept in logs.
            raise UsageError("a token has one or more visible characters of ASCII, and spaces between them alone")
        self.server = server.rstrip("/")
        self._host = _host_of(server)
        try:
            httpx.URL(server).host  # noqa: B018
        except (httpx.InvalidURL, ValueError):
            raise _no_address(server) from None
        self._token = token
        self._timeout = timeout
        self.while_following = httpx.Timeout(timeout, read=SILENCE)

    @property
    def arguments(self) -> dict[str, Any]:
        """Those of httpx's clients."""
        headers = {} if self._token is None else {"Authorization": f"Bearer {self._token}"}
        return {
            "base_url": self.server,
            "headers": headers,
            "timeout": self._timeout,
            # Proxies are for other machines.
            "trust_env": not _is_this_machine(self._host),
        }

    @contextmanager
    def errors(self) -> Iterator[None]:
        """Errors of connections inside are those of this package."""
        try:
            yield
        except self.httpx.ConnectError:
            start = f" (is it running? `{_command(self.server)}` starts it)" if _is_this_machine(self._host) else ""
            raise Unreachable(f"no server answers at {self.server}{start}") from None
        except self.httpx.TimeoutException:
            raise Unreachable(f"the server at {self.server} has not answered in time") from None
        except self.httpx.HTTPError as error:
            raise Unreachable(f"the connection to {self.server} broke: {error or type(error).__name__}") from None


def _host_of(server: str) -> str:
    try:
        parts = urlsplit(server)
        port_is_right = parts.port is None or parts.port > 0
    except ValueError:
        port_is_right = False
    if not port_is_right or parts.scheme not in ("http", "https") or not parts.hostname:
        raise _no_address(server)
    return parts.hostname


def _no_address(server: str) -> UsageError:
    return UsageError(f"{server!r} is not the address of a server; write one like {SERVER}")


def _is_this_machine(host: str) -> bool:
    try:
        return host == "localhost" or ipaddress.ip_address(host).is_loopback
    except ValueError:
        return False


def _command(server: str) -> str:
    port = urlsplit(server).port
    return "cqels serve" if port in (None, urlsplit(SERVER).port) else f"cqels serve --port {port}"
