"""What a sink of results can do; a new kind of sink is a class with these methods, and nothing else."""

from __future__ import annotations

from typing import Protocol

from cqels_py.batches.results import ResultBatch


class Sink(Protocol):
    """Takes the results of one query, in order. What it raises comes out of the engine's method that made the results."""

    def write(self, batch: ResultBatch) -> None:
        """Take the next results, decoded now: later their terms may have been released. They need not be visible yet."""
        ...

    def flush(self) -> None:
        """Make visible what was written: there are no more results for the moment."""
        ...

    def commit(self) -> object:
        """Flush, and make what was written durable, as far as the sink can.

        Returns the position from which a run that is interrupted later would go on, such as the length of a file, or None.
        """
        ...
