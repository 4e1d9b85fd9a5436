"""A server that accepts connections, and never says anything."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SilentServer:
    """`asked` is set once somebody has connected."""

    def __init__(self) -> None:
        self._listening = socket.create_server(("127.0.0.1", 0))
        self.port = int(self._listening.getsockname()[1])
        self.asked = threading.Event()
        self._connections: list[socket.socket] = []
        self._thread = threading.Thread(target=self._accept, daemon=True)
        self._thread.start()

    def _accept(self) -> None:
        with suppress(OSError):
            while True:
                connection, _ = self._listening.accept()
                self._connections.append(connection)
                self.asked.set()

    def close(self) -> None:
        """All connections break off."""
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for each in self._connections:
            each.close()


@contextmanager
def silent_server() -> Iterator[SilentServer]:
    """Until the end of the block."""
    server = SilentServer()
    try:
        yield server
    finally:
        server.close()
