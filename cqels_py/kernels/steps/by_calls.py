"""The entry of an operator that has none of its own: Python calls it, and the program goes on with its output."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives.state_record import int64s
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.deltas import COUNT, FIRST_INPUT, TARGET
from cqels_py.kernels.steps.driver import VALUES_NEEDED
from cqels_py.kernels.steps.element import LINKS

CALLED = 1
"""In its record, behind LINKS, which are those of `deltas.union`: an array of one number, of these."""
NOT_CALLED, COMPLETE, TOO_MANY = range(3)
"""Whether the operator has been called in this step, and whether there is room for its output."""


@jit_flat
def call(record):
    """The operator's changes. VALUES_NEEDED: it is to be called; PYTHON_NEEDED: there is no room for its output."""
    links, called = int64s(record, LINKS), int64s(record, CALLED)
    before = called[0]
    called[0] = NOT_CALLED
    if before != NOT_CALLED:
        return np.int64(DONE if before == COMPLETE else PYTHON_NEEDED)
    int64s(links[TARGET], COUNT)[0] = 0
    for p in range(FIRST_INPUT, len(links)):
        if int64s(links[p], COUNT)[0] != 0:
            return np.int64(VALUES_NEEDED)
    return np.int64(DONE)
