"""The places of numbers among the integers: 2 n for an integer n, 2 n + 1 for a number between n and n + 1."""

from __future__ import annotations

from math import floor

import numpy as np

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.values.values import (
    BLANK,
    BOOLEAN,
    DATE,
    DATETIME,
    DECIMAL,
    DOUBLE,
    ERROR,
    FLOAT,
    INTEGER,
    IRI,
    decode,
)

NO_NUMBER = np.iinfo(np.int64).min
UNRESOLVED = NO_NUMBER + 1
"""The number is known from its text only."""
_EXACT_FLOAT, _EXACT_DOUBLE = 2.0**24, 2.0**53
"""Beyond these, integers are rounded where they are compared with a float or double."""


@jit
def places(ids, out):
    """The places of terms; NO_NUMBER, or UNRESOLVED. Returns the number of those that are UNRESOLVED."""
    unresolved = 0
    for row in range(len(ids)):
        kind, number, scale, real = decode(ids[row])
        if kind == INTEGER:
            out[row] = 2 * number
        elif kind == DECIMAL and scale < 19:
            power = np.int64(1)
            for _ in range(scale):
                power *= 10
            below = number // power
            out[row] = 2 * below + (1 if below * power != number else 0)
        elif (kind == DOUBLE and abs(real) < _EXACT_DOUBLE) or (kind == FLOAT and abs(real) < _EXACT_FLOAT):
            whole = np.int64(floor(real))
            out[row] = 2 * whole + (1 if np.float64(whole) != real else 0)
        elif kind == IRI or kind == BLANK or kind == ERROR or kind == BOOLEAN or kind == DATETIME or kind == DATE:
            out[row] = NO_NUMBER
        else:
            out[row] = UNRESOLVED
            unresolved += 1
    return unresolved
