"""A thread that lets the event time of an engine follow the computer's clock."""

from __future__ import annotations

import logging
import threading
import weakref
from typing import Final, Protocol

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.errors import CqelsError, RunError

_LOG = logging.getLogger("cqels_py")
INTERVAL: Final = 0.02
"""Seconds between two looks at the clock. Results have the instants at which they became true, whenever they are told."""


class Following(Protocol):
    """An engine whose event time follows the clock."""

    @property
    def _takes_nothing_more(self) -> bool: ...

    def _follow_clock(self) -> None: ...

    def _subscriber_failed(self, error: RunError) -> None: ...


class ClockThread:
    """Calls an engine until it is stopped or fails, or is deleted. Exceptions of subscribers and sinks, and errors of elements that
    waited for a batch, are reported, and time goes on; so it does if the report raises one.
    """

    def __init__(self, engine: Following) -> None:
        self._engine = weakref.ref(engine)
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="cqels clock", daemon=True).start()

    def stop(self) -> None:
        """The engine takes in no more elements."""
        self._stopped.set()

    def _run(self) -> None:
        full: str | None = None
        while not self._stopped.wait(INTERVAL):
            engine = self._engine()
            if engine is None:
                return
            try:
                engine._follow_clock()
                full = None
            except Exception as error:
                ended = isinstance(error, CqelsError) and engine._takes_nothing_more
                # Nothing is tried again so often as a disk that is full: it is told once.
                known, full = full, str(error) if isinstance(error, StorageError) else None
                if not (ended and self._stopped.is_set()) and (ended or full is None or full != known):
                    self._tell(engine, error, ended=ended)
                if ended:
                    # The engine's next call says so, too.
                    return
            del engine

    @staticmethod
    def _tell(engine: Following, error: Exception, *, ended: bool) -> None:
        # The errors of elements stand beside that of a subscriber.
        beside = "".join(f"; {note}" for note in getattr(error, "__notes__", ()))
        if ended:
            failure = RunError(f"time does not follow the clock any more: {error}{beside}")
        elif isinstance(error, CqelsError):
            failure = RunError(f"as time went on: {error}{beside}")
        else:
            failure = RunError(f"a subscriber raised {error!r} as time went on{beside}")
        failure.__cause__ = error
        try:
            engine._subscriber_failed(failure)
        except Exception:
            _LOG.exception("the report of an error failed as time went on")
