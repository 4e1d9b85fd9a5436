"""The conditions that rows of one element have to fulfil, as the entries of windows and of MATCH evaluate them."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import BOOL, INT64, INT64_ROWS, INT64S, NativeCall
from cqels_py.kernels.primitives.state_record import int64_rows, int64s, matrix
from cqels_py.kernels.values.interpreter import evaluate_rows

CODE, CONSTANTS, SPECIAL, PLACES, FIELDS = range(5)
"""Arrays of a condition in an entry's record: as of `evaluate_rows`, and the columns of its inputs; how many arrays these are."""

EVALUATION = NativeCall(evaluate_rows, INT64, INT64_ROWS, INT64S, INT64S, INT64_ROWS, INT64S, BOOL, INT64S)
_evaluate = EVALUATION.call


@jit_flat
def fulfilling(record, field, kernel, values, width, rows, count, time, inputs, now, true):
    """Leave those of the first `count` of `rows` that fulfil the condition whose arrays are from `field` on. Returns how many;
    -1: one needs texts. `values`: columns of this width, one after another; `time`: that of NOW. The last three are scratch."""
    places, times, fulfilled = int64s(record, field + PLACES), now[:count], true[:count]
    given = matrix(inputs, len(places), count)
    for i in range(count):
        times[i] = time
        for c in range(len(places)):
            given[c, i] = values[places[c] * width + rows[i]]
    code, constants, special = (
        int64_rows(record, field + CODE), int64s(record, field + CONSTANTS), int64s(record, field + SPECIAL)
    )  # fmt: skip
    if _evaluate(kernel, (code, constants, special, given, times, True, fulfilled)):
        return np.int64(-1)
    left = 0
    for i in range(count):
        if fulfilled[i] == 1:
            rows[left] = rows[i]
            left += 1
    return np.int64(left)
