"""MurmurHash3 x64 128, seed 0: the first 64-bit word, over a slice of bytes (Appleby, public domain algorithm).

Equal bit for bit to `mmh3.hash64(data, seed=0, signed=False)[0]`.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.words import word

_C1 = np.uint64(0x87C37B91114253D5)
_C2 = np.uint64(0x4CF5AD432745937F)
_N1 = np.uint64(0x52DCE729)
_N2 = np.uint64(0x38495AB5)
_F1 = np.uint64(0xFF51AFD7ED558CCD)
_F2 = np.uint64(0xC4CEB9FE1A85EC53)
_FIVE = np.uint64(5)
_S27, _S31, _S33 = np.uint64(27), np.uint64(31), np.uint64(33)
_S64 = np.uint64(64)


@jit_inline
def _rotate(x, left):
    return (x << left) | (x >> (_S64 - left))


@jit_inline
def mix64(k):
    """MurmurHash3's finalizer: every bit of the result depends on every bit of `k`."""
    k = (k ^ (k >> _S33)) * _F1
    k = (k ^ (k >> _S33)) * _F2
    return k ^ (k >> _S33)


@jit_inline
def _last(data, at, end):
    """The bytes from `at` to `end`, fewer than eight, as a word: read with the bytes before them if there are eight."""
    if at == end:
        return np.uint64(0)
    if end >= 8:
        return word(data, end - 8) >> np.uint64(8 * (at + 8 - end))
    x = np.uint64(0)
    for i in range(at, end):
        x |= np.uint64(data[i]) << np.uint64(8 * (i - at))
    return x


@jit_flat
def murmur64(data, start, end):
    """The hash of data[start:end] (uint8) as uint64."""
    length = end - start
    h1 = np.uint64(0)
    h2 = np.uint64(0)
    at = start
    while at + 16 <= end:
        k1 = word(data, at)
        k2 = word(data, at + 8)
        h1 ^= _rotate(k1 * _C1, _S31) * _C2
        h1 = (_rotate(h1, _S27) + h2) * _FIVE + _N1
        h2 ^= _rotate(k2 * _C2, _S33) * _C1
        h2 = (_rotate(h2, _S31) + h1) * _FIVE + _N2
        at += 16
    left = end - at
    k1 = word(data, at) if left >= 8 else _last(data, at, end)
    k2 = _last(data, at + 8, end) if left > 8 else np.uint64(0)
    h2 ^= _rotate(k2 * _C2, _S33) * _C1
    h1 ^= _rotate(k1 * _C1, _S31) * _C2
    h1 ^= np.uint64(length)
    h2 ^= np.uint64(length)
    h1 += h2
    h2 += h1
    h1 = mix64(h1)
    h2 = mix64(h2)
    return h1 + h2
