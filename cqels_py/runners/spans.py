"""Divides batches into parts so short that no timer set while a part is processed falls into the same part."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import slice_elements
from cqels_py.dataflow.shared_scans import SharedScans


class Spans:
    """Divides batches for the queries over these scans, of which some have timers.

    A timer is later than the tick at which it is set by `least_delay` at least, so that a part which ends before the earliest tick
    that can come next, and that delay, is safe.
    """

    def __init__(self, scans: Iterable[SharedScans]) -> None:
        self._scans = tuple(scans)
        self._least_delay = min(delay for each in self._scans if (delay := each.least_delay) is not None)

    def parts(self, batch: ElementBatch) -> Iterator[ElementBatch | int]:
        """Parts of a batch, in order. A number is an instant before which no element comes: time is to be advanced to it.

        Each part is to be processed before the next is asked for.
        """
        start = 0
        while start < len(batch):
            first = batch.time.item(start)
            yield from self.advances(first)
            end = int(np.searchsorted(batch.time, self._horizon(first), side="left"))
            yield slice_elements(batch, start, end)
            start = end

    def advances(self, time: int) -> Iterator[int]:
        """The instants to which time is to be advanced, one after the other, before an element or an advance to `time`."""
        while (horizon := self._horizon(time)) <= time:
            yield horizon

    def _horizon(self, time: int) -> int:
        """If no element comes before `time`, no timer is set for an instant before this one."""
        return min(time, *(scans.next_instant() for scans in self._scans)) + self._least_delay
