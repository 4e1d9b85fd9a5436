"""The last units of each value, for a window with PARTITION BY: the arrays of `kernels.windows.partition`, and their growth."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.windows import partition as kernel
from cqels_py.state.arrays import new_numbers
from cqels_py.state.key_table import KeyTable

Int64 = npt.NDArray[np.int64]

_SMALLEST = 64


class LastByValue(StateRecord):
    """For each value (a row of `width` ids) its last `limit` units. A unit may have several values.

    A value once seen keeps its last units for ever: only units of the same value replace them.
    """

    _slots = StateArray[np.int64](kernel.UNITS)
    _places = StateArray[np.int64](kernel.PLACES)
    _ends = StateArray[np.int64](kernel.ENDS)
    _nodes = StateArray[np.int64](kernel.NODES)
    STATE = ("_values", "_ends", "_nodes", "_slots", "_places")

    def __init__(self, width: int, limit: int) -> None:
        self.limit = limit
        self._values = KeyTable(width)
        self._ends = np.zeros((2, self._values.capacity), np.int64)
        self._nodes = np.zeros((2, _SMALLEST), np.int64)
        self._slots = np.zeros((2, _SMALLEST), np.int64)
        self._places = np.array([0, -1, 0, -1], np.int64)

    def keep(self, unit: Int64, columns: Int64) -> tuple[Int64, Int64]:
        """Take in units: `unit` (n) numbers, not falling, `columns` (width, n) their values, a row for each value of each unit.

        Returns the numbers of the units that expire, and the row at which each of them does.
        """
        left, left_at = np.empty((2, len(unit)), np.int64)
        arguments = self.address, self._values.address, unit, columns, self.limit, left, left_at
        while (made := kernel.keep_last(*arguments)) == kernel.SHORT:
            self.reserve(len(unit))
        return left[:made], left_at[:made]

    @property
    def values_address(self) -> int:
        """That of the record of the values."""
        return self._values.address

    def units(self) -> Int64:
        """The units that are kept, rising."""
        slots = self._slots[:, : int(self._places[kernel.SLOT_COUNT])]
        return np.sort(slots[kernel.NUMBER, slots[kernel.LISTS] > 0])

    def reserve(self, count: int) -> None:
        """Make room for so many rows."""
        if self._values.ensure(count):
            self._ends = grown(self._ends, self._values.capacity)
        self._nodes = grown(self._nodes, int(self._places[kernel.NODE_COUNT]) + count)
        self._slots = grown(self._slots, int(self._places[kernel.SLOT_COUNT]) + count)

    def live_ids(self) -> Int64:
        return self._values.live_ids()

    @property
    def nbytes(self) -> int:
        return self._values.nbytes + self._ends.nbytes + self._nodes.nbytes + self._slots.nbytes


def grown(rows: Int64, needed: int) -> Int64:
    """Rows with room for at least `needed` columns."""
    size = rows.shape[1]
    if needed <= size:
        return rows
    larger = np.zeros((len(rows), max(needed, 2 * size)), np.int64)
    larger[:, :size] = rows
    return larger


def kept_lists(ends: Int64, nodes: Int64, slots: Int64, places: Int64) -> tuple[Int64, Int64, Int64]:
    """These lists, which are not empty, with their nodes and units alone; `places` counts these then."""
    levels, level = [], ends[kernel.OLDEST]
    while len(level):
        levels.append(level)
        following = nodes[kernel.NEXT, level]
        level = following[following >= 0]
    of_nodes = np.concatenate([np.zeros(0, np.int64), *levels])
    of_slots = np.flatnonzero(slots[kernel.LISTS, : int(places[kernel.SLOT_COUNT])] > 0)
    numbers = np.append(new_numbers(of_nodes, nodes.shape[1]), -1)
    fewer = np.array(
        [numbers[nodes[kernel.NEXT, of_nodes]], new_numbers(of_slots, slots.shape[1])[nodes[kernel.SLOT, of_nodes]]]
    )
    places[[kernel.NODE_COUNT, kernel.SLOT_COUNT]] = len(of_nodes), len(of_slots)
    places[[kernel.FREE_NODE, kernel.FREE_SLOT]] = -1
    return numbers[ends], grown(fewer, _SMALLEST), grown(slots.take(of_slots, axis=1), _SMALLEST)
