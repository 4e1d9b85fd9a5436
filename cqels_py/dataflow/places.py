"""The places of terms among the integers (kernels/values/places.py), also of those that are known from their texts only."""

from __future__ import annotations

import math
import re
from math import floor

import numpy as np
import numpy.typing as npt

from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.functions.numbers import parse_number
from cqels_py.kernels.values import places as kernel

Int64 = npt.NDArray[np.int64]
_LITERAL = re.compile(r'"([^"]*)"\^\^<([^>]*)>')
_GREATEST = 1 << 60
"""Integers in comparisons are nearer to 0, so that all places beyond are one."""


def places_of(ids: Int64, dictionary: Dictionary) -> Int64:
    """The places of terms (n); NO_NUMBER for those that are no numbers. RunError for numbers that are too large to compare."""
    found = np.empty(len(ids), np.int64)
    if kernel.places(np.ascontiguousarray(ids), found):
        for row in np.flatnonzero(found == kernel.UNRESOLVED).tolist():
            (text,) = dictionary.decode(ids[row : row + 1])
            found[row] = _place(text or "")
    return found


def _place(text: str) -> int:
    match = _LITERAL.fullmatch(text)
    number = parse_number(match.group(1), match.group(2)) if match else None
    if number is None:
        return kernel.NO_NUMBER
    value = number.value
    if isinstance(value, float):
        if math.isnan(value):
            return kernel.NO_NUMBER
        if math.isinf(value) or abs(value) >= 2 * _GREATEST:
            return 2 * _GREATEST if value > 0 else -2 * _GREATEST
        if abs(value) >= (1 << 24):
            raise _too_large(text)
    elif isinstance(value, int) and abs(value) >= _GREATEST:
        raise _too_large(text)
    below = floor(value)
    if abs(below) >= _GREATEST:
        return 2 * _GREATEST if below > 0 else -2 * _GREATEST
    return 2 * below + (below != value)


def _too_large(text: str) -> RunError:
    return RunError(
        f"{text} cannot be compared exactly by the counters of EVENT blocks: leave such numbers out with a FILTER in the block, or "
        "write EVENT ON <stream> [ALL]"
    )
