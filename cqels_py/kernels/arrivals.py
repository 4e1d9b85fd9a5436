"""A step's arrivals by stream, and the ticks at which windows change, each in one pass."""

from __future__ import annotations

from cqels_py.kernels.jit import jit


@jit
def split_by_stream(first, stream, element_start, triple_start, elements, element, triple_element, numbers, counts):
    """Sort a batch's elements and triples by stream, in order.

    `first` (n + 1): where each element's triples start; `stream` (n); `element_start`, `triple_start` (streams + 1): zeros.
    `counts` (streams): the triples that came before, updated. Stream s has elements[element_start[s]:element_start[s + 1]], and
    triple_element (the element of each of its triples) likewise. `element` (m): the element of each triple of the batch,
    `numbers` (m): its number in its stream, from 1.
    """
    streams = len(counts)
    for i in range(len(stream)):
        s = stream[i]
        element_start[s + 1] += 1
        triple_start[s + 1] += first[i + 1] - first[i]
    for s in range(streams):
        element_start[s + 1] += element_start[s]
        triple_start[s + 1] += triple_start[s]
    for i in range(len(stream)):
        s = stream[i]
        elements[element_start[s]] = i
        element_start[s] += 1
        for t in range(first[i], first[i + 1]):
            element[t] = i
            counts[s] += 1
            numbers[t] = counts[s]
            triple_element[triple_start[s]] = i
            triple_start[s] += 1
    # Each start has moved to the next one's.
    for s in range(streams, 0, -1):
        element_start[s] = element_start[s - 1]
        triple_start[s] = triple_start[s - 1]
    element_start[0] = 0
    triple_start[0] = 0


@jit
def elements_of_triples(first, element):
    """The element of each triple; `first` (n + 1): where each element's triples start."""
    for i in range(len(first) - 1):
        for t in range(first[i], first[i + 1]):
            element[t] = i


@jit
def places_of(instants, points, after, place):
    """For each of `points` (not falling) how many instants (not falling) are before it, or with `after` before or at it."""
    at = 0
    for i in range(len(points)):
        while at < len(instants) and (instants[at] < points[i] or (after and instants[at] == points[i])):
            at += 1
        place[i] = at
