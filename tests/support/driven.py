"""Plans and operators of a test's own, driven by the local runner."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import OperatorNode, unwrap
from cqels_py.dictionary import Dictionary
from cqels_py.operators.operator import Operator
from cqels_py.runners.local import LocalRunner

Triple = tuple[str, str, str]
Arrival = tuple[int, int, Sequence[Triple]]
"""Time, the runner's number of the stream, triples as N-Triples texts."""
Row = tuple[int, int, tuple[str | None, ...]]
"""Time, sign, terms of a result."""


class Received:
    """Gets results, and keeps them as texts."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self.rows: list[Row] = []
        self.failure: Exception | None = None

    def fail(self, error: Exception) -> None:
        self.failure = error

    def deliver(self, batch: ResultBatch) -> None:
        terms = zip(*map(self._dictionary.decode, batch.columns), strict=True)
        self.rows += zip(batch.time.tolist(), batch.sign.tolist(), terms, strict=True)


def put_on_top(dataflow: Dataflow, operator: Operator) -> None:
    """Have an operator read the root of a dataflow, and its results be the dataflow's."""
    root: Any = unwrap(dataflow.root)
    dataflow.root = OperatorNode(dataflow.plan.root, operator, [root], (), dataflow.shared_scans)
    dataflow.root.acquire()
    # The dataflow itself does not read it any more.
    root.readers = 1


def push(runner: LocalRunner, dictionary: Dictionary, arrivals: Sequence[Arrival], batch: int | None = None) -> None:
    """All elements, so many together."""
    elements, size = elements_of(dictionary, arrivals), batch or max(1, len(arrivals))
    for start in range(0, len(arrivals), size):
        runner.push(slice_elements(elements, start, min(len(arrivals), start + size)))


def elements_of(dictionary: Dictionary, arrivals: Sequence[Arrival]) -> ElementBatch:
    time = np.array([time for time, _, _ in arrivals], np.int64)
    stream = np.array([stream for _, stream, _ in arrivals], np.int32)
    first = np.cumsum([0, *(len(triples) for _, _, triples in arrivals)], dtype=np.int64)
    terms = [dictionary.encode([t[p] for _, _, triples in arrivals for t in triples]) for p in range(3)]
    return ElementBatch(time, stream, first, *terms)
