"""Leaf mappings of one window in their order of arrival (section 3.1)."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]


class LeafBuffer:
    """A queue of leaf mappings in circular columns: the point at which each arrived, and its ids (`width` columns, or none).

    Mappings have numbers in their order of arrival: `start` is that of the oldest kept, `end` that of the next to come.
    """

    def __init__(self, width: int, capacity: int = 256) -> None:
        self._points: Int64 = np.zeros(capacity, np.int64)
        self._columns: Int64 = np.zeros((width, capacity), np.int64)
        self._capacity = self._smallest = capacity
        self.start = 0
        self.end = 0

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, points: Int64, columns: Int64) -> None:
        """Add mappings."""
        count = len(points)
        self.reserve(count)
        place = self.end % self._capacity
        straight = min(count, self._capacity - place)
        self._put(place, points[:straight], columns[:, :straight])
        if straight < count:
            self._put(0, points[straight:], columns[:, straight:])
        self.end += count

    def reserve(self, count: int) -> None:
        """Have room for so many more."""
        needed = self.end - self.start + count
        if needed > self._capacity or needed < self._capacity >> 2 > self._smallest:
            self._lay_out(needed)

    def _put(self, place: int, points: Int64, columns: Int64) -> None:
        end = place + len(points)
        self._points[place:end] = points
        if len(self._columns):
            self._columns[:, place:end] = columns

    def _lay_out(self, needed: int) -> None:
        """Room for so many, and an eighth more: moving costs no more than a constant for each mapping that arrived since."""
        capacity = max(self._smallest, needed * 9 // 8)
        start, kept = self.start, len(self)
        points, (columns, first) = self.points(start, self.end), self.run(start, self.end)
        # The oldest stays where its number says.
        place = start % capacity
        straight = min(kept, capacity - place)
        self._points = np.empty(capacity, np.int64)
        self._columns = np.empty((len(columns), capacity), np.int64)
        self._capacity = capacity
        self._put(place, points[:straight], columns[:, first : first + straight])
        self._put(0, points[straight:], columns[:, first + straight : first + kept])

    def circular(self) -> tuple[Int64, Int64]:
        """Points and ids as they stand, that of number n at n modulo their length."""
        return self._points, self._columns

    def point(self, number: int) -> int:
        """The point of one mapping."""
        return self._points.item(number % self._capacity)

    def points(self, first: int, last: int) -> Int64:
        """The points of mappings first to last - 1."""
        place = first % self._capacity
        over = place + last - first - self._capacity
        if over <= 0:
            return self._points[place : place + last - first]
        return np.concatenate([self._points[place:], self._points[:over]])

    def run(self, first: int, last: int) -> tuple[Int64, int]:
        """Columns with the ids of mappings first to last - 1, and at which place they begin there."""
        place = first % self._capacity
        over = place + last - first - self._capacity
        if over <= 0:
            return self._columns, place
        return np.concatenate([self._columns[:, place:], self._columns[:, :over]], axis=1), 0

    def cut(self, point: int, first: int) -> int:
        """The first mapping from `first` on that arrived after a point; points never fall."""
        return first + int(np.searchsorted(self.points(first, self.end), point, side="right"))

    def live_ids(self) -> Int64:
        columns, place = self.run(self.start, self.end)
        return columns[:, place : place + len(self)]

    @property
    def nbytes(self) -> int:
        return self._points.nbytes + self._columns.nbytes


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
