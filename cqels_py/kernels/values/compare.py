"""Comparison of values: SPARQL's `=` and `<`, and the kinds of terms in the total order (order.py)."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_inline
from cqels_py.kernels.values.decimals import POWERS
from cqels_py.kernels.values.values import (
    BLANK,
    BOOLEAN,
    DATE,
    DATETIME,
    DAY,
    DECIMAL,
    ERROR,
    FLOAT,
    IRI,
    SLOW,
    UNKNOWN,
    has_text_only,
    is_numeric,
    to_real,
    zone_micros,
)

UNORDERED = 2
"""One operand is NaN: only `!=` holds."""
INCOMPARABLE = 3
"""No order: `<` is a type error, and `=` is decided by the terms."""
UNDECIDED = 4
"""The texts are needed."""

_EXACT = 1 << 53

EQUAL_ERROR = -1
EQUAL_SLOW = -2


@jit_inline
def sign_of(a, b):
    return np.int64((a > b) - np.int64(a < b))


@jit_inline
def _compare_with_small(a, b):
    """Compare an integer with a decimal below one, given as its unscaled value."""
    return sign_of(a, np.int64(0)) if a != 0 else -sign_of(b, np.int64(0))


@jit_inline
def compare_decimals(a, a_scale, b, b_scale):
    """Compare exactly and without overflow: the operand with more fraction digits is divided, instead of multiplying
    the other."""
    if a_scale == b_scale:
        return sign_of(a, b)
    if a_scale < b_scale:
        if b_scale - a_scale >= len(POWERS):
            return _compare_with_small(a, b)
        power = POWERS[b_scale - a_scale]
        whole = b // power
        return sign_of(a, whole) if a != whole else np.int64(-1 if b != whole * power else 0)
    if a_scale - b_scale >= len(POWERS):
        return -_compare_with_small(b, a)
    power = POWERS[a_scale - b_scale]
    whole = a // power
    return sign_of(whole, b) if whole != b else np.int64(1 if a != whole * power else 0)


@jit
def compare(a_kind, a, a_scale, a_real, b_kind, b, b_scale, b_real):
    """Compare two values -> -1, 0, 1, UNORDERED, INCOMPARABLE or UNDECIDED."""
    if is_numeric(a_kind) and is_numeric(b_kind):
        if a_kind <= DECIMAL and b_kind <= DECIMAL:
            return compare_decimals(a, a_scale, b, b_scale)
        single = max(a_kind, b_kind) == FLOAT
        a_real, a_ok = to_real(a_kind, a, a_scale, a_real, single)
        b_real, b_ok = to_real(b_kind, b, b_scale, b_real, single)
        if not (a_ok and b_ok):
            return np.int64(UNDECIDED)
        if a_real != a_real or b_real != b_real:
            return np.int64(UNORDERED)
        return sign_of(a_real, b_real)
    if a_kind == b_kind:
        if a_kind in (BOOLEAN, DATETIME):
            return sign_of(a, b)
        if a_kind == DATE:
            return sign_of(a * DAY - zone_micros(a_scale), b * DAY - zone_micros(b_scale))
    # Nothing is known of two terms of which one has only a text and the other has one too or is a literal.
    a_text, b_text = has_text_only(a_kind), has_text_only(b_kind)
    if (a_text and (b_text or (b_kind >= BOOLEAN and b_kind <= DATE))) or (
        b_text and a_kind >= BOOLEAN and a_kind <= DATE
    ):
        return np.int64(UNDECIDED)
    return np.int64(INCOMPARABLE)


@jit_inline
def equality(order, a_kind, a_id, b_kind, b_id, first_nan, second_nan):
    """SPARQL's `=` from the result of `compare`: 1, 0, EQUAL_ERROR or EQUAL_SLOW.

    `a_id` and `b_id`: ids of the terms, 0 for computed values. The NaNs are the only terms not equal to themselves.
    """
    if a_kind == ERROR or b_kind == ERROR:
        return np.int64(EQUAL_ERROR)
    if order <= UNORDERED:
        return np.int64(order == 0)
    if a_kind == SLOW or b_kind == SLOW:
        return np.int64(EQUAL_SLOW)
    if a_id != 0 and a_id == b_id:
        return np.int64(a_id != first_nan and a_id != second_nan)
    if order == UNDECIDED or a_kind == UNKNOWN or b_kind == UNKNOWN:
        return np.int64(EQUAL_SLOW)
    # IRIs and blank nodes are equal only to themselves; literals of different known types are not equal.
    return np.int64(0)


@jit_inline
def order_class(kind):
    """The rank of a kind of term in the total order; -1 where the text decides (a literal without an inline form)."""
    if kind == ERROR:
        return np.int64(0)
    if kind == BLANK:
        return np.int64(1)
    if kind == IRI:
        return np.int64(2)
    if is_numeric(kind):
        return np.int64(3)
    if kind == BOOLEAN:
        return np.int64(4)
    if kind == DATETIME:
        return np.int64(5)
    if kind == DATE:
        return np.int64(6)
    return np.int64(-1)
