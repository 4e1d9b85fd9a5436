"""Commits while a run with connectors lasts: brokers keep messages, and databases hide rows, until then."""

from __future__ import annotations

import time
from collections.abc import Callable
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cqels_py.cli.job import Job


class Commits:
    """When the run's sinks and sources are to be committed: `wanted` if one of them is a connector, then one `every` so often.

    On Spark sinks are committed at the end of the streams only.
    """

    def __init__(self, job: Job, clock: Callable[[], float] = time.monotonic) -> None:
        from cqels_py.sources.urls import SOURCES

        urls = [source for source in job.streams.values() if isinstance(source, str) and SOURCES.is_url(source)]
        self.wanted = job.runner == "local" and job.checkpoint is None and bool(urls or job.sink is not None)
        self._every = job.every / 1_000_000
        self._clock = clock
        self._next = clock() + self._every

    def due(self) -> bool:
        """Is it time for one? Then the next is due after another interval."""
        if not self.wanted or (now := self._clock()) < self._next:
            return False
        self._next = now + self._every
        return True
