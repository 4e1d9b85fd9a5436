"""Which elements are too far ahead of those before them."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat


@jit_flat
def admit(time, greatest, ahead, admitted):
    """Write to `admitted` (n) which of the elements (n times, in order of arrival) are at most `ahead` after those before them.

    `greatest`: the latest time of the elements before these. Only an admitted element moves it; returns it.
    """
    for i in range(np.uint64(len(time))):
        admitted[i] = time[i] - greatest <= ahead
        if admitted[i] and time[i] > greatest:
            greatest = time[i]
    return greatest
