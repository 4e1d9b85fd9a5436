"""One step of the clock, against its specification in plain Python."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.windows import clock as kernel
from cqels_py.kernels.windows import varint_queue as varints

NO_STEPS = np.empty((0, 3), np.int64)
NO_PROMISES = np.empty(0, np.int64), np.empty((0, 2), np.bool_)
BEFORE_ALL = -(1 << 62)


def step(*arguments: Any) -> tuple[int, int]:
    """The kernel, all that stays given as arrays of their own."""
    *moving, eager, steps, counts, offsets, promising, varints, ends, due, number, element_tick, instants = arguments
    table = ArrayTable(eager, steps, counts, offsets, promising, varints, ends, due, instants)
    return kernel.step(*moving, table.address, number, element_tick)


class Promises:
    """What the kernel works on: one queue of instants for each list."""

    def __init__(self, *queues: list[int], room: int = 400, due: int = 40) -> None:
        self.varints, self.ends = (
            np.zeros((len(queues), room), np.uint8),
            np.zeros((len(queues), kernel.ENDS), np.int64),
        )
        for q, instants in enumerate(queues):
            varints.append(np.array(instants, np.int64), self.varints[q], self.ends[q])
        self.due = np.empty((len(queues), due), np.int64)

    @property
    def arrays(self) -> tuple[np.ndarray, ...]:
        return self.varints, self.ends, self.due

    def left(self, q: int) -> list[int]:
        points = np.empty(99, np.int64)
        read = varints.read_through(1 << 62, varints.EXPIRING, self.varints[q], self.ends[q], points)
        return points[:read].tolist()


@pytest.mark.parametrize("seed", range(5))
def test_instants_are_merged_by_phase(seed: int) -> None:
    rng = np.random.default_rng(seed)
    expiry, boundary = (np.unique(rng.integers(0, 30, 12)) for _ in range(2))
    time = np.sort(rng.integers(0, 30, 15))
    promises = Promises(expiry[0::2].tolist(), expiry[1::2].tolist())
    instants = np.empty(2 * 40 + 15 + len(boundary), np.int64)
    element_tick, number = np.empty(15, np.int32), np.empty(15, np.int64)
    count, through = step(
        time, np.zeros(15, np.int32), np.arange(16), boundary, 29, np.array([True]), NO_STEPS, np.zeros((2, 1), np.int64),
        np.array([1_000, 1_000]), np.array([[True], [True]]), *promises.arrays, number, element_tick, instants,
    )  # fmt: skip
    expected = sorted(
        [(int(t), 0) for t in expiry if t not in time] + [(int(t), 1) for t in time] + [(int(t), 2) for t in boundary]
    )
    assert through == 29
    assert instants[:count].tolist() == [t for t, _ in expected]
    assert element_tick.tolist() == [k for k, (_, phase) in enumerate(expected) if phase == 1]
    each_once = (1_000 + np.unique(time)).tolist()
    assert [promises.left(q) for q in range(2)] == [each_once] * 2


@pytest.mark.parametrize(("counted", "ticks"), [(kernel.ELEMENTS, [0, 1, -1, -1, 2, 3, -1]), (kernel.TRIPLES, None)])
def test_every_third_element_or_triple_is_a_tick(counted: int, ticks: list[int] | None) -> None:
    stream, sizes = np.array([0, 1, 0, 0, 1, 0, 0], np.int32), np.array([2, 1, 0, 1, 1, 3, 1])
    counts, number, element_tick = np.array([[2, 0], [5, 0]]), np.empty(7, np.int64), np.empty(7, np.int32)
    count, through = step(
        np.arange(7), stream, np.concatenate([[0], np.cumsum(sizes)]), np.empty(0, np.int64), BEFORE_ALL,
        np.array([False, True]), np.array([[0, 3, counted]]), counts, *NO_PROMISES, *Promises().arrays, number,
        element_tick, np.empty(7, np.int64),
    )  # fmt: skip
    # Triples of stream 0 so far: 5, then 7, 7, 8, 11, 12: the multiples 6, 9 and 12 are reached.
    expected = [0, 1, -1, -1, 2, 3, 4] if ticks is None else ticks
    assert element_tick.tolist() == expected
    assert count == max(expected) + 1
    assert through == max(t for t in range(7) if expected[t] >= 0)
    assert number.tolist() == [3, 1, 4, 5, 2, 6, 7]
    assert counts.tolist() == [[7, 2], [12, 2]]


@pytest.mark.parametrize(
    ("room", "due", "ticks", "full"),
    [(13, 9, 9, kernel.VARINTS_FULL), (99, 2, 9, kernel.TICKS_FULL), (99, 9, 2, kernel.TICKS_FULL), (99, 9, 9, 3)],
)
def test_a_full_array_leaves_everything_unchanged(room: int, due: int, ticks: int, full: int) -> None:
    """At 5 an element arrives; before that the instants 2 and 3 were promised, and 20."""
    promises = Promises([2, 3, 20], room=room, due=due)
    counts = np.array([[7], [9]])
    count, _ = step(
        np.array([5]), np.zeros(1, np.int32), np.array([0, 4]), np.empty(0, np.int64), 0, np.array([True]), NO_STEPS, counts,
        np.array([30]), np.array([[True]]), *promises.arrays, np.empty(1, np.int64), np.empty(1, np.int32),
        np.empty(ticks, np.int64),
    )  # fmt: skip
    assert count == full
    assert counts.ravel().tolist() == ([8, 13] if full == 3 else [7, 9])
    assert promises.left(0) == ([20, 35] if full == 3 else [2, 3, 20])


@pytest.mark.parametrize("streams", [1, 3])
@pytest.mark.parametrize("arrivals", [0, 1, 20, 300])
@pytest.mark.parametrize("promised", [0, 1, 20, 300])
def test_arrivals_and_the_promised_instants_of_one_queue(arrivals: int, promised: int, streams: int) -> None:
    """All arrivals are ticks, and all streams but the first promise instants."""
    rng = np.random.default_rng([arrivals, promised, streams])
    for furthest in (100, 2_000):
        time, stream = np.sort(rng.integers(0, furthest, arrivals)), rng.integers(0, streams, arrivals, np.int32)
        kept = np.unique(rng.integers(0, furthest, promised))
        promises = Promises(kept.tolist(), room=12 * (promised + arrivals) + 2, due=promised + 1)
        promising, sizes = np.arange(streams) > 0, rng.integers(0, 3, arrivals)
        counts, instants = np.zeros((2, streams), np.int64), np.empty(promised + 1 + arrivals, np.int64)
        number, element_tick = np.empty(arrivals, np.int64), np.empty(arrivals, np.int32)
        count, _ = step(
            time, stream, np.concatenate([[0], np.cumsum(sizes)]), np.empty(0, np.int64), furthest, np.ones(streams, np.bool_),
            NO_STEPS, counts, np.array([7_000]), promising[np.newaxis], *promises.arrays, number, element_tick, instants,
        )  # fmt: skip
        expected = sorted([(t, 0) for t in kept.tolist() if t not in time] + [(t, 1) for t in time.tolist()])
        assert instants[:count].tolist() == [t for t, _ in expected]
        assert element_tick.tolist() == [k for k, (_, arrives) in enumerate(expected) if arrives]
        assert number.tolist() == [int(np.sum(stream[: i + 1] == stream[i])) for i in range(arrivals)]
        assert counts[kernel.ELEMENTS].tolist() == [int((stream == s).sum()) for s in range(streams)]
        assert counts[kernel.TRIPLES].tolist() == [int(sizes[stream == s].sum()) for s in range(streams)]
        left = np.empty(arrivals, np.int64)
        read = varints.read_through(1 << 62, varints.EXPIRING, promises.varints[0], promises.ends[0], left)
        assert left[:read].tolist() == (7_000 + np.unique(time[promising[stream]])).tolist()
