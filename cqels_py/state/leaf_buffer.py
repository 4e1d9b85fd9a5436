"""The leaf mappings of one window in the order of their arrival (section 3.1 of the paper)."""

from __future__ import annotations

import math
from typing import ClassVar

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.windows import sparse_buffer
from cqels_py.kernels.windows import varint_queue as kernel
from cqels_py.kernels.windows.sliding import (
    COUNTERS,
    ENTERED,
    IDS,
    LAST,
    MADE,
    NEVER,
    PLACES,
    ROOM_THROUGH,
    SPARE,
    START,
    VARINTS,
)
from cqels_py.state.arrays import SHRINK_FROM

Int64 = npt.NDArray[np.int64]
_NOTHING = np.empty(0, np.int64)


def _capacity_for(needed: int, smallest: int) -> int:
    """Room for `count` mappings and an eighth more, so that a move costs at most a constant for each mapping that arrives."""
    return max(smallest, needed * 9 // 8)


def _is_to_be_resized(needed: int, room: int, smallest: int) -> bool:
    return needed > room or needed < room >> 2 > smallest


def _most_bytes(points: Int64) -> int:
    """A bound on the bytes of the points' differences: they need most if, but for the first, all of them are the same."""
    count, far = len(points), int(points[-1]) - int(points[0])
    return kernel.MOST_BYTES + count + math.ceil(count * math.log2(1 + far / count) / 7)


class LeafBuffer(StateRecord):
    """A queue of leaf mappings in circular columns: the point at which each arrived, and its ids (`width` columns, or none).

    Mappings have numbers in their order of arrival: `start` is that of the oldest, `entered` that of the oldest which still
    waits to enter the window, `end` that of the next to arrive. Points are read in order only, once for entry and once for expiry.

    `varints` and `ends`: a queue of the points' differences (kernels/windows/varint_queue.py); `columns`: the ids of number n at n
    modulo their length.
    """

    varints = StateArray[np.uint8](VARINTS)
    ends = StateArray[np.int64](PLACES)
    columns = StateArray[np.int64](IDS)
    counters = StateArray[np.int64](COUNTERS)

    STATE: ClassVar[tuple[str, ...]] = ("varints", "ends", "columns", "start", "entered", "end")

    def __init__(self, width: int, capacity: int = 256) -> None:
        self.varints = np.zeros(capacity, np.uint8)
        self.ends = np.zeros(kernel.FIELDS, np.int64)
        self.columns = np.zeros((width, capacity if width else 0), np.int64)
        self.counters = np.zeros(MADE + 1, np.int64)
        self._smallest = capacity
        self.after_restore()

    def after_restore(self) -> None:
        """Count the free room again before it is needed next."""
        self.counters[SPARE] = 0
        self.counters[ROOM_THROUGH] = 0 if len(self.columns) else NEVER

    def shrink(self) -> None:
        """Give back room, between two steps, after mappings have become much fewer."""
        columns, varints = _capacity_for(len(self), self._smallest), _capacity_for(self._used_bytes + 1, self._smallest)
        if SHRINK_FROM * columns <= self.columns.shape[1]:
            self._lay_out(columns)
        if SHRINK_FROM * varints <= len(self.varints):
            self._lay_out_varints(self._used_bytes, varints)
        self.after_restore()

    @property
    def start(self) -> int:
        return self.counters.item(START)

    @start.setter
    def start(self, number: int) -> None:
        self.counters[START] = number

    @property
    def entered(self) -> int:
        return self.counters.item(ENTERED)

    @entered.setter
    def entered(self, number: int) -> None:
        self.counters[ENTERED] = number

    @property
    def end(self) -> int:
        return self.counters.item(LAST)

    @end.setter
    def end(self, number: int) -> None:
        self.counters[LAST] = number

    def __len__(self) -> int:
        return self.end - self.start

    def append(self, points: Int64, columns: Int64) -> None:
        """Add mappings, one at least; points never fall."""
        self.reserve(points)
        kernel.append(points, self.varints, self.ends)
        self.counters[SPARE] -= kernel.MOST_BYTES * len(points)
        if len(self.columns):
            self._put(self.end, columns)
        self.end += len(points)

    def expire(self, limit: int) -> Int64:
        """Remove all mappings that arrived at or before a point; returns their points."""
        points = self._read(limit, kernel.EXPIRING)
        self.start += len(points)
        return points

    def enter(self, limit: int) -> Int64:
        """Let all mappings enter that arrived at or before a point; returns their points."""
        points = self._read(limit, kernel.ENTERING)
        self.entered += len(points)
        return points

    def _read(self, limit: int, reader: int) -> Int64:
        points = _NOTHING
        while (read := kernel.read_through(limit, reader, self.varints, self.ends, points)) != len(points):
            points = np.empty(read, np.int64)
        return points

    @property
    def oldest(self) -> int:
        """The point of the oldest mapping, once `expire` has been called."""
        return self.ends.item(kernel.EXPIRING + kernel.NEXT)

    @property
    def first_to_enter(self) -> int:
        """The point of the oldest mapping that waits to enter, once `enter` has been called."""
        return self.ends.item(kernel.ENTERING + kernel.NEXT)

    def reserve(self, points: Int64) -> None:
        """Make room for these mappings, one at least."""
        count = len(points)
        # The free room is counted only when it may be short: after so many mappings it cannot be before.
        if self.end + count > self.counters.item(ROOM_THROUGH):
            self._reserve_columns(count)
        if kernel.MOST_BYTES * count > self.counters.item(SPARE):
            self._reserve_varints(points)

    def _reserve_columns(self, count: int) -> None:
        needed = len(self) + count
        if _is_to_be_resized(needed, self.columns.shape[1], self._smallest):
            self._lay_out(_capacity_for(needed, self._smallest))
        # Before so many more have arrived it cannot be short, and is not counted; nor is it far too large for long.
        self.counters[ROOM_THROUGH] = min(self.start + self.columns.shape[1], self.end + max(needed, self._smallest))

    def _reserve_varints(self, points: Int64) -> None:
        used = self._used_bytes
        needed = used + _most_bytes(points) + 1
        if _is_to_be_resized(needed, len(self.varints), self._smallest):
            self._lay_out_varints(used, _capacity_for(needed, self._smallest))
        # Each of these points takes MOST_BYTES off.
        self.counters[SPARE] = len(self.varints) - needed + kernel.MOST_BYTES * len(points)

    @property
    def _used_bytes(self) -> int:
        return (self.ends.item(kernel.END) - self.ends.item(kernel.EXPIRING + kernel.AT)) % len(self.varints)

    def _lay_out_varints(self, used: int, room: int) -> None:
        first = self.ends.item(kernel.EXPIRING + kernel.AT)
        straight = min(used, len(self.varints) - first)
        varints = np.empty(room, np.uint8)
        varints[:straight] = self.varints[first : first + straight]
        varints[straight:used] = self.varints[: used - straight]
        for end in (kernel.END, kernel.ENTERING + kernel.AT, kernel.EXPIRING + kernel.AT):
            self.ends[end] = (self.ends[end] - first) % len(self.varints)
        self.varints = varints

    def _lay_out(self, capacity: int) -> None:
        kept = self.live_ids()
        self.columns = np.empty((len(kept), capacity), np.int64)
        self._put(self.start, kept)

    def _put(self, number: int, columns: Int64) -> None:
        """Write the ids of mappings from a number on."""
        room, count = self.columns.shape[1], columns.shape[1]
        place = number % room
        straight = min(count, room - place)
        self.columns[:, place : place + straight] = columns[:, :straight]
        self.columns[:, : count - straight] = columns[:, straight:]

    def ids(self, first: int, last: int) -> Int64:
        """The ids of mappings first to last - 1."""
        if not len(self.columns):
            return np.empty((0, last - first), np.int64)
        place = first % self.columns.shape[1]
        over = place + last - first - self.columns.shape[1]
        if over <= 0:
            return self.columns[:, place : place + last - first]
        return np.concatenate([self.columns[:, place:], self.columns[:, :over]], axis=1)

    def live_ids(self) -> Int64:
        return self.ids(self.start, self.end)

    @property
    def nbytes(self) -> int:
        return self.varints.nbytes + self.columns.nbytes


class SparseLeafBuffer(StateRecord):
    """Leaf mappings in columns, in the order of their arrival, which expire in any order: by the points at which they arrived.

    A mapping keeps its place until the next `append`, which may move all of them.
    """

    points = StateArray[np.int64](sparse_buffer.POINTS)
    columns = StateArray[np.int64](sparse_buffer.COLUMNS)
    _kept = StateArray[np.bool_](sparse_buffer.KEPT)
    _counters = StateArray[np.int64](sparse_buffer.COUNTERS)

    STATE = ("points", "columns", "_kept", "_end", "_released")

    def __init__(self, width: int, capacity: int = 256) -> None:
        self._smallest = capacity
        self.points = np.zeros(capacity, np.int64)
        self.columns = np.zeros((width, capacity), np.int64)
        self._kept = np.zeros(capacity, np.bool_)
        self._counters = np.zeros(2, np.int64)

    @property
    def _end(self) -> int:
        return self._counters.item(sparse_buffer.END)

    @_end.setter
    def _end(self, end: int) -> None:
        self._counters[sparse_buffer.END] = end

    @property
    def _released(self) -> int:
        return self._counters.item(sparse_buffer.RELEASED)

    @_released.setter
    def _released(self, count: int) -> None:
        self._counters[sparse_buffer.RELEASED] = count

    def __len__(self) -> int:
        return self._end - self._released

    def append(self, points: Int64, columns: Int64) -> int:
        """Add mappings, points not falling; returns the place of the first of them."""
        count = len(points)
        self.reserve(count)
        first, self._end = self._end, self._end + count
        self.points[first : self._end] = points
        self.columns[:, first : self._end] = columns
        self._kept[first : self._end] = True
        return first

    def reserve(self, count: int) -> None:
        """Make room for so many mappings; others may get other places."""
        if self._end + count > len(self.points):
            self._make_room(count)

    def places_of(self, points: Int64) -> tuple[Int64, Int64]:
        """The places of all mappings with these points (rising), in order, and for each the position of its point."""
        found = self.points[: self._end]
        start = np.searchsorted(found, points, side="left")
        count = np.searchsorted(found, points, side="right") - start
        which = np.repeat(np.arange(len(points)), count)
        within = np.arange(len(which)) - np.repeat(np.cumsum(count) - count, count)
        return np.repeat(start, count) + within, which

    def release(self, places: Int64) -> None:
        """These mappings have expired."""
        self._kept[places] = False
        self._released += len(places)

    def _make_room(self, count: int) -> None:
        self._move(self._capacity_for(count, len(self.points)))

    def _capacity_for(self, count: int, capacity: int) -> int:
        """Room for so many more, from a capacity on."""
        # The cost of a move is at most a constant for each mapping that has arrived since the last one.
        while 2 * (len(self) + count) > capacity:
            capacity *= 2
        return capacity

    def shrink(self) -> None:
        """Give back room, between two steps, after mappings have become much fewer."""
        capacity = self._capacity_for(0, self._smallest)
        if SHRINK_FROM * capacity <= len(self.points):
            self._move(capacity)

    def _move(self, capacity: int) -> None:
        places = np.flatnonzero(self._kept[: self._end])
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
