"""Work memory of programs: those of an engine share it, as a step runs to its end before another begins."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.operators.r2r.factorised import Contributions
from cqels_py.state.join_state import Blocks, JoinState

MOST_CONTRIBUTIONS = 64
"""Of a step of an aggregation below a join."""


class SharedBlocks:
    """The blocks of all joins of a shape. `address`: that of a record which tells where they are (kernels/steps/joins.py)."""

    def __init__(self, state: JoinState) -> None:
        self._blocks = state.borrow_blocks()
        self._at = np.array([self._blocks.address], np.int64)
        self._record = ArrayTable(self._at)
        self.address = self._record.address

    def taken(self, state: JoinState) -> Blocks:
        """Calls go on with a step that has begun in the blocks, and give them back: programs get others."""
        blocks, self._blocks = self._blocks, state.borrow_blocks()
        self._at[0] = self._blocks.address
        return blocks


class StepMemory:
    """The work memory of an engine's programs, by shape."""

    def __init__(self) -> None:
        self._blocks: dict[tuple[int, int], SharedBlocks] = {}
        self._numbers: dict[int, Ids] = {}
        self._contributions: dict[tuple[int, bool], Contributions] = {}

    def blocks(self, state: JoinState) -> SharedBlocks:
        """Those of joins of this state's shape."""
        shape = state.n, len(state.groups)
        if shape not in self._blocks:
            self._blocks[shape] = SharedBlocks(state)
        return self._blocks[shape]

    def numbers(self, count: int) -> Ids:
        """Room for so many numbers, which the programs of other operators write to as well."""
        if count not in self._numbers:
            self._numbers[count] = np.empty(count, np.int64)
        return self._numbers[count]

    def contributions(self, width: int, sums: bool) -> Contributions:
        """Room for contributions of so many columns; `sums`: with accumulators, for sums."""
        if (width, sums) not in self._contributions:
            wide = MOST_CONTRIBUTIONS if sums else 0
            self._contributions[width, sums] = Contributions(width, MOST_CONTRIBUTIONS, wide)
        return self._contributions[width, sums]
