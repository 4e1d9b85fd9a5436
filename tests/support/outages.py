"""A server that goes away while something is written to it, and comes back, or does not."""

from __future__ import annotations

import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Protocol


class Restartable(Protocol):
    """A server of `tests.support.servers`."""

    def start(self) -> None: ...

    def stop(self) -> None: ...


@contextmanager
def waits_until_back(server: Restartable, write: Callable[[], object]) -> Iterator[None]:
    """`write` waits while the server, which has been stopped, is away; it is back in the block, and `write` ends by its end."""
    failed: list[BaseException] = []

    def run() -> None:
        try:
            write()
        except BaseException as error:
            failed.append(error)

    writing = threading.Thread(target=run)
    writing.start()
    time.sleep(0.3)
    waits = writing.is_alive()
    server.start()
    assert waits, failed
    yield
    writing.join(60)
    assert not writing.is_alive()
    assert failed == []


@contextmanager
def away(server: Restartable) -> Iterator[None]:
    """The server is away in the block, and back afterwards."""
    server.stop()
    try:
        yield
    finally:
        server.start()
