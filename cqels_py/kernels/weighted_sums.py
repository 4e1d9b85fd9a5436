"""Sums times counters: what a mapping stands for below a join (kernels/factorised.py) is as many results as it has partners.

The accumulators are those of kernels/aggregate.py. All of their words are sums over the members, so a sum of several equal ones is
each word times a counter, and so is the difference that a change makes.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregate import (
    APART,
    AVG,
    DECIMALS,
    ERRORS,
    HI,
    LO,
    SCALE,
    SUM_WORDS,
    N,
    _add_apart,
    _add_scaled,
    _take_number,
    _take_odd,
)
from cqels_py.kernels.decimals import exact_product, negate128, sum128
from cqels_py.kernels.jit import jit_flat, jit_inline

_PROVISIONAL_INDEX = np.int64((1 << 60) - 1)
_MOST_RESULTS = 2.0**61
_MOST_AVERAGED = 1 << 53
_SAFE_PRODUCT = 4.0e18
_LARGEST_SPLIT = 1e290


@jit_flat
def times128(hi, lo, factor):
    """(hi, lo) * factor -> (hi, lo, ok); ok is False where 128 bits do not hold it."""
    value = np.int64(lo)
    if (value >> 63) == hi and abs(np.float64(value) * np.float64(factor)) < _SAFE_PRODUCT:
        product = value * factor
        return product >> 63, np.uint64(product), True
    negative = factor < 0
    if negative:
        factor = -factor
    total_hi, total_lo = np.int64(0), np.uint64(0)
    ok = True
    while factor > 0 and ok:
        if factor & 1:
            new_hi, new_lo = sum128(total_hi, total_lo, hi, lo)
            ok = (total_hi ^ hi) < 0 or (total_hi ^ new_hi) >= 0
            total_hi, total_lo = new_hi, new_lo
        factor = factor >> 1
        if factor > 0:
            new_hi, new_lo = sum128(hi, lo, hi, lo)
            ok = ok and (hi ^ new_hi) >= 0
            hi, lo = new_hi, new_lo
    if negative:
        total_hi, total_lo = negate128(total_hi, total_lo)
    return total_hi, total_lo, ok


@jit_inline
def times(count, other):
    """Of counters; -1 where there are too many results to be counted, which stays so."""
    if count < 0 or np.float64(count) * np.float64(other) >= _MOST_RESULTS:
        return np.int64(-1)
    return count * other


@jit_flat
def _add_apart_times(apart, at, value, weight):
    """Compensated addition of value * weight, whose own rounding is added too."""
    factor = np.float64(weight)
    if abs(value) > _LARGEST_SPLIT:
        _add_apart(apart, at, value * factor, 1)
        return
    product, error = exact_product(value, factor)
    _add_apart(apart, at, product, 1)
    _add_apart(apart, at, error, 1)


@jit_inline
def settle(words, at, apart, apart_at):
    """A sum of no doubles leaves no rounding behind."""
    if words[at + APART] == 0:
        apart[apart_at] = 0.0
        apart[apart_at + 1] = 0.0


@jit_flat
def _add_wide(words, at, hi, lo, scale, weight):
    """Add (hi, lo) / 10**scale times the weight. False on overflow of 128 bits."""
    hi, lo, ok = times128(hi, lo, weight)
    return ok and _add_scaled(words, at, hi, lo, scale, 1)


@jit_inline
def add_times(words, at, apart, apart_at, other, place, other_apart, apart_place, weight):
    """Add another accumulator, times the weight. False on overflow of 128 bits.

    All words of an accumulator are sums over its members, but for the scale of HI and LO.
    """
    words[at + N] += other[place + N] * weight
    words[at + ERRORS] += other[place + ERRORS] * weight
    for w in range(DECIMALS, SUM_WORDS):
        words[at + w] += other[place + w] * weight
    hi, lo = other[place + HI], np.uint64(other[place + LO])
    if (hi != 0 or lo != 0) and not _add_wide(words, at, hi, lo, other[place + SCALE], weight):
        return False
    if other_apart[apart_place] != 0.0:
        _add_apart_times(apart, apart_at, other_apart[apart_place], weight)
    if other_apart[apart_place + 1] != 0.0:
        _add_apart_times(apart, apart_at, other_apart[apart_place + 1], weight)
    return True


@jit_inline
def add_count(words, at, count, weight):
    """Add count * weight ones to a sum. False on overflow of 128 bits."""
    words[at + N] = 1
    return _add_wide(words, at, count >> 63, np.uint64(count), np.int64(0), weight)


@jit_inline
def take_argument(words, at, apart, apart_at, identifier, sign, odd_kind, odd_words, odd_real):
    """An argument of SUM or AVG comes or goes. False on overflow of 128 bits."""
    if (identifier >> 60) == -1:
        return _take_odd(
            words, at, apart, apart_at, identifier & _PROVISIONAL_INDEX, sign, odd_kind, odd_words, odd_real
        )  # fmt: skip
    return _take_number(words, at, identifier, sign)


@jit_inline
def clear_sum(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        words[at + w] = 0
    apart[apart_at] = 0.0
    apart[apart_at + 1] = 0.0


@jit_inline
def is_nothing(words, at, apart, apart_at):
    for w in range(SUM_WORDS):
        if w != SCALE and words[at + w] != 0:
            return False
    return apart[apart_at] == 0.0 and apart[apart_at + 1] == 0.0


@jit_inline
def is_countable(words, at, function):
    """Few enough results for what is counted beside a sum."""
    return words[at + N] < (_MOST_AVERAGED if function == AVG else np.int64(_MOST_RESULTS))
