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
        capacity = len(self.points)
        # Moving must cost no more than a constant for each mapping that arrived since the last move.
        while 2 * (kept + count) > capacity:
            capacity *= 2
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
