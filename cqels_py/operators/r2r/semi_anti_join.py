"""MINUS, NOT EXISTS and EXISTS (Algorithm 8): anti-join and semi-join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta, SignColumn, TickColumn, first_rows, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.joins import semi_anti_join as kernel
from cqels_py.kernels.primitives.dtypes import INT8, INT32, INT64
from cqels_py.kernels.structures import ring_index
from cqels_py.operators.r2r.join import LeafRows, merged_rows, room_for
from cqels_py.state.join_state import OUT_ROWS, JoinLayout, JoinPort, JoinState

LEFT, RIGHT = 0, 1


class SemiAntiJoin:
    """Left mappings for which there is no right mapping with the same key (anti-join) or, with `exists`, for which
    there is one (semi-join).

    `variables`: those of the left input; `key`: those shared with the right input, which has only these columns, in
    their order on the left. All of them are bound on both sides.
    """

    STATE = ("state",)

    def __init__(
        self, variables: Sequence[str], key: Sequence[str], expires_fifo: Sequence[bool], *, exists: bool = False
    ) -> None:
        number = {name: i for i, name in enumerate(variables)}
        ports = [
            JoinPort(tuple(range(len(variables))), expires_fifo[LEFT]),
            JoinPort(tuple(number[name] for name in key), expires_fifo[RIGHT]),
        ]
        self.layout = JoinLayout(ports, frozenset())
        self.state = JoinState(self.layout)
        self._widths = [len(variables), len(key)]
        # A number is passed to a kernel faster than a bool.
        self.exists = int(exists)
        self.counts_right = all(expires_fifo) and len(key) == 1

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for deltas in in_blocks(inputs, self._widths):
            if any(len(delta.tick) for delta in deltas):
                yield from self._kept(deltas)

    def _kept(self, deltas: Sequence[Delta]) -> Iterator[Delta]:
        """The changes caused by one block."""
        rows = merged_rows(self.state, deltas)
        self.state.cursor[: ring_index.PROBES] = 0
        return self._rest(rows, room_for(len(rows.tick)))

    def resume(self, rows: LeafRows, made: Delta) -> Iterator[Delta]:
        """Go on with rows of which the kernel has made the first chunk of results, until it was full."""
        yield made
        yield from self._rest(rows, OUT_ROWS)

    def _rest(self, rows: LeafRows, room: int) -> Iterator[Delta]:
        """Take in rows from the cursor on. `room`: that of the next chunk."""
        state = self.state
        cursor, status = state.cursor, ring_index.OUT_FULL
        while status != ring_index.DONE:
            columns = np.empty((self._widths[LEFT], room), INT64)
            out_tick, out_sign = np.empty(room, INT32), np.empty(room, INT8)
            room = OUT_ROWS
            cursor[ring_index.OUT] = 0
            while True:
                status = self._step(rows, columns, out_tick, out_sign)
                if status in (ring_index.DONE, ring_index.OUT_FULL):
                    break
                state.grow(status)
            made = cursor.item(ring_index.OUT)
            if made:
                yield first_rows(out_tick, out_sign, columns, made)
        rows.release(state)

    def _step(self, rows: LeafRows, columns: Ids, tick: TickColumn, sign: SignColumn) -> int:
        """Take in rows until the chunk is full, or an array of the state is: returns the status."""
        if self.counts_right:
            return kernel.step_counting_right(  # type: ignore[no-any-return]
                rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.exists, columns, tick, sign
            )
        return kernel.step(  # type: ignore[no-any-return]
            rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.exists, columns, tick, sign
        )

    @property
    def probes(self) -> int:
        """The number of keys looked up in the rings so far."""
        return int(self.state.cursor[ring_index.PROBES])

    def live_ids(self) -> Iterable[Ids]:
        return (self.state.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self.state.nbytes
