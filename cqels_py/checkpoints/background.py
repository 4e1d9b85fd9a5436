"""Work beside the calls of an engine: writing a snapshot, syncing a log."""

from __future__ import annotations

import threading
from collections.abc import Callable


class Background:
    """Does one piece of work at a time in a thread of its own. Its error is raised by the next `check` or `wait`, once.

    >>> done = []
    >>> background = Background("an example")
    >>> background.start(lambda: done.append(1))
    >>> background.wait()
    >>> done
    [1]
    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._thread: threading.Thread | None = None
        self._error: BaseException | None = None

    @property
    def busy(self) -> bool:
        """Is work being done?"""
        return self._thread is not None and self._thread.is_alive()

    @property
    def has_failed(self) -> bool:
        """Has work failed whose error is still to be raised?"""
        return self._error is not None

    def start(self, work: Callable[[], None]) -> None:
        """Begin the work, when that before it has ended."""
        self.wait()
        self._thread = threading.Thread(target=self._do, args=(work,), name=self._name, daemon=True)
        self._thread.start()

    def check(self) -> None:
        """Raise the error of work that has failed."""
        error, self._error = self._error, None
        if error is not None:
            raise error

    def wait(self) -> None:
        """Return when the work has ended; raises its error."""
        if self._thread is not None:
            self._thread.join()
            self._thread = None
        self.check()

    def _do(self, work: Callable[[], None]) -> None:
        try:
            work()
        except BaseException as error:
            self._error = error
