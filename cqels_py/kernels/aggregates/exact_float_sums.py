"""Exact sums of doubles: retracted members leave no rounding error behind, however large they were.

Every double is a multiple of 2**-1074. Their sum is too, and has up to 2,160 bits with 2**61 members (Kulisch 1971). It
is stored in `sums` (uint32) from `at` on: LOW, TOP, then _DIGITS digits of 32 bits, the lowest first, in two's
complement. Digits before LOW are 0. The words from TOP on are 0 too, but all digits there have the value of the last
digit before TOP, which is 0 or 2**32 - 1 (sign extension). So a sum costs as many digits as its members span, mostly
four or five. An empty sum has no digits.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.prefetch import prefetch

LOW, TOP = 0, 1
_FIRST, _DIGITS = 2, 70
REAL_WORDS = _FIRST + _DIGITS

_DIGIT_BITS = 32
_MASK = np.int64((1 << _DIGIT_BITS) - 1)
_MANTISSA_BITS = 52
_OF_DOUBLE = 3
"""A double spans as many digits."""
_OF_WEIGHT = 2
_SMALLEST = -1074
_MOST_BITS = 1024 - _SMALLEST
_BEYOND = np.float64(2.0**64)


@jit_inline
def prefetch_real(sums, at):
    """Prefetch a sum that will be needed later: its header and the digits of numbers around one."""
    prefetch(sums, at)
    prefetch(sums, at + _FIRST - _SMALLEST // _DIGIT_BITS)


@jit_inline
def _digit(sums, at, i):
    return np.int64(sums[at + _FIRST + i])


@jit_inline
def _put_digit(sums, at, i, digit):
    sums[at + _FIRST + i] = np.uint32(digit & _MASK)


@jit_inline
def _endless(sums, at):
    """The value of all digits from TOP on."""
    top = np.int64(sums[at + TOP])
    return _digit(sums, at, top - 1) if top > 0 else np.int64(0)


@jit_inline
def _reach(sums, at, low, top):
    """Extend the stored digits to `low` … `top`, by sign extension."""
    before, endless = np.int64(sums[at + TOP]), _endless(sums, at)
    if before == 0 or low < np.int64(sums[at + LOW]):
        sums[at + LOW] = np.uint32(low)
    if before < top:
        for i in range(before if before > 0 else low, top):
            _put_digit(sums, at, i, endless)
        sums[at + TOP] = np.uint32(top)


@jit_inline
def _end(sums, at):
    """After an addition: make the last digit equal to the sign extension again."""
    top = np.int64(sums[at + TOP])
    last = _digit(sums, at, top - 1)
    if last != 0 and last != _MASK:
        _put_digit(sums, at, top, _MASK if last >> (_DIGIT_BITS - 1) else np.int64(0))
        sums[at + TOP] = np.uint32(top + 1)


@jit_inline
def add_real(sums, at, value, sign):
    """Add a finite double, or subtract it (`sign` -1)."""
    bits = np.float64(value).view(np.int64)
    exponent = (bits >> _MANTISSA_BITS) & 0x7FF
    mantissa = (bits & ((np.int64(1) << _MANTISSA_BITS) - 1)) | (np.int64(exponent > 0) << _MANTISSA_BITS)
    if mantissa == 0:
        return
    place = max(exponent - 1, np.int64(0))
    first, shift = place // _DIGIT_BITS, place % _DIGIT_BITS
    low = (mantissa & _MASK) << shift
    high = ((mantissa >> _DIGIT_BITS) << shift) + (low >> _DIGIT_BITS)
    digits = (low & _MASK, high & _MASK, high >> _DIGIT_BITS)
    _reach(sums, at, first, first + _OF_DOUBLE + 1)
    # A carry is -1, 0 or 1: the arithmetic shift rounds down.
    delta = sign if bits >= 0 else -sign
    carry, top = np.int64(0), np.int64(sums[at + TOP])
    for i in range(_OF_DOUBLE):
        digit = _digit(sums, at, first + i) + digits[i] * delta + carry
        _put_digit(sums, at, first + i, digit)
        carry = digit >> _DIGIT_BITS
    i = first + _OF_DOUBLE
    while carry != 0 and i < top:
        digit = _digit(sums, at, i) + carry
        _put_digit(sums, at, i, digit)
        carry = digit >> _DIGIT_BITS
        i += 1
    _end(sums, at)


@jit_flat
def add_reals_times(sums, at, other, place, weight):
    """Add another sum, multiplied by the weight."""
    low, top = np.int64(other[place + LOW]), np.int64(other[place + TOP])
    if top == 0 or weight == 0:
        return
    endless = _endless(other, place)
    _reach(sums, at, low, min(max(np.int64(sums[at + TOP]), top + _OF_WEIGHT) + 1, np.int64(_DIGITS)))
    end, size = np.int64(sums[at + TOP]), np.int64(-weight if weight < 0 else weight)
    for part in range(_OF_WEIGHT):
        factor = np.uint64((size >> (part * _DIGIT_BITS)) & _MASK)
        if factor == 0:
            continue
        product, carry = np.uint64(0), np.int64(0)
        for i in range(low, end - part):
            # No overflow of 64 bits: (2**32 - 1)**2 + 2**32 - 1.
            product = np.uint64(_digit(other, place, i) if i < top else endless) * factor + (product >> np.uint64(32))
            step = np.int64(product & np.uint64(_MASK))
            digit = _digit(sums, at, i + part) + (-step if weight < 0 else step) + carry
            _put_digit(sums, at, i + part, digit)
            carry = digit >> _DIGIT_BITS
    while end > low + 1 and _digit(sums, at, end - 1) == _digit(sums, at, end - 2):
        _put_digit(sums, at, end - 1, np.int64(0))
        end -= 1
    sums[at + TOP] = np.uint32(end)


@jit_inline
def clear_reals(sums, at):
    """Set a sum to that of nothing."""
    for i in range(np.int64(sums[at + LOW]), np.int64(sums[at + TOP])):
        _put_digit(sums, at, i, np.int64(0))
    sums[at + LOW] = sums[at + TOP] = np.uint32(0)


@jit_inline
def copy_reals(sums, at, other, place):
    """Copy another sum."""
    clear_reals(sums, at)
    low, top = np.int64(other[place + LOW]), np.int64(other[place + TOP])
    for i in range(low, top):
        _put_digit(sums, at, i, _digit(other, place, i))
    sums[at + LOW], sums[at + TOP] = np.uint32(low), np.uint32(top)


@jit_inline
def _lowest(sums, at):
    """The position of the lowest digit that is not 0, or TOP."""
    i, top = np.int64(sums[at + LOW]), np.int64(sums[at + TOP])
    while i < top and _digit(sums, at, i) == 0:
        i += 1
    return i


@jit_inline
def is_zero(sums, at):
    return _lowest(sums, at) == np.int64(sums[at + TOP])


@jit_inline
def _digit_of_size(sums, at, i, lowest, negative):
    """A digit of the sum's magnitude."""
    if i < lowest:
        return np.int64(0)
    digit = _digit(sums, at, i)
    if not negative:
        return digit
    return (_MASK + 1 - digit if i == lowest else _MASK - digit) & _MASK


@jit_flat
def nearest_real(sums, at):
    """The double nearest to a sum (half to even), infinite where the sum is out of range."""
    lowest, top = _lowest(sums, at), np.int64(sums[at + TOP])
    if lowest == top:
        return 0.0
    negative = _digit(sums, at, top - 1) != 0
    highest = top - 1
    while _digit_of_size(sums, at, highest, lowest, negative) == 0:
        highest -= 1
    first = _digit_of_size(sums, at, highest, lowest, negative)
    second = _digit_of_size(sums, at, highest - 1, lowest, negative)
    third = _digit_of_size(sums, at, highest - 2, lowest, negative)
    length = np.int64(0)
    while first >> length != 0:
        length += 1
    # The uppermost 64 bits; the last of them is a sticky bit for all that follow, which suffices for rounding to 53
    # bits.
    shift = _DIGIT_BITS - length
    upper = ((first << shift) | (second >> length)) & _MASK
    lower = ((second << shift) | (third >> length)) & _MASK
    if (third << shift) & _MASK != 0 or lowest < highest - 2:
        lower |= 1
    rounded = np.float64((np.uint64(upper) << np.uint64(_DIGIT_BITS)) | np.uint64(lower))
    bits = highest * _DIGIT_BITS + length
    if bits > _MOST_BITS or (bits == _MOST_BITS and rounded == _BEYOND):
        real = np.inf
    else:
        real = np.ldexp(rounded, bits - 64 + _SMALLEST)
    return -real if negative else real
