"""What aggregation below a join remembers: by key, by row of the carrier, by group (see kernels/factorised.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.aggregate import EXTREME_WORDS, MIN, SUM_WORDS
from cqels_py.kernels.arena import ARENA_FIELDS, TOP
from cqels_py.kernels.heaps import BAG_WORDS
from cqels_py.kernels.joined_records import BOUND, COUNTERS, NUMBER, ROW_WORDS, TERM
from cqels_py.kernels.key_table import ZERO
from cqels_py.state.key_table import KeyTable

_WORDS = {BOUND: 1, NUMBER: SUM_WORDS, TERM: BAG_WORDS}
_APART = 2
_MORE = 16

Scalar = TypeVar("Scalar", bound=np.generic)
Flags = npt.NDArray[np.bool_]


class KeySums:
    """The arrays that the kernel works on, and their growth; they are public.

    `functions`, `kinds`: by aggregate, numbers of the kernels; `carried`: its argument is the carrier's.
    """

    def __init__(
        self, ports: int, key_width: int, own_width: int, group_width: int, functions: Ids, kinds: Ids, carried: Flags
    ) -> None:
        self._ports = ports
        self._aggregates = len(functions)
        # Without variables of its own the carrier has one row by key, under the key's number.
        self._row_is_key = own_width == 0
        self.keys = KeyTable(key_width)
        self.rows = KeyTable(key_width + own_width)
        self.groups = KeyTable(group_width)
        # How many of those that came since it was looked were new is not known: at least so many may still come.
        self._spare_keys = self._spare_rows = 0
        self._lay_out(functions, kinds, carried)
        self.change = np.zeros(self._aggregates * (2 + SUM_WORDS), np.int64)
        self.change_apart = np.zeros(self._aggregates * _APART)
        self.group_key = np.zeros((max(group_width, 1), 1), np.int64)
        self.fresh = np.zeros(self._aggregates, np.int64)
        self.joined = np.zeros(1, np.int64)
        self.heap = np.zeros(64, np.int64)
        self._keeps_terms = TERM in kinds
        self.heap_meta = np.full(ARENA_FIELDS, -1, np.int64)
        self.heap_meta[TOP] = 0
        nothing, no_real, no_flag = np.zeros(0, np.int64), np.zeros(0), np.zeros(0, np.bool_)
        self.key_words = self.row_words = self.snap_key = self.snap_words = nothing
        self.words = self.live = self.last = self.touched = nothing
        self.key_apart = self.row_apart = self.apart = self.snap_apart = no_real
        self.shown = self.in_touched = no_flag
        self._grow_keys()
        self._grow_rows()
        self._grow_groups()
        self.grow_snaps()

    def _lay_out(self, functions: Ids, kinds: Ids, carried: Flags) -> None:
        """Where each aggregate's accumulator is: of its group, and of a row or a key."""
        sizes = [EXTREME_WORDS if function >= MIN else SUM_WORDS for function in functions]
        self.places = np.array([sum(sizes[:a]) for a in range(len(sizes))], np.int64)
        self.group_words = sum(sizes)
        self.local = np.zeros(len(kinds), np.int64)
        self.local_apart = np.zeros(len(kinds), np.int64)
        words, apart = [COUNTERS + self._ports, ROW_WORDS], [0, 0]
        for a, (kind, of_row) in enumerate(zip(kinds.tolist(), carried.tolist(), strict=True)):
            self.local[a], self.local_apart[a] = words[of_row], apart[of_row]
            words[of_row] += _WORDS.get(kind, 0)
            apart[of_row] += _APART if kind == NUMBER else 0
        self.key_size, self.row_size = words
        self.key_apart_size, self.row_apart_size = apart

    def ensure(self, keys: int, rows: int) -> None:
        """Room for as many new keys and rows, which nobody adds without asking."""
        self._spare_keys -= keys
        if self._spare_keys < 0:
            if self.keys.ensure(keys):
                self._grow_keys()
            self._spare_keys = self.keys.spare - keys
        if not self._row_is_key:
            self._spare_rows -= rows
            if self._spare_rows < 0:
                if self.rows.ensure(rows):
                    self._grow_rows()
                self._spare_rows = self.rows.spare - rows

    def more_groups(self, touched: int) -> None:
        """Room for new groups. Those that wait for delivery, `touched` of them, stay whatever they hold."""
        waiting, counts, meta = self.touched[:touched], self.groups.counts, self.groups.meta
        without_rows = int(np.count_nonzero(counts[waiting] == 0))
        counts[waiting] += 1
        meta[ZERO] -= without_rows
        if self.groups.ensure(max(_MORE, self.groups.entries // 4)):
            self._grow_groups()
        self.groups.counts[waiting] -= 1
        meta[ZERO] += without_rows

    def _grow_keys(self) -> None:
        keys = self.keys.capacity
        self.key_words = _longer(self.key_words, keys * self.key_size)
        self.key_apart = _longer(self.key_apart, keys * self.key_apart_size)
        if self._row_is_key:
            self._grow_rows()

    def _grow_rows(self) -> None:
        rows = self.keys.capacity if self._row_is_key else self.rows.capacity
        self.row_words = _longer(self.row_words, rows * self.row_size)
        self.row_apart = _longer(self.row_apart, rows * self.row_apart_size)

    def _grow_groups(self) -> None:
        groups = self.groups.capacity
        self.words = _longer(self.words, groups * self.group_words)
        self.apart = _longer(self.apart, groups * self._aggregates * _APART)
        self.live = _longer(self.live, groups)
        self.last = _longer(self.last, groups * self._aggregates)
        self.shown = _longer(self.shown, groups)
        self.touched = _longer(self.touched, groups)
        self.in_touched = _longer(self.in_touched, groups)

    @property
    def row_keys(self) -> Ids:
        """The ids of rows."""
        return self.keys.keys if self._row_is_key else self.rows.keys

    def grow_snaps(self) -> None:
        """More keys at one tick."""
        snaps = max(16, 2 * len(self.snap_key))
        self.snap_key = _longer(self.snap_key, snaps)
        self.snap_words = _longer(self.snap_words, snaps * self.key_size)
        self.snap_apart = _longer(self.snap_apart, snaps * self.key_apart_size)

    @property
    def terms(self) -> Ids | None:
        """What keeps terms, if any aggregate does: the kernel knows how to do without, and then needs less compiled."""
        return self.heap if self._keeps_terms else None

    def grow_heap(self) -> None:
        self.heap = _longer(self.heap, 2 * len(self.heap))

    def live_ids(self) -> Iterable[Ids]:
        """Ids that the state may refer to."""
        return (self.keys.live_ids(), self.rows.live_ids(), self.groups.live_ids(), self.last, self.heap)

    @property
    def nbytes(self) -> int:
        tables = self.keys.nbytes + self.rows.nbytes + self.groups.nbytes
        arrays = (
            *(self.key_words, self.key_apart, self.row_words, self.row_apart),
            *(self.words, self.apart, self.live, self.last, self.shown, self.touched, self.in_touched),
            *(self.snap_key, self.snap_words, self.snap_apart, self.heap),
        )
        return tables + sum(array.nbytes for array in arrays)


def _longer(array: npt.NDArray[Scalar], size: int) -> npt.NDArray[Scalar]:
    """The array with zeros behind it."""
    return np.concatenate([array, np.zeros(size - len(array), array.dtype)])
