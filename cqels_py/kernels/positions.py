"""What may stand where in a triple, by the tags of ids."""

from __future__ import annotations

from cqels_py.dictionary.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT
from cqels_py.kernels.jit import jit


@jit
def by_position(ids, columns):
    """Put `ids` (3 n), triple after triple, into `columns` (3, n).

    Returns how many subjects are neither IRI nor blank node, and predicates no IRI. Whatever a hash could not tell apart passes:
    what it is stands in the dictionary alone.
    """
    count = 0
    for i in range(0, len(ids), 3):
        for position in range(3):
            columns[position, i // 3] = ids[i + position]
        subject = (ids[i] >> TAG_SHIFT) & 15
        if subject != TAG_IRI and subject != TAG_OVERFLOW and subject != TAG_BLANK:
            count += 1
        predicate = (ids[i + 1] >> TAG_SHIFT) & 15
        if predicate != TAG_IRI and predicate != TAG_OVERFLOW:
            count += 1
    return count
