"""The N-Triples literals of computed decimals that have no inline id."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.decimals import negate128, split128
from cqels_py.kernels.values.words import copy
from cqels_py.terms.layout import XSD

_END = np.frombuffer(f'"^^<{XSD}decimal>'.encode(), np.uint8).copy()
_QUOTE, _MINUS, _POINT, _ZERO = (ord(c) for c in '"-.0')
MOST_DIGITS = 39
FRAME = 48 + len(_END)
"""Bytes that a literal needs besides its fraction digits."""


@jit_flat
def _write_digits(hi, lo, digits):
    """Write the decimal digits of (hi, lo), which is not negative, to the end of `digits`. Returns where they start."""
    at = len(digits)
    while hi != 0 or lo > np.uint64(0):
        hi, lo, low = split128(hi, lo)
        last = hi == 0 and lo == np.uint64(0)
        for _ in range(18):
            if last and low == 0:
                break
            at -= 1
            digits[at] = _ZERO + low % 10
            low //= 10
    return at


@jit_flat
def write_decimals(numbers, digits, out, offsets):
    """Write decimals (n, 3), each as hi, lo and scale, one after another: literal i is out[offsets[i]:offsets[i + 1]].

    In their canonical form: without trailing zeros in the fraction. `digits` (39): scratch for the digits of one
    decimal.
    """
    top = np.int64(0)
    for i in range(len(numbers)):
        offsets[i] = top
        hi, lo, scale = numbers[i, 0], np.uint64(numbers[i, 1]), numbers[i, 2]
        out[top] = _QUOTE
        top += 1
        if hi < 0:
            hi, lo = negate128(hi, lo)
            out[top] = _MINUS
            top += 1
        start, end = _write_digits(hi, lo, digits), np.int64(len(digits))
        while scale > 0 and end > start and digits[end - 1] == _ZERO:
            end -= 1
            scale -= 1
        point = end - scale
        if point <= start:
            out[top] = _ZERO
            top += 1
        for at in range(start, min(point, end)):
            out[top] = digits[at]
            top += 1
        if scale > 0 and end > start:
            out[top] = _POINT
            top += 1
            for _ in range(start - point):
                out[top] = _ZERO
                top += 1
            for at in range(max(point, start), end):
                out[top] = digits[at]
                top += 1
        top = copy(_END, 0, len(_END), out, top)
    offsets[len(numbers)] = top
