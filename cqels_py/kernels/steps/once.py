"""The entry around a row that several programs of one step have: the first of them runs it."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import call_entry
from cqels_py.kernels.primitives.state_record import int64s
from cqels_py.kernels.primitives.status import DONE
from cqels_py.kernels.steps.element import ELEMENT, LINKS, STEP, WORDS

ENTRY, RECORD = 1, 2
"""LINKS, behind the element's record: the entry that is run, and its record."""
LAST = 1
"""In the record, behind LINKS: the number (1) of the step in which it was completed last."""


@jit_flat
def run_once(record):
    """Run the entry, unless it has been completed in this step."""
    links, last = int64s(record, LINKS), int64s(record, LAST)
    step = int64s(links[ELEMENT], WORDS)[STEP]
    if last[0] == step:
        return np.int64(DONE)
    status = call_entry(links[ENTRY], (links[RECORD],))
    if status == DONE:
        last[0] = step
    return np.int64(status)
