"""Numbers as decimals of any length: 0.d1d2d3… · 10**exponent.

`leading` holds the first 18 digits, padded with zeros. If a literal's text has more, they are at positions `rest` to
`stop` in it.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.decimals import POWERS
from cqels_py.kernels.values.values import DECIMAL, FLOAT

_POINT, _PLUS, _MINUS, _ZERO, _NINE = ord("."), ord("+"), ord("-"), ord("0"), ord("9")
_NAN = np.frombuffer(b"NaN", np.uint8)
_INF = np.frombuffer(b"INF", np.uint8)
_EXPONENT_LIMIT = 1 << 40
LEADING = 18

NOT_A_NUMBER, NEGATIVE, ZERO, POSITIVE = -3, -1, 0, 1
"""Values of a number's `sign`; that of INF is twice POSITIVE or NEGATIVE."""


@jit_flat
def _is_word(text, at, end, word):
    if end - at != 3:
        return False
    return text[at] == word[0] and text[at + 1] == word[1] and text[at + 2] == word[2]


@jit_flat
def read_numeral(text, start, end, kind):
    """(ok, sign, exponent, leading, rest, stop) of text[start:end]; ok: it is a valid form of the kind's datatypes."""
    sign = np.int64(NEGATIVE if start < end and text[start] == _MINUS else POSITIVE)
    at = np.int64(start)
    if at < end and (sign < 0 or text[at] == _PLUS):
        at += 1
    exponent = leading = digits = whole = rest = stop = np.int64(0)
    if kind >= FLOAT:
        if _is_word(text, at, end, _INF):
            return True, 2 * sign, exponent, leading, rest, stop
        if at == start and _is_word(text, at, end, _NAN):
            return True, np.int64(NOT_A_NUMBER), exponent, leading, rest, stop
    point = False
    while at < end:
        c = np.int64(text[at])
        if c == _POINT and kind >= DECIMAL and not point:
            point = True
        elif c >= _ZERO and c <= _NINE:
            whole += 1
            if digits > 0 or c != _ZERO:
                digits += 1
                if digits <= LEADING:
                    leading = leading * 10 + (c - _ZERO)
                elif rest == 0:
                    rest = at
                if c != _ZERO:
                    stop = at + 1
            if digits > 0:
                exponent += 0 if point else 1
            elif point:
                exponent -= 1
        else:
            break
        at += 1
    ok = whole > 0
    if at < end and ok and kind >= FLOAT and (text[at] == 69 or text[at] == 101):
        at += 1
        less = at < end and text[at] == _MINUS
        if at < end and (less or text[at] == _PLUS):
            at += 1
        ok = at < end
        power = np.int64(0)
        while at < end and text[at] >= _ZERO and text[at] <= _NINE:
            power = min(power * 10 + np.int64(text[at] - _ZERO), np.int64(_EXPONENT_LIMIT))
            at += 1
        exponent += -power if less else power
    if digits == 0:
        return ok and at == end, np.int64(ZERO), np.int64(0), leading, rest, rest
    if digits < LEADING:
        leading *= POWERS[LEADING - digits]
    return ok and at == end, sign, exponent, leading, rest, max(rest, stop if rest > 0 else rest)


@jit_flat
def inline_numeral(number, scale):
    """(sign, exponent, leading) of number / 10**scale."""
    size = abs(number)
    if size == 0:
        return np.int64(ZERO), np.int64(0), np.int64(0)
    digits = np.int64(1)
    while digits < LEADING and size >= POWERS[digits]:
        digits += 1
    return np.int64(NEGATIVE if number < 0 else POSITIVE), digits - scale, size * POWERS[LEADING - digits]


@jit_flat
def compare_rest(a_text, a, a_stop, b_text, b, b_stop):
    """Compare further digits, without trailing zeros, possibly with a point among them."""
    while True:
        if a < a_stop and a_text[a] == _POINT:
            a += 1
        if b < b_stop and b_text[b] == _POINT:
            b += 1
        if a >= a_stop or b >= b_stop:
            return np.int64(a < a_stop) - np.int64(b < b_stop)
        if a_text[a] != b_text[b]:
            return np.int64(-1 if a_text[a] < b_text[b] else 1)
        a += 1
        b += 1
