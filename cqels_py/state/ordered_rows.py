"""A changing bag of rows in order: the state of ORDER BY, LIMIT and OFFSET."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, first_rows
from cqels_py.batches.elements import Ids
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.rows import top as kernel
from cqels_py.kernels.structures import ordered_blocks
from cqels_py.state.arrays import new_numbers
from cqels_py.state.key_table import KeyTable

_ENDLESS = 1 << 60


class OrderedRows(StateRecord):
    """A bag of rows by the values of `order` (column, descending), ties by all columns in term order.

    `offset`, `limit` (None: endless): the slice whose changes `take` returns. `by`: the columns of a key; the rows of each key have
    a slice of their own.
    """

    _blocks = StateArray[np.int64](kernel.BLOCKS)
    _directory = StateArray[np.int64](kernel.DIRECTORY)
    _state = StateArray[np.int64](kernel.STATE)
    _by = StateArray[np.int64](kernel.BY)
    _columns = StateArray[np.int64](kernel.COLUMNS)
    _descending = StateArray[np.bool_](kernel.DESCENDING)
    _slice = StateArray[np.int64](kernel.SLICE)

    STATE = ("_index", "_blocks", "_directory", "_state")

    def __init__(
        self,
        width: int,
        order: Sequence[tuple[int, bool]],
        offset: int = 0,
        limit: int | None = None,
        by: Sequence[int] = (),
    ) -> None:
        self._width = width
        self._by = np.array(by, np.int64)
        self._columns = np.array([column for column, _ in order], np.int64)
        self._descending = np.array([descending for _, descending in order], np.bool_)
        self._slice = np.array([min(offset, _ENDLESS), _ENDLESS if limit is None else min(limit, _ENDLESS)], np.int64)
        self._index = KeyTable(width)
        self._blocks = np.zeros((0, ordered_blocks.SIZE), np.int64)
        self._directory = np.zeros((2, 0), np.int64)
        self._state = np.zeros(kernel.STATE_FIELDS, np.int64)
        self._state[ordered_blocks.FREE] = -1

    @property
    def index_address(self) -> int:
        """That of its index, for kernels."""
        return self._index.address

    def make_room(self, rows: int) -> None:
        """Make room for so many more."""
        self._index.ensure(rows)
        had = len(self._blocks)
        needed = kernel.blocks_for(int(self._state[ordered_blocks.USED]), rows)
        if needed <= had:
            return
        self._add_blocks(max(needed, had * 5 // 4) - had)

    def _add_blocks(self, new: int) -> None:
        had = len(self._blocks)
        self._blocks = np.concatenate([self._blocks, np.zeros((new, ordered_blocks.SIZE), np.int64)])
        self._directory = np.concatenate([self._directory, np.zeros((2, new), np.int64)], axis=1)
        # A free list: each free block has the number of the next one.
        self._blocks[had:, 0] = np.append(np.arange(had + 1, had + new), self._state[ordered_blocks.FREE])
        self._state[ordered_blocks.FREE] = had

    def shrink(self) -> None:
        """Give back room, between two steps, after rows have become much fewer."""
        before, kept = self._index.capacity, self._index.compact()
        if kept is None:
            return
        numbers, used = new_numbers(kept, before), int(self._state[ordered_blocks.USED])
        of, counts = self._directory[:, :used]
        blocks = np.zeros((used, ordered_blocks.SIZE), np.int64)
        filled = np.arange(ordered_blocks.SIZE) < counts[:, np.newaxis]
        blocks[filled] = numbers[self._blocks[of][filled]]
        self._blocks, self._directory = blocks, np.array([np.arange(used), counts])
        self._state[ordered_blocks.FREE] = -1
        self._add_blocks(used // 4 + 1)

    def take(self, delta: Delta, texts: npt.NDArray[np.uint8], spans: npt.NDArray[np.int64]) -> Delta:
        """Insert and retract rows. Returns the changes of the slice, by tick; within a tick a row may enter it and leave it.

        `texts`, `spans`: where kernels find the texts of hashed terms.
        """
        rows = len(delta)
        out = np.empty((self._width, 2 * rows), np.int64)
        tick, sign = np.empty(2 * rows, np.int32), np.empty(2 * rows, np.int8)
        given = (
            delta.tick, delta.sign, delta.columns, self.address, self._index.address, texts, spans, out, tick, sign
        )  # fmt: skip
        status, made = kernel.take(*given)
        if status == kernel.ROWS_FULL:
            self.make_room(rows)
            status, made = kernel.take(*given)
        assert status == kernel.DONE, "a retracted mapping was never inserted"
        return first_rows(tick, sign, out, made)

    def in_order(self) -> Ids:
        """(width, n): all rows, each as often as it is there."""
        used = int(self._state[ordered_blocks.USED])
        runs = self._directory[:, :used].T.tolist()
        entries = np.concatenate([self._blocks[block, :count] for block, count in runs] or [np.zeros(0, np.int64)])
        return self._index.keys.reshape(-1, max(self._width, 1))[entries, : self._width].T

    def live_ids(self) -> Ids:
        return self._index.live_ids()

    @property
    def nbytes(self) -> int:
        return self._index.nbytes + self._blocks.nbytes + self._directory.nbytes
