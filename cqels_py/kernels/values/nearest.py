"""Correctly rounded conversion: the double or float nearest to a decimal numeral of any length, and the shortest
numeral that is parsed as it.

Exact: a numeral is compared digit by digit with the midpoint between two neighbouring numbers, whose decimal digits are
written out. That takes about a microsecond, and is needed only for numerals so close that they may round to one number.
"""

from __future__ import annotations

import math

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat
from cqels_py.kernels.values.decimals import POWERS
from cqels_py.kernels.values.numerals import LEADING, POSITIVE, ZERO

_BASE = 1_000_000_000
_BASE_DIGITS = 9
_LIMBS = 96
"""Limbs of nine digits each. The longest midpoint between two doubles, below 2**-1021, has 768 digits."""
_DIGITS = _LIMBS * _BASE_DIGITS
_BITS, _LEAST_POWER, _MOST_POWER = 53, -1074, 971
_TWOS, _FIVES = 29, 12
"""Powers of two and five by which a limb can be multiplied at once."""
_BEYOND = 400
"""No double has so many digits before the point, or zeros after it."""
_POINT = ord(".")
_MOST_SHORT, _SHORT, _SHORT_SINGLE = 17, 15, 6
"""Digits that distinguish all doubles, and those (of doubles and floats) with which every numeral survives a round
trip."""
_TINY, _TINY_SINGLE = 1e-300, 1e-36
"""Below these, doubles and floats have fewer bits."""


@jit_flat
def _times(limbs, size, factor):
    carry = np.int64(0)
    for i in range(size):
        value = limbs[i] * factor + carry
        carry = value // _BASE
        limbs[i] = value - carry * _BASE
    if carry > 0:
        limbs[size] = carry
        size += 1
    return size


@jit_flat
def _write_out(mantissa, power, limbs, digits):
    """All digits of mantissa * 2**power, above zero: (how many, exponent), as 0.d1d2d3… * 10**exponent."""
    size = np.int64(0)
    while mantissa > 0:
        limbs[size] = mantissa % _BASE
        mantissa = mantissa // _BASE
        size += 1
    left, most = abs(power), np.int64(_TWOS if power > 0 else _FIVES)
    while left > 0:
        step = min(left, most)
        size = _times(limbs, size, np.int64(1) << step if power > 0 else np.int64(5) ** step)
        left -= step
    count = np.int64(0)
    for i in range(size - 1, -1, -1):
        limb = limbs[i]
        for k in range(_BASE_DIGITS - 1, -1, -1):
            digit = limb // POWERS[k] % 10
            if count > 0 or digit > 0:
                digits[count] = digit
                count += 1
    return count, count - (0 if power > 0 else -power)


@jit_flat
def _copy_digits(leading, text, rest, stop, digits):
    """Copy a numeral's digits. If there are too many, a final 1 stands for all the rest, as no midpoint has that many.
    Returns how many there are."""
    count = np.int64(LEADING)
    for k in range(LEADING):
        digits[k] = leading // POWERS[LEADING - 1 - k] % 10
    for at in range(rest, stop):
        if text[at] != _POINT:
            if count == _DIGITS - 1:
                digits[count] = 1
                return count + 1
            digits[count] = np.int64(text[at]) - 48
            count += 1
    return count


@jit_flat
def _compare_digits(a, a_count, a_exponent, b, b_count, b_exponent):
    if a_exponent != b_exponent:
        return np.int64(-1 if a_exponent < b_exponent else 1)
    for i in range(max(a_count, b_count)):
        one = a[i] if i < a_count else np.int64(0)
        other = b[i] if i < b_count else np.int64(0)
        if one != other:
            return np.int64(-1 if one < other else 1)
    return np.int64(0)


@jit_flat
def _compare_with(digits, count, exponent, mantissa, power, limbs, written):
    """Compare a numeral's digits with mantissa * 2**power."""
    there, other = _write_out(mantissa, power, limbs, written)
    return _compare_digits(digits, count, exponent, written, there, other)


@jit_flat
def _nearest_double(digits, count, exponent, leading, limbs, written):
    """The double nearest to a numeral above zero, half to even; INF where there is none."""
    if exponent > _BEYOND:
        return np.inf
    if exponent < -_BEYOND:
        return 0.0
    half = exponent // 2
    near = np.float64(leading) * 1e-18 * np.power(10.0, np.float64(half)) * np.power(10.0, np.float64(exponent - half))
    near = min(near, 1.7976931348623157e308)
    _, magnitude = math.frexp(near)
    power = max(np.int64(magnitude) - _BITS if near > 0.0 else np.int64(_LEAST_POWER), np.int64(_LEAST_POWER))
    # In two steps, as no double holds the inverse of the smallest power.
    half = power // 2
    mantissa = np.int64(math.ldexp(near, int(-half)) * math.ldexp(1.0, int(half - power)))
    least = np.int64(1) << (_BITS - 1)
    while True:
        above = _compare_with(digits, count, exponent, 2 * mantissa + 1, power - 1, limbs, written)
        if above > 0 or (above == 0 and mantissa & 1):
            mantissa += 1
            if mantissa == 2 * least:
                mantissa, power = least, power + 1
                if power > _MOST_POWER:
                    return np.inf
            continue
        if mantissa == 0:
            return 0.0
        # Below a power of two the distance to the neighbour is half as large.
        narrow = mantissa == least and power > _LEAST_POWER
        lower = 4 * mantissa - 1 if narrow else 2 * mantissa - 1
        below = _compare_with(digits, count, exponent, lower, power - 2 if narrow else power - 1, limbs, written)
        if below > 0 or (below == 0 and mantissa & 1 == 0):
            break
        mantissa -= 1
        if narrow:
            mantissa, power = 2 * least - 1, power - 1
    return math.ldexp(np.float64(mantissa), int(power))


@jit_flat
def _nearest(digits, count, exponent, leading, single, limbs, written):
    found = _nearest_double(digits, count, exponent, leading, limbs, written)
    return np.float64(np.float32(found)) if single else found


@jit_flat
def _round_to(digits, count, exponent, places):
    """(leading, exponent) of the first `places` digits, at most 17, rounded half to even."""
    number = np.int64(0)
    for i in range(places):
        number = number * 10 + (digits[i] if i < count else np.int64(0))
    more = np.int64(0)
    for i in range(places + 1, count):
        more |= digits[i]
    if places < count and (digits[places] > 5 or (digits[places] == 5 and (more > 0 or number & 1))):
        number += 1
    if number == POWERS[places]:
        number, exponent = POWERS[places - 1], exponent + 1
    return number * POWERS[LEADING - places], exponent


@jit_flat
def _shortest(real, single, digits, limbs, written):
    """(sign, exponent, leading) of the shortest numeral that is parsed as a number above zero."""
    mantissa, magnitude = math.frexp(real)
    power = np.int64(magnitude) - _BITS
    whole = np.int64(mantissa * 9007199254740992.0)
    places = np.int64(_SHORT_SINGLE if single else _SHORT)
    if real < (_TINY_SINGLE if single else _TINY):
        places = np.int64(1)
    while True:
        count, exponent = _write_out(whole, power, limbs, digits)
        leading, exponent = _round_to(digits, count, exponent, places)
        count = _copy_digits(leading, digits, np.int64(0), np.int64(0), digits)
        if places == _MOST_SHORT or _nearest(digits, count, exponent, leading, single, limbs, written) == real:
            return np.int64(POSITIVE), exponent, leading
        places += 1


@jit
def settled(sign, exponent, leading, text, rest, stop, single):
    """(sign, exponent, leading) of the shortest numeral that is parsed as the same double, or float if `single`, as a
    finite numeral.

    Two numerals are parsed as the same number if these are equal. The sign, as in numerals.py: ZERO, or twice the sign
    for INF.
    """
    digits, written = np.empty(_DIGITS, np.int64), np.empty(_DIGITS, np.int64)
    limbs = np.empty(_LIMBS, np.int64)
    count = _copy_digits(leading, text, rest, stop, digits)
    real = _nearest(digits, count, exponent, leading, single, limbs, written)
    if real == 0.0:
        return np.int64(ZERO), np.int64(0), np.int64(0)
    if real == np.inf:
        return 2 * sign, np.int64(0), np.int64(0)
    _, exponent, leading = _shortest(real, single, digits, limbs, written)
    return sign, exponent, leading


@jit_flat
def is_settled(exponent, leading, rest, stop, single):
    """Is a numeral certainly the shortest one? Those with few digits that are neither huge nor tiny are."""
    few = POWERS[LEADING - (_SHORT_SINGLE if single else _SHORT)]
    most = np.int64(36 if single else 300)
    return rest == stop and leading % few == 0 and exponent < most and exponent > -most
