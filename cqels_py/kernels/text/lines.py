"""A survey of a block of text before it is parsed: the number of its lines, and whether it is ASCII."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat

_NEWLINE = 10
_NEWLINES, _LOW_BITS = np.uint64(0x0A0A0A0A0A0A0A0A), np.uint64(0x7F7F7F7F7F7F7F7F)
_PAIRS, _PAIR = np.uint64(0x00FF00FF00FF00FF), np.uint64(0xFFFF)
_7, _8, _16, _32 = np.uint64(7), np.uint64(8), np.uint64(16), np.uint64(32)
_TOGETHER = 255
"""Words whose counts are added per byte before a byte could overflow."""


@jit_flat
def survey(words, rest):
    """Of a text's bytes, eight a word, and its last few, fewer than eight -> (newlines, is it ASCII).

    Over words instead of bytes, as LLVM vectorises these loops: it takes a small part of the time of reading the text
    from a file.
    """
    newlines, seen = np.int64(0), np.uint64(0)
    for first in range(0, len(words), _TOGETHER):
        counts = np.uint64(0)
        for i in range(np.uint64(first), np.uint64(min(first + _TOGETHER, len(words)))):
            word = words[i]
            seen |= word
            other = word ^ _NEWLINES
            # The upper bit of a byte is set if it differs from a newline; each byte that is equal contributes 1.
            counts += (~(((other & _LOW_BITS) + _LOW_BITS) | other) & ~_LOW_BITS) >> _7
        counts = (counts & _PAIRS) + (counts >> _8 & _PAIRS)
        counts += counts >> _16
        counts += counts >> _32
        newlines += np.int64(counts & _PAIR)
    is_ascii = seen & ~_LOW_BITS == np.uint64(0)
    for byte in rest:
        newlines += np.int64(byte == _NEWLINE)
        is_ascii &= byte < 128
    return newlines, is_ascii
