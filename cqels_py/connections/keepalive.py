"""TCP keepalive: the system probes a silent connection, so that a peer that has vanished is noticed."""

from __future__ import annotations

import socket
from typing import Any

_SETTINGS = {"TCP_KEEPIDLE": 60, "TCP_KEEPINTVL": 15, "TCP_KEEPCNT": 4}
"""Seconds before the first probe and between two of them, and how many in turn have no answer before a connection counts as lost."""


def keep_alive(connection: Any) -> None:
    """Turn keepalive on for a socket, or for all connections that a listening one accepts."""
    connection.setsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE, 1)
    for name, value in _SETTINGS.items():
        if hasattr(socket, name):
            connection.setsockopt(socket.IPPROTO_TCP, getattr(socket, name), value)
