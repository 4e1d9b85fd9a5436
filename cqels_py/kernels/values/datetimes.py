"""xsd:dateTime and xsd:date parsed from the text of literals: years of up to nine digits, fractions of any length."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.inline import days_of
from cqels_py.kernels.values.numerals import LEADING

_ZERO, _NINE, _MINUS, _PLUS, _COLON, _POINT, _T, _Z = (ord(c) for c in "09-+:.TZ")
_DAY = 86_400
_LAST_DAYS = np.array([31, 28, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31], np.int64)


@jit_flat
def _two(text, at, end):
    """The number of the two digits at `at`, or -1."""
    if at + 2 > end or text[at] < _ZERO or text[at] > _NINE or text[at + 1] < _ZERO or text[at + 1] > _NINE:
        return np.int64(-1)
    return np.int64(text[at] - _ZERO) * 10 + np.int64(text[at + 1] - _ZERO)


@jit_flat
def _read_date(text, at, end):
    """(the position after the date, days since the epoch); the position is -1 where there is no date."""
    negative = at < end and text[at] == _MINUS
    start = np.int64(at + 1 if negative else at)
    at = start
    year = np.int64(0)
    while at < end and text[at] >= _ZERO and text[at] <= _NINE and at - start < 10:
        year = year * 10 + np.int64(text[at] - _ZERO)
        at += 1
    month, day = _two(text, at + 1, end), _two(text, at + 4, end)
    if (
        at - start < 4
        or at - start > 9
        or (at - start > 4 and text[start] == _ZERO)
        or month < 1
        or month > 12
        or day < 1
    ):
        return np.int64(-1), np.int64(0)
    if negative:
        year = -year
    leap = month == 2 and year % 4 == 0 and (year % 100 != 0 or year % 400 == 0)
    if text[at] != _MINUS or text[at + 3] != _MINUS or day > _LAST_DAYS[month - 1] + np.int64(leap):
        return np.int64(-1), np.int64(0)
    return at + 6, days_of(year, month, day)


@jit_flat
def _read_zone(text, at, end):
    """(rank, offset in minutes). Rank 0: no zone, 1: Z, 2: ±hh:mm, -1: anything else."""
    rank = offset = np.int64(0)
    if end - at == 1 and text[at] == _Z:
        rank = np.int64(1)
    elif at != end:
        hours, minutes = _two(text, at + 1, end), _two(text, at + 4, end)
        offset = hours * 60 + minutes
        rank = np.int64(2)
        if end - at != 6 or hours < 0 or minutes < 0 or minutes > 59 or offset > 840 or text[at + 3] != _COLON:
            rank = np.int64(-1)
        elif text[at] == _MINUS:
            offset = -offset
        elif text[at] != _PLUS:
            rank = np.int64(-1)
    return rank, offset


@jit_flat
def read_datetime(text, start, end, is_date):
    """(rank, offset, seconds since the epoch, fraction digits, the first 18 of them as a number, rest, stop).

    `rank` is that of the zone, or -1 for a text that is no date or dateTime. `rest` and `stop`: the positions of
    further fraction digits, as in a numeral.
    """
    at, days = _read_date(text, start, end)
    wrong = at < 0
    seconds = days * _DAY
    digits = leading = rest = stop = np.int64(0)
    if not wrong and not is_date:
        hour, minute, second = _two(text, at + 1, end), _two(text, at + 4, end), _two(text, at + 7, end)
        wrong = hour < 0 or hour > 24 or minute < 0 or minute > 59 or second < 0 or second > 59
        wrong = wrong or text[at] != _T or text[at + 3] != _COLON or text[at + 6] != _COLON
        at += 9
        if not wrong and at < end and text[at] == _POINT:
            at += 1
            while at < end and text[at] >= _ZERO and text[at] <= _NINE:
                digits += 1
                if digits <= LEADING:
                    leading = leading * 10 + np.int64(text[at] - _ZERO)
                elif rest == 0:
                    rest = stop = at
                if rest > 0 and text[at] != _ZERO:
                    stop = at + 1
                at += 1
            wrong = digits == 0
        for _ in range(LEADING - digits):
            leading *= 10
        # 24:00:00 is the end of the day.
        wrong = wrong or (hour == 24 and (minute > 0 or second > 0 or leading > 0 or stop > rest))
        seconds += (hour * 60 + minute) * 60 + second
    if wrong:
        return np.int64(-1), np.int64(0), seconds, digits, leading, rest, stop
    rank, offset = _read_zone(text, at, end)
    return rank, offset, seconds - offset * 60, digits, leading, rest, stop
