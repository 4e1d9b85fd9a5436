"""Pattern matching: each triple is routed by its predicate to the patterns that ask for it."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.array_table import int64_rows, int64s
from cqels_py.kernels.structures.hashing import mix

# What positions of a pattern must be the same term, because they are the same variable.
SUBJECT_PREDICATE, SUBJECT_OBJECT, PREDICATE_OBJECT = 1, 2, 4
# The triple is asked in a graph; and positions that must be the graph's name.
IN_GRAPH, SUBJECT_GRAPH, PREDICATE_GRAPH, OBJECT_GRAPH = 8, 16, 32, 64


CONSTANTS, SAME, STREAMS, ROUTES, ROUTE_FIRST, ROUTE_PATTERNS, FIRST = range(7)
"""What a router keeps, in the order in which `match` is given it (kernels/standing.py)."""


@jit_inline
def _fits(same, s, p, o, g, graph):
    """Does a triple in graph `g` (0: in none) fit what a pattern asks beside its constants? `graph`: its constant there, or 0."""
    if same & SUBJECT_PREDICATE and s != p:
        return False
    if same & SUBJECT_OBJECT and s != o:
        return False
    if same & PREDICATE_OBJECT and p != o:
        return False
    if not same & IN_GRAPH:
        return True
    if g == 0 or (graph != 0 and graph != g):
        return False
    if same & SUBJECT_GRAPH and s != g:
        return False
    if same & PREDICATE_GRAPH and p != g:
        return False
    return not (same & OBJECT_GRAPH and o != g)


@jit_flat
def match(subject, predicate, object_, graph, element, stream, standing, triples):
    """Which triple matches which pattern.

    `graph` (m), or None where no triple is in one; `element` (m): each triple's element; `stream` (elements): its
    stream. In `standing`, patterns: `constants` (k, 4), 0 for a variable; `same` (k): bit set above; `pattern_stream` (k).
    `routes`: an open-addressing table of predicate ids (0 empty), slot r lists its patterns in
    route_patterns[route_first[r] : route_first[r + 1]]; the slot after the table is for patterns with a variable predicate; and
    `first` (k + 1).

    Writes `first` (k + 1) and `triples`: pattern j matches triples[first[j] : first[j + 1]], in order. Returns how many matches
    there are; where there is no room for so many, nothing of `triples` is written.
    """
    constants, same, pattern_stream, routes, route_first, route_patterns, first = (
        int64_rows(standing, CONSTANTS), int64s(standing, SAME), int64s(standing, STREAMS), int64s(standing, ROUTES),
        int64s(standing, ROUTE_FIRST), int64s(standing, ROUTE_PATTERNS), int64s(standing, FIRST),
    )  # fmt: skip
    patterns = constants.shape[0]
    mask = np.int64(len(routes) - 1)
    anything = np.int64(len(routes))
    first[:] = 0
    for turn in range(2):
        for t in range(len(subject)):
            p = predicate[t]
            slot = mix(p) & mask
            while routes[slot] != p and routes[slot] != 0:
                slot = (slot + 1) & mask
            if routes[slot] != p:
                slot = anything
            while True:
                for r in range(route_first[slot], route_first[slot + 1]):
                    j = route_patterns[r]
                    s = subject[t]
                    o = object_[t]
                    fits = pattern_stream[j] == stream[element[t]]
                    fits = fits and (constants[j, 0] == 0 or constants[j, 0] == s)
                    fits = fits and (constants[j, 2] == 0 or constants[j, 2] == o)
                    if fits and same[j] != 0:
                        fits = _fits(same[j], s, p, o, np.int64(0) if graph is None else graph[t], constants[j, 3])
                    if fits:
                        if turn == 0:
                            first[j + 1] += 1
                        else:
                            triples[first[j]] = t
                            first[j] += 1
                if slot == anything:
                    break
                slot = anything
        if turn == 0:
            for j in range(patterns):
                first[j + 1] += first[j]
            if first[patterns] > len(triples):
                return first[patterns]
    # The second turn has moved each start to the next pattern's start.
    for j in range(patterns, 0, -1):
        first[j] = first[j - 1]
    first[0] = 0
    return first[patterns]
