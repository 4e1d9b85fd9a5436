"""Leaf mappings of one window in their order of arrival (section 3.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class LeafBuffer:
    """A queue of leaf mappings in columns: the point at which each arrived, and its ids (`width` columns, or none).

    `start` is the oldest mapping kept, `end` the place after the newest; both move right and are moved back together when the
    buffer's end is reached, so that the mappings kept are always one run of each column.
    """

    def __init__(self, width: int, capacity: int = 256) -> None:
        self.points: Int64 = np.zeros(capacity, np.int64)
        self.columns: Int64 = np.zeros((width, capacity), np.int64)
        self._smallest = capacity
        self.start = 0
        self.end = 0

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, points: Int64, columns: Int64) -> int:
        """Add mappings; returns by how many places those kept have moved left."""
        count = len(points)
        moved = self._make_room(count) if self.end + count > len(self.points) else 0
        self.points[self.end : self.end + count] = points
        if len(self.columns):
            self.columns[:, self.end : self.end + count] = columns
        self.end += count
        return moved

    def _make_room(self, count: int) -> int:
        kept = len(self)
        # Moving must cost no more than a constant for each mapping that arrived since the last move: a third is left free.
        capacity = max(self._smallest, (kept + count) * 3 // 2)
        points = np.zeros(capacity, np.int64)
        columns = np.zeros((len(self.columns), capacity), np.int64)
        points[:kept] = self.points[self.start : self.end]
        columns[:, :kept] = self.columns[:, self.start : self.end]
        moved = self.start
        self.points, self.columns = points, columns
        self.start, self.end = 0, kept
        return moved

    def live_ids(self) -> Int64:
        return self.columns[:, self.start : self.end]

    @property
    def nbytes(self) -> int:
        return self.points.nbytes + self.columns.nbytes


class SparseLeafBuffer:
    """Leaf mappings in columns, in their order of arrival, that leave in any order: by the points at which they arrived.

    A place is that of a mapping until the next `append`, which may move them all.
    """

    def __init__(self, width: int, capacity: int = 256) -> None:
        self.points: Int64 = np.zeros(capacity, np.int64)
        self.columns: Int64 = np.zeros((width, capacity), np.int64)
        self._kept = np.zeros(capacity, np.bool_)
        self._end = 0
        self._released = 0

    def __len__(self) -> int:
        return self._end - self._released

    def append(self, points: Int64, columns: Int64) -> int:
        """Add mappings, points not falling; returns the place of the first of them."""
        count = len(points)
        if self._end + count > len(self.points):
            self._make_room(count)
        first, self._end = self._end, self._end + count
        self.points[first : self._end] = points
        self.columns[:, first : self._end] = columns
        self._kept[first : self._end] = True
        return first

    def places_of(self, points: Int64) -> tuple[Int64, Int64]:
        """The places of all mappings with these points (rising), in order, and for each the position of its point."""
        found = self.points[: self._end]
        start = np.searchsorted(found, points, side="left")
        count = np.searchsorted(found, points, side="right") - start
        which = np.repeat(np.arange(len(points)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(start, count) + within, which

    def release(self, places: Int64) -> None:
        """These mappings have left."""
        self._kept[places] = False
        self._released += len(places)

    def _make_room(self, count: int) -> None:
        places = np.flatnonzero(self._kept[: self._end])
        capacity = len(self.points)
        # Moving must cost no more than a constant for each mapping that arrived since the last move.
        while 2 * (len(places) + count) > capacity:
            capacity *= 2
        points, columns = np.zeros(capacity, np.int64), np.zeros((len(self.columns), capacity), np.int64)
        points[: len(places)] = self.points[places]
        columns[:, : len(places)] = self.columns[:, places]
        self.points, self.columns = points, columns
        self._kept = np.zeros(capacity, np.bool_)
        self._kept[: len(places)] = True
        self._end, self._released = len(places), 0

    def live_ids(self) -> Int64:
        return self.columns[:, np.flatnonzero(self._kept[: self._end])]

    @property
    def nbytes(self) -> int:
        return self.points.nbytes + self.columns.nbytes + self._kept.nbytes
