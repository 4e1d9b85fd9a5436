"""Exact decimal arithmetic with unscaled integers of 64 and 128 bits, and the shortest text form of floating-point
numbers.

A decimal is `unscaled / 10**scale`. A sum is signed 128 bits in two's complement: `hi` (int64) and `lo` (uint64). No
signed integer overflows here, so that plain Python computes the same.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.primitives.llvm_hints import prefer_512_bit_vectors
from cqels_py.terms.layout import TAG_DECIMAL, TAG_DOUBLE, TAG_FLOAT, TAG_INTEGER, TAG_SHIFT

POWERS = np.array([10**digits for digits in range(19)], np.int64)
REAL_POWERS = np.array([10.0**digits for digits in range(23)])

MAX_SCALE = 18
"""Most fraction digits of intermediate results."""
SUM_SCALE = 38
"""Most fraction digits of members of a sum: a single member with as many fits 128 bits."""
ID_SCALE = 15
"""Most fraction digits of an inline id."""
EXACT_DIGITS, QUOTIENT_DIGITS = 37, 19
"""Significant digits kept of decimal quotients that terminate, and those to which other quotients are rounded. Digits
before the point are all kept."""
SHORT_DIGITS = 16
"""Significant digits to which the mean of doubles is rounded before it is parsed as one; they fit an inline id."""

LIMIT = 1 << 62
"""Intermediate results have a smaller magnitude, so that the sum of two cannot overflow."""
_MAGNITUDES = 50
_LARGEST_WHOLE, _LARGEST_QUOTIENT = 2.0**_MAGNITUDES, 10.0**SHORT_DIGITS
_ABOVE_ONE = 1.0 + 2.0**-51
"""Correction so that a quotient that is a whole number is not rounded below it."""
_WHOLE_BITS, _FRACTION = 2.0**52, (1 << 52) - 1
_SCALE_BITS, _SCALE_PLACES, _SCALE_MASK = 6, np.uint64(6), 63
_MINUS, _UNSIGNED = np.int64(-(1 << 63)), np.uint64((1 << 63) - 1)
_FIFTHS_8, _FIFTHS_4, _FIFTHS_2, _FIFTHS_1 = np.array([pow(5, -digits, 1 << 64) for digits in (8, 4, 2, 1)], np.uint64)
_RIGHT_8, _RIGHT_4, _RIGHT_2, _RIGHT_1 = np.array([8, 4, 2, 1], np.uint64)
_LEFT_8, _LEFT_4, _LEFT_2, _LEFT_1 = np.array([56, 60, 62, 63], np.uint64)
_FEW_8, _FEW_4, _FEW_2, _FEW_1 = np.array([((1 << 64) - 1) // 10**digits for digits in (8, 4, 2, 1)], np.uint64)
_ID_LIMIT = 1 << 55
_EXACT = 1 << 53
_LARGEST_COUNT = 1 << 59

_LONG_HI = 10**EXACT_DIGITS >> 64
"""From this value of `hi` on a dividend has more digits than a terminating quotient may have otherwise."""
_TENTH_MORE = 10 ** (MAX_SCALE - 1)
_HALF_MORE = 5 * _TENTH_MORE

_EIGHTEEN = np.uint64(10**MAX_SCALE)

_HALF = np.int64(0xFFFFFFFF)
_LOW = np.uint64(0xFFFFFFFF)
_SHIFT = np.uint64(32)
_VALUE_MASK = np.int64((1 << 56) - 1)
_SPLITTER = 134217729.0


@jit_inline
def _low_half(lo):
    return np.int64(lo & _LOW)


@jit_inline
def _high_half(lo):
    return np.int64(lo >> _SHIFT)


@jit_inline
def _join(high, low):
    """An unsigned word of two halves, each in 0 .. 2**32 - 1."""
    return (np.uint64(high) << _SHIFT) | np.uint64(low)


@jit_inline
def add128(hi, lo, value):
    """(hi, lo) + value -> (hi, lo)."""
    low = _low_half(lo) + (value & _HALF)
    high = _high_half(lo) + ((value >> 32) & _HALF) + (low >> 32)
    return hi + (value >> 63) + (high >> 32), _join(high & _HALF, low & _HALF)


@jit_inline
def sum128(hi, lo, other_hi, other_lo):
    """(hi, lo) + (other_hi, other_lo) -> (hi, lo)."""
    low = _low_half(lo) + _low_half(other_lo)
    high = _high_half(lo) + _high_half(other_lo) + (low >> 32)
    return hi + other_hi + (high >> 32), _join(high & _HALF, low & _HALF)


@jit_inline
def negate128(hi, lo):
    low = (_HALF - _low_half(lo)) + 1
    high = (_HALF - _high_half(lo)) + (low >> 32)
    return -1 - hi + (high >> 32), _join(high & _HALF, low & _HALF)


@jit_inline
def _times(hi, lo, factor):
    """A positive (hi, lo) times a factor below 2**30; ok is False on overflow."""
    a = _low_half(lo) * factor
    b = _high_half(lo) * factor + (a >> 32)
    c = (hi & _HALF) * factor + (b >> 32)
    d = (hi >> 32) * factor + (c >> 32)
    ok = d < (1 << 31)
    return ((d & np.int64(0x7FFFFFFF)) << 32) | (c & _HALF), _join(b & _HALF, a & _HALF), ok


@jit_inline
def scale128(hi, lo, digits):
    """(hi, lo) * 10**digits -> (hi, lo, ok); ok is False on overflow."""
    negative = hi < 0
    if negative:
        hi, lo = negate128(hi, lo)
    ok = True
    while digits > 0 and ok:
        hi, lo, ok = _times(hi, lo, POWERS[min(digits, 9)])
        digits -= 9
    if negative:
        hi, lo = negate128(hi, lo)
    return hi, lo, ok


@jit_inline
def is_narrow(hi, lo):
    """Is (hi, lo) between -LIMIT and LIMIT?"""
    high = _high_half(lo)
    return (hi == 0 and high < (1 << 30)) or (hi == -1 and high >= (1 << 32) - (1 << 30))


@jit_inline
def narrow128(lo):
    """The int64 of a narrow (hi, lo)."""
    return np.int64(lo)


@jit_inline
def fits_id(hi, lo, scale):
    """Does the decimal (hi, lo) / 10**scale have an inline id with exactly these fraction digits?"""
    high = _high_half(lo)
    small = (hi == 0 and high < (1 << 23)) or (hi == -1 and high >= (1 << 32) - (1 << 23))
    return small and scale >= 0 and scale <= ID_SCALE


@jit_inline
def trim(unscaled, scale):
    """Remove trailing zeros after the point: the canonical form of computed decimals."""
    if unscaled == 0:
        return unscaled, np.int64(0)
    while scale > 0 and unscaled % 10 == 0:
        unscaled = unscaled // 10
        scale -= 1
    return unscaled, np.int64(scale)


@jit_inline
def _divide(hi, lo, divisor):
    """A positive (hi, lo) by a divisor from 1 to LIMIT -> hi, lo, remainder."""
    low, high = _low_half(lo), _high_half(lo)
    if hi == 0 and high < (1 << 31):
        value = np.int64(lo)
        quotient = value // divisor
        return np.int64(0), np.uint64(quotient), value - quotient * divisor
    rest = np.int64(0)
    for position in range(63, -1, -1):
        rest = rest * 2 + ((hi >> position) & 1)
        hi = hi & ~(np.int64(1) << position)
        if rest >= divisor:
            rest -= divisor
            hi = hi | (np.int64(1) << position)
    for half in range(2):
        word = low if half else high
        quotient = np.int64(0)
        for position in range(31, -1, -1):
            rest = rest * 2 + ((word >> position) & 1)
            quotient = quotient * 2
            if rest >= divisor:
                rest -= divisor
                quotient += 1
        if half:
            low = quotient
        else:
            high = quotient
    return hi, _join(high, low), rest


@jit_flat
def split128(hi, lo):
    """Split a (hi, lo) that is not negative into (hi, lo) without its last 18 digits, and these."""
    if hi == 0:
        quotient = lo // _EIGHTEEN
        return hi, quotient, np.int64(lo - quotient * _EIGHTEEN)
    return _divide(hi, lo, POWERS[MAX_SCALE])


@jit_inline
def _drop_digit(hi, lo):
    """Divide a positive (hi, lo) by ten -> hi, lo, the last digit."""
    quotient = hi // 10
    high = ((hi - quotient * 10) << 32) | _high_half(lo)
    low = ((high % 10) << 32) | _low_half(lo)
    return quotient, _join(high // 10, low // 10), low % 10


@jit_inline
def _digits_of(value):
    """The number of decimal digits of an integer that is not negative; 0 for zero."""
    digits = np.int64(0)
    while digits < len(POWERS) and value >= POWERS[digits]:
        digits += 1
    return digits


@jit_flat
def _rounded_quotient(value, digits, more, scale):
    """(hi, lo, scale) rounded to 19 significant digits: those of `value`, 18 or 19, then 18 more digits, and others
    after them.

    As others follow, the quotient is never halfway between two results.
    """
    if digits == QUOTIENT_DIGITS:
        return np.int64(0), np.uint64(value + np.int64(more >= _HALF_MORE)), scale
    top = more // _TENTH_MORE
    rest = more - top * _TENTH_MORE
    hi, lo, _ = _times(np.int64(0), np.uint64(value), np.int64(10))
    hi, lo = add128(hi, lo, top + np.int64(rest >= 5 * (_TENTH_MORE // 10)))
    return hi, lo, scale + 1


@jit_flat
def _exact_quotient(value, more, more_digits, digit, last, scale):
    """(hi, lo, scale) of the digits of `value`, then those of `more`, and one more digit if `last`; without trailing
    zeros."""
    if more == 0 and not last:
        value, scale = trim(value, scale)
        return np.int64(0), np.uint64(value), scale
    while not last and more % 10 == 0:
        more //= 10
        more_digits -= 1
    hi, lo, _ = scale128(np.int64(0), np.uint64(value), more_digits)
    hi, lo = add128(hi, lo, more)
    if last:
        hi, lo, _ = _times(hi, lo, np.int64(10))
        hi, lo = add128(hi, lo, digit)
    return hi, lo, scale + more_digits + np.int64(last)


@jit_flat
def decimal_quotient(hi, lo, scale, count):
    """The decimal (hi, lo) / 10**scale divided by a positive count -> (hi, lo, scale, ok).

    Exact and without trailing zeros if it terminates within 37 significant digits; else rounded half to even to 19
    digits, but never left of the units. ok is False where an intermediate result would take more than 128 bits.
    """
    negative = hi < 0
    if negative:
        hi, lo = negate128(hi, lo)
    scale = np.int64(scale)
    if count >= _LARGEST_COUNT:
        return hi, lo, scale, False
    long = hi >= _LONG_HI
    hi, lo, rest = _divide(hi, lo, count)
    if rest != 0 or is_narrow(hi, lo):
        if long or not is_narrow(hi, lo):
            return hi, lo, scale, False
        hi, lo, scale = _continued(np.int64(lo), rest, scale, count)
    if negative:
        hi, lo = negate128(hi, lo)
    return hi, lo, scale, True


@jit_flat
def _continued(value, rest, scale, count):
    """(hi, lo, scale) of a division whose integer quotient is `value`, below LIMIT."""
    # As many digits in one division as fit 62 bits.
    most = np.int64(1)
    while most < MAX_SCALE and count <= LIMIT // POWERS[most + 1]:
        most += 1
    digits = _digits_of(value)
    while rest != 0 and digits < MAX_SCALE:
        step = min(most, MAX_SCALE - digits)
        rest *= POWERS[step]
        digit = rest // count
        rest -= digit * count
        digits = digits + step if value != 0 else _digits_of(digit)
        value = value * POWERS[step] + digit
        scale += step
    more = more_digits = np.int64(0)
    while rest != 0 and more_digits < MAX_SCALE:
        step = min(most, MAX_SCALE - more_digits)
        rest *= POWERS[step]
        digit = rest // count
        rest -= digit * count
        more = more * POWERS[step] + digit
        more_digits += step
    digit, last = np.int64(0), rest != 0 and digits + more_digits < EXACT_DIGITS
    if last:
        digit = rest * 10 // count
        rest = rest * 10 - digit * count
    if rest == 0:
        return _exact_quotient(value, more, more_digits, digit, last, scale)
    return _rounded_quotient(value, digits, more, scale)


@jit
def short_quotient(hi, lo, scale, count):
    """The mean of doubles that are written as decimals: (hi, lo) / 10**scale divided by a positive count -> (unscaled,
    scale, ok).

    Rounded half to even to 16 significant digits, without trailing zeros: ten times as much fits 64 bits. ok is False
    where it has more digits before the point, or more than MAX_SCALE behind it.
    """
    negative = hi < 0
    if negative:
        hi, lo = negate128(hi, lo)
    scale = np.int64(scale)
    if count >= _LARGEST_COUNT:
        return np.int64(0), np.int64(0), False
    hi, lo, rest = _divide(hi, lo, count)
    digit = np.int64(0)
    dropped, sticky = False, rest != 0
    while scale > 0 and not (is_narrow(hi, lo) and np.int64(lo) < POWERS[SHORT_DIGITS]):
        sticky = sticky or digit != 0
        hi, lo, digit = _drop_digit(hi, lo)
        dropped = True
        scale -= 1
    if not is_narrow(hi, lo):
        return np.int64(0), np.int64(0), False
    quotient = np.int64(lo)
    if dropped:
        beyond_half = digit - 5
    else:
        sticky = False
        # As many digits in one division as fit 62 bits.
        most = np.int64(1)
        while most < SHORT_DIGITS and count <= LIMIT // POWERS[most + 1]:
            most += 1
        while rest != 0 and scale < 2 * MAX_SCALE and quotient < POWERS[SHORT_DIGITS - 1]:
            digits = np.int64(1)
            if quotient != 0:
                while digits < most and quotient < POWERS[SHORT_DIGITS - 1 - digits]:
                    digits += 1
            digits = min(digits, 2 * MAX_SCALE - scale)
            rest = rest * POWERS[digits]
            digit = rest // count
            quotient = quotient * POWERS[digits] + digit
            rest -= digit * count
            scale += digits
        if rest != 0 and quotient < POWERS[SHORT_DIGITS - 1]:
            return np.int64(0), np.int64(0), False
        beyond_half = rest * 2 - count
    if beyond_half > 0 or (beyond_half == 0 and (sticky or quotient % 2 == 1)):
        quotient += 1
    quotient, scale = trim(quotient, scale)
    return (-quotient if negative else quotient), scale, scale <= MAX_SCALE and quotient < POWERS[SHORT_DIGITS]


@jit_inline
def scaled_id(tag, unscaled, scale):
    """The inline id of a decimal, double or float (or of an xsd:integer: scale 0); 0 if it has none."""
    if unscaled < -_ID_LIMIT or unscaled >= _ID_LIMIT or scale > ID_SCALE:
        return np.int64(0)
    # Signed ids: tags from 8 on are negative.
    top = tag if tag < 8 else tag - 16
    return np.int64((top << TAG_SHIFT) | (scale << 56) | (unscaled & _VALUE_MASK))


@jit_inline
def _without_zeros(plain, scale, zeros, fifths, right, left, few):
    """Divide by 10**zeros, a power of two, if the division is exact and there are as many fraction digits, which become
    fewer.

    By multiplication with the inverse of 5**zeros modulo 2**64: only exact quotients are small then (Granlund and
    Montgomery 1994). Without a branch: which numbers end in zeros is unpredictable.
    """
    product = plain * fifths
    quotient = (product >> right) | (product << left)
    exact = (quotient <= few) & (scale >= zeros)
    return quotient if exact else plain, scale - (zeros if exact else 0)


@jit_inline
def _integer(real):
    """The integer nearest to a floating-point number from 0 to below 2**52: the mantissa of their sum."""
    return np.float64(real + _WHOLE_BITS).view(np.int64) & _FRACTION


@jit_inline
def _quotient(total, scale, count):
    """The decimal total / 10**scale (magnitude below LIMIT) divided by a positive count, if that terminates within 16
    digits.

    It may have trailing zeros. Its magnitude is in the upper bits, its scale in the lower ones, and its sign in the top
    bit. 0 where this fast path does not apply: floating-point arithmetic finds a candidate, integer arithmetic checks
    it.
    """
    size = -total if total < 0 else total
    reciprocal = _ABOVE_ONE / np.float64(count)
    near = np.float64(size) * reciprocal
    magnitude = (np.float64(near).view(np.int64) >> 52) - 1023
    ok = (magnitude >= 0) & (magnitude < _MAGNITUDES)
    real = np.trunc(near if near < _LARGEST_WHOLE else _LARGEST_WHOLE)
    whole = _integer(real)
    rest = size - whole * count
    ok &= (rest >= 0) & (rest < count)
    # The digits missing to sixteen, estimated from the power of two, and one less from the next power of ten on.
    digits = (SHORT_DIGITS - 1) - ((min(max(magnitude, 0), _MAGNITUDES - 1) * 1233) >> 12)
    power = REAL_POWERS[digits]
    fewer = real * power >= _LARGEST_QUOTIENT
    # A tenth of each power of ten in this range is exact.
    power = power * 0.1 if fewer else power
    digits -= np.int64(fewer)
    ok &= np.float64(count) * power < LIMIT
    times = _integer(power)
    rest *= times
    more = _integer(np.float64(rest) * reciprocal)
    ok &= rest == more * count
    found = ((whole * times + more) << _SCALE_BITS) | (scale + digits)
    return (found | _MINUS if total < 0 else found) if ok else np.int64(0)


@jit_inline
def _quotient_id(quotient):
    """The inline id for a result of `_quotient`; 0 where it has none."""
    plain, scale = (np.uint64(quotient) & _UNSIGNED) >> _SCALE_PLACES, quotient & _SCALE_MASK
    plain, scale = _without_zeros(plain, scale, 8, _FIFTHS_8, _RIGHT_8, _LEFT_8, _FEW_8)
    plain, scale = _without_zeros(plain, scale, 4, _FIFTHS_4, _RIGHT_4, _LEFT_4, _FEW_4)
    plain, scale = _without_zeros(plain, scale, 2, _FIFTHS_2, _RIGHT_2, _LEFT_2, _FEW_2)
    plain, scale = _without_zeros(plain, scale, 1, _FIFTHS_1, _RIGHT_1, _LEFT_1, _FEW_1)
    unscaled = np.int64(plain)
    unscaled = -unscaled if quotient < 0 else unscaled
    identifier = np.int64((TAG_DECIMAL << TAG_SHIFT) | (scale << 56) | (unscaled & _VALUE_MASK))
    return identifier if (quotient != 0) & (scale <= ID_SCALE) else np.int64(0)


@jit_inline
def average_id(total, scale, count):
    """The inline id of the decimal total / 10**scale (magnitude below LIMIT) divided by a positive count, as by
    `decimal_quotient`.

    0 where it has none, or where this fast path does not apply.
    """
    return _quotient_id(_quotient(total, scale, count))


@jit_flat
def average_ids(totals, scales, counts, start, end, ids):
    """`average_id` for positions start to end; arbitrary values where the count is zero.

    There are no branches, so LLVM vectorises it. Two short loops have more instructions in flight than one long loop.
    """
    prefer_512_bit_vectors()
    for i in range(np.uint64(start), np.uint64(end)):
        ids[i] = _quotient(totals[i], scales[i], max(counts[i], 1))
    for i in range(np.uint64(start), np.uint64(end)):
        ids[i] = _quotient_id(ids[i])


@jit_inline
def integer_to_id(value):
    """The inline id of an xsd:integer, or 0."""
    return scaled_id(np.int64(TAG_INTEGER), np.int64(value), np.int64(0))


@jit_inline
def decimal_to_id(unscaled, scale):
    """The inline id of a computed decimal in its canonical form, or 0."""
    unscaled, scale = trim(unscaled, scale)
    return scaled_id(np.int64(TAG_DECIMAL), np.int64(unscaled), np.int64(scale))


@jit_inline
def exact_product(value, power):
    """value * power -> (rounded product, its error), exact together (Dekker 1971)."""
    product = value * power
    split = value * _SPLITTER
    high = split - (split - value)
    low = value - high
    split = power * _SPLITTER
    power_high = split - (split - power)
    power_low = power - power_high
    return product, ((high * power_high - product) + high * power_low + low * power_high) + low * power_low


@jit_inline
def _rounded_product(value, power):
    """The integer nearest to value * power."""
    product, error = exact_product(value, power)
    whole = np.rint(product)
    fraction = (product - whole) + error
    if fraction > 0.5:
        whole += 1.0
    elif fraction < -0.5:
        whole -= 1.0
    return whole


@jit_inline
def shortest(value, single):
    """The shortest plain notation that is parsed as `value`: (unscaled, scale from 1 on, ok).

    `single`: parsed as a 32-bit float. ok is False where the canonical form is not plain (exponents, -0.0, INF) or not
    decided here.
    """
    size = abs(value)
    if size == 0.0:
        return np.int64(0), np.int64(1), np.copysign(1.0, value) > 0
    if not (size >= 1e-4 and size < (8388608.0 if single else 9e14)):
        return np.int64(0), np.int64(0), False
    for scale in range(1, ID_SCALE + 1):
        whole = _rounded_product(value, REAL_POWERS[scale])
        if abs(whole) > _EXACT:
            break
        back = whole / REAL_POWERS[scale]
        if (np.float64(np.float32(back)) if single else back) == value:
            return np.int64(whole), np.int64(scale), True
    return np.int64(0), np.int64(0), False


@jit_inline
def double_to_id(value):
    """The inline id of a computed xsd:double in its canonical form ("23.0", "0.1"), or 0."""
    unscaled, scale, ok = shortest(value, False)
    return scaled_id(np.int64(TAG_DOUBLE), unscaled, scale) if ok else np.int64(0)


@jit_inline
def float_to_id(value):
    """The inline id of a computed xsd:float, which has been rounded to 32 bits, or 0."""
    unscaled, scale, ok = shortest(value, True)
    return scaled_id(np.int64(TAG_FLOAT), unscaled, scale) if ok else np.int64(0)
