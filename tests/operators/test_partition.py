"""PARTITION BY of single steps: which values elements have, and what leaves with them."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.operators.s2r.partition import KeyPattern, Partitioning

Triples = list[tuple[int, int, int]]
SENSOR, KIND = 100, 200
SENSORS, KINDS = KeyPattern(("o", "s"), (0, 2)), KeyPattern(("o", "k"), (0, 2))


def batch_of(elements: list[Triples]) -> ElementBatch:
    columns = np.array([triple for triples in elements for triple in triples], np.int64).reshape(-1, 3)
    first = np.cumsum([0, *map(len, elements)]).astype(np.int64)
    times, streams = np.arange(len(elements), dtype=np.int64), np.zeros(len(elements), np.int32)
    return ElementBatch(times, streams, first, *(columns[:, c].copy() for c in range(3)))


def advance(partitioning: Partitioning, elements: list[Triples], first: int = 1) -> tuple[list[int], list[int]]:
    """The numbers of the elements that enter and leave; `first`: the number of the first of them."""
    batch = batch_of(elements)
    element = np.repeat(np.arange(len(elements)), np.diff(batch.first))
    matches = [np.flatnonzero(batch.predicate == SENSOR), np.flatnonzero(batch.predicate == KIND)]
    kept = partitioning.advance(batch, matches, element, element + first)
    assert (kept.left_at + first > kept.left).all()
    return kept.entered.tolist(), kept.left.tolist()


def observation(number: int, sensor: int, kind: int) -> Triples:
    return [(number, SENSOR, sensor), (number, KIND, kind)]


def test_the_values_of_two_patterns_belong_together_where_they_are_of_one_observation() -> None:
    """The first element holds (1, 7) and (2, 8), not (1, 8): the second pushes nothing out."""
    partitioning = Partitioning(("s", "k"), (SENSORS, KINDS), [(0, 1)], limit=1)
    both = observation(11, 1, 7) + observation(12, 2, 8)
    assert advance(partitioning, [both, observation(13, 1, 8)]) == ([1, 2], [])
    assert advance(partitioning, [observation(14, 1, 7)], 3) == ([3], [])
    assert advance(partitioning, [observation(15, 2, 8)], 4) == ([4], [1])


def test_an_element_without_all_patterns_has_no_value_of_them_together() -> None:
    partitioning = Partitioning(("s", "k"), (SENSORS, KINDS), [(0, 1)], limit=1)
    assert advance(partitioning, [[(11, SENSOR, 1)], [(11, KIND, 7)], [(11, SENSOR, 1), (12, KIND, 7)]]) == ([], [])


def test_each_pattern_that_has_the_variable_gives_its_values() -> None:
    """Values 1 and 2 come from the one pattern, 2 from the other too: the second element is the last of both."""
    subjects = (KeyPattern(("s", "x"), (0, 2)), KeyPattern(("s", "y"), (0, 2)))
    partitioning = Partitioning(("s",), subjects, [(0,), (1,)], limit=1)
    elements = [[(1, SENSOR, 5)], [(1, SENSOR, 5), (2, KIND, 5)], [(2, SENSOR, 6)], [(3, 300, 1)], [(1, KIND, 6)]]
    assert advance(partitioning, elements) == ([1, 2, 3, 5], [1, 2])


def test_nothing_comes_nothing_goes() -> None:
    assert advance(Partitioning(("s", "k"), (SENSORS, KINDS), [(0, 1)], limit=1), []) == ([], [])
    assert advance(Partitioning(("o",), (SENSORS, KINDS), [(0,), (1,)], limit=1), []) == ([], [])
