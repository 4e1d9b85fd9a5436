"""A server that accepts connections, and never says anything, or never comes to an end."""

from __future__ import annotations

import socket
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress


class SilentServer:
    """`begin`, then `dribbles` again and again, are sent at once. `asked` is set once somebody has connected."""

    def __init__(self, begin: bytes = b"", dribbles: bytes = b"") -> None:
        self._begin, self._dribbles = begin, dribbles
        self._closed = threading.Event()
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
                if self._dribbles:
                    threading.Thread(target=self._dribble, args=(connection,), daemon=True).start()

    def _dribble(self, connection: socket.socket) -> None:
        with suppress(OSError):
            connection.sendall(self._begin)
            while not self._closed.wait(0.01):
                connection.sendall(self._dribbles)

    def close(self) -> None:
        """All connections break off."""
        self._closed.set()
        with suppress(OSError):
            self._listening.shutdown(socket.SHUT_RDWR)
        self._listening.close()
        self._thread.join()
        for each in self._connections:
            each.close()


@contextmanager
def silent_server(begin: bytes = b"", dribbles: bytes = b"") -> Iterator[SilentServer]:
    """Until the end of the block."""
    server = SilentServer(begin, dribbles)
    try:
        yield server
    finally:
        server.close()
