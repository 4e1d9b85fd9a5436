"""Pattern matching: each triple is routed by its predicate to the patterns that may match it."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int64_rows, int64s
from cqels_py.kernels.structures.hashing import mix

# Positions of a pattern that must be the same term, because they are the same variable.
SUBJECT_PREDICATE, SUBJECT_OBJECT, PREDICATE_OBJECT = 1, 2, 4
# The triple must be in a graph; and positions that must equal the graph's name.
IN_GRAPH, SUBJECT_GRAPH, PREDICATE_GRAPH, OBJECT_GRAPH = 8, 16, 32, 64


ARRAYS = 7
CONSTANTS, SAME, STREAMS, ROUTES, ROUTE_FIRST, ROUTE_PATTERNS, FIRST = range(ARRAYS)
"""The arrays of a router in the table given to `match`, in this order (primitives/state_record.py)."""


@jit_inline
def _fits(same, s, p, o, g, graph):
    """Does a triple in graph `g` (0: in none) satisfy the other conditions of a pattern? `graph`: its constant there,
    or 0."""
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
def match(subject, predicate, object_, graph, element, stream, table, triples):
    """Find the triples that match each pattern.

    `graph` (m), or None where no triple is in one; `element` (m): each triple's element; `stream` (elements): its
    stream. Arrays in `table`: `constants` (k, 4), 0 for a variable; `same` (k): the bits above; `pattern_stream`
    (k). `routes`: a hash table of predicate ids with open addressing (0: empty); slot r lists its patterns in
    route_patterns[route_first[r] : route_first[r + 1]]; the slot after the table is for patterns with a variable
    predicate. `first` (k + 1).

    Writes `first` (k + 1) and `triples`: pattern j matches triples[first[j] : first[j + 1]], in order. Returns the
    number of matches; where they do not fit, nothing is written to `triples`.
    """
    constants, same, pattern_stream, routes, route_first, route_patterns, first = (
        int64_rows(table, CONSTANTS), int64s(table, SAME), int64s(table, STREAMS), int64s(table, ROUTES),
        int64s(table, ROUTE_FIRST), int64s(table, ROUTE_PATTERNS), int64s(table, FIRST),
    )  # fmt: skip
    patterns = constants.shape[0]
    mask = np.int64(len(routes) - 1)
    anything = np.int64(len(routes))
    first[:] = 0
    for counting in (True, False):
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
                        if counting:
                            first[j + 1] += 1
                        else:
                            triples[first[j]] = t
                            first[j] += 1
                if slot == anything:
                    break
                slot = anything
        if counting:
            for j in range(patterns):
                first[j + 1] += first[j]
            if first[patterns] > len(triples):
                return first[patterns]
    # The second pass has moved each start to the next pattern's start.
    for j in range(patterns, 0, -1):
        first[j] = first[j - 1]
    first[0] = 0
    return first[patterns]
