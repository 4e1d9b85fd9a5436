"""Which part of a divided state a mapping belongs to: the hash of one variable's id, the same on every machine."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(33)


def owner_of(ids: Ids, parts: int) -> npt.NDArray[np.int64]:
    """The part (from 0) that each id belongs to."""
    mixed = ids.view(np.uint64) * _MULTIPLIER
    return (((mixed ^ (mixed >> _SHIFT)) * _MULTIPLIER >> _SHIFT) % np.uint64(parts)).astype(np.int64)


@dataclass(frozen=True, slots=True)
class Ownership:
    """Part number `part` of `parts`: it has the mappings whose `variable` has an id that it owns."""

    variable: str
    part: int
    parts: int

    def mine(self, ids: Ids) -> npt.NDArray[np.bool_]:
        owned: npt.NDArray[np.bool_] = owner_of(ids, self.parts) == self.part
        return owned
