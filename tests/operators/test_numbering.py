"""Numbers of different mappings: equal mappings have one number as long as any of them is there."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.operators.r2r.numbering import NumberRows
from tests.operators.deltas import Event, delta
from tests.operators.test_aggregate import Terms
from tests.operators.test_semi_anti_join import ANY_TICK


@pytest.mark.parametrize("columns", [(0,), (1, 0), ()])
def test_a_mapping_keeps_its_number_while_it_is_there(columns: tuple[int, ...]) -> None:
    rng = random.Random(len(columns))
    numbers = NumberRows(columns)
    live: list[tuple[int, int]] = []
    of: dict[tuple[int, ...], int] = {}
    for _ in range(30):
        events: list[Event] = []
        for _ in range(rng.randrange(1, 40)):
            if live and rng.random() < 0.5:
                events.append((0, -1, live.pop(rng.randrange(len(live)))))
            else:
                live.append((rng.randrange(12), rng.randrange(3)))
                events.append((0, 1, live[-1]))
        (out,) = numbers.process(ANY_TICK, [[delta(events, 2)]])
        assert out.columns[:2].T.tolist() == [list(row) for _, _, row in events]
        for (_, _, row), number in zip(events, out.columns[2].tolist(), strict=True):
            assert of.setdefault(tuple(row[c] for c in columns), number) == number
        keys = {tuple(row[c] for c in columns) for row in live}
        of = {key: number for key, number in of.items() if key in keys}
        assert len(set(of.values())) == len(of)


def test_numbers_are_integers_that_need_no_dictionary() -> None:
    terms = Terms()
    (out,) = NumberRows([0]).process(ANY_TICK, [[delta([(0, 1, (7,)), (0, 1, (8,))], 1)]])
    assert [str(terms.term(int(i))) for i in out.columns[1]] == ["0", "1"]


def test_a_missing_mapping_cannot_be_retracted() -> None:
    with pytest.raises(AssertionError, match="never inserted"):
        list(NumberRows([0]).process(ANY_TICK, [[delta([(0, -1, (1,))], 1)]]))


def test_mappings_are_live_while_they_are_there() -> None:
    numbers = NumberRows([0])
    list(numbers.process(ANY_TICK, [[delta([(0, 1, (7,)), (0, 1, (8,))], 1)]]))
    assert {7, 8} <= set(np.concatenate([np.ravel(ids) for ids in numbers.live_ids()]).tolist())
    assert numbers.nbytes > 0
