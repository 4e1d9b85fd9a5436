"""From the triples that match a pattern to the mappings of a scan, in one pass."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat


@jit_flat
def mappings(
    subject, predicate, object_, graph, rows, positions, element, of_element, of_triple, columns, elements, points
):
    """The columns of the triples at `rows` (n), their elements, and the point at which each arrived.

    `graph` (m), or None where no triple is in one. `positions` (width): 0, 1, 2, or 3 for the graph, for each column.
    `element` (m): that of each triple. Points are of_triple[triple], or of_element[element] where `of_triple` is empty.
    Writes `columns` (width, n), `elements` (n) and `points` (n).
    """
    by_triple = len(of_triple) > 0
    for i in range(len(rows)):
        triple = rows[i]
        e = element[triple]
        elements[i] = e
        points[i] = of_triple[triple] if by_triple else of_element[e]
        for c in range(len(positions)):
            if positions[c] == 0:
                columns[c, i] = subject[triple]
            elif positions[c] == 1:
                columns[c, i] = predicate[triple]
            elif positions[c] == 2:
                columns[c, i] = object_[triple]
            elif graph is not None:
                columns[c, i] = graph[triple]
