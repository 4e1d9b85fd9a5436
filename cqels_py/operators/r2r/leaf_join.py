"""Operators over the leaves of their inputs, merged by tick: the joins, the semi-join and the anti-join."""

from __future__ import annotations

import itertools
from abc import ABC, abstractmethod
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, SignColumn, first_rows, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.structures import ring_index
from cqels_py.kernels.windows.merge import merge_rows
from cqels_py.state.join_state import OUT_ROWS, Blocks, JoinState
from cqels_py.state.stop import Stop

_FEWEST_OUT_ROWS, _OUT_ROWS_EACH = 1024, 8


@dataclass(slots=True)
class LeafRows:
    """One step's input rows of all ports, merged by tick; their ids are in the leaf cells at `slot` of `port`.

    `placed`: the temporary slots of retractions in ports that are not FIFO.
    """

    port: npt.NDArray[np.int32]
    slot: npt.NDArray[np.int32]
    tick: npt.NDArray[np.int32]
    sign: npt.NDArray[np.int8]
    placed: npt.NDArray[np.int32]

    def release(self, state: JoinState) -> None:
        """Free the slots of retracted leaves (now in `slot`) and the temporary slots, in ports that are not FIFO."""
        for p, port in enumerate(state.layout.ports):
            if not port.expires_fifo:
                retracted = (self.port == p) & (self.sign < 0)
                if retracted.any():
                    state.release(p, np.concatenate([self.slot[retracted], self.placed[retracted]]))


def merged_rows(state: JoinState, deltas: Sequence[Delta]) -> LeafRows:
    """Copy the rows of all inputs into their ports' leaf cells, and merge them by tick."""
    lengths = [len(delta.tick) for delta in deltas]
    rows = sum(lengths)
    slots = np.empty(rows, INT32)
    if max(lengths) == rows:
        port = lengths.index(rows)
        delta = deltas[port]
        while ring_index.load(port, state.address, delta.columns, delta.sign, slots) == ring_index.LEAVES_FULL:
            state.ensure_leaves(needed_leaves(state, [each.sign for each in deltas]))
        merged = np.full(rows, port, INT32), slots, delta.tick, delta.sign
    else:
        # Room is made for all ports before: that changes the slots of leaves.
        if not state.has_room(lengths):
            state.ensure_leaves(needed_leaves(state, [each.sign for each in deltas]))
        starts = [0, *itertools.accumulate(lengths)]
        for p, delta in enumerate(deltas):
            if lengths[p]:
                ring_index.load(p, state.address, delta.columns, delta.sign, slots[starts[p] : starts[p + 1]])
        ticks = np.concatenate([delta.tick for delta in deltas])
        signs = np.concatenate([delta.sign for delta in deltas])
        merged = (np.empty(rows, INT32), np.empty(rows, INT32), np.empty(rows, INT32), np.empty(rows, INT8))
        merge_rows(ticks, signs, slots, np.array(starts, np.int64), *merged)
    placed = merged[1] if all(port.expires_fifo for port in state.layout.ports) else merged[1].copy()
    return LeafRows(*merged, placed=placed)


def needed_leaves(state: JoinState, signs: Sequence[SignColumn]) -> list[int]:
    """The number of leaves that each port needs room for, by the signs of its rows: a FIFO port only for insertions."""
    return [
        int(np.count_nonzero(sign > 0)) if port.expires_fifo else len(sign)
        for port, sign in zip(state.layout.ports, signs, strict=True)
    ]


def room_for(rows: int) -> int:
    """Room for results in a step's first chunk; few rows mostly have few results. It is more than a step program has."""
    return min(OUT_ROWS, _FEWEST_OUT_ROWS + _OUT_ROWS_EACH * rows)


class ResultChunk:
    """A chunk that kernels fill with results. `made`: those that it begins with."""

    def __init__(self, width: int, room: int, made: Delta | None = None) -> None:
        self.tick, self.sign = np.empty(room, INT32), np.empty(room, INT8)
        self.columns = np.empty((width, room), INT64)
        self.begins_with = 0 if made is None else len(made)
        if made is not None:
            first = slice(self.begins_with)
            self.tick[first], self.sign[first], self.columns[:, first] = made.tick, made.sign, made.columns

    def rows(self, count: int) -> Delta:
        """So many, the first ones."""
        return first_rows(self.tick, self.sign, self.columns, count)


class LeafJoin(ABC):
    """Base of operators whose kernel takes in the rows of all inputs, one after the other, and fills chunks with results.

    `widths`: the numbers of columns of the inputs; `width`: that of the results.
    """

    STATE = ("state",)

    def __init__(self, state: JoinState, widths: Sequence[int], width: int) -> None:
        self.layout, self.state = state.layout, state
        self._widths, self._width = widths, width

    @abstractmethod
    def _step(self, rows: LeafRows, chunk: ResultChunk, blocks: Blocks | None) -> int:
        """Take in rows from the cursor on until the chunk is full, or an array of the state is: returns the status."""

    def _borrow_blocks(self) -> Blocks | None:
        """The memory in which the kernel works during a step, if it needs any."""
        return None

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for deltas in in_blocks(inputs, self._widths):
            if any(len(delta.tick) for delta in deltas):
                rows = merged_rows(self.state, deltas)
                self.state.cursor[: ring_index.PROBES] = 0
                yield from self.resume(rows, None, self._borrow_blocks())

    def resume(self, rows: LeafRows, made: Delta | None, blocks: Blocks | None) -> Iterator[Delta]:
        """Take in the rows from the cursor on, and deliver each full chunk of results; `blocks` are given back.

        `made`: the first results, which have been made until there was no room. The chunks are the same as without: GROUP BY takes
        in chunk by chunk, which decides the order of its results within a tick.
        """
        state, cursor = self.state, self.state.cursor
        chunk = ResultChunk(self._width, room_for(len(rows.tick)), made)
        try:
            while True:
                state.stop.look()
                cursor[ring_index.OUT] = chunk.begins_with
                while True:
                    status = self._step(rows, chunk, blocks)
                    if status in (ring_index.DONE, ring_index.OUT_FULL):
                        break
                    state.grow(status)
                count = cursor.item(ring_index.OUT)
                if count:
                    yield chunk.rows(count)
                if status == ring_index.DONE:
                    break
                chunk = ResultChunk(self._width, OUT_ROWS)
            rows.release(state)
        finally:
            if blocks is not None:
                state.give_back(blocks)

    @property
    def probes(self) -> int:
        """The number of lookups in ring indexes so far: the work that regression tests count."""
        return int(self.state.cursor[ring_index.PROBES])

    @property
    def stop(self) -> Stop:
        """Where others ask it to stop."""
        return self.state.stop

    def live_ids(self) -> Iterable[Ids]:
        return (self.state.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self.state.nbytes
