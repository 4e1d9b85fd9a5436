"""Bytes read, compared and copied eight at a time."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_inline

_I1, _I2, _I3, _I4 = np.uint64(1), np.uint64(2), np.uint64(3), np.uint64(4)
_I5, _I6, _I7 = np.uint64(5), np.uint64(6), np.uint64(7)
_BYTE = np.uint64(255)


@jit_inline
def word(data, at):
    """Eight bytes, little-endian. Indices are unsigned, so LLVM merges this into one load."""
    at = np.uint64(at)
    x = np.uint64(data[at])
    x |= np.uint64(data[at + _I1]) << np.uint64(8)
    x |= np.uint64(data[at + _I2]) << np.uint64(16)
    x |= np.uint64(data[at + _I3]) << np.uint64(24)
    x |= np.uint64(data[at + _I4]) << np.uint64(32)
    x |= np.uint64(data[at + _I5]) << np.uint64(40)
    x |= np.uint64(data[at + _I6]) << np.uint64(48)
    x |= np.uint64(data[at + _I7]) << np.uint64(56)
    return x


@jit_inline
def same(data, start, other, other_start, length):
    """Are `length` bytes of the two arrays equal? Eight at a time; the last eight may overlap those before."""
    if length < 8:
        for k in range(np.uint64(length)):
            if data[np.uint64(start) + k] != other[np.uint64(other_start) + k]:
                return False
        return True
    i = np.int64(8)
    while i < length:
        if word(data, start + i - 8) != word(other, other_start + i - 8):
            return False
        i += 8
    return word(data, start + length - 8) == word(other, other_start + length - 8)


@jit_inline
def _put_word(x, out, at):
    """Eight bytes, little-endian: one store."""
    at = np.uint64(at)
    out[at] = x & _BYTE
    out[at + np.uint64(1)] = (x >> np.uint64(8)) & _BYTE
    out[at + np.uint64(2)] = (x >> np.uint64(16)) & _BYTE
    out[at + np.uint64(3)] = (x >> np.uint64(24)) & _BYTE
    out[at + np.uint64(4)] = (x >> np.uint64(32)) & _BYTE
    out[at + np.uint64(5)] = (x >> np.uint64(40)) & _BYTE
    out[at + np.uint64(6)] = (x >> np.uint64(48)) & _BYTE
    out[at + np.uint64(7)] = x >> np.uint64(56)


@jit_inline
def copy(data, start, end, out, at):
    """Copy data[start:end] to out[at:]. Returns the position after it."""
    length = end - start
    if length >= 8:
        for k in range(0, length - 8, 8):
            _put_word(word(data, start + k), out, at + k)
        _put_word(word(data, end - 8), out, at + length - 8)
    else:
        for k in range(length):
            out[at + k] = data[start + k]
    return at + length
