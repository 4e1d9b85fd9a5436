"""Repetitions among ids, as of a subject in all triples of its element."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix


@jit_flat
def find_repeats(ids, recent, places, positions, different):
    """Write the ids (n) without most repetitions to `different` (n), and the place of each there to `positions` (n).

    `recent`, `places` (a power of two, -1 in `places`): for each hash the last id that had it, and its place. An id of which another
    one has taken the place since is written again: nothing is probed, and nothing grows. Returns how many were written.
    """
    last, count = len(recent) - 1, 0
    for i in range(len(ids)):
        identifier = ids[i]
        at = mix(identifier) & last
        if places[at] < 0 or recent[at] != identifier:
            recent[at] = identifier
            places[at] = count
            different[count] = identifier
            count += 1
        positions[i] = places[at]
    return count
