"""Elements that wait for the watermark: those that are complete come as if all that came before were sorted by time."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.runners import early
from cqels_py.runners.event_time_group import EventTimeGroup
from cqels_py.runners.statistics import Counters

LATENESS = 50
Row = tuple[int, int, int]
"""An element's time, the number of its triples, and its own number."""


def batch_of(rows: list[Row]) -> ElementBatch:
    """Elements whose triples have their numbers; columns are parts of larger arrays now and then."""
    times, sizes, numbers = np.array(rows, np.int64).reshape(-1, 3).T
    ids = np.repeat(numbers, sizes)
    if numbers.item(0) % 5 == 0:
        ids = np.concatenate([ids, np.zeros(10_000, np.int64)])[: len(ids)]
    first = np.concatenate([[0], np.cumsum(sizes)])
    return ElementBatch(times.copy(), np.zeros(len(rows), np.int32), first, ids, ids, ids)


def rows_of(batch: ElementBatch | None) -> list[Row]:
    if batch is None:
        return []
    sizes, starts = np.diff(batch.first).tolist(), batch.first[:-1]
    assert np.array_equal(batch.subject, batch.object) and len(batch.subject) == sum(sizes)
    return [*zip(batch.time.tolist(), sizes, batch.subject[starts].tolist(), strict=True)]


@pytest.mark.parametrize("seed", range(6))
def test_they_come_as_if_sorted(seed: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(early, "_MOST_ALONE", 40)
    drawn = random.Random(seed)
    group = EventTimeGroup(frozenset({0}), LATENESS, Counters(), SharedScansPool())
    now, number, most, alone, waiting = 0, 0, 0, 0, list[Row]()
    for round_ in range(600):
        rows = list[Row]()
        # Long stretches of single elements, then batches among them; time runs, then stands still.
        for _ in range(drawn.choice((1, 1, 3)) if round_ % 200 > 150 else 1):
            now += drawn.choice((0, 0, 1, 5, 100 * (round_ % 100 < 3)))
            number += 1
            rows.append((max(now - drawn.randrange(LATENESS), 0), drawn.randrange(1, 4), number))
        batch = batch_of(rows)
        admitted = group.admit(batch)
        kept = rows if admitted is None else [row for row, taken in zip(rows, admitted.tolist(), strict=True) if taken]
        if not kept:
            continue
        complete = rows_of(group._complete(batch_of(kept)))
        waiting = sorted([*waiting, *kept], key=lambda row: row[0])
        expected = [row for row in waiting if row[0] <= group.time]
        waiting = waiting[len(expected) :]
        assert complete == expected
        assert group.early == len(waiting)
        most, alone = max(most, len(waiting)), alone + bool(group._early._times)
        if round_ % 90 == 89:
            state = group.state()
            group = EventTimeGroup(frozenset({0}), LATENESS, Counters(), SharedScansPool())
            group.restore(state)
            assert {each for ids in group.live_ids() for each in ids.tolist()} == {row[2] for row in waiting}
    assert rows_of(group._early.with_others(None)) == waiting
    assert most > 10 and 200 < alone < 580
    assert 0 < group.nbytes < 200_000
