"""The protocol of sinks of results: a new kind of sink is a class with these methods, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cqels_py.batches.results import ResultBatch
from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RefusedResult, UsageError


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


@dataclass(frozen=True, slots=True, kw_only=True)
class SinkOpening:
    """The results that a sink is to take.

    Their ids are decoded by the `dictionary`. `form`: SELECT, ASK or CONSTRUCT; `variables`: the columns of a result; `template`:
    the triples of CONSTRUCT. `key`: variables of which each row of the answer has other values, the groups of GROUP BY; None: rows
    may be equal. `changelog`: results of both signs, whose sum is the answer. `report` is called with results that the other side
    refuses. `name`: that of the query, if it has one. `written`: the number of results before the first one that follows, of a run
    that continues; None: the run is a new one. `run`: with a checkpoint, an id that the run keeps when it is started again; the
    results up to number `made` exist already then (None: more of them will, which an earlier process has made).
    `reach`: which addresses may be connected to over HTTP; None: all.
    """

    dictionary: Dictionary
    form: str
    variables: tuple[str, ...]
    template: tuple[tuple[str, str, str], ...] = ()
    key: tuple[str, ...] | None = None
    changelog: bool = False
    report: Callable[[RefusedResult], None] | None = None
    name: str | None = None
    written: int | None = None
    run: str | None = None
    made: int | None = 0
    reach: Reach | None = None

    def held(self, number: int | None, run: str | None, shown: str) -> int | None:
        """The number of results that a sink has already, which are not to be written again. None: the sink begins anew.

        `number`: that of the last result that it has, and `run`: whose result it is; None if it knows of none. UsageError, about
        the sink as `shown`, if it lacks results that will not come again, or has some that are not those of this run.
        """
        if self.run is None:
            return None if self.written is None else number
        if number is None or run != self.run:
            if self.written:
                raise UsageError(
                    f"{shown} has no results of this run, and the checkpoint has none before number {self.written + 1:,} any more: "
                    "to start again, name a new folder for the checkpoint"
                )
            return None
        if number < (self.written or 0):
            raise UsageError(
                f"{shown} has the results up to number {number:,} only, and the checkpoint has none before number "
                f"{(self.written or 0) + 1:,} any more: restore the sink, or name a new folder for the checkpoint"
            )
        if self.made is not None and number > self.made:
            raise UsageError(
                f"{shown} has results up to number {number:,}, and the checkpoint leads to number {self.made:,} only: it is an "
                "older copy. Use the newer one, or name a new folder for the checkpoint"
            )
        return number


@runtime_checkable
class SinkConnector(Protocol):
    """An object that can be opened as the sink of a query.

    A connector whose sink keeps the number of its last result, and leaves out those that it has, has `keeps_number = True`.
    One whose sink still has, after RunError of `flush`, all results that it could not pass on, so that `flush` can be called again,
    has `can_retry = True`: results may wait for it.
    """

    @property
    def changelog(self) -> bool:
        """Does it need results of both signs?"""
        ...

    def open(self, opening: SinkOpening) -> Sink:
        """The sink. It may have a method `close`, which is called when the query is closed."""
        ...
