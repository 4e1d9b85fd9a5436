"""The protocol of sinks of results: a new kind of sink is a class with these methods, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Protocol, runtime_checkable

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError


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
    that continues; None: the run is a new one.
    """

    dictionary: Dictionary
    form: str
    variables: tuple[str, ...]
    template: tuple[tuple[str, str, str], ...] = ()
    key: tuple[str, ...] | None = None
    changelog: bool = False
    report: Callable[[RunError], None] | None = None
    name: str | None = None
    written: int | None = None


@runtime_checkable
class SinkConnector(Protocol):
    """An object that can be opened as the sink of a query."""

    @property
    def changelog(self) -> bool:
        """Does it need results of both signs?"""
        ...

    def open(self, opening: SinkOpening) -> Sink:
        """The sink. It may have a method `close`, which is called when the query is closed."""
        ...
