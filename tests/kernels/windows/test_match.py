"""Triples against patterns, routed by predicate, against trying every pattern."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.structures.hashing import mix
from cqels_py.kernels.windows import match as kernel

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

Pattern = tuple[int, int, int, int, int, int]
"""Four constants (0: a variable), what is asked beside them, the stream."""
Triple = tuple[int, int, int, int]
"""With its graph, 0 for none."""


def routes(patterns: list[Pattern]) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    size = 4
    while size < 2 * len(patterns):
        size *= 2
    table = np.zeros(size, np.int64)
    lists: list[list[int]] = [[] for _ in range(size + 1)]
    for j, pattern in enumerate(patterns):
        slot = size
        if pattern[1] != 0:
            slot = int(mix(np.int64(pattern[1]))) & (size - 1)
            while table[slot] not in (0, pattern[1]):
                slot = (slot + 1) & (size - 1)
            table[slot] = pattern[1]
        lists[slot].append(j)
    first = np.cumsum([0, *(len(each) for each in lists)]).astype(np.int64)
    return table, first, np.array([j for each in lists for j in each], np.int64)


def match(triples: list[Triple], element: list[int], stream: list[int], patterns: list[Pattern]) -> list[list[int]]:
    subject, predicate, object_, graph = np.array(triples, np.int64).reshape(-1, 4).T.copy()
    constants = np.array([pattern[:4] for pattern in patterns], np.int64).reshape(-1, 4)
    same = np.array([pattern[4] for pattern in patterns], np.int64)
    streams = np.array([pattern[5] for pattern in patterns], np.int64)
    first, found = np.full(len(patterns) + 1, -1), np.empty(0, np.int64)
    table = ArrayTable(constants, same, streams, *routes(patterns), first)
    arrays = (
        subject,
        predicate,
        object_,
        graph if graph.any() else None,
        np.array(element, np.int64),
        np.array(stream, np.int32),
        table.address,
    )
    # Without room it returns how much is needed.
    found = np.empty(kernel.match(*arrays, found), np.int64)
    assert kernel.match(*arrays, found) == len(found)
    return [found[first[j] : first[j + 1]].tolist() for j in range(len(patterns))]


def fits(triple: Triple, stream: int, pattern: Pattern) -> bool:
    s, p, o, g = triple
    same = pattern[4]
    if same & kernel.IN_GRAPH and (
        g == 0
        or pattern[3] not in (0, g)
        or (same & kernel.SUBJECT_GRAPH and s != g)
        or (same & kernel.PREDICATE_GRAPH and p != g)
        or (same & kernel.OBJECT_GRAPH and o != g)
    ):
        return False
    return (
        stream == pattern[5]
        and all(constant in (0, term) for constant, term in zip(pattern[:3], triple, strict=False))
        and not (same & kernel.SUBJECT_PREDICATE and s != p)
        and not (same & kernel.SUBJECT_OBJECT and s != o)
        and not (same & kernel.PREDICATE_OBJECT and p != o)
    )


@pytest.mark.parametrize("seed", range(20))
def test_each_pattern_gets_its_triples_in_order(seed: int) -> None:
    rng = random.Random(seed)
    # Ids of inline terms are negative or large; predicates share slots.
    terms = [1, 2, 3, -(1 << 60), 5 << 60, (5 << 60) + 1]

    def constant(share: float) -> int:
        return rng.choice(terms) if rng.random() < share else 0

    patterns: list[Pattern] = []
    for _ in range(rng.randrange(12)):
        same, graph = rng.choice((0, 0, 0, 1, 2, 4, 7)), 0
        if rng.random() < 0.4:
            same |= kernel.IN_GRAPH | rng.choice((0, 0, 16, 32, 64, 80))
            graph = constant(0.3)
        patterns.append((constant(0.2), constant(0.8), constant(0.2), graph, same, rng.randrange(2)))
    stream = [rng.randrange(2) for _ in range(20)]
    element = sorted(rng.randrange(20) for _ in range(60))
    names = [0, *terms] if seed % 3 else [0]
    triples = [(rng.choice(terms), rng.choice(terms), rng.choice(terms), rng.choice(names)) for _ in element]
    assert match(triples, element, stream, patterns) == [
        [t for t, triple in enumerate(triples) if fits(triple, stream[element[t]], pattern)] for pattern in patterns
    ]


def test_no_triples_and_no_patterns() -> None:
    assert match([], [], [], [(0, 1, 0, 0, 0, 0)]) == [[]]
    assert match([(1, 2, 3, 0)], [0], [0], []) == []
