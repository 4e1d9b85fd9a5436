"""Decimals that are fractions: a quotient that does not terminate, rounded to 19 digits, as an inline id of dividend
and divisor.

So an average needs no text: 64 bits do not hold 19 digits, but they hold the fraction. An id is dividend / (divisor *
10**scale), in lowest terms: the divisor is above 1 and has no factor 2 or 5, and 10 divides the dividend only where the
scale is 0. The decimal is that fraction, rounded, without trailing zeros.

Which decimals have such an id depends on the decimal alone: those of 18 or 19 significant digits, from 0.1 on, that are
a fraction with dividend * divisor * 10**scale below 10**17. Two such fractions differ by more than their 19th digit, so
there is at most one, and it is a convergent of the decimal's continued fraction.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.llvm_hints import prefer_512_bit_vectors
from cqels_py.kernels.values.decimals import POWERS, REAL_POWERS, _integer, decimal_quotient
from cqels_py.terms.layout import TAG_QUOTIENT, TAG_SHIFT

_DIVIDEND_BITS, _DIVISOR_BITS, _SCALE_SHIFT = 40, 16, 56
_MOST_DIVIDEND, _MOST_DIVISOR, _MOST_SCALE = 1 << (_DIVIDEND_BITS - 1), 1 << _DIVISOR_BITS, 15
_DIVIDEND_MASK, _DIVISOR_MASK = np.int64((1 << _DIVIDEND_BITS) - 1), np.int64(_MOST_DIVISOR - 1)

_TOP = np.int64((TAG_QUOTIENT - 16) << TAG_SHIFT)
_MOST_PRODUCT = 1e17
_SURELY_LONG = 200
"""A fraction with a smaller divisor is never close enough to a decimal of 17 digits to be rounded to it."""
_MOST_FRACTION_DIGITS = 19
_TEN, _HUNDRED, _EIGHTEEN_DIGITS = np.uint64(10), np.uint64(100), np.uint64(10**17)
_COMMON = np.gcd(*np.ogrid[:_SURELY_LONG, :_SURELY_LONG]).astype(np.uint8).reshape(-1)
"""The greatest common divisor of any two integers below that."""
_PLACES, _TIMES, _BYTE = 8, 12, 255
_SHORT = np.maximum(np.arange(_SURELY_LONG, dtype=np.int64), 1)
_TWOS, _FIVES = (
    sum((_SHORT % prime**k == 0).astype(np.int64) for k in range(1, most)) for prime, most in ((2, 8), (5, 4))
)
_PARTS = (
    _SHORT // (2**_TWOS * 5**_FIVES)
    | np.maximum(_TWOS, _FIVES) << _PLACES
    | POWERS[np.maximum(_TWOS, _FIVES)] // (2**_TWOS * 5**_FIVES) << _TIMES
)
"""For each divisor: the divisor without factors 2 and 5, and the power of ten and the factor that replace these."""
_EXACT, _MOST_SHORT_DIVIDEND, _MOST_SHORT_SCALE = 2.0**39, 2.0**33, 4
"""Limits of the fast path. With a divisor below 200 (including factors 2 and 5) the products stay below _MOST_PRODUCT,
also where the scale is that of these factors alone."""
_ABOVE_ONE = 1.0 + 2.0**-51


@jit_inline
def _make(dividend, divisor, scale):
    return _TOP | (scale << _SCALE_SHIFT) | (divisor << _DIVIDEND_BITS) | (dividend & _DIVIDEND_MASK)


@jit_flat
def _rounded(dividend, divisor, scale):
    """(unscaled, scale) of a fraction above zero, rounded to 19 digits."""
    _, lo, places, _ = decimal_quotient(np.int64(0), np.uint64(dividend), scale, divisor)
    return np.uint64(lo), places


@jit_flat
def quotient_decimal(identifier):
    """(negative, unscaled, scale) of an id. The unscaled value, of 18 or 19 digits, is unsigned."""
    dividend = (identifier << (64 - _DIVIDEND_BITS)) >> (64 - _DIVIDEND_BITS)
    divisor, scale = (identifier >> _DIVIDEND_BITS) & _DIVISOR_MASK, (identifier >> _SCALE_SHIFT) & 15
    unscaled, places = _rounded(abs(dividend), divisor, scale)
    if unscaled % _TEN == np.uint64(0):
        unscaled, places = unscaled // _TEN, places - 1
    return dividend < 0, unscaled, places


@jit_flat
def _in_lowest_terms(dividend, divisor, scale):
    """(dividend, divisor, scale) as in an id, for a fraction above zero; the divisor is 1 if it terminates or is too
    large."""
    a, b = divisor, dividend % divisor
    while b > 0:
        a, b = b, a % b
    dividend, divisor = dividend // a, divisor // a
    while divisor % 10 == 0:
        divisor //= 10
        scale += 1
    while divisor % 2 == 0 and dividend < _MOST_DIVIDEND:
        divisor, dividend, scale = divisor // 2, dividend * 5, scale + 1
    while divisor % 5 == 0 and dividend < _MOST_DIVIDEND:
        divisor, dividend, scale = divisor // 5, dividend * 2, scale + 1
    while scale > 0 and dividend % 10 == 0:
        dividend, scale = dividend // 10, scale - 1
    fits = dividend < _MOST_DIVIDEND and divisor < _MOST_DIVISOR and scale <= _MOST_SCALE
    return dividend, divisor if fits else np.int64(1), scale


@jit_flat
def fraction_id(dividend, divisor, scale):
    """The id of dividend / (divisor * 10**scale), rounded; 0 if it is none of these decimals. The divisor is above
    zero."""
    size = abs(dividend)
    if size == 0 or scale > _MOST_SCALE:
        return np.int64(0)
    size, divisor, scale = _in_lowest_terms(size, divisor, scale)
    whole = np.float64(divisor) * REAL_POWERS[min(scale, _MOST_SCALE)]
    if divisor == 1 or np.float64(size) * whole >= _MOST_PRODUCT or np.float64(size) * 10.0 < whole:
        return np.int64(0)
    if divisor >= _SURELY_LONG:
        unscaled, places = _rounded(size, divisor, scale)
        if unscaled % _HUNDRED == np.uint64(0) or places > _MOST_FRACTION_DIGITS:
            return np.int64(0)
    return _make(-size if dividend < 0 else size, divisor, scale)


@jit_flat
def decimal_fraction_id(negative, unscaled, scale):
    """The id of the decimal unscaled / 10**scale, whose unscaled value is unsigned and does not end in 0; 0 if it has
    none."""
    if scale < 1 or scale > _MOST_FRACTION_DIGITS or unscaled < _EIGHTEEN_DIGITS or unscaled % _TEN == np.uint64(0):
        return np.int64(0)
    number, divisor = unscaled, np.uint64(POWERS[18]) * (_TEN if scale == _MOST_FRACTION_DIGITS else np.uint64(1))
    if scale <= 18:
        divisor = np.uint64(POWERS[scale])
    above, above_before, below, below_before = np.int64(1), np.int64(0), np.int64(0), np.int64(1)
    while divisor > np.uint64(0):
        part = number // divisor
        number, divisor = divisor, number - part * divisor
        real = np.float64(part)
        if (real * above + above_before) * (real * below + below_before) >= _MOST_PRODUCT or real >= _MOST_PRODUCT:
            break
        whole = np.int64(part)
        above, above_before = whole * above + above_before, above
        below, below_before = whole * below + below_before, below
    if below < 2:
        return np.int64(0)
    found = fraction_id(-above if negative else above, below, np.int64(0))
    if found != 0:
        _, same, places = quotient_decimal(found)
        if same != unscaled or places != scale:
            return np.int64(0)
    return found


@jit_inline
def _short_fraction_id(total, scale, count):
    """`fraction_id` for a short sum and a small count; 0 where this fast path does not apply.

    In floating-point numbers, which hold all of these integers exactly, and without branches.
    """
    size, by = np.float64(-total if total < 0 else total), np.float64(count)
    near = np.trunc(size * (_ABOVE_ONE / by))
    rest = size - near * by
    # From 0.1 on.
    least = 1.0 if scale < 2 else 10.0 if scale == 2 else 100.0 if scale == 3 else 1000.0
    ok = (size < _EXACT) & (by < _SURELY_LONG) & (rest >= 0.0) & (rest < by) & (near >= least)
    by, rest = by if ok else 1.0, rest if ok else 0.0
    common = np.float64(_COMMON[np.uint64(_integer(by * _SURELY_LONG + rest))])
    parts = _PARTS[np.uint64(_integer(by / common))]
    divisor, places = parts & _BYTE, (parts >> _PLACES) & 15
    dividend = size / common * np.float64(parts >> _TIMES)
    scale += places
    zero = np.trunc(dividend / 10.0) * 10.0 == dividend
    ok &= (divisor > 1) & (dividend < _MOST_SHORT_DIVIDEND)
    ok &= ((scale <= _MOST_SHORT_SCALE) | (scale == places)) & ((scale == 0) | ~zero)
    whole = _integer(dividend if ok else 0.0)
    return _make(-whole if total < 0 else whole, divisor, scale) if ok else np.int64(0)


@jit_flat
def fraction_ids(totals, scales, counts, start, end, ids):
    """`_short_fraction_id` for positions start to end where there is no id yet."""
    prefer_512_bit_vectors()
    for i in range(np.uint64(start), np.uint64(end)):
        found = _short_fraction_id(totals[i], scales[i], max(counts[i], 1))
        ids[i] = found if ids[i] == 0 else ids[i]
