"""One step of a sliding window, against lists."""

from __future__ import annotations

import random

import numpy as np
import pytest

from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.primitives.status import DONE, OUTPUT_FULL, PYTHON_NEEDED
from cqels_py.kernels.windows import sliding
from cqels_py.kernels.windows import varint_queue as varints
from cqels_py.kernels.windows.sliding import NEVER, merge

ROOM = 16


def window(numbers: range, width: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """A window in which the mapping of each number has its number as point, and as ids multiples of it."""
    coded, ends, ids = np.zeros(2 * ROOM, np.uint8), np.zeros(varints.FIELDS, np.int64), np.full((width, ROOM), -1)
    varints.append(np.arange(numbers.start, numbers.stop), coded, ends)
    for number in numbers:
        ids[:, number % ROOM] = [10 * number + c for c in range(width)]
    return coded, ends, ids


@pytest.mark.parametrize("seed", range(12))
@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("pairs", [True, False])
def test_changes_of_a_counting_window(pairs: bool, with_ids: bool, seed: int) -> None:
    rng = random.Random(seed)
    width, start = rng.choice((1, 2)), rng.randrange(40)
    size, came = (6, rng.randint(1, 5)) if pairs else (rng.randint(1, 5), rng.randint(0, 8))
    arrived = start + (size if pairs else rng.randint(0, size))
    end = arrived + came
    coded, ends, ids = window(range(start, arrived), width)
    # Elements of one mapping each: the first at tick 0 or, several at a tick, at any.
    ticks = list(range(came)) if pairs else sorted(rng.choices(range(3), k=came))
    entering = {number: ticks[number - arrived] for number in range(arrived, end)}
    columns = np.array([[10 * number + c for number in entering] for c in range(width)], np.int64).reshape(width, came)
    counters = np.zeros(sliding.MADE + 1, np.int64)
    counters[[sliding.START, sliding.LAST, sliding.SIZE]] = start, arrived, size
    counters[[sliding.ROOM_THROUGH, sliding.SPARE]] = start + ROOM, ROOM * varints.MOST_BYTES
    status, room = OUTPUT_FULL, 0
    while status == OUTPUT_FULL:
        before = counters.copy()
        tick, sign, changed = np.empty(room, np.int32), np.empty(room, np.int8), np.empty((width, room), np.int64)
        scratch = np.empty(room, np.int64), np.empty(2 * (room + came), np.int32)
        buffer = ArrayTable(coded, ends, ids if with_ids else ids[:0], counters, *scratch)
        status = sliding.slide(
            buffer.address, np.arange(arrived, end), end - 1, np.empty(0, np.int64), np.arange(came), arrived - 1, np.arange(came),
            np.array(ticks, np.int32), columns, tick, sign, changed,
        )  # fmt: skip
        before[sliding.EXPIRED] = counters[sliding.EXPIRED]
        assert status == DONE or counters.tolist() == before.tolist()
        room += 1
    made, left, leaves = counters[[sliding.MADE, sliding.EXPIRED, sliding.NEXT_EXPIRY]].tolist()
    assert counters[[sliding.START, sliding.LAST]].tolist() == [start + left, end]
    tick, sign, changed = tick[:made], sign[:made], changed.reshape(-1)[: width * made].reshape(width, made)
    leaving = {number: entering[number + size] for number in range(start, end - size)}
    assert left == len(leaving)
    assert leaves == (NEVER if start + left == end else start + left + size)
    expected = [
        (at, sign, *((10 * number + c) if sign > 0 or with_ids else 0 for c in range(width)))
        for sign, changes in ((-1, leaving), (1, entering))
        for number, at in changes.items()
        if not (number in leaving and number in entering and leaving[number] <= entering[number])
    ]
    expected.sort(key=lambda change: change[:2])
    assert list(zip(tick.tolist(), sign.tolist(), *changed.tolist(), strict=True)) == expected


@pytest.mark.parametrize("with_ids", [True, False])
@pytest.mark.parametrize("leaving", [0, 1, 9, 60, 300])
@pytest.mark.parametrize("entering", [0, 1, 9, 60, 300])
def test_changes_by_tick_equal_those_of_sorting(leaving: int, entering: int, with_ids: bool) -> None:
    rng = np.random.default_rng([leaving, entering])
    for ticks in (2, 40, 1_000):
        for entering_from in (0, ticks):
            leave_tick = np.sort(rng.integers(0, ticks, leaving)).astype(np.int32)
            enter_tick = entering_from + np.sort(rng.integers(0, ticks, entering)).astype(np.int32)
            width, room, first = 2, leaving + 5, int(rng.integers(0, leaving + 5))
            ids, columns = rng.integers(0, 99, (width, room)), rng.integers(0, 99, (width, entering))
            left = ids[:, (first + np.arange(leaving)) % room] * int(with_ids)
            tick, sign, changed = merge(
                leave_tick, enter_tick, leaving, ids if with_ids else ids[:0], first if with_ids else 0, columns
            )
            expires_fifo = np.argsort(np.concatenate([leave_tick, enter_tick]), kind="stable")
            assert tick.tolist() == np.concatenate([leave_tick, enter_tick])[expires_fifo].tolist()
            assert sign.tolist() == np.repeat([-1, 1], [leaving, entering])[expires_fifo].tolist()
            assert changed.tolist() == np.concatenate([left, columns], axis=1)[:, expires_fifo].tolist()


def test_a_buffer_that_may_be_too_small_is_left_as_it_is() -> None:
    coded, ends, ids = window(range(2), 1)
    for short in (sliding.ROOM_THROUGH, sliding.SPARE):
        counters = np.zeros(sliding.MADE + 1, np.int64)
        counters[[sliding.LAST, sliding.SIZE]] = 2, 100
        counters[[sliding.ROOM_THROUGH, sliding.SPARE]] = 3, varints.MOST_BYTES
        counters[short] -= 1
        before = [array.copy() for array in (coded, ends, ids, counters)]
        buffer = ArrayTable(coded, ends, ids, counters, np.empty(9, np.int64), np.empty(9, np.int32))
        none = np.empty(0, np.int64)
        status = sliding.slide(
            buffer.address, np.array([2]), 2, none, np.arange(1), 1, np.arange(1), np.zeros(1, np.int32), np.array([[20]]),
            np.empty(9, np.int32), np.empty(9, np.int8), np.empty((1, 9), np.int64),
        )  # fmt: skip
        assert status == PYTHON_NEEDED
        assert all((now == then).all() for now, then in zip((coded, ends, ids, counters), before, strict=True))
