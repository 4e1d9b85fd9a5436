"""The state of an event automaton: nodes in a ring, the hash table of their lists' heads, and the matches that stand.

A node takes 40 bytes and 8 for each value that its event adds, and the table 4 bytes for each of its slots.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, insertions
from cqels_py.kernels.patterns import runs as kernel
from cqels_py.kernels.patterns.start_heap import LONGEST, TREE_FIELDS
from cqels_py.kernels.primitives.state_record import ArrayTable, StateArray, StateRecord
from cqels_py.state.arrays import SHRINK_FROM
from cqels_py.state.ordered_rows import OrderedRows
from cqels_py.state.stop import Stop

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]
_FIRST_ROOM = 64
_LEAST_SHRUNK = 4096
_LEAST_REBUILT = 4096
"""Slots: rebuilding takes 20 µs even if there is little to do."""


class TermTexts(Protocol):
    """Where kernels find the texts of hashed terms."""

    def texts(self) -> tuple[npt.NDArray[np.uint8], Int64]: ...


class MatchState(StateRecord):
    """Nodes, lists and standing matches. `program`: the automaton's arrays, in the order of the kernel. `values`: the terms' texts.

    `width`: of a node's row. `variables`: how many values a run binds. `outputs`: columns of a match. `longest_key`: of a key.
    """

    _words = StateArray[np.int64](kernel.NODES)
    _links = StateArray[np.int32](kernel.LINKS)
    _heads = StateArray[np.int32](kernel.TABLE)
    _meta = StateArray[np.int64](kernel.META)
    _stack = StateArray[np.int64](kernel.STACK)
    _bound = StateArray[np.int64](kernel.BOUND)
    _key = StateArray[np.int64](kernel.KEY)
    _stand = StateArray[np.int64](kernel.STAND)
    _stand_next = StateArray[np.int64](kernel.STAND_NEXT)
    _best = StateArray[np.int64](kernel.BEST)
    _oldest = StateArray[np.int64](kernel.OLDEST)
    _pending = StateArray[np.int64](kernel.PENDING)
    _trees = StateArray[np.int64](kernel.TREES)
    _out = StateArray[np.int64](kernel.OUT)
    _stop_word = StateArray[np.int64](kernel.STOP)
    STATE = ("_nodes", "_trees", "_heads", "_oldest", "_meta", "_stand", "_stand_next")

    def __init__(
        self,
        program: Sequence[Int64],
        values: TermTexts,
        *,
        width: int,
        variables: int,
        outputs: int,
        longest_key: int,
    ) -> None:
        self._values = values
        self.stop = Stop()
        self._stop_word = self.stop.word
        self.program = ArrayTable(*program)
        self._from_oldest = bool(program[kernel.LIMITS][kernel.POLICY] == kernel.EARLIEST)
        self._width = width
        self._kept = bool(program[kernel.LIMITS][kernel.KEPT])
        self._outputs = outputs
        self._most_nodes = program[kernel.LIMITS].item(kernel.MOST_NODES)
        self._nodes = np.zeros((_FIRST_ROOM, kernel.FIELDS + width + (self._from_oldest or self._kept)), np.int64)
        self._trees = np.zeros((_FIRST_ROOM if program[kernel.LIMITS][kernel.MOST_TREES] else 1, TREE_FIELDS), np.int64)
        self._heads = np.zeros(_FIRST_ROOM, np.int32)
        self._oldest = np.zeros(_FIRST_ROOM if self._from_oldest else 1, np.int64)
        self._pending = np.zeros(2 * LONGEST, np.int64)
        self._meta = np.zeros(kernel.META_FIELDS, np.int64)
        self._meta[[kernel.NEXT, kernel.TAIL, kernel.NEXT_TREE, kernel.TREES_TAIL]] = 1
        self._meta[[kernel.ELEMENT, kernel.FLOOR]] = -1
        self._stack = np.zeros((16, kernel.STACK_FIELDS), np.int64)
        self._bound = np.zeros((16, variables), np.int64)
        self._best = np.zeros((2, 16), np.int64)
        self._key = np.zeros(max(1, longest_key), np.int64)
        self._stand = np.zeros((_FIRST_ROOM, outputs), np.int64)
        self._stand_next = np.zeros(_FIRST_ROOM, np.int64)
        self._out = self._room_for(_FIRST_ROOM)

    @property
    def _nodes(self) -> Int64:
        """The ring of nodes; their links are 32-bit integers in the same memory."""
        return self._words

    @_nodes.setter
    def _nodes(self, nodes: Int64) -> None:
        self._words = nodes
        self._links = nodes.reshape(-1).view(np.int32)

    @property
    def positions(self) -> int:
        """How many elements have had a position."""
        return self._meta.item(kernel.POSITIONS)

    @positions.setter
    def positions(self, count: int) -> None:
        self._meta[kernel.POSITIONS] = count

    @property
    def most_steps(self) -> int:
        """The most nodes that one row of an event has made."""
        return self._meta.item(kernel.MOST_STEPS)

    @property
    def most_between(self) -> int:
        """The most nodes that were visited before a match, after the match before it or at the end of a search."""
        return self._meta.item(kernel.MOST_BETWEEN)

    @property
    def longest_union(self) -> int:
        """The most nodes that one insertion into a heap has made."""
        return self._meta.item(kernel.LONGEST_UNION)

    def step(self, rows: Int64, ticks: Int64, position_ticks: Int64, numbers: Int64) -> Int64:
        """Take in a step (see the kernel's `step`); the rows of output, which the next step overwrites."""
        meta = self._meta
        meta[kernel.MADE] = at = 0
        while True:
            at = kernel.step(self.program.address, self.address, rows, at, ticks, position_ticks, numbers, self._out)
            if at > len(rows):
                break
            self.make_room()
        if len(self._words) > max(_LEAST_SHRUNK, 8 * self._live_nodes):
            self._shrink_to(len(self._words) // 2)
        return self._out[: meta.item(kernel.MADE)]

    def found(self) -> Delta:
        """The matches of the last step."""
        found = self._out[: self._meta.item(kernel.MADE)]
        tick, sign = found[:, kernel.OUT_TICK].astype(np.int32), found[:, kernel.OUT_SIGN].astype(np.int8)
        return Delta(tick, sign, found[:, kernel.OUT_VALUES :].T)

    @property
    def _live_nodes(self) -> int:
        return self._meta.item(kernel.NEXT) - self._meta.item(kernel.TAIL)

    def _shrink_to(self, size: int) -> None:
        """Give memory back after a burst: a smaller ring of nodes, and a table without heads of dead lists."""
        self._nodes = _resized(self._words, self._meta.item(kernel.TAIL), self._meta.item(kernel.NEXT), size)
        self._rebuild()

    def shrink(self) -> None:
        """Give back room, between two steps, after nodes have become much fewer."""
        size = max(_FIRST_ROOM, 1 << self._live_nodes.bit_length())
        if SHRINK_FROM * size <= len(self._words):
            self._shrink_to(size)
        first, following = self._meta.item(kernel.TREES_TAIL), self._meta.item(kernel.NEXT_TREE)
        size = max(_FIRST_ROOM, 1 << (following - first).bit_length())
        if SHRINK_FROM * size <= len(self._trees):
            self._trees = _resized(self._trees, first, following, size)

    def make_room(self) -> None:
        """The reason for which the kernel has stopped. Stopped, if it is to stop altogether."""
        self.stop.look()
        meta = self._meta
        missing = meta.item(kernel.MISSING)
        if meta[kernel.TIED]:
            self._choose()
        elif missing == kernel.NODE_ROOM:
            self._nodes = _resized(self._words, meta.item(kernel.TAIL), meta.item(kernel.NEXT), 2 * len(self._words))
        elif missing == kernel.TREE_ROOM:
            self._trees = _resized(
                self._trees, meta.item(kernel.TREES_TAIL), meta.item(kernel.NEXT_TREE), 2 * len(self._trees)
            )
        elif missing == kernel.TABLE_ROOM:
            self._rebuild()
        elif missing == kernel.RUN_ROOM:
            self._grow_runs()
        elif missing == kernel.STANDING_ROOM:
            self._grow_standing()
        elif missing == kernel.OUTPUT_ROOM:
            self._grow_output()

    def _choose(self) -> None:
        """Of the best matches of an element, which have the same positions, the first in term order is delivered."""
        meta = self._meta
        first, made = meta.item(kernel.ELEMENT_MADE), meta.item(kernel.MADE)
        if self._outputs:
            columns = self._out[first:made, kernel.OUT_VALUES :]
            ordered = OrderedRows(self._outputs, ())
            ordered.take(insertions(columns.T), *self._values.texts())
            same = (columns == ordered.in_order()[:, 0]).all(axis=1)
            self._out[first] = self._out[first + int(same.argmax())]
        meta[kernel.MADE], meta[kernel.TIED] = first + 1, 0

    def _rebuild(self) -> None:
        """A table without the heads of dead lists, and with room for as many as are there."""
        used = self._heads[self._heads != 0]
        heads = int(np.count_nonzero(used >= self._meta[kernel.TAIL] - self._meta[kernel.BASE]))
        size = _LEAST_REBUILT
        # At least a third of it is filled before the next time.
        while size < 3 * (heads + self._most_nodes):
            size *= 2
        old, self._heads = self._heads, np.zeros(size, np.int32)
        old_oldest, self._oldest = self._oldest, np.zeros(size if self._from_oldest else 1, np.int64)
        kernel.rebuild(self.program.address, self.address, old, old_oldest)

    def _grow_output(self) -> None:
        made = self._meta.item(kernel.MADE)
        larger = self._room_for(2 * len(self._out))
        larger[:made] = self._out[:made]
        self._out = larger

    def _grow_runs(self) -> None:
        """Room for longer runs."""
        self._stack = np.concatenate([self._stack, np.zeros_like(self._stack)])
        self._pending = np.concatenate([self._pending, np.zeros_like(self._pending)])
        self._bound = np.concatenate([self._bound, np.zeros_like(self._bound)])
        self._best = np.concatenate([self._best, np.zeros_like(self._best)], axis=1)

    def _grow_standing(self) -> None:
        """Room for the matches of the element at hand, and for as many as there are."""
        more = self._meta.item(kernel.MADE) - self._meta.item(kernel.ELEMENT_MADE) + len(self._stand_next)
        self._stand = np.concatenate([self._stand, np.zeros((more, self._outputs), np.int64)])
        self._stand_next = np.concatenate([self._stand_next, np.zeros(more, np.int64)])

    def _room_for(self, rows: int) -> Int64:
        return np.empty((rows, kernel.OUT_VALUES + self._outputs), np.int64)

    def live_ids(self) -> Iterator[Int64]:
        """The values of live nodes and of standing matches."""
        numbers = np.arange(self._meta.item(kernel.TAIL), self._meta.item(kernel.NEXT))
        yield self._words[numbers & (len(self._words) - 1), kernel.FIELDS : kernel.FIELDS + self._width].reshape(-1)
        yield self._stand.reshape(-1)

    @property
    def nbytes(self) -> int:
        arrays = (
            self._words,
            self._trees,
            self._heads,
            self._oldest,
            self._pending,
            self._stack,
            self._bound,
            self._stand,
            self._stand_next,
            self._out,
        )
        return sum(array.nbytes for array in arrays)


def _resized(ring: Int64, first: int, following: int, size: int) -> Int64:
    """A ring of this size with the rows of these numbers."""
    numbers = np.arange(first, following)
    resized = np.zeros((size, ring.shape[1]), np.int64)
    resized[numbers & (size - 1)] = ring[numbers & (len(ring) - 1)]
    return resized
