"""A thread that lets the event time of an engine follow the computer's clock."""

from __future__ import annotations

import threading
import weakref
from typing import Final, Protocol

from cqels_py.errors import CqelsError, RunError

INTERVAL: Final = 0.02
"""Seconds between two looks at the clock. Results have the instants at which they became true, whenever they are told."""


class Following(Protocol):
    """An engine whose event time follows the clock."""

    def _follow_clock(self) -> None: ...

    def _subscriber_failed(self, error: RunError) -> None: ...


class ClockThread:
    """Calls an engine until it is stopped, or the engine is deleted. Exceptions of subscribers are reported."""

    def __init__(self, engine: Following) -> None:
        self._engine = weakref.ref(engine)
        self._stopped = threading.Event()
        threading.Thread(target=self._run, name="cqels clock", daemon=True).start()

    def stop(self) -> None:
        """The engine takes in no more elements."""
        self._stopped.set()

    def _run(self) -> None:
        while not self._stopped.wait(INTERVAL):
            engine = self._engine()
            if engine is None:
                return
            try:
                engine._follow_clock()
            except CqelsError as error:
                # The engine has failed or ended: its next call says so.
                if not self._stopped.is_set():
                    engine._subscriber_failed(RunError(f"time does not follow the clock any more: {error}"))
                return
            except Exception as error:
                failure = RunError(f"a subscriber raised {error!r} as time went on")
                failure.__cause__ = error
                engine._subscriber_failed(failure)
            del engine
