"""How a query over data frames is evaluated, as its user says it: made once of the arguments of `cqels_py.spark.continuous`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Any

from cqels_py.errors import UsageError
from cqels_py.formats.scopes import scope_of_document
from cqels_py.formats.times import FAR
from cqels_py.runners.spark.heavy import HeavyValues
from cqels_py.runners.spark.watermarks import IDLE, Waiting
from cqels_py.sources.static import StaticSource
from cqels_py.validation import by_iri

_CONSTRUCTED = "constructed by cqels_py"
"""The scope of blank nodes of elements that queries make."""


@dataclass(frozen=True, slots=True, kw_only=True)
class QueryOptions:
    """The options of `continuous` on which the job of a query depends, with their meaning there; UsageError for wrong values.

    `graphs`: the results are elements of a stream (`constructed`). `solutions`: rows have the query's solutions in columns "0",
    "1" …, also of CONSTRUCT. `in_order`: elements are taken in the order in which they come (see `Job`). `by_file`: the scope of a
    blank node's label is its file, where tasks read files. `fed`: the streams with the results of other queries.
    """

    partitions: int
    heavy: HeavyValues | None = None
    static: Iterable[StaticSource] | StaticSource = ()
    static_graphs: Mapping[str, StaticSource] | None = None
    changelog: bool = False
    net: bool = False
    lateness: int = 0
    lateness_of: Mapping[str, int] | None = None
    partition: str | Mapping[str, str] | None = None
    idle: int | None = None
    entailment: str | None = None
    on_error: str = "stop"
    document: str | Mapping[str, str] | None = None
    contexts: Mapping[str, Any] | None = None
    graphs: bool = False
    solutions: bool = False
    in_order: bool = False
    by_file: bool = False
    fed: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        check_count(self.partitions, "partitions")
        _check_lateness(self.lateness, "lateness")
        if self.on_error not in ("stop", "skip"):
            raise UsageError(f"on_error is 'stop' or 'skip', not {self.on_error!r}")

    def scopes(self, streams: tuple[str, ...]) -> tuple[int | None, ...]:
        """For each stream the scope of its blank nodes, None: its elements have their own. UsageError for an invalid name."""
        document = self.document
        if document is None or isinstance(document, str):
            names = {} if document is None else dict.fromkeys(streams, document)
        else:
            names = _by_stream(document, "document", "name", streams)
        names |= dict.fromkeys(self.fed, _CONSTRUCTED)
        return tuple(scope_of_document(names[iri]) if iri in names else None for iri in streams)

    def columns_of_partitions(self, streams: tuple[str, ...]) -> tuple[str | None, ...]:
        """For each stream the column of its frame with the partitions of rows, None: it has one. UsageError for an unknown one."""
        if self.partition is None or isinstance(self.partition, str):
            return tuple(None if iri in self.fed else self.partition for iri in streams)
        names = _by_stream(self.partition, "partition", "column", streams)
        return tuple(names.get(iri) for iri in streams)

    @property
    def is_waiting(self) -> bool:
        """Do streams wait for each other?"""
        return self.idle is not None or self.partition is not None

    def waiting(self, streams: tuple[str, ...]) -> Waiting | None:
        """How elements wait for each other; None: they do not. UsageError for wrong values."""
        if self.in_order:
            return None
        late = _by_stream(self.lateness_of or {}, "lateness_of", "microseconds", streams)
        for iri, each in late.items():
            _check_lateness(each, f"lateness_of <{iri}>")
        idle = self.idle
        if idle is not None and (not is_number(idle) or not 0 < idle < FAR):
            raise UsageError(f"idle is microseconds, more than 0 and less than {FAR}, not {idle!r}")
        columns = self.columns_of_partitions(streams)
        if idle is None and any(columns):
            idle = IDLE
        each_of = tuple(late.get(iri, self.lateness) for iri in streams)
        if idle is None:
            return Waiting(each_of, None, columns) if any(each_of) else None
        # A query's time is behind its streams already.
        each_of = tuple(0 if iri in self.fed else each for iri, each in zip(streams, each_of, strict=True))
        return Waiting(each_of, idle, columns, frozenset(map(streams.index, self.fed)))


def check_count(value: object, name: str) -> None:
    """UsageError for a number of something that is not 1 or more."""
    if not isinstance(value, int) or not is_number(value) or value < 1:
        raise UsageError(f"{name} is 1 or more, not {value!r}")


def is_number(value: object) -> bool:
    """Is it an integer, and no truth value?"""
    return isinstance(value, int) and not isinstance(value, bool)


def listed(streams: Iterable[str]) -> str:
    """IRIs in a message."""
    return ", ".join(f"<{iri}>" for iri in streams)


def _check_lateness(lateness: object, name: str) -> None:
    if not isinstance(lateness, int) or not is_number(lateness) or not 0 <= lateness < FAR:
        raise UsageError(f"{name} is 0 or more microseconds, and less than {FAR}, not {lateness!r}")


def _by_stream(given: object, name: str, of: str, streams: tuple[str, ...]) -> dict[str, Any]:
    """A mapping by streams that the query reads."""
    found = by_iri(given, name, of)
    for iri in found:
        if iri not in streams:
            raise UsageError(
                f"{name} names the stream <{iri}>, which the query does not read; it reads {listed(streams)}"
            )
    return found
