"""Sources of streams: a thread for each, which takes in the elements that are there and tries again after failures."""

from __future__ import annotations

import logging
import threading
from typing import TYPE_CHECKING

from cqels_py.errors import CqelsError

if TYPE_CHECKING:
    from cqels_py.engine.feeding import Feed

_LOG = logging.getLogger("cqels_py")
_BETWEEN = 0.02
"""Seconds between two looks at a source that had nothing."""
_AFTER_A_FAILURE = 5.0


class SourceThread:
    """Reads a feed until it is stopped, or has `ended`. `failure`: why it reads nothing just now."""

    def __init__(self, name: str, feed: Feed) -> None:
        self._name = name
        self._feed = feed
        self._stopped = threading.Event()
        self.failure: str | None = None
        self.ended = False
        self._thread = threading.Thread(target=self._run, name=f"cqels source {name}", daemon=True)
        self._thread.start()

    @property
    def elements(self) -> int:
        """Taken in by this process."""
        return self._feed.elements

    @property
    def paused(self) -> bool:
        """Is nothing read since the results of all its queries wait for their sinks?"""
        return self._feed.paused

    def stop(self) -> None:
        """Read nothing more."""
        self._stopped.set()
        self._thread.join()

    def _run(self) -> None:
        try:
            wait = 0.0
            while not self._stopped.wait(wait):
                wait = self._step()
                if self.ended:
                    return
        finally:
            self._feed.close()

    def _step(self) -> float:
        """Take in the elements that are there; the seconds until the next look."""
        try:
            taken = self._feed.step()
        except CqelsError as error:
            if self.failure is None:
                _LOG.error("the source of the stream %s: %s", self._name, error)
            self.failure = str(error)
            # A new connection.
            self._feed.close()
            return _AFTER_A_FAILURE
        self.failure, self.ended = None, taken is None
        return 0.0 if taken else _BETWEEN
