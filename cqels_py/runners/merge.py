"""Several sources become one sequence of elements, by time; ties in the order in which the sources were given."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements, slice_elements, take_elements

_BEFORE_ALL = np.iinfo(np.int64).min


class _Source:
    """A source with what was read of it ahead.

    `keys`: the greatest time so far, element by element: an element out of order keeps its place behind its predecessors, so
    that what is late does not depend on the other sources.
    """

    def __init__(self, batches: Iterator[ElementBatch]) -> None:
        self._batches = batches
        self._pending: list[ElementBatch] = []
        self._greatest = _BEFORE_ALL
        self.ended = False
        self.keys = np.empty(0, np.int64)

    def read(self) -> None:
        """One more batch."""
        batch = next(self._batches, None)
        if batch is None:
            self.ended = True
            return
        if len(batch):
            keys = np.maximum.accumulate(np.maximum(batch.time, self._greatest))
            self._greatest = int(keys[-1])
            self._pending.append(batch)
            self.keys = np.concatenate([self.keys, keys])

    @property
    def frontier(self) -> int | None:
        """Elements before this key are all there; None: all of them."""
        return None if self.ended else self._greatest

    def take_before(self, frontier: int | None) -> tuple[ElementBatch, np.ndarray[tuple[int], np.dtype[np.int64]]]:
        """Elements with keys before the frontier, and their keys."""
        batch = concatenate_elements(self._pending)
        cut = len(batch) if frontier is None else int(np.searchsorted(self.keys, frontier, side="left"))
        keys = self.keys[:cut]
        self._pending = [slice_elements(batch, cut, len(batch))] if cut < len(batch) else []
        self.keys = self.keys[cut:]
        return slice_elements(batch, 0, cut), keys


def merge_by_time(sources: Sequence[Iterator[ElementBatch]]) -> Iterator[ElementBatch]:
    """The elements of all sources in one order."""
    if len(sources) == 1:
        yield from sources[0]
        return
    open_sources = [_Source(source) for source in sources]
    while True:
        behind = [source for source in open_sources if not source.ended]
        if not behind:
            break
        lowest = min(source.frontier or _BEFORE_ALL for source in behind)
        for source in behind:
            if (source.frontier or _BEFORE_ALL) == lowest:
                source.read()
        frontiers = [source.frontier for source in open_sources if source.frontier is not None]
        merged = _merge(open_sources, min(frontiers) if frontiers else None)
        if len(merged):
            yield merged


def _merge(sources: Sequence[_Source], frontier: int | None) -> ElementBatch:
    taken = [source.take_before(frontier) for source in sources]
    batches = [batch for batch, _ in taken if len(batch)]
    if len(batches) <= 1:
        return concatenate_elements(batches)
    keys = np.concatenate([keys for batch, keys in taken if len(batch)])
    return take_elements(concatenate_elements(batches), np.argsort(keys, kind="stable"))
