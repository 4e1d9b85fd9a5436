"""MINUS, NOT EXISTS and EXISTS (Algorithm 8): anti-join and semi-join."""

from __future__ import annotations

from collections.abc import Sequence

from cqels_py.kernels.joins import semi_anti_join as kernel
from cqels_py.operators.r2r.leaf_join import LeafJoin, LeafRows, ResultChunk
from cqels_py.state.join_state import Blocks, JoinLayout, JoinPort, JoinState

LEFT, RIGHT = 0, 1


class SemiAntiJoin(LeafJoin):
    """Left mappings for which there is no right mapping with the same key (anti-join) or, with `exists`, for which
    there is one (semi-join).

    `variables`: those of the left input; `key`: those shared with the right input, which has only these columns, in
    their order on the left. All of them are bound on both sides.
    """

    def __init__(
        self, variables: Sequence[str], key: Sequence[str], expires_fifo: Sequence[bool], *, exists: bool = False
    ) -> None:
        number = {name: i for i, name in enumerate(variables)}
        ports = [
            JoinPort(tuple(range(len(variables))), expires_fifo[LEFT]),
            JoinPort(tuple(number[name] for name in key), expires_fifo[RIGHT]),
        ]
        super().__init__(JoinState(JoinLayout(ports, frozenset())), [len(variables), len(key)], len(variables))
        # A number is passed to a kernel faster than a bool.
        self.exists = int(exists)
        self.counts_right = all(expires_fifo) and len(key) == 1

    def _step(self, rows: LeafRows, chunk: ResultChunk, blocks: Blocks | None) -> int:
        columns, tick, sign = chunk.columns, chunk.tick, chunk.sign
        if self.counts_right:
            return kernel.step_counting_right(  # type: ignore[no-any-return]
                rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.exists, columns, tick, sign
            )
        return kernel.step(  # type: ignore[no-any-return]
            rows.port, rows.slot, rows.tick, rows.sign, self.state.address, self.exists, columns, tick, sign
        )
