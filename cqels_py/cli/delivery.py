"""`--limit`: passes the first results on to the output, and stops the run."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from cqels_py.batches.results import first_rows

if TYPE_CHECKING:
    from cqels_py.batches.results import ResultBatch
    from cqels_py.sinks.protocol import Sink


class LimitReached(Exception):
    """`--limit` is reached."""


class LimitedSink:
    """Writes at most `limit` results to a sink (None: all of them), then calls `stop`, so that no more are made."""

    def __init__(self, sink: Sink, limit: int | None, stop: Callable[[], object]) -> None:
        self._sink = sink
        self.left = limit
        """How many may still be written."""
        self._stop = stop

    @property
    def full(self) -> bool:
        """Has it written as many as it may?"""
        return self.left is not None and self.left <= 0

    def write(self, batch: ResultBatch) -> None:
        if self.left is None:
            self._sink.write(batch)
            return
        if self.left > 0:
            self._sink.write(first_rows(batch, self.left))
            self.left -= len(batch)
            if self.left <= 0:
                # A run that is stopped does not call flush.
                self.flush()
                self._stop()

    def flush(self) -> None:
        self._sink.flush()

    def settle(self) -> bool:
        """Has the sink all results, as far as it gets on?"""
        settle = getattr(self._sink, "settle", None)
        return settle is None or bool(settle())

    def commit(self) -> object:
        return self._sink.commit()
