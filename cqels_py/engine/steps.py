"""The steps of an engine: one at a time, each complete or the last one."""

from __future__ import annotations

import threading
from types import TracebackType

from cqels_py.errors import CqelsError, RunError


class Steps:
    """Inside of `with steps:` the state of all queries changes, and no other thread sees it. An error there ends the engine.

    The `lock` is the state's, which a step holds. (`SinglePush` does the same without the calls of a context manager.)
    """

    def __init__(self, lock: threading.RLock) -> None:
        self._lock = lock
        self.busy = False
        """Is a step being executed? For the thread that holds the engine's `_turn` this is its own step."""
        self.ended: CqelsError | None = None
        """Why the engine takes in no more elements."""

    def __enter__(self) -> None:
        self._lock.acquire()
        self.busy = True

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, traceback: TracebackType | None
    ) -> None:
        self.busy = False
        self._lock.release()
        if error is not None:
            self.fail(error)

    def fail(self, error: BaseException) -> None:
        """A step has raised an error: the engine ends. RunError instead of a MemoryError."""
        self.ended = RunError(f"the engine has failed ({type(error).__name__}: {error}): make a new one")
        if isinstance(error, MemoryError):
            raise self.ended from error

    def check_open(self) -> None:
        """Raise the reason why the engine takes in no more elements, if there is one."""
        if self.ended is not None:
            raise type(self.ended)(self.ended.message)
