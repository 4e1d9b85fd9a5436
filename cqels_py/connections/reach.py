"""Which addresses may be connected to, where others than the user name them: asked again after each redirect, and once connected."""

from __future__ import annotations

from typing import Any, Protocol

from cqels_py.connections.keepalive import keep_alive


class Reach(Protocol):
    """Raises a CqelsError for an address that is not allowed."""

    def check(self, url: str) -> None:
        """Before a URL is asked, also one to which another one has led."""

    def check_peer(self, url: str, address: str) -> None:
        """When a connection for a URL has been made, to this IP address: a name may lead elsewhere from one look-up to the next."""


def httpx_hooks(reach: Reach | None) -> dict[str, list[Any]]:
    """The argument `event_hooks` of a client of httpx whose connections are probed while they are silent, and that asks before each
    request, and before it reads a response."""
    if reach is None:
        return {"response": [_probe]}

    def before(request: Any) -> None:
        reach.check(str(request.url))

    def connected(response: Any) -> None:
        stream = response.extensions.get("network_stream")
        peer = None if stream is None else stream.get_extra_info("server_addr")
        if peer is not None:
            reach.check_peer(str(response.request.url), str(peer[0]))

    return {"request": [before], "response": [connected, _probe]}


def _probe(response: Any) -> None:
    stream = response.extensions.get("network_stream")
    connection = None if stream is None else stream.get_extra_info("socket")
    if connection is not None:
        keep_alive(connection)
