"""A small suite for the tests: the taxi rides of the demo."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import pyarrow as pa

from cqels_py.datasets import taxi
from cqels_py.datasets.tables import SCHEMA
from cqels_py.suites.suite import Suite


def streams(triples: int, *, seed: int = 1) -> dict[str, pa.RecordBatchReader]:
    """Rides until there are so many triples."""
    made = taxi.streams(None, seed=seed)[taxi.RIDES]
    return {taxi.RIDES: pa.RecordBatchReader.from_batches(SCHEMA, _first(made, triples))}


def _first(batches: Iterable[pa.RecordBatch], triples: int) -> Iterator[pa.RecordBatch]:
    left = triples
    for batch in batches:
        yield batch.slice(0, left)
        left -= batch.num_rows
        if left <= 0:
            return


def static(*, seed: int = 1) -> bytes:
    return taxi.static()


RIDES = Suite("rides", "taxi rides", "tests.suites.rides", "taxi", paper={"tips-by-area": 25_000})
