"""The sink of a query of the service: its results go to their store."""

from __future__ import annotations

import logging
from contextlib import suppress

from cqels_py.batches.results import ResultBatch, last_rows
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.service.result_lines import ResultLines
from cqels_py.service.result_store import ResultStore

_LOG = logging.getLogger("cqels_py")


class ResultSink:
    """Writes results to a store; those that it has, of an earlier process, are left out. It never raises.

    `base`: the number of the last result of the query's former texts. Results that cannot be written wait in memory, and are written
    with the next ones.
    """

    def __init__(self, store: ResultStore, lines: ResultLines, base: int) -> None:
        self._store = store
        self._lines = lines
        self._base = base

    def write(self, batch: ResultBatch) -> None:
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

    def commit(self) -> None:
        with suppress(StorageError):
            self._store.flush()
            self._store.sync()
