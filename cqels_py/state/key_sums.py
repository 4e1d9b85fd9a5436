"""The state of aggregation below a join: by key, and by row of the carrier (see kernels/aggregates/factorised.py)."""

from __future__ import annotations

from collections.abc import Iterable
from typing import TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.aggregates import factorised_state as record
from cqels_py.kernels.aggregates.accumulators import SUM_WORDS
from cqels_py.kernels.aggregates.exact_float_sums import REAL_WORDS
from cqels_py.kernels.aggregates.factorised_records import (
    BOUND,
    COUNTERS,
    HEAD,
    NEXT,
    NUMBER,
    PREVIOUS,
    ROW_WORDS,
    TERM,
)
from cqels_py.kernels.aggregates.weighted_sums import DIFFERENCE_WORDS
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures.heaps import BAG_WORDS
from cqels_py.kernels.structures.monotonic_queue import QUEUE_WORDS
from cqels_py.state.arrays import longer_aligned, new_numbers, rows_of
from cqels_py.state.key_table import KeyTable
from cqels_py.state.term_runs import Form, RunsOf, TermRuns

_WORDS = {BOUND: 1, NUMBER: SUM_WORDS}

Scalar = TypeVar("Scalar", bound=np.generic)
Flags = npt.NDArray[np.bool_]


class KeySums(StateRecord):
    """The arrays that the kernels work on (kernels/aggregates/factorised_state.py), and their growth.

    `kinds`: the sums that each aggregate needs of its argument, a number of kernels/aggregates/factorised_records.py; `carried`:
    the argument is the carrier's; `expires_fifo`: the mappings that have it expire in the order of their arrival.
    """

    _sizes = StateArray[np.int64](record.SIZES)
    key_words = StateArray[np.int64](record.KEY_WORDS)
    key_apart = StateArray[np.uint32](record.KEY_APART)
    row_words = StateArray[np.int64](record.ROW_RECORDS)
    row_apart = StateArray[np.uint32](record.ROW_APART)
    snap_key = StateArray[np.int64](record.SNAP_KEY)
    snap_words = StateArray[np.int64](record.SNAP_RECORDS)
    snap_apart = StateArray[np.uint32](record.SNAP_APART)
    _change = StateArray[np.int64](record.CHANGE)
    _change_apart = StateArray[np.uint32](record.CHANGE_APART)
    _heap = StateArray[np.int64](record.HEAP)
    _heap_meta = StateArray[np.int64](record.HEAP_META)

    STATE = (
        *("keys", "key_words", "key_apart", "key_apart_size"),
        *("rows", "row_words", "row_apart", "row_apart_size", "_terms"),
    )

    def __init__(
        self, ports: int, key_width: int, own_width: int, kinds: Ids, carried: Flags, expires_fifo: Flags
    ) -> None:
        self._ports = ports
        # Without variables of its own the carrier has one row by key, under the key's number.
        self._row_is_key = own_width == 0
        self.keys = KeyTable(key_width)
        self.rows = KeyTable(key_width + own_width)
        self.row_index = self.keys if self._row_is_key else self.rows
        self._sizes = np.zeros(record.SIZE_FIELDS, np.int64)
        self._lay_out(kinds, carried, expires_fifo)
        self._change = np.zeros(len(kinds) * DIFFERENCE_WORDS, np.int64)
        self._change_apart = np.zeros(len(kinds) * REAL_WORDS, np.uint32)
        self._terms = TermRuns()
        self._kept_terms = [
            (Form.MONOTONIC_QUEUE if expires_fifo[a] else Form.BAG, bool(carried[a]), int(self.local[a]))
            for a in np.flatnonzero(kinds == TERM)
        ]
        nothing, no_real = np.zeros(0, np.int64), np.zeros(0, np.uint32)
        self.key_words = self.row_words = self.snap_key = self.snap_words = nothing
        self.key_apart = self.row_apart = self.snap_apart = no_real
        self._grow_keys()
        self._grow_rows()
        self.more_snaps()
        self._show()

    def after_restore(self) -> None:
        self.snap_apart = _longer(self.snap_apart, len(self.snap_key) * self.key_apart_size)
        self._show()

    def _show(self) -> None:
        """Show the kernels the terms' arena and the lengths of records."""
        self._heap, self._heap_meta = self._terms.heap, self._terms.meta
        self._sizes[record.KEY_SIZE], self._sizes[record.ROW_SIZE] = self.key_size, self.row_size
        self._sizes[record.KEY_APART_SIZE], self._sizes[record.ROW_APART_SIZE] = (
            self.key_apart_size,
            self.row_apart_size,
        )

    def _lay_out(self, kinds: Ids, carried: Flags, expires_fifo: Flags) -> None:
        """The place of each aggregate's accumulator in a row or a key."""
        self.local = np.zeros(len(kinds), np.int64)
        self.local_apart = np.zeros(len(kinds), np.int64)
        words, apart = [COUNTERS + self._ports, ROW_WORDS], [0, 0]
        of_aggregates = zip(kinds.tolist(), carried.tolist(), expires_fifo.tolist(), strict=True)
        for a, (kind, of_row, ordered) in enumerate(of_aggregates):
            self.local[a], self.local_apart[a] = words[of_row], apart[of_row]
            of_terms = QUEUE_WORDS if ordered else BAG_WORDS
            words[of_row] += of_terms if kind == TERM else _WORDS.get(kind, 0)
            apart[of_row] += REAL_WORDS if kind == NUMBER else 0
        self.key_size, self.row_size = words
        self._sizes_with_reals = apart
        self.key_apart_size = self.row_apart_size = 0

    def keep_reals(self) -> None:
        """From now on numbers may come that have sums of their own: floats."""
        if [self.key_apart_size, self.row_apart_size] != self._sizes_with_reals:
            self.key_apart_size, self.row_apart_size = self._sizes_with_reals
            self._grow_keys()
            self._grow_rows()
            self.snap_apart = _longer(self.snap_apart, len(self.snap_key) * self.key_apart_size)
            self._show()

    def ensure(self, keys: int, rows: int) -> None:
        """Make room for new keys and rows."""
        if self.keys.ensure(keys):
            self._grow_keys()
        if not self._row_is_key and self.rows.ensure(rows):
            self._grow_rows()

    def _grow_keys(self) -> None:
        keys = self.keys.capacity
        self.key_words = longer_aligned(self.key_words, keys * self.key_size, np.int64)
        self.key_apart = _longer(self.key_apart, keys * self.key_apart_size)
        if self._row_is_key:
            self._grow_rows()

    def _grow_rows(self) -> None:
        rows = self.row_index.capacity
        self.row_words = longer_aligned(self.row_words, rows * self.row_size, np.int64)
        self.row_apart = _longer(self.row_apart, rows * self.row_apart_size)

    def more_snaps(self) -> None:
        """Make room for more keys at one tick."""
        snaps = max(16, 2 * len(self.snap_key))
        self.snap_key = _longer(self.snap_key, snaps)
        self.snap_words = _longer(self.snap_words, snaps * self.key_size)
        self.snap_apart = _longer(self.snap_apart, snaps * self.key_apart_size)

    def more_terms(self) -> None:
        """Make room for more members of bags and monotonic queues."""
        self._terms.grow(self._runs())
        self._heap = self._terms.heap

    def _runs(self) -> list[RunsOf]:
        rows, keys = (self.row_words, self.row_size), (self.key_words, self.key_size)
        return [RunsOf(form, *(rows if of_row else keys), at) for form, of_row, at in self._kept_terms]

    def shrink(self) -> None:
        """Give back room, between two steps, after keys or rows have become much fewer."""
        keys, rows = self.keys.capacity, self.rows.capacity
        kept = self.keys.compact()
        kept_rows, rows = (kept, keys) if self._row_is_key else (self.rows.compact(), rows)
        if kept is not None:
            self.key_words = rows_of(self.key_words, kept, keys, self.keys.capacity)
            self.key_apart = rows_of(self.key_apart, kept, keys, self.keys.capacity)
        if kept_rows is not None:
            self._keep_rows(kept_rows, rows)
        self._terms.shrink(self._runs(), groups_moved=kept is not None or kept_rows is not None)
        self._show()

    def _keep_rows(self, kept: Ids, before: int) -> None:
        """Keep these of `before` rows, and number them anew, also where keys and rows refer to them."""
        self.row_words = rows_of(self.row_words, kept, before, self.row_index.capacity)
        self.row_apart = rows_of(self.row_apart, kept, before, self.row_index.capacity)
        # References are numbers plus one, and 0 is none.
        numbers = np.append(0, new_numbers(kept, before) + 1)
        for words, width, places in (
            (self.key_words, self.key_size, [HEAD]),
            (self.row_words, self.row_size, [NEXT, PREVIOUS]),
        ):
            references = words.reshape(-1, width)
            references[:, places] = numbers[references[:, places]]

    def live_ids(self) -> Iterable[Ids]:
        """Ids that the state may refer to."""
        return (self.keys.live_ids(), self.rows.live_ids(), self._terms.heap)

    @property
    def nbytes(self) -> int:
        arrays = (
            *(self.key_words, self.key_apart, self.row_words, self.row_apart),
            *(self.snap_key, self.snap_words, self.snap_apart, self._terms.heap),
        )
        return self.keys.nbytes + self.rows.nbytes + sum(array.nbytes for array in arrays)


def _longer(array: npt.NDArray[Scalar], size: int) -> npt.NDArray[Scalar]:
    """The array with zeros behind it."""
    return np.concatenate([array, np.zeros(size - len(array), array.dtype)])
