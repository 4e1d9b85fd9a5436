"""`cqels serve --demo`: the flights of 2013 as live streams, two hours a second, and three queries over them."""

from __future__ import annotations

import threading
import time
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import TYPE_CHECKING

import numpy as np
import pyarrow as pa

from cqels_py.cli.demo import DEFAULT_SPEED, find
from cqels_py.engine.options import EVENTS
from cqels_py.errors import CqelsError
from cqels_py.service.definitions import QueryDefinition, StreamDefinition
from cqels_py.service.service import Pushed

if TYPE_CHECKING:
    from cqels_py.service.service import Service

QUERIES = {"delay-by-carrier": True, "strong-wind": False, "bad-weather": False}
"""Of the scenario; with retractions or without."""
_BETWEEN = 0.25
"""Seconds between two bodies."""
_SECOND = 1_000_000
_LATENESS = 3600 * _SECOND
"""One stream is sent behind the other: half an hour, which is the time between two bodies."""


def prepare(service: Service) -> None:
    """Declare the streams, register the queries, and begin to send elements, in a thread. MissingExtra without the data."""
    scenario = find("flights")
    streams = scenario.dataset().streams(None)
    names = {iri.rpartition("/")[2]: iri for iri in streams}
    for name, iri in names.items():
        service.put_stream(name, StreamDefinition(iri, lateness=_LATENESS, clock=EVENTS))
    texts = scenario.queries()
    for name, changelog in QUERIES.items():
        service.put_query(name, QueryDefinition(texts[name], changelog=changelog))
    last = service.engine.statistics.event_time
    pending = {name: Pending(streams[iri]) for name, iri in names.items()}
    threading.Thread(target=_send, args=(service, pending, last), name="cqels demo", daemon=True).start()


@dataclass(slots=True)
class Pending:
    """The rows of a stream that have not been sent, as they are needed."""

    reader: pa.RecordBatchReader
    _batch: pa.RecordBatch | None = field(default=None)

    def before(self, time: int) -> list[pa.RecordBatch]:
        """The next rows with times before this one, which are removed."""
        found = []
        while (batch := self._next()) is not None:
            end = int(np.searchsorted(_times(batch), time))
            if end:
                found.append(batch.slice(0, end))
            self._batch = batch.slice(end)
            if end < len(batch):
                break
        return found

    def first(self) -> int | None:
        """The time of the next row."""
        batch = self._next()
        return None if batch is None else int(_times(batch)[0])

    def _next(self) -> pa.RecordBatch | None:
        while self._batch is None or not len(self._batch):
            try:
                self._batch = self.reader.read_next_batch()
            except StopIteration:
                self._batch = None
                return None
        return self._batch


def ipc(batches: list[pa.RecordBatch]) -> bytes:
    """The rows as an Arrow IPC stream."""
    out = pa.BufferOutputStream()
    with pa.ipc.new_stream(out, batches[0].schema) as writer:
        for batch in batches:
            writer.write_batch(batch)
    return bytes(out.getvalue())


def _send(service: Service, pending: Mapping[str, Pending], last: int | None) -> None:
    """Send the elements behind `last` as time goes on, until they end or the server does."""
    if last is not None:
        for each in pending.values():
            each.before(last + 1)
    firsts = [first for each in pending.values() if (first := each.first()) is not None]
    begun, sent = time.monotonic(), min(firsts, default=0)
    while firsts:
        now = min(firsts) + round((time.monotonic() - begun) * DEFAULT_SPEED * _SECOND)
        # A machine that is slow has more to send, and not so much of one stream that the other is late.
        sent = min(now, sent + _LATENESS // 2)
        for name, each in pending.items():
            if batches := each.before(sent):
                try:
                    (taken,) = service.push([Pushed.of(service.stream(name), ipc(batches), "arrow", None)])
                except CqelsError as error:
                    taken = error
                if isinstance(taken, CqelsError):
                    # The server ends, or its disk is full.
                    return
        if all(each.first() is None for each in pending.values()):
            return
        if sent == now:
            time.sleep(_BETWEEN)


def _times(batch: pa.RecordBatch) -> np.ndarray[tuple[int], np.dtype[np.int64]]:
    found: np.ndarray[tuple[int], np.dtype[np.int64]] = batch.column("time").cast(pa.int64()).to_numpy()
    return found
