"""Merges the rows of several inputs in order of arrival, for operators whose answer depends on this order."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, SignColumn, TickColumn
from cqels_py.kernels.primitives.dtypes import INT8, INT32
from cqels_py.kernels.windows.merge import merge_rows


@dataclass(frozen=True, slots=True)
class MergedRows:
    """n rows of several inputs: `port` (n), which input, `row` (n), which of its rows, and their ticks and signs."""

    port: npt.NDArray[np.int32]
    row: npt.NDArray[np.int32]
    tick: TickColumn
    sign: SignColumn


def in_order_of_arrival(deltas: Sequence[Delta]) -> MergedRows:
    """Rows of several inputs, one block of each (see `in_blocks`), by tick; within a tick by input, then as they come.

    Where the windows of the inputs are without STEP every arrival is a tick of its own: then this is the order of the elements.
    """
    sizes = [len(delta) for delta in deltas]
    rows = sum(sizes)
    numbers = np.concatenate([np.arange(size, dtype=np.int32) for size in sizes])
    merged = MergedRows(np.empty(rows, INT32), np.empty(rows, INT32), np.empty(rows, INT32), np.empty(rows, INT8))
    starts = np.cumsum([0, *sizes], dtype=np.int64)
    tick, sign = np.concatenate([d.tick for d in deltas]), np.concatenate([d.sign for d in deltas])
    merge_rows(tick, sign, numbers, starts, merged.port, merged.row, merged.tick, merged.sign)
    return merged
