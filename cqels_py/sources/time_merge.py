"""Merges several sources into one sequence of elements, by time; ties in the order in which the sources were given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements
from cqels_py.sources.protocol import Source

_BEFORE_ALL = np.iinfo(np.int64).min


class _MergedSource:
    """A source with the elements that were polled ahead.

    `keys`: the greatest time so far, element by element: an element out of order keeps its place behind its predecessors, so
    that lateness does not depend on the other sources. Elements with keys before `greatest` are all there.
    """

    def __init__(self, source: Source) -> None:
        self._source = source
        self.pending: list[ElementBatch] = []
        self.greatest = _BEFORE_ALL
        self.ended = False
        self.keys = np.empty(0, np.int64)

    def read(self) -> None:
        """Poll one more batch."""
        batch = self._source.poll()
        if batch is None:
            self.ended = True
            return
        if len(batch):
            keys = np.maximum.accumulate(np.maximum(batch.time, self.greatest))
            self.greatest = int(keys[-1])
            self.pending.append(batch)
            self.keys = np.concatenate([self.keys, keys])

    def take_before(self, frontier: int | None) -> tuple[ElementBatch, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Elements with keys before the frontier, and their keys."""
        batch = concatenate_elements(self.pending)
        cut = len(batch) if frontier is None else int(np.searchsorted(self.keys, frontier, side="left"))
        keys = self.keys[:cut]
        self.pending = [slice_elements(batch, cut, len(batch))] if cut < len(batch) else []
        self.keys = self.keys[cut:]
        return slice_elements(batch, 0, cut), keys


class TimeMerge:
    """Iterates over the elements of all sources in one order, in batches."""

    def __init__(self, sources: Sequence[Source]) -> None:
        self._sources = [_MergedSource(source) for source in sources]

    def live_ids(self) -> Iterator[Ids]:
        """Ids of elements that were read, but wait for those of another source."""
        for source in self._sources:
            for batch in source.pending:
                yield from batch.live_ids()

    def __iter__(self) -> Iterator[ElementBatch]:
        while behind := [source for source in self._sources if not source.ended]:
            lowest = min(source.greatest for source in behind)
            for source in behind:
                if source.greatest == lowest:
                    source.read()
            frontiers = [source.greatest for source in self._sources if not source.ended]
            # A single source has nothing to wait for.
            merged = self._merge(min(frontiers) if frontiers and len(self._sources) > 1 else None)
            if len(merged):
                yield merged

    def _merge(self, frontier: int | None) -> ElementBatch:
        taken = [source.take_before(frontier) for source in self._sources]
        batches = [batch for batch, _ in taken if len(batch)]
        if len(batches) <= 1:
            return concatenate_elements(batches)
        keys = np.concatenate([keys for batch, keys in taken if len(batch)])
        return take_elements(concatenate_elements(batches), np.argsort(keys, kind="stable"))
