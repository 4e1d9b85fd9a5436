"""A window with PARTITION BY: mappings expire with their elements, in any order."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.operators.s2r.partition import Kept
from cqels_py.state.leaf_buffer import SparseLeafBuffer

Int64 = npt.NDArray[np.int64]


class PartitionedWindow(SparseLeafBuffer):
    """The mappings of one pattern, by the numbers of their units; a negative mapping carries its ids."""

    copies = True

    def advance(self, kept: Kept, units: Int64, columns: Ids) -> Delta:
        """One step. `units` (n): the numbers of the mappings' units, not falling."""
        inside = np.isin(units, kept.accepted)
        self.append(units[inside], columns[:, inside])
        unseen, _ = self.places_of(kept.unseen)
        self.release(unseen)
        entering, enters = self.places_of(kept.entered)
        expiring, expires = self.places_of(kept.expired)
        tick = np.concatenate([kept.expired_tick[expires], kept.entered_tick[enters]])
        order = np.argsort(tick, kind="stable")
        sign = np.ones(len(tick), np.int8)
        sign[: len(expiring)] = -1
        ids = self.columns[:, np.concatenate([expiring, entering])[order]]
        self.release(expiring)
        return Delta(tick[order], sign[order], ids)

    def inside(self, waiting: Int64) -> Ids:
        """The ids (width, n) of the mappings in the window; `waiting`: units that have not entered it yet."""
        places = np.flatnonzero(self._kept[: self._end])
        return self.columns[:, places[~np.isin(self.points[places], waiting)]]
