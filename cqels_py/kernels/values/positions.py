"""The terms allowed at each position of a triple, by the tags of ids."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT

SUBJECT, PREDICATE, OBJECT = range(3)


@jit_inline
def fits(identifier, position):
    """Is the term allowed at this position? An overflow id is, as only the dictionary knows the kind of its term."""
    tag = (identifier >> TAG_SHIFT) & 15
    if position == OBJECT:
        return tag != 0
    return tag == TAG_IRI or tag == TAG_OVERFLOW or (tag == TAG_BLANK and position == SUBJECT)


@jit_flat
def misplaced(ids, position):
    """How many of `ids` (n) are not allowed there: a subject is an IRI or a blank node, a predicate an IRI, an object
    not 0."""
    count = 0
    for i in range(len(ids)):
        count += not fits(ids[i], position)
    return count
