"""The sink of a query of the service: its results go to their store."""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from typing import Any

from cqels_py.batches.results import ResultBatch, last_rows, unnumbered
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.engine.backlog import BackloggedSink
from cqels_py.service.query_sinks import OpenedSinks, ServedSink
from cqels_py.service.result_lines import ResultLines
from cqels_py.service.result_store import ResultStore
from cqels_py.service.shared_lines import SharedLines

_LOG = logging.getLogger("cqels_py")


class ResultSink:
    """Writes results to a store; those that it has, of an earlier process, are left out. It never raises.

    `base`: the number of the last result of the query's former texts. Results that cannot be written wait in memory, and are written
    with the next ones. `others`: sinks by URL, for which results wait while their other side is away. One that fails
    otherwise gets nothing more until the query is registered anew or the server is started again; `failure` says why.
    """

    def __init__(self, store: ResultStore, lines: ResultLines, base: int, others: OpenedSinks) -> None:
        self._store = store
        self._lines = lines
        self._base = base
        self._others = list(others.sinks)
        self._failure = others.failure

    @property
    def failure(self) -> str | None:
        """Why sinks get nothing, or nothing yet."""
        late = (each.late.failure for each in list(self._others) if each.late is not None)
        return next((failure for failure in late if failure is not None), self._failure)

    def write(self, batch: ResultBatch) -> None:
        self._store_results(batch)
        if self._others:
            self._each(lambda each: each.sink.write(batch))

    def write_equal(self, batch: ResultBatch, number: int) -> None:
        """The results of an equal query, which have these numbers here, from `number` on."""
        first = number + self._base
        try:
            if not self._others and self._store.append(first, self._lines.of(batch, first)):
                return
        except StorageError as error:
            _LOG.error("%s", error)
            return
        own = unnumbered(batch)
        own.number = number
        self.write(own)
        self.flush()

    def united(self, others: Sequence[tuple[Any, int]]) -> SharedLines | None:
        """One for all of these equal sinks, this one among them, each with the number of its next result; None: there is none."""
        if self._lines.are_numbered or not all(isinstance(each, ResultSink) for each, _ in others):
            return None
        if not all(each._has_only_store(self._lines.key, number) for each, number in others):
            return None
        shared, sinks = SharedLines(self._lines), [each for each, _ in others]
        for each in sinks:
            each._share(shared)
        shared.give_to([(each._store, each) for each in sinks])
        return shared

    def _share(self, lines: SharedLines) -> None:
        try:
            self._store.share(lines)
        except StorageError as error:
            _LOG.error("%s", error)

    def _has_only_store(self, key: object, number: int) -> bool:
        """Are its lines those of this key, for its store alone, which has all before this number?"""
        store = self._store
        return self._lines.key == key and not self._others and not store.failing and store.next == number + self._base

    def go_on(self, others: OpenedSinks) -> None:
        """After `close` these get the results that follow."""
        self._failure = others.failure or self._failure
        self._others = list(others.sinks)

    def close(self) -> None:
        """Nothing more is written."""
        self._each(lambda each: each.close())
        self._others = []

    def settle(self) -> bool:
        """Have the sinks all results, so that the engine need not make them again?"""
        return all(each.sink.settle() for each in list(self._others) if isinstance(each.sink, BackloggedSink))

    @property
    def is_full(self) -> bool:
        """Do as many results wait for one of the sinks as may?"""
        return any(each.sink.is_full for each in list(self._others) if isinstance(each.sink, BackloggedSink))

    def _each(self, call: Callable[[ServedSink], object]) -> None:
        for each in list(self._others):
            try:
                call(each)
            except Exception as error:
                # Whatever its library raises.
                self._failure = f"a sink has failed and gets nothing more: {error}"
                _LOG.error("%s", self._failure)
                self._others.remove(each)

    def _store_results(self, batch: ResultBatch) -> None:
        number = batch.number + self._base
        known = self._store.next - number
        if known < 0:
            # Their files were lost.
            self._store.begin_at(number)
        elif known >= len(batch):
            return
        elif known:
            batch, number = last_rows(batch, len(batch) - known), number + known
        self._store.add(self._lines.of(batch, number))

    def flush(self) -> None:
        told = self._store.failing
        try:
            self._store.flush()
        except StorageError as error:
            if not told:
                _LOG.error("%s", error)
        if self._others:
            self._each(lambda each: each.sink.flush())

    def commit(self) -> None:
        """Commit the other sinks: the store is synced before the next snapshot is saved (`Companion.sync`)."""
        for each in self._others:
            try:
                each.commit()
            except Exception as error:
                # Its results wait.
                _LOG.warning("a sink has not taken all results: %s", error)
