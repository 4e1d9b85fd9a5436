"""Triples given as texts: their terms are encoded, each into the column of its position."""

from __future__ import annotations

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.values.dictionary import DONE, NOT_WRITTEN_SO, encode_term
from cqels_py.kernels.values.positions import PREDICATE, SUBJECT, fits
from cqels_py.kernels.values.syntax import CANONICAL, NEWLINE, term_end


@jit_flat
def encode_triples(data, start, first, scope, at, element, shift, table, arena, meta, columns):
    """Encode terms, each a line of `data` (the last one without a line end), from number `at` on, which begins at
    data[start].

    Term i goes into columns[i % 3, i // 3]. None is empty. Element e has the triples first[e] to first[e + 1]; its
    blank nodes have the scope `scope` + e. `element`: that of term `at`, or one before it. Returns (at, status); with
    DONE, instead of `at`, how many subjects and predicates are not allowed at their position.
    """
    for i in range(at, columns.size):
        triple, position = i // 3, i % 3
        while first[element + 1] <= triple:
            element += 1
        stop, quote, written = term_end(data, start, len(data))
        if written != CANONICAL or (stop < len(data) and data[stop] != NEWLINE):
            return i, NOT_WRITTEN_SO
        identifier, status = encode_term(data, start, stop, quote, scope + element, shift, table, arena, meta)
        columns[position, triple] = identifier
        if status != DONE:
            return i, status
        start = stop + 1
    misplaced = 0
    for triple in range(columns.shape[1]):
        misplaced += not fits(columns[SUBJECT, triple], SUBJECT)
        misplaced += not fits(columns[PREDICATE, triple], PREDICATE)
    return misplaced, DONE
