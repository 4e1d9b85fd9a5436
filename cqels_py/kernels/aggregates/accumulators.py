"""Aggregation (Algorithm 6): accumulators by group, updated by insertions and retractions.

Sums are exact: 128-bit integers with the largest number of fraction digits in the group. Doubles in plain notation are
summed as the decimals they are written as. Floats, and doubles without an inline form, are summed separately
(exact_float_sums.py). So retracted values leave no rounding error behind. MIN and MAX keep a bag (structures/heaps.py),
or a monotonic queue over FIFO input (structures/monotonic_queue.py); GROUP_CONCAT keeps its values in order
(structures/sorted_runs.py).

`words` holds `group_words` int64 for each group: STAMP, the number of its last note (group_by.py); SHOWN, whether it is
in the answer; and for each aggregate the id that was last delivered, followed, from `places[a]` on, by its accumulator:

    COUNT      n
    SUM, AVG   n, inexact, hi, lo, scale, decimals, floats, doubles, apart, +INF, -INF, NaN, durations.
               inexact: how many members are floats, doubles, durations, or not summable; durations: the number of
               xsd:dayTimeDuration, added in seconds, minus that of xsd:yearMonthDuration, added in months
    MIN, MAX   a bag or a monotonic queue
    CONCAT     a sorted run, and whether the text last delivered is up to date

The counter in the index of groups is the number of mappings in the group.

`apart` holds for each group and each of its SUMs and AVGs a sum of exact_float_sums.py, REAL_WORDS uint32. It is empty
until a number is summed there.

A computed number without an inline id is delivered as a provisional id, tag 15, with its row number in `deferred`: (tag,
hi, lo, scale) and `deferred_real`; the caller makes its text and id. The same holds for a joined text: (DEFERRED_TEXT, start,
length, number of the aggregate), whose values are in `joined` from start on; and for a duration: (DEFERRED_DAY_TIME or
DEFERRED_YEAR_MONTH, hi, lo, scale), to be divided by `deferred_real`. The last field is its position in `words`, where another
value may have replaced it since.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates.exact_float_sums import add_real, clear_reals, nearest_real
from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.structures.heaps import BAG_WORDS, bag_clear
from cqels_py.kernels.structures.sorted_runs import RUN_WORDS, run_copy
from cqels_py.kernels.values.decimals import (
    LIMIT,
    REAL_POWERS,
    average_id,
    decimal_quotient,
    decimal_to_id,
    double_to_id,
    exact_product,
    fits_id,
    float_to_id,
    narrow128,
    negate128,
    scale128,
    scaled_id,
    short_quotient,
    sum128,
)
from cqels_py.kernels.values.quotients import fraction_id
from cqels_py.terms.layout import TAG_DECIMAL, TAG_DOUBLE, TAG_FLOAT, TAG_INTEGER

COUNT_ALL, COUNT, SUM, AVG, MIN, MAX, CONCAT = range(7)

STAMP, SHOWN = range(2)
GROUP_WORDS = 2
"""Words of a group that belong to no aggregate."""
N, INEXACT, HI, LO, SCALE, DECIMALS, FLOATS, DOUBLES, APART, PLUS_INF, MINUS_INF, NANS, DURATIONS = range(13)
_N, _INEXACT, _HI, _LO, _SCALE, _DECIMALS, _FLOATS, _DOUBLES = np.arange(8, dtype=np.uint64)
"""Unsigned, to be added to unsigned positions: numba turns the sum of a signed and an unsigned number into a float."""
SUM_WORDS = 13
MOST_USED_WORDS = 5
"""The number of leading words that are all that most arguments change."""
_HUGE = 2.0**960
"""Added to a number as large as this, no sum of 128 bits makes a difference."""
EXTREME_WORDS = BAG_WORDS
COUNT_WORDS = 1
CONCAT_WORDS = RUN_WORDS + 1
CLEAN = RUN_WORDS

# The kinds of an argument without an inline id: `hashed_kind`.
HASHED_ERROR, HASHED_INTEGER, HASHED_DECIMAL, HASHED_DAY_TIME, HASHED_YEAR_MONTH, HASHED_FLOAT, HASHED_DOUBLE = range(7)

# Why a kernel stopped.
DONE, HEAP_FULL, OVERFLOW, NOT_THERE, JOINED_FULL, TOO_MANY = range(6)
# cursor
OUT, DEFERRED, JOINED = range(3)
CURSOR_FIELDS = 3

PROVISIONAL = -(1 << 60)
AS_BEFORE = -1
"""Instead of an id: the one that was delivered last."""
DEFERRED_TEXT, DEFERRED_DAY_TIME, DEFERRED_YEAR_MONTH = -1, -2, -3
"""Instead of the tag of a late value."""
DEFERRED_PLACE = 4
DEFERRED_FIELDS = 5


@jit_flat
def _add_scaled(words, at, unscaled_hi, unscaled_lo, scale, sign):
    """Add or subtract a decimal. False on overflow of 128 bits."""
    hi, lo = words[at + HI], np.uint64(words[at + LO])
    ok = True
    if scale > words[at + SCALE]:
        hi, lo, ok = scale128(hi, lo, scale - words[at + SCALE])
        words[at + SCALE] = scale
    elif scale < words[at + SCALE]:
        unscaled_hi, unscaled_lo, ok = scale128(unscaled_hi, unscaled_lo, words[at + SCALE] - scale)
    if not ok:
        return False
    if sign < 0:
        unscaled_hi, unscaled_lo = negate128(unscaled_hi, unscaled_lo)
    before = hi
    hi, lo = sum128(hi, lo, unscaled_hi, unscaled_lo)
    words[at + HI] = hi
    words[at + LO] = np.int64(lo)
    return (before ^ hi) >= 0 or (before ^ unscaled_hi) < 0


@jit_inline
def _rounding(a, b, total):
    """The rounding error of a + b = total (Neumaier 1974)."""
    return (a - total) + b if abs(a) >= abs(b) else (b - total) + a


@jit_inline
def settle(words, at, apart, apart_at):
    """A separate sum that has no members is cleared, so it needs no digits."""
    if len(apart) > 0 and words[at + APART] == 0:
        clear_reals(apart, apart_at)


@jit_inline
def _real_total(value, left, apart, at):
    """An exact sum `value`, its rounding error `left`, and the separate sum, added up; infinite where no double holds
    it."""
    nearest = nearest_real(apart, at)
    if (value == 0.0 and left == 0.0) or abs(nearest) > _HUGE:
        return nearest
    add_real(apart, at, nearest, np.int64(-1))
    rest = nearest_real(apart, at)
    add_real(apart, at, nearest, np.int64(1))
    total = value + nearest
    return total + (_rounding(value, nearest, total) + (left + rest))


@jit_flat
def _take_hashed(words, at, apart, apart_at, index, sign, hashed_kind, hashed_words, hashed_real):
    """Add or subtract an argument without an inline id: an error, a large number, a duration, or a float written with
    an exponent."""
    kind = hashed_kind[index]
    if kind == HASHED_ERROR:
        words[at + INEXACT] += sign
        return True
    if kind <= HASHED_YEAR_MONTH:
        words[at + N] += sign
        if kind == HASHED_DECIMAL:
            words[at + DECIMALS] += sign
        elif kind >= HASHED_DAY_TIME:
            words[at + INEXACT] += sign
            words[at + DURATIONS] += sign if kind == HASHED_DAY_TIME else -sign
        return _add_scaled(
            words, at, hashed_words[index, 0], np.uint64(hashed_words[index, 1]), hashed_words[index, 2], sign
        )
    _take_real(words, at, apart, apart_at, hashed_real[index], FLOATS if kind == HASHED_FLOAT else DOUBLES, sign)
    return True


@jit_flat
def take_float(words, at, apart, apart_at, identifier, sign):
    """Add or subtract an argument of SUM or AVG that is a float with an inline id: the 32-bit number nearest to its
    text."""
    written = np.float64((identifier << 8) >> 8) / REAL_POWERS[(identifier >> 56) & 15]
    _take_real(words, at, apart, apart_at, np.float64(np.float32(written)), FLOATS, sign)


@jit_inline
def _take_real(words, at, apart, apart_at, value, kind, sign):
    """Add or subtract a number that is summed separately. `kind`: the word that counts numbers of its type."""
    words[at + N] += sign
    words[at + INEXACT] += sign
    words[at + kind] += sign
    if value != value:
        words[at + NANS] += sign
    elif value == np.inf:
        words[at + PLUS_INF] += sign
    elif value == -np.inf:
        words[at + MINUS_INF] += sign
    else:
        words[at + APART] += sign
        add_real(apart, apart_at, value, sign)
        settle(words, at, apart, apart_at)


@jit_inline
def _take_number(words, at, identifier, sign):
    """Add or subtract an argument of SUM or AVG with an inline id that is no float. False on overflow."""
    tag = (identifier >> 60) & 15
    place = np.uint64(at)
    unscaled = (identifier << 8) >> 8
    scale = np.int64(0)
    if tag != TAG_INTEGER:
        if tag != TAG_DECIMAL and tag != TAG_DOUBLE:
            words[place + _INEXACT] += sign
            return True
        scale = (identifier >> 56) & 15
        words[place + (_DECIMALS if tag == TAG_DECIMAL else _DOUBLES)] += sign
        words[place + _INEXACT] += sign if tag == TAG_DOUBLE else 0
    words[place + _N] += sign
    if scale == words[place + _SCALE]:
        total = words[place + _LO]
        if words[place + _HI] == total >> 63 and total > -LIMIT and total < LIMIT:
            total += unscaled if sign > 0 else -unscaled
            words[place + _LO] = total
            words[place + _HI] = total >> 63
            return True
    return _add_scaled(words, at, unscaled >> 63, np.uint64(unscaled), scale, sign)


@jit_inline
def _real128(hi, lo):
    # By magnitude: the words of a small negative number are two large ones, whose difference would be rounded away.
    negative = hi < 0
    if negative:
        hi, lo = negate128(hi, lo)
    real = np.float64(hi) * 18446744073709551616.0 + np.float64(lo)
    return -real if negative else real


@jit_inline
def _whole128(real):
    """A whole number below 2**126 as (hi, lo)."""
    hi = np.floor(abs(real) * 2.0**-64)
    lo = np.uint64(abs(real) - hi * 2.0**64)
    return negate128(np.int64(hi), lo) if real < 0.0 else (np.int64(hi), lo)


@jit_flat
def _real_decimal(hi, lo, scale):
    """(hi, lo) / 10**scale as a double, and its rounding error."""
    whole, rest = _real128(hi, lo), 0.0
    if abs(whole) < 2.0**126:
        rounded_hi, rounded_lo = _whole128(-whole)
        rest = _real128(*sum128(hi, lo, rounded_hi, rounded_lo))
    power = np.power(10.0, np.float64(scale))
    quotient = whole / power
    product, error = exact_product(quotient, power)
    return quotient, ((whole - product) - error + rest) / power


@jit_flat
def _defer(tag, hi, lo, scale, real, cursor, deferred, deferred_real):
    index = cursor[DEFERRED]
    deferred[index, 0] = tag
    deferred[index, 1] = hi
    deferred[index, 2] = np.int64(lo)
    deferred[index, 3] = scale
    deferred[index, DEFERRED_PLACE] = 0
    deferred_real[index] = real
    cursor[DEFERRED] = index + 1
    return np.int64(PROVISIONAL) | index


@jit_inline
def count_id(count, cursor, deferred, deferred_real):
    """The id of a counter of any size."""
    tag = np.int64(TAG_INTEGER)
    found = scaled_id(tag, count, np.int64(0))
    return (
        found
        if found != 0
        else _defer(tag, count >> 63, np.uint64(count), np.int64(0), 0.0, cursor, deferred, deferred_real)
    )


@jit_inline
def is_short(words, at):
    """Are the members exact numbers, and does their sum fit 64 bits?"""
    place = np.uint64(at)
    total = words[place + _LO]
    short = (words[place + _HI] == total >> 63) & (total > -LIMIT) & (total < LIMIT)
    return (words[place + _INEXACT] == 0) & (words[place + _N] > 0) & short


@jit_inline
def total_of(words, at, apart, apart_at, average, cursor, deferred, deferred_real):
    """The id of a SUM or AVG; 0 if its members are neither all numbers nor all durations of one type."""
    if is_short(words, at):
        place = np.uint64(at)
        total, scale = words[place + _LO], words[place + _SCALE]
        found = np.int64(0)
        if average:
            found = average_id(total, scale, words[place + _N])
        elif scale == 0:
            tag = np.int64(TAG_INTEGER if words[place + _DECIMALS] == 0 else TAG_DECIMAL)
            found = scaled_id(tag, total, np.int64(0))
        if found != 0:
            return found
    return any_total(words, at, apart, apart_at, average, cursor, deferred, deferred_real)


@jit_flat
def long_average(hi, lo, scale, count, cursor, deferred, deferred_real):
    """The id of the decimal (hi, lo) / 10**scale divided by a count."""
    tag, total = np.int64(TAG_DECIMAL), np.int64(lo)
    if hi == total >> 63 and total > -LIMIT:
        found = fraction_id(total, count, scale)
        if found != 0:
            return found
    mean_hi, mean_lo, digits, ok = decimal_quotient(hi, lo, scale, count)
    if not ok:
        return _defer(tag, hi, lo, scale, np.float64(count), cursor, deferred, deferred_real)
    if fits_id(mean_hi, mean_lo, digits):
        return decimal_to_id(narrow128(mean_lo), digits)
    return _defer(tag, mean_hi, mean_lo, digits, 0.0, cursor, deferred, deferred_real)


@jit_flat
def _total_duration(words, at, average, cursor, deferred, deferred_real):
    """The id of a SUM or AVG of durations of one type; 0 if there are other members."""
    n, durations = words[at + N], words[at + DURATIONS]
    # The numbers of the two types differ by the number of members: so all members are of one type.
    if abs(durations) < n or words[at + INEXACT] > n:
        return np.int64(0)
    tag = np.int64(DEFERRED_DAY_TIME if durations > 0 else DEFERRED_YEAR_MONTH)
    divisor = np.float64(n if average else np.int64(1))
    return _defer(
        tag, words[at + HI], np.uint64(words[at + LO]), words[at + SCALE], divisor, cursor, deferred, deferred_real
    )


@jit_flat
def any_total(words, at, apart, apart_at, average, cursor, deferred, deferred_real):
    """`total_of` for members of any kind."""
    doubles, floats = words[at + DOUBLES], words[at + FLOATS]
    n = words[at + N]
    if words[at + INEXACT] > doubles + floats:
        return _total_duration(words, at, average, cursor, deferred, deferred_real)
    if n == 0:
        return scaled_id(np.int64(TAG_INTEGER), np.int64(0), np.int64(0))
    hi, lo, scale = words[at + HI], np.uint64(words[at + LO]), words[at + SCALE]
    if doubles + floats == 0:
        decimal = average or words[at + DECIMALS] > 0
        tag = np.int64(TAG_DECIMAL if decimal else TAG_INTEGER)
        if average:
            return long_average(hi, lo, scale, n, cursor, deferred, deferred_real)
        if fits_id(hi, lo, scale):
            unscaled = narrow128(lo)
            while scale > 0 and unscaled % 10 == 0:
                unscaled = unscaled // 10
                scale -= 1
            return scaled_id(tag, unscaled, scale if unscaled != 0 else np.int64(0))
        return _defer(tag, hi, lo, scale, 0.0, cursor, deferred, deferred_real)
    tag = np.int64(TAG_DOUBLE if doubles > 0 else TAG_FLOAT)
    divisor = n if average else np.int64(1)
    special = words[at + NANS] + words[at + PLUS_INF] + words[at + MINUS_INF]
    if special == 0 and words[at + APART] == 0 and doubles > 0:
        unscaled, digits, ok = short_quotient(hi, lo, scale, divisor)
        if ok:
            if digits == 0:
                unscaled, digits = unscaled * 10, np.int64(1)
            found = scaled_id(tag, unscaled, digits)
            if found != 0:
                return found
    if words[at + NANS] > 0 or (words[at + PLUS_INF] > 0 and words[at + MINUS_INF] > 0):
        value = np.nan
    elif words[at + PLUS_INF] > 0:
        value = np.inf
    elif words[at + MINUS_INF] > 0:
        value = -np.inf
    else:
        value, left = _real_decimal(hi, lo, scale)
        value = _real_total(value, left, apart, apart_at) if words[at + APART] > 0 else value + left
        if tag == TAG_FLOAT:
            value = np.float64(np.float32(value))
        value /= np.float64(divisor)
        if tag == TAG_FLOAT:
            value = np.float64(np.float32(value))
        found = float_to_id(value) if tag == TAG_FLOAT else double_to_id(value)
        if found != 0:
            return found
    return _defer(tag, np.int64(0), np.uint64(0), np.int64(0), value, cursor, deferred, deferred_real)


@jit_flat
def _joined_text(words, at, heap, aggregate, cursor, joined, deferred, deferred_real):
    start = cursor[JOINED]
    length = run_copy(words, at, heap, joined, start)
    cursor[JOINED] = start + length
    words[at + CLEAN] = 1
    return _defer(
        np.int64(DEFERRED_TEXT), start, np.uint64(length), np.int64(aggregate), 0.0, cursor, deferred, deferred_real
    )  # fmt: skip


@jit_flat
def first_value(a, function, cursor, deferred, deferred_real):
    """The value of an aggregate of no mappings: 0, unbound, or for GROUP_CONCAT the empty text."""
    if function < MIN:
        return scaled_id(np.int64(TAG_INTEGER), np.int64(0), np.int64(0))
    if function < CONCAT:
        return np.int64(0)
    return _defer(
        np.int64(DEFERRED_TEXT), cursor[JOINED], np.uint64(0), np.int64(a), 0.0, cursor, deferred, deferred_real
    )


@jit_flat
def forget(functions, places, words, base):
    """For a group without mappings: clear the data structures of its terms."""
    for a in range(len(functions)):
        at = base + places[a]
        if functions[a] == CONCAT:
            words[at + CLEAN] = 0
        elif functions[a] >= MIN:
            bag_clear(words, at)
