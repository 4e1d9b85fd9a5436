"""The protocol of sinks of results: a new kind of sink is a class with these methods, and nothing else."""

from __future__ import annotations

from typing import Protocol

from cqels_py.batches.results import ResultBatch


class Sink(Protocol):
    """Takes the results of one query, in order. Its exceptions come out of the engine's method that made the results."""

    def write(self, batch: ResultBatch) -> None:
        """Take the next results, decoded now: later their terms may have been released. They need not be visible yet."""
        ...

    def flush(self) -> None:
        """Make the written results visible: there are no more for the moment."""
        ...

    def commit(self) -> object:
        """Flush, and make the written results durable, as far as the sink can.

        Returns the position from which a run that is interrupted later would continue, such as the length of a file, or None.
        """
        ...
