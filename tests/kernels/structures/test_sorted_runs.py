"""Bags of terms in order, against sorting."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.kernels.structures import heaps, sorted_runs
from cqels_py.kernels.structures.arena import ARENA_FIELDS, TOP
from tests.operators.plain_dictionary import typed
from tests.operators.test_aggregate import Terms
from tests.oracle.naive_values import order_key

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

TEXTS = [
    *(typed(text, "integer") for text in ("-3", "5", "123456789012345678901")),
    *(typed(text, "decimal") for text in ("5.0", "0.5")),
    *(typed(text, "double") for text in ("5.0", "1.0E300", "NaN")),
    *("<urn:b>", "<urn:a>", '"b"', '"a"', '"a"@en', '"1"^^<urn:t>', "_:x"),
]


class Runs:
    """Several runs in one arena."""

    def __init__(self, count: int, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self.words = np.zeros(count * sorted_runs.RUN_WORDS, np.int64)
        self.heap = np.zeros(8, np.int64)
        self.meta = np.full(ARENA_FIELDS, -1, np.int64)
        self.meta[TOP] = 0

    def put(self, run: int, sign: int, value: int) -> bool:
        at = np.int64(run * sorted_runs.RUN_WORDS)
        while sign > 0 and not heaps.make_room(self.words, at, self.heap, self.meta):
            self.heap = np.concatenate([self.heap, np.zeros_like(self.heap)])
        texts, spans = self._dictionary.arena, self._dictionary.table
        return bool(sorted_runs.run_put(self.words, at, np.int64(sign), np.int64(value), self.heap, texts, spans))

    def members(self, run: int) -> list[int]:
        out = np.zeros(len(self.heap) + 1, np.int64)
        size = sorted_runs.run_copy(self.words, np.int64(run * sorted_runs.RUN_WORDS), self.heap, out, np.int64(1))
        return [int(i) for i in out[1 : size + 1]]


@pytest.mark.parametrize("seed", range(4))
def test_members_stay_in_order_under_insertions_and_retractions(seed: int) -> None:
    terms = Terms()
    ids = terms.ids(TEXTS)
    rng = random.Random(seed)
    runs = Runs(3, terms.dictionary)
    live: list[list[int]] = [[], [], []]
    for _ in range(300):
        run = rng.randrange(3)
        if live[run] and rng.random() < 0.45:
            assert runs.put(run, -1, live[run].pop(rng.randrange(len(live[run]))))
        else:
            live[run].append(rng.choice(ids))
            assert runs.put(run, 1, live[run][-1])
        assert runs.members(run) == sorted(live[run], key=lambda i: order_key(terms.term(i)))


def test_a_missing_member_cannot_be_retracted() -> None:
    terms = Terms()
    one, two, three = terms.ids([typed(text, "integer") for text in "123"])
    runs = Runs(1, terms.dictionary)
    assert runs.put(0, 1, one)
    assert runs.put(0, 1, three)
    assert not runs.put(0, -1, two)
    assert runs.members(0) == [one, three]
