"""Streams of Arrow record batches, in pieces that are small enough for a live display."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import pairwise

import numpy as np
import pyarrow as pa

from cqels_py.batches.elements import ElementBatch
from cqels_py.formats.tabular import elements_from_arrow
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.protocol import Opening, Source


class RecordBatches:
    """A connector: record batches as the source of a stream, at most `at_once` elements in a batch."""

    def __init__(self, batches: Iterable[pa.RecordBatch], at_once: int | None) -> None:
        self.batches = batches
        self._at_once = at_once

    def open(self, opening: Opening) -> Source:
        """The source of the stream."""
        return BatchSource(_element_batches(self.batches, opening, self._at_once))


def _element_batches(
    batches: Iterable[pa.RecordBatch], opening: Opening, at_once: int | None
) -> Iterator[ElementBatch]:
    """Elements of the stream, at most `at_once` in a batch."""
    reading = opening.reading("row", per_element=True)
    for batch in batches:
        for piece in [batch] if at_once is None else pieces(batch, at_once):
            yield from elements_from_arrow(pa.Table.from_batches([piece]), opening.dictionary, reading)


def pieces(batch: pa.RecordBatch, at_once: int) -> Iterator[pa.RecordBatch]:
    """The batch cut into slices of `at_once` elements: runs of rows with the same time and graph."""
    if batch.num_rows == 0:
        return
    time = batch.column("time").to_numpy()
    graph = batch.column("graph").dictionary_encode().indices.to_numpy(zero_copy_only=False)
    starts = np.flatnonzero((np.diff(time, prepend=time[0] - 1) != 0) | (np.diff(graph, prepend=-1) != 0))
    cuts = [*starts[::at_once].tolist(), batch.num_rows]
    for first, last in pairwise(cuts):
        yield batch.slice(first, last - first)
