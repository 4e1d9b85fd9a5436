"""From the triples that match a pattern to the mappings of a scan, in one pass."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.jit import jit


@jit
def mappings(subject, predicate, object_, rows, positions, element, of_element, of_triple, by_triple):
    """The columns of the triples at `rows` (n), their elements, and at which point each arrived.

    `positions` (width): 0, 1 or 2 for each column. `element` (m): that of each triple. Points are of_triple[triple] if
    `by_triple`, else of_element[element]. Returns columns (width, n), elements (n), points (n).
    """
    n = len(rows)
    columns = np.empty((len(positions), n), np.int64)
    elements, points = np.empty(n, np.int64), np.empty(n, np.int64)
    for i in range(n):
        triple = rows[i]
        e = element[triple]
        elements[i] = e
        points[i] = of_triple[triple] if by_triple else of_element[e]
        for c in range(len(positions)):
            if positions[c] == 0:
                columns[c, i] = subject[triple]
            elif positions[c] == 1:
                columns[c, i] = predicate[triple]
            else:
                columns[c, i] = object_[triple]
    return columns, elements, points
