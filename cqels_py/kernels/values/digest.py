"""The digest XXH64 of bytes, which notices damage; it is no protection against forgery."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.words import word

_P1 = np.uint64(0x9E3779B185EBCA87)
_P2 = np.uint64(0xC2B2AE3D27D4EB4F)
_P3 = np.uint64(0x165667B19E3779F9)
_P4 = np.uint64(0x85EBCA77C2B2AE63)
_P5 = np.uint64(0x27D4EB2F165667C5)
_BITS = np.uint64(64)


@jit_inline
def _rotated(x, bits):
    return (x << np.uint64(bits)) | (x >> (_BITS - np.uint64(bits)))


@jit_inline
def _round(lane, x):
    return _rotated(lane + x * _P2, 31) * _P1


@jit_inline
def _merged(digest, lane):
    return (digest ^ _round(np.uint64(0), lane)) * _P1 + _P4


@jit_flat
def xxh64(data, start, end, seed):
    """XXH64 of data[start:end], of unsigned bytes, as a signed number."""
    seed = np.uint64(seed)
    at = np.int64(start)
    if end - start >= 32:
        a, b, c, d = seed + _P1 + _P2, seed + _P2, seed, seed - _P1
        while at + 32 <= end:
            a = _round(a, word(data, at))
            b = _round(b, word(data, at + 8))
            c = _round(c, word(data, at + 16))
            d = _round(d, word(data, at + 24))
            at += 32
        digest = _rotated(a, 1) + _rotated(b, 7) + _rotated(c, 12) + _rotated(d, 18)
        digest = _merged(_merged(_merged(_merged(digest, a), b), c), d)
    else:
        digest = seed + _P5
    digest += np.uint64(end - start)
    while at + 8 <= end:
        digest = _rotated(digest ^ _round(np.uint64(0), word(data, at)), 27) * _P1 + _P4
        at += 8
    if at + 4 <= end:
        four = np.uint64(0)
        for k in range(4):
            four |= np.uint64(data[at + k]) << np.uint64(8 * k)
        digest = _rotated(digest ^ (four * _P1), 23) * _P2 + _P3
        at += 4
    while at < end:
        digest = _rotated(digest ^ (np.uint64(data[at]) * _P5), 11) * _P1
        at += 1
    digest = (digest ^ (digest >> np.uint64(33))) * _P2
    digest = (digest ^ (digest >> np.uint64(29))) * _P3
    return np.int64(digest ^ (digest >> np.uint64(32)))
