"""Scans of windows with PARTITION BY in programs: the units that a window keeps, and the row of each of its scans."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dataflow.element_record import MOST_TRIPLES, ElementRecord
from cqels_py.dataflow.program_parts import MOST_ROWS, DeltaRecord
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scans import Partition, PartitionedScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import by_calls, partitions, scan
from cqels_py.operators.s2r.partition import Kept

_KINDS = 4


class KeepingPart:
    """The units that a window keeps, found once a step for all its scans; `table`: the record of kernels/steps/partitions.py."""

    def __init__(self, partition: Partition, taken: ElementRecord, shared: SharedScans) -> None:
        self.partition, self._taken, self._router = partition, taken, shared.router
        self._counts = np.full(1 + _KINDS, -1, np.int64)
        self._units = np.empty((_KINDS, MOST_ROWS), np.int64)
        self._entering_ticks, self._expiring_ticks, places = np.empty((3, MOST_ROWS), np.int64)
        unit, left_at = np.empty((2, MOST_TRIPLES), np.int64)
        last, positions = partition.last, partition.positions
        found = 0, 0, 0, 0
        if last is not None:
            found = partitions.KEEP_LAST.address(), last.address, last.values_address, last.limit
        links = (
            taken.address, *found, shared.router.table.address, partition.patterns[0], shared.clock.address, partition.stream,
            partition.by_triple,
        )  # fmt: skip
        self.table = ArrayTable(
            np.array(links, np.int64), np.array(positions, np.int64), self._counts, self._units, self._entering_ticks,
            self._expiring_ticks, places, unit, np.empty(len(positions) * MOST_TRIPLES, np.int64), left_at,
        )  # fmt: skip
        # Found by Python, more than there is room for.
        self._too_many: Kept | None = None

    def is_of(self, taken: ElementRecord) -> bool:
        """Are these the units of programs that take in this element?"""
        return self._taken is taken

    def find(self) -> bool:
        """Let Python find them. False: there are more than there is room for."""
        taken, first = self._taken, self._router.first
        matches = taken.matches(first.item(-1))
        kept = self.partition.advance(RoutedBatch(taken.batch(), taken.step(), taken.arrivals(), first, matches))
        kinds = kept.accepted, kept.entered, kept.expired, kept.unseen
        if max(map(len, kinds)) > MOST_ROWS:
            self._too_many = kept
            return False
        for row, units in enumerate(kinds):
            self._units[row, : len(units)] = units
        self._entering_ticks[: len(kept.entered)] = kept.entered_tick
        self._expiring_ticks[: len(kept.expired)] = kept.expired_tick
        self._counts[:] = taken.number, *map(len, kinds)
        return True

    def hand_over(self, routed: RoutedBatch) -> None:
        """Calls go on: if the units of the step have been found, they are those of its other scans."""
        if self._too_many is not None:
            self.partition.took(routed, self._too_many)
            self._too_many = None
        elif self._counts.item(partitions.TAKEN_IN) == self._taken.number:
            self.partition.took(routed, self._kept())

    def _kept(self) -> Kept:
        accepted, entered, expired, unseen = (
            self._units[row, :count].copy() for row, count in enumerate(self._counts[1:].tolist())
        )
        entered_tick, expired_tick = self._entering_ticks[: len(entered)], self._expiring_ticks[: len(expired)]
        return Kept(accepted, entered, entered_tick.astype(np.int32), expired, expired_tick.astype(np.int32), unseen)


@dataclass(slots=True)
class PartitionedPart:
    """A scan of a window with PARTITION BY; `asked`: of its record."""

    scan: PartitionedScan
    output: DeltaRecord
    keeping: KeepingPart
    asked: Ids

    def make_room(self, time: int, triples: int) -> None:
        self.scan.window.reserve(triples)
        self.keeping.partition.reserve(triples)

    def find_values(self) -> None:
        self.asked[scan.CALLED] = by_calls.COMPLETE if self.keeping.find() else by_calls.TOO_MANY

    def settle(self) -> None:
        """Count the mappings that have arrived."""
        self.scan.work.rows_in += self.asked.item(scan.TAKEN)
        self.asked[scan.TAKEN] = 0

    def hand_over(self, routed: RoutedBatch) -> None:
        self.keeping.hand_over(routed)
        self.scan.take_made(routed, self.output.deltas())

    def hand_over_begun(self, routed: RoutedBatch) -> None:
        self.keeping.hand_over(routed)


def keeping_of(partition: Partition, taken: ElementRecord, shared: SharedScans) -> KeepingPart:
    """That of a partition in programs that take in this element: all of them have the same."""
    known = partition.keeping
    if not isinstance(known, KeepingPart) or not known.is_of(taken):
        known = partition.keeping = KeepingPart(partition, taken, shared)
    return known
