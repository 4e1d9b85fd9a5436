"""The state of a durable engine beside that of the engine itself."""

from __future__ import annotations

import json
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, NamedTuple
from uuid import uuid4

import numpy as np

from cqels_py.engine.durable.files_read import FilesRead
from cqels_py.engine.rejects import MALFORMED

if TYPE_CHECKING:
    from collections.abc import Sequence

    from cqels_py.batches.elements import ElementBatch
    from cqels_py.engine.durable.registration import Registration
    from cqels_py.engine.query import Query
    from cqels_py.engine.rejects import Record


class Failed(NamedTuple):
    """The text of a query that was stopped as it failed, and the reason."""

    text: str
    reason: str


@dataclass(slots=True)
class DurableState:
    """The registrations and the progress of a durable engine, which are in its snapshots beside its state.

    `unclaimed`: queries of an earlier process that nobody has registered in this one, by their keys. `steps_before`: how many steps
    there had been when a query was registered, as later queries share no scans with earlier ones. `scopes`: the numbers of the last
    pushed element and the last document that have been logged, from which blank nodes get their scopes. `now`: the time of the
    clock that decides. `id`: that of the checkpoint; `ordinals`: which registrations of all `registered` ones the queries are.
    `failed`: queries that were stopped as they failed, by their keys, until others are registered in their places. `refused`:
    results since the last snapshot that the other sides of sinks have refused, as they may refuse them once more.
    """

    registrations: dict[Query, Registration] = field(default_factory=dict)
    unclaimed: dict[str, Query] = field(default_factory=dict)
    connections: list[tuple[Query, str]] = field(default_factory=list)
    steps: int = 0
    steps_before: dict[Query, int] = field(default_factory=dict)
    scopes: tuple[int, int] = (0, 0)
    now: int = 0
    files: FilesRead = field(default_factory=FilesRead)
    id: str = field(default_factory=lambda: uuid4().hex)
    registered: int = 0
    ordinals: dict[Query, int] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)
    failed: dict[str, Failed] = field(default_factory=dict)

    def by_key(self, key: str) -> Query | None:
        """The query with this key, if there is one."""
        return next((query for query in self.registrations if self.registrations[query].key == key), None)

    def add(self, query: Query, registration: Registration) -> None:
        """A query is registered."""
        self.registrations[query] = registration
        self.failed.pop(registration.key, None)
        self.steps_before.setdefault(query, self.steps)
        self.registered += 1
        self.ordinals[query] = self.registered

    def remove(self, query: Query) -> None:
        """A query is removed."""
        registration = self.registrations.pop(query)
        del self.steps_before[query], self.ordinals[query]
        self.unclaimed.pop(registration.key, None)
        self.connections = [pair for pair in self.connections if pair[0] is not query]

    def is_refused(self, key: str | None, record: Record) -> bool:
        """Is it known that this result of the query with this key is refused?"""
        return _result_of(key, record) in self.refused

    def add_refused(self, key: str | None, record: Record) -> None:
        """A result of the query with this key is refused."""
        self.refused.add(_result_of(key, record))

    def count_left_out(self, record: Record) -> None:
        """Input is left out; pushed elements have no position."""
        if record["reason"] == MALFORMED and record["position"] is not None and self.files.running:
            self.files.count_malformed(record["stream"])

    def count_read(self, batch: ElementBatch, streams: Sequence[str]) -> None:
        """Elements of a run's sources are taken in. `streams`: their IRIs, by number."""
        numbers, counts = np.unique(batch.stream, return_counts=True)
        for number, count in zip(numbers.tolist(), counts.tolist(), strict=True):
            self.files.count(streams[number], count)


def _result_of(key: str | None, record: Record) -> str:
    return json.dumps([key, record["number"], record["result"]])
