"""MINUS, NOT EXISTS and EXISTS (Algorithm 8): anti-join and semi-join."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cqels_py.batches.delta import Delta, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.joins import semi_anti_join as kernel
from cqels_py.kernels.structures import ring_index
from cqels_py.operators.r2r.join import LeafRows, ResultChunk, merged_rows, room_for
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
        return self._rest(rows, ResultChunk(self._widths[LEFT], room_for(len(rows.tick))))

    def resume(self, rows: LeafRows, made: Delta) -> Iterator[Delta]:
        """Go on with rows of which the kernel has made the first results, until there was no room; see `MultiwayJoin.resume`."""
        return self._rest(rows, ResultChunk(self._widths[LEFT], room_for(len(rows.tick)), made))

    def _rest(self, rows: LeafRows, chunk: ResultChunk) -> Iterator[Delta]:
        """Take in rows from the cursor on; the first results fill `chunk`."""
        state = self.state
        cursor = state.cursor
        while True:
            cursor[ring_index.OUT] = chunk.begins_with
            while True:
                status = self._step(rows, chunk)
                if status in (ring_index.DONE, ring_index.OUT_FULL):
                    break
                state.grow(status)
            made = cursor.item(ring_index.OUT)
            if made:
                yield chunk.rows(made)
            if status == ring_index.DONE:
                break
            chunk = ResultChunk(self._widths[LEFT], OUT_ROWS)
        rows.release(state)

    def _step(self, rows: LeafRows, chunk: ResultChunk) -> int:
        """Take in rows until the chunk is full, or an array of the state is: returns the status."""
        columns, tick, sign = chunk.columns, chunk.tick, chunk.sign
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
