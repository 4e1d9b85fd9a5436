"""A window with PARTITION BY: mappings leave with their elements, in any order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.operators.s2r.arrivals import StreamArrivals
from cqels_py.operators.s2r.partition import Kept
from cqels_py.state.leaf_buffer import SparseLeafBuffer

Int64 = npt.NDArray[np.int64]


class PartitionedWindow:
    """One partitioned window over the leaf mappings of one pattern; a negative mapping carries its ids."""

    def __init__(self, width: int) -> None:
        self._buffer = SparseLeafBuffer(width)

    def advance(self, arrivals: StreamArrivals, kept: Kept, units: Int64, element: Int64, columns: Ids) -> Delta:
        """One step. `units` (n): the numbers of the mappings' units, not falling; `element` (n): positions in the batch."""
        inside = np.isin(units, kept.entered, assume_unique=False)
        units, element, columns = units[inside], element[inside], columns[:, inside]
        buffer = self._buffer
        first = buffer.append(units, columns)
        gone, which = buffer.places_of(kept.left)
        enter_tick = arrivals.step.element_tick[element]
        leave_tick = arrivals.step.element_tick[kept.left_at[which]]
        leave_ids = buffer.columns[:, gone]
        buffer.release(gone)
        stays = np.ones(len(units), np.bool_)
        if len(gone) and gone[-1] >= first:
            # What is pushed out by a later triple of its own element was never there.
            new = np.flatnonzero(gone >= first)
            at_once = new[leave_tick[new] == enter_tick[gone[new] - first]]
            stays[gone[at_once] - first] = False
            leave_tick, leave_ids = np.delete(leave_tick, at_once), np.delete(leave_ids, at_once, axis=1)
        tick = np.concatenate([leave_tick, enter_tick[stays]])
        order = np.argsort(tick, kind="stable")
        sign = np.ones(len(tick), np.int8)
        sign[: len(leave_tick)] = -1
        ids = np.concatenate([leave_ids, columns[:, stays]], axis=1)
        return Delta(tick[order], sign[order], ids[:, order])

    def live_ids(self) -> Iterable[Ids]:
        return (self._buffer.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes
