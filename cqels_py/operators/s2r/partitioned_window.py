"""A window with PARTITION BY: mappings leave with their elements, in any order."""

from __future__ import annotations

from collections.abc import Iterable

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.operators.s2r.partition import Kept
from cqels_py.state.leaf_buffer import SparseLeafBuffer

Int64 = npt.NDArray[np.int64]


class PartitionedWindow:
    """One partitioned window over the leaf mappings of one pattern; a negative mapping carries its ids."""

    def __init__(self, width: int) -> None:
        self._buffer = SparseLeafBuffer(width)

    def advance(self, kept: Kept, units: Int64, columns: Ids) -> Delta:
        """One step. `units` (n): the numbers of the mappings' units, not falling."""
        inside = np.isin(units, kept.accepted)
        buffer = self._buffer
        buffer.append(units[inside], columns[:, inside])
        unseen, _ = buffer.places_of(kept.unseen)
        buffer.release(unseen)
        coming, enters = buffer.places_of(kept.entered)
        gone, leaves = buffer.places_of(kept.left)
        tick = np.concatenate([kept.left_tick[leaves], kept.entered_tick[enters]])
        order = np.argsort(tick, kind="stable")
        sign = np.ones(len(tick), np.int8)
        sign[: len(gone)] = -1
        ids = buffer.columns[:, np.concatenate([gone, coming])[order]]
        buffer.release(gone)
        return Delta(tick[order], sign[order], ids)

    def live_ids(self) -> Iterable[Ids]:
        return (self._buffer.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._buffer.nbytes
