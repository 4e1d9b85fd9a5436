"""The worked query of event joins as one would write it by hand, to compare the counters of any query with."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat

RESET, THRESHOLD, READING = range(3)
LEVELS = 4


@jit_flat
def readings_above_thresholds(kind, value, counters, totals):
    """A reading above a threshold level (1 to 4) that was set after a reset: count them by level.

    `kind`, `value` (n): the events in order of time, all of different instants. `counters` (1 + LEVELS): resets, and pairs of a
    threshold and an earlier reset by level. `totals` (LEVELS): results by level. Returns the number of events.
    """
    for n in range(len(kind)):
        if kind[n] == RESET:
            counters[0] += 1
        elif kind[n] == THRESHOLD:
            if 0 < value[n] <= LEVELS:
                counters[value[n]] += counters[0]
        else:
            for level in range(1, LEVELS + 1):
                if value[n] > level:
                    totals[level - 1] += counters[level]
    return len(kind)
