"""xsd:duration and its two derived types, parsed from the text of literals, and their order."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.inline import days_of
from cqels_py.kernels.values.words import same

DURATION, DAY_TIME, YEAR_MONTH = 0, 1, 2
_TYPED = np.frombuffer(b'"^^<http://www.w3.org/2001/XMLSchema#', np.uint8).copy()
_NAMES = np.frombuffer(b"durationdayTimeDurationyearMonthDuration", np.uint8).copy()
_FIRST = np.array([0, 8, 23, 40], np.int64)
_ZERO, _NINE, _MINUS, _POINT, _GREATER, _P, _T = (ord(c) for c in "09-.>PT")
_OF_DATE = np.frombuffer(b"YMD", np.uint8).copy()
_OF_TIME = np.frombuffer(b"HMS", np.uint8).copy()
_UNITS = np.array([12, 1, 86_400, 3_600, 60, 1], np.int64)
"""Months of a year and a month; seconds of the other units."""
_DAYS, _SECONDS = 2, 5
_MOST_DIGITS, _MOST_FRACTION = 9, 18
_WHOLE = 10**18
_DAY = 86_400
_REFERENCES = np.array([1696 * 12 + 8, 1697 * 12 + 1, 1903 * 12 + 2, 1903 * 12 + 6], np.int64)
"""The instants from which XML Schema compares durations (part 2, 3.3.6.2), in months."""


@jit_flat
def duration_type(data, quote, end):
    """The duration type of the literal that ends at `end` and whose closing quote is at `quote`; or -1."""
    prefix = len(_TYPED)
    found = np.int64(-1)
    if end - quote <= prefix or data[end - 1] != _GREATER or not same(data, quote, _TYPED, 0, prefix):
        return found
    length = end - 1 - quote - prefix
    for k in range(3):
        if length == _FIRST[k + 1] - _FIRST[k] and same(data, quote + prefix, _NAMES, _FIRST[k], length):
            found = np.int64(k)
    return found


@jit_flat
def _unit(letter, in_time):
    """The number of a unit among all six, or -1."""
    for k in range(3):
        if letter == (_OF_TIME[k] if in_time else _OF_DATE[k]):
            return np.int64(k + 3 if in_time else k)
    return np.int64(-1)


@jit_flat
def _read(text, at, end, datatype):
    """(is it a duration, months, seconds, the fraction of a second in units of 10**-18), without the sign."""
    months = seconds = fraction = np.int64(0)
    right = at < end and text[at] == _P and at + 1 < end
    at += 1
    in_time = False
    least = np.int64(_DAYS if datatype == DAY_TIME else 0)
    while right and at < end:
        if text[at] == _T:
            right = not in_time and at + 1 < end and datatype != YEAR_MONTH
            in_time = True
            at += 1
            continue
        number, digits = np.int64(0), np.int64(0)
        while at < end and text[at] >= _ZERO and text[at] <= _NINE and digits <= _MOST_DIGITS:
            number = number * 10 + np.int64(text[at] - _ZERO)
            digits += 1
            at += 1
        right = digits > 0 and digits <= _MOST_DIGITS and at < end
        behind = np.int64(0)
        if right and text[at] == _POINT:
            at += 1
            while at < end and text[at] >= _ZERO and text[at] <= _NINE and behind <= _MOST_FRACTION:
                fraction = fraction * 10 + np.int64(text[at] - _ZERO) if behind < _MOST_FRACTION else fraction
                behind += 1
                at += 1
            right = behind > 0 and behind <= _MOST_FRACTION and at < end
            for _ in range(_MOST_FRACTION - behind):
                fraction *= 10
        if right:
            unit = _unit(text[at], in_time)
            right = unit >= least and (behind == 0 or unit == _SECONDS) and (datatype != YEAR_MONTH or unit < _DAYS)
            if right and unit < _DAYS:
                months += number * _UNITS[unit]
            elif right:
                seconds += number * _UNITS[unit]
            least = unit + 1
            at += 1
    return right, months, seconds, fraction


@jit_flat
def read_duration(text, start, end, datatype):
    """(is it a duration, key, fraction of the key in units of 10**-18, months). The duration with the smaller key comes
    first.

    The key is the sum of its seconds from each of four instants. XML Schema orders durations by their length from all
    four; the longer one has the larger key. Months decide between durations with equal keys.
    """
    negative = start < end and text[start] == _MINUS
    right, months, seconds, fraction = _read(text, start + 1 if negative else start, end, datatype)
    if negative:
        months, seconds, fraction = -months, -seconds, -fraction
    key = np.int64(4) * seconds
    for k in range(len(_REFERENCES)):
        first = _REFERENCES[k]
        later = first + months
        key += (days_of(later // 12, later % 12 + 1, 1) - days_of(first // 12, first % 12 + 1, 1)) * _DAY
    fraction *= 4
    carry = fraction // _WHOLE
    return right, key + carry, fraction - carry * _WHOLE, months
