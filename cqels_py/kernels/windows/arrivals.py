"""A step's arrivals by stream, and the ticks at which windows change, each in one pass."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline

_ONE = np.uint64(1)
_TOGETHER = np.uint64(4)
"""Instants that are compared with a point at once."""


@jit
def split_by_stream(first, stream, element_start, triple_start, elements, element, triple_element, numbers, counts):
    """Sort a batch's elements and triples by stream, in order.

    `first` (n + 1): where each element's triples start; `stream` (n); `element_start`, `triple_start` (streams + 1):
    zeros. `counts` (streams): the triples that came before, updated. Stream s has
    elements[element_start[s]:element_start[s + 1]], and triple_element (the element of each of its triples) likewise.
    `element` (m): the element of each triple of the batch, `numbers` (m): its number in its stream, from 1.
    """
    streams, elements_in = np.uint64(len(counts)), np.uint64(len(stream))
    for i in range(elements_in):
        s = np.uint64(stream[i])
        element_start[s + _ONE] += 1
        triple_start[s + _ONE] += first[i + _ONE] - first[i]
    for s in range(streams):
        element_start[s + _ONE] += element_start[s]
        triple_start[s + _ONE] += triple_start[s]
        # Converts a position among the stream's triples to the number.
        counts[s] -= triple_start[s]
    for i in range(elements_in):
        s = np.uint64(stream[i])
        place = element_start[s]
        elements[place] = i
        element_start[s] = place + 1
        before, place = counts[s], triple_start[s]
        for t in range(np.uint64(first[i]), np.uint64(first[i + _ONE])):
            element[t] = i
            triple_element[place] = i
            place += 1
            numbers[t] = before + place
        triple_start[s] = place
    for s in range(streams):
        counts[s] += triple_start[s]
    # Each start has moved to the next one's.
    for s in range(len(counts), 0, -1):
        element_start[s] = element_start[s - 1]
        triple_start[s] = triple_start[s - 1]
    element_start[0] = 0
    triple_start[0] = 0


@jit_flat
def all_of_one_triple(first):
    """Does each element have one triple? `first` (n + 1): where each element's triples start."""
    others = np.int64(0)
    for i in range(np.uint64(len(first) - 1)):
        others += np.int64(first[i + _ONE] - first[i] != 1)
    return others == 0


@jit_flat
def split_numbered(stream, number, before, start, elements):
    """Sort elements by stream, in order, if the number of each in its stream is known: `number` (n), from 1; `stream`
    (n).

    `before` (streams): how many came before; it is overwritten with the offset from positions to numbers. `start`
    (streams + 1): zeros. Stream s has elements[start[s]:start[s + 1]].
    """
    n, unseen = np.uint64(len(stream)), len(before)
    for back in range(n):
        s = np.uint64(stream[n - _ONE - back])
        if start[s + _ONE] == 0:
            # The last number of a stream is the count of its elements.
            start[s + _ONE] = number[n - _ONE - back] - before[s]
            unseen -= 1
            if unseen == 0:
                break
    for s in range(np.uint64(len(before))):
        before[s] += 1 - start[s]
        start[s + _ONE] += start[s]
    for i in range(n):
        elements[number[i] - before[stream[i]]] = i


@jit_flat
def elements_of_triples(first, element):
    """The element of each triple; `first` (n + 1): where each element's triples start."""
    for i in range(np.uint64(len(first) - 1)):
        for t in range(np.uint64(first[i]), np.uint64(first[i + _ONE])):
            element[t] = i


@jit_inline
def _before(instants, point):
    """How many instants are before a point (binary search)."""
    least, most = np.uint64(0), np.uint64(len(instants))
    while least < most:
        middle = (least + most) >> _ONE
        if instants[middle] < point:
            least = middle + _ONE
        else:
            most = middle
    return least


@jit_inline
def _of_next(instants, at, point):
    """How many of the next _TOGETHER instants, which are compared at once, are before a point."""
    before = np.uint64(0)
    for k in range(_TOGETHER):
        before += np.uint64(instants[at + k] < point)
    return before


@jit_inline
def _places_on(instants, points, later, i, end, at, place):
    """The positions of points i to end - 1, from an instant on."""
    last = np.uint64(len(instants))
    while i < end and at + _TOGETHER <= last:
        before = _of_next(instants, at, points[i] + later)
        at += before
        place[i] = np.int32(at)
        i += np.uint64(before < _TOGETHER)
    while i < end:
        while at < last and instants[at] < points[i] + later:
            at += _ONE
        place[i] = np.int32(at)
        i += _ONE


@jit_flat
def places_of(instants, points, later, place):
    """For each of `points` (not falling) the number of `instants` (not falling) before it + `later`.

    The number of instants between two points is unpredictable, and each comparison would wait for the one before it. So
    several instants are compared at once, without a branch, and both halves of the points are merged at once, as two
    independent chains: a two-ended merge saves 10 ns per arrival.
    """
    end, last = np.uint64(len(place)), np.uint64(len(instants))
    half, i, at = end >> _ONE, np.uint64(0), np.uint64(0)
    j, behind = half, _before(instants, points[half] + later) if end else np.uint64(0)
    while i < half and j < end and behind + _TOGETHER <= last:
        before = _of_next(instants, at, points[i] + later)
        at += before
        place[i] = np.int32(at)
        i += np.uint64(before < _TOGETHER)
        before = _of_next(instants, behind, points[j] + later)
        behind += before
        place[j] = np.int32(behind)
        j += np.uint64(before < _TOGETHER)
    _places_on(instants, points, later, i, half, at, place)
    _places_on(instants, points, later, j, end, behind, place)
