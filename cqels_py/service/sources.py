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
CLOSED_WITHIN = 5.0
"""Seconds for which those who stop a source wait until it has been closed."""


class SourceThread:
    """Reads a feed until it is stopped, or has `ended`. `failure`: why it reads nothing just now.

    `former`: the thread that read the stream before, which has been stopped, and whose source is closed before this one is opened.
    """

    def __init__(self, name: str, feed: Feed, former: SourceThread | None = None) -> None:
        self._name = name
        self._former = former
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
        """Read nothing more. The source is closed by its own thread: its server may not answer."""
        self._stopped.set()
        self._feed.stop()

    def wait(self, seconds: float) -> None:
        """After `stop`, wait so long at most until the source has been closed."""
        self._thread.join(max(0.0, seconds))

    def _run(self) -> None:
        if self._former is not None:
            self._former._thread.join()
            self._former = None
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
