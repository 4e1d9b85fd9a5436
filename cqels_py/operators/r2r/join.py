"""The n-ary join (section 3.1, Algorithms 4 and 5)."""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, first_rows, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.joins import multiway as kernel
from cqels_py.kernels.joins import star as star_kernel
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.structures import ring_index
from cqels_py.kernels.windows.merge import merge_rows
from cqels_py.state.join_state import OUT_ROWS, Blocks, JoinLayout, JoinPort, JoinState

_FEWEST_OUT_ROWS, _OUT_ROWS_EACH = 128, 8


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
            state.ensure_leaves(_needed_leaves(state, deltas))
        merged = np.full(rows, port, INT32), slots, delta.tick, delta.sign
    else:
        # Room is made for all ports before: that changes the slots of leaves.
        if not state.has_room(lengths):
            state.ensure_leaves(_needed_leaves(state, deltas))
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


def _needed_leaves(state: JoinState, deltas: Sequence[Delta]) -> list[int]:
    """The number of leaves that each port needs room for: a FIFO port only for insertions."""
    return [
        int(np.count_nonzero(delta.sign > 0)) if port.expires_fifo else len(delta.sign)
        for port, delta in zip(state.layout.ports, deltas, strict=True)
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


def layout_of(
    inputs: Sequence[Sequence[str]], expires_fifo: Sequence[bool], maybe_unbound: frozenset[str]
) -> JoinLayout:
    """The layout of a join of inputs with these variables; arguments as of `MultiwayJoin`."""
    names = dict.fromkeys(name for variables in inputs for name in variables)
    number = {name: i for i, name in enumerate(names)}
    ports = [
        JoinPort(tuple(number[name] for name in variables), ordered)
        for variables, ordered in zip(inputs, expires_fifo, strict=True)
    ]
    return JoinLayout(ports, frozenset(number[name] for name in maybe_unbound))


class MultiwayJoin:
    """Joins n inputs on their common variables.

    `inputs`: the variables of each input; `expires_fifo`: is the input FIFO, so that its retractions come in the order of
    its insertions? `maybe_unbound`: variables that may be unbound in some input. `output`: the variables of the result, in
    order. `retract`: results are retracted when one of their leaves is; otherwise the consumer knows how long they
    live.
    """

    STATE = ("state",)

    def __init__(
        self,
        inputs: Sequence[Sequence[str]],
        expires_fifo: Sequence[bool],
        output: Sequence[str],
        *,
        maybe_unbound: frozenset[str] = frozenset(),
        retract: bool = True,
    ) -> None:
        self.layout = layout_of(inputs, expires_fifo, maybe_unbound)
        self.state = JoinState(self.layout, rings_of_ids=True)
        # A number is passed to a kernel faster than a bool.
        self.retract, self.all_known = int(retract), int(self.state.all_known)
        self._widths = [len(variables) for variables in inputs]
        self._find_sources(inputs, output, maybe_unbound)

    def _find_sources(
        self, inputs: Sequence[Sequence[str]], output: Sequence[str], maybe_unbound: frozenset[str]
    ) -> None:
        """Find the sources of the columns of a result: any input that has them, except that one may be unbound there."""
        having = [[p for p, variables in enumerate(inputs) if name in variables] for name in output]
        out_ports = np.array(
            [
                sum(1 << p for p in (ports if name in maybe_unbound else ports[:1]))
                for name, ports in zip(output, having, strict=True)
            ],
            np.int64,
        )
        of_output = np.array([sum(1 << p for p in ports) for ports in having], np.int64)
        own = [list(v).index(name) if name in v else -1 for v in inputs for name in output]
        layout = self.layout
        self.asked = ArrayTable(
            out_ports, of_output, np.array(own, np.int64), layout.options, self.state.known, layout.source_first, layout.sources,
            layout.check_first, layout.checks,
        )  # fmt: skip
        self._width = len(out_ports)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for deltas in in_blocks(inputs, self._widths):
            if any(len(delta.tick) for delta in deltas):
                yield from self._joined(deltas)

    def _joined(self, deltas: Sequence[Delta]) -> Iterator[Delta]:
        """The results of one block."""
        state = self.state
        rows = merged_rows(state, deltas)
        if state.layout.star:
            yield from self._chunks(rows, None)
            return
        blocks = state.borrow_blocks()
        try:
            yield from self._chunks(rows, blocks)
        finally:
            state.give_back(blocks)

    def _chunks(self, rows: LeafRows, blocks: Blocks | None) -> Iterator[Delta]:
        """Process rows, and deliver each full chunk of results. `blocks`: see `_step`."""
        self.state.cursor[: ring_index.PROBES] = 0
        return self._rest(rows, blocks, ResultChunk(self._width, room_for(len(rows.tick))))

    def resume(self, rows: LeafRows, made: Delta, blocks: Blocks | None) -> Iterator[Delta]:
        """Go on with rows of which the first results have been made, until there was no room. `blocks`: see `_step`.

        The chunks are those of `process`: GROUP BY takes in chunk by chunk, which decides the order of its results within a tick.
        """
        try:
            yield from self._rest(rows, blocks, ResultChunk(self._width, room_for(len(rows.tick)), made))
        finally:
            if blocks is not None:
                self.state.give_back(blocks)

    def _rest(self, rows: LeafRows, blocks: Blocks | None, chunk: ResultChunk) -> Iterator[Delta]:
        """Process rows from the cursor on; the first results fill `chunk`."""
        state = self.state
        cursor = state.cursor
        while True:
            cursor[ring_index.OUT] = chunk.begins_with
            while True:
                status = self._step(rows, blocks, chunk)
                if status in (ring_index.DONE, ring_index.OUT_FULL):
                    break
                state.grow(status)
            made = cursor.item(ring_index.OUT)
            if made:
                yield chunk.rows(made)
            if status == ring_index.DONE:
                break
            chunk = ResultChunk(self._width, OUT_ROWS)
        rows.release(state)

    def _step(self, rows: LeafRows, blocks: Blocks | None, chunk: ResultChunk) -> int:
        """Take in rows until the chunk is full, or an array of the state is: returns the status. A star needs no `blocks`."""
        if blocks is None:
            return star_kernel.step(  # type: ignore[no-any-return]
                rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.asked.address, chunk.columns,
                chunk.tick, chunk.sign, self.retract,
            )  # fmt: skip
        return kernel.step(  # type: ignore[no-any-return]
            rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.asked.address, self.all_known,
            blocks.address, chunk.columns, chunk.tick, chunk.sign, self.retract,
        )  # fmt: skip

    @property
    def probes(self) -> int:
        """The number of lookups in ring indexes so far: the work that regression tests count."""
        return int(self.state.cursor[ring_index.PROBES])

    def live_ids(self) -> Iterable[Ids]:
        return (self.state.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self.state.nbytes
