"""The rows of an event: the solutions of its triple patterns over the triples of one element at a time."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.structures.hashing import mix

ANY = -1
"""A position of a pattern that binds nothing. A column c: the position binds it; -2 - c: it must equal column c."""
MOST_COMPARED = 32
"""With more matches of a pattern in an element, repeated triples are left in the rows."""

FULL, REPEATED = -1, -2


@jit_flat
def _fits(t, pattern, spec, terms, values):
    """Does a triple agree with the values of earlier patterns? Sets the columns that the pattern binds."""
    for position in range(3):
        column = spec[pattern, position]
        value = terms[position][t]
        if column >= 0:
            values[column] = value
        elif column < ANY and values[-2 - column] != value:
            return False
    return True


@jit_flat
def _repeats(t, low, at, triples, terms):
    """Has the element the same triple before?"""
    for other in range(low, at):
        o = triples[other]
        if terms[0][o] == terms[0][t] and terms[1][o] == terms[1][t] and terms[2][o] == terms[2][t]:
            return True
    return False


@jit_flat
def _key_position(spec, pattern):
    """The first position of a pattern that must equal a column of an earlier pattern; -1 where there is none."""
    for position in range(3):
        column = -2 - spec[pattern, position]
        if column >= 0:
            earlier = True
            for other in range(position):
                earlier = earlier and spec[pattern, other] != column
            if earlier:
                return np.int64(position)
    return np.int64(-1)


@jit_inline
def _bucket(value, low, buckets):
    return low + mix(value) % buckets


@jit_flat
def _link(triples, values, low, high, heads, following):
    """Chain the triples of one element and pattern by their key: as many buckets as there are triples."""
    for at in range(low, high):
        heads[at] = -1
    for at in range(high - 1, low - 1, -1):
        bucket = _bucket(values[triples[at]], low, high - low)
        following[at] = heads[bucket]
        heads[bucket] = at


@jit_flat
def event_rows(subject, predicate, object_, element, triples, bounds, spec, scratch, chains, out_element, out_columns):
    """Join the matches of several patterns element by element.

    Pattern p matches triples[bounds[p, 0] : bounds[p, 1]], in order of the elements (`element`: by triple). `spec` (p, 3): see ANY.
    Where an element has more than MOST_COMPARED matches of a pattern, these are found by a hash table on a position that earlier
    patterns bind. `scratch`: room for 4 p + columns numbers. `chains` (2 p, triples): room for the hash tables.
    Writes the element and the columns of each row.

    Returns the number of rows, or FULL where there is no room for them. `scratch[0]` is then REPEATED if rows may be there twice.
    """
    terms = (subject, predicate, object_)
    patterns = len(bounds)
    low, high, pick = scratch[1 : 1 + patterns], scratch[1 + patterns : 1 + 2 * patterns], scratch[1 + 2 * patterns :]
    hashed, values = scratch[1 + 3 * patterns : 1 + 4 * patterns], scratch[1 + 4 * patterns :]
    scratch[0] = 0
    made = np.int64(0)
    for p in range(patterns):
        high[p] = bounds[p, 0]
    while True:
        e = np.int64(-1)
        for p in range(patterns):
            if high[p] == bounds[p, 1]:
                return made
            e = max(e, element[triples[high[p]]])
        there = True
        for p in range(patterns):
            at = high[p]
            while at < bounds[p, 1] and element[triples[at]] < e:
                at += 1
            low[p] = at
            while at < bounds[p, 1] and element[triples[at]] == e:
                at += 1
            high[p] = at
            there = there and low[p] < at
            if at - low[p] > MOST_COMPARED:
                scratch[0] = REPEATED
        if not there:
            continue
        for p in range(patterns):
            hashed[p] = -1
            if p > 0 and high[p] - low[p] > MOST_COMPARED:
                hashed[p] = _key_position(spec, p)
                if hashed[p] >= 0:
                    _link(triples, terms[hashed[p]], low[p], high[p], chains[2 * p], chains[2 * p + 1])
        p = 0
        pick[0] = low[0]
        while p >= 0:
            if pick[p] < 0 or pick[p] == high[p]:
                p -= 1
            else:
                t = triples[pick[p]]
                few = high[p] - low[p] <= MOST_COMPARED
                if _fits(t, p, spec, terms, values) and not (few and _repeats(t, low[p], pick[p], triples, terms)):
                    if p + 1 < patterns:
                        p += 1
                        pick[p] = low[p]
                        if hashed[p] >= 0:
                            key = values[-2 - spec[p, hashed[p]]]
                            pick[p] = chains[2 * p, _bucket(key, low[p], high[p] - low[p])]
                        continue
                    if made == len(out_element):
                        return np.int64(FULL)
                    out_element[made] = e
                    for column in range(len(out_columns)):
                        out_columns[column, made] = values[column]
                    made += 1
            if p >= 0:
                pick[p] = pick[p] + 1 if hashed[p] < 0 else chains[2 * p + 1, pick[p]]
