"""Hash functions over ids, for the open-addressing hash tables of the state."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_inline

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_FINAL = np.uint64(0xD6E8FEB86659FD93)
_SHIFT = np.uint64(32)
_SIGNLESS = np.uint64(0x7FFFFFFFFFFFFFFF)


@jit_inline
def mix(value):
    """Hash one id (or a combined key) to 63 bits. Ids of inline terms differ in few bits only."""
    x = np.uint64(value) * _MULTIPLIER
    x = (x ^ (x >> _SHIFT)) * _FINAL
    return np.int64((x ^ (x >> _SHIFT)) & _SIGNLESS)


@jit_inline
def combine(hashed, value):
    """The hash of the ids in `hashed` followed by one more."""
    x = (np.uint64(hashed) + np.uint64(0x9E3779B9)) * _MULTIPLIER
    x = (x ^ (x >> _SHIFT) ^ np.uint64(value)) * _FINAL
    return np.int64((x ^ (x >> _SHIFT)) & _SIGNLESS)
