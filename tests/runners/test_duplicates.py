"""Remembering elements, against a set of them."""

from __future__ import annotations

from random import Random

import numpy as np
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.runners.duplicates import Duplicates
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

BLANK = TAG_BLANK << TAG_SHIFT
Element = tuple[int, int, tuple[tuple[int, ...], ...]]


def batch_of(elements: list[Element], *, graphs: bool) -> ElementBatch:
    rows = np.array([row for _, _, triples in elements for row in triples], np.int64).reshape(-1, 4)
    first = np.cumsum([0, *(len(triples) for _, _, triples in elements)])
    times = np.array([time for _, time, _ in elements], np.int64)
    streams = np.array([stream for stream, _, _ in elements], np.int32)
    subject, predicate, object_, graph = (np.ascontiguousarray(column) for column in rows.T)
    return ElementBatch(times, streams, first, subject, predicate, object_, graph if graphs else None)


def _row(random: Random, *, graphs: bool) -> tuple[int, ...]:
    terms = [random.choice([7, 8, BLANK + random.randrange(1 << 50)]) for _ in range(3)]
    return (*terms, random.choice([0, 9]) if graphs else 0)


def named(element: Element) -> object:
    """What is equal for equal elements: blank nodes are numbered as they appear, and triples are in any order where none has one."""
    stream, time, triples = element
    numbers: dict[int, int] = {}
    rows = [
        tuple(numbers.setdefault(term, -len(numbers) - 1) if term >> 60 == 3 else term for term in row)
        for row in triples
    ]
    return stream, time, tuple(sorted(rows))


@pytest.mark.parametrize("seed", range(10))
def test_each_element_is_admitted_once(seed: int) -> None:
    random = Random(seed)
    graphs = seed % 2 == 0
    duplicates, known, time = Duplicates({0, 2}), set[object](), 0
    for _ in range(60):
        elements: list[Element] = []
        for _ in range(random.choice([0, 1, 1, 5, 40])):
            rows = tuple(_row(random, graphs=graphs) for _ in range(random.randrange(3)))
            time += random.randrange(2)
            elements.append((random.randrange(3), time - random.randrange(4), rows))
        expected = []
        for element in elements:
            expected.append(element[0] == 1 or named(element) not in known)
            known.add(named(element))
        admitted = duplicates.admit(batch_of(elements, graphs=graphs), time - 4)
        assert (expected if admitted is None else admitted.tolist()) == expected
        assert admitted is not None or all(expected)
        if random.random() < 0.2:
            saved, duplicates = duplicates.state(), Duplicates({0, 2})
            duplicates.restore({name: np.array(each) for name, each in saved.items()})


def test_memory_is_bounded_by_what_may_still_come() -> None:
    duplicates = Duplicates({0})
    for time in range(2_500):
        assert duplicates.admit(batch_of([(0, time, ((1, 2, 3, 0),))], graphs=False), time - 10) is None
    assert len(duplicates.state()["duplicates.times"]) < 1100  # type: ignore[arg-type]
