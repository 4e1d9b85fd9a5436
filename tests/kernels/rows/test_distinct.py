"""Bag difference within a tick, bags, and duplicate elimination, against counters."""

from __future__ import annotations

from collections import Counter

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.rows import distinct as kernel
from cqels_py.state.key_table import KeyTable

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

Signed = tuple[int, int, int]
CHANGES = st.lists(st.tuples(st.sampled_from((1, -1)), st.integers(0, 2), st.integers(0, 2)), max_size=30)


def arrays(
    ticks: list[list[Signed]], width: int
) -> tuple[np.ndarray, np.ndarray, np.ndarray[tuple[int, int], np.dtype[np.int64]]]:
    rows = [(tick, *row) for tick, changes in enumerate(ticks) for row in changes]
    columns = np.array([row[2 : 2 + width] for row in rows], np.int64).reshape(len(rows), width).T
    return (
        np.array([row[0] for row in rows], np.int32),
        np.array([row[1] for row in rows], np.int8),
        np.ascontiguousarray(columns),
    )


@given(st.lists(CHANGES, max_size=4), st.integers(0, 2))
def test_equal_rows_with_opposite_signs_cancel_within_their_tick(ticks: list[list[Signed]], width: int) -> None:
    tick, sign, columns = arrays(ticks, width)
    left = kernel.cancel(tick, sign, columns)
    assert (np.diff(left) > 0).all(), "in order"
    for number, changes in enumerate(ticks):
        mine = left[tick[left] == number]
        found = Counter((int(sign[row]), *columns[:, row].tolist()) for row in mine)
        net: Counter[tuple[int, ...]] = Counter()
        for change in changes:
            net[tuple(change[1 : 1 + width])] += change[0]
        assert found == {(1 if count > 0 else -1, *row): abs(count) for row, count in net.items() if count}


@given(st.lists(CHANGES, max_size=4), st.integers(0, 2), st.booleans(), st.booleans())
def test_changes_are_the_remaining_rows_of_the_requested_signs(
    ticks: list[list[Signed]], width: int, insertions: bool, deletions: bool
) -> None:
    tick, sign, columns = arrays(ticks, width)
    instants = 100 + np.arange(len(ticks))
    out_tick, out_sign, out = np.empty_like(tick), np.empty_like(sign), np.empty((1 + width, len(tick)), np.int64)
    room = np.empty(kernel.ROOM_A_ROW * len(tick) + kernel.ROOM, np.int64)
    made = kernel.changes(tick, sign, columns, instants, int(insertions), int(deletions), room, out_tick, out_sign, out)
    left = [r for r in kernel.cancel(tick, sign, columns).tolist() if (insertions if sign[r] > 0 else deletions)]
    left.sort(key=lambda row: (tick[row], sign[row]))
    assert out_tick[:made].tolist() == tick[left].tolist()
    assert out_sign[:made].tolist() == sign[left].tolist()
    assert out[0, :made].tolist() == instants[tick[left]].tolist()
    assert out[1:, :made].tolist() == columns[:, left].tolist()


def test_many_rows_of_one_tick() -> None:
    rows = 1000
    tick = np.zeros(2 * rows, np.int32)
    sign = np.repeat(np.array([1, -1], np.int8), rows)
    columns = np.concatenate([np.arange(rows), np.arange(1, rows + 1)])[np.newaxis]
    assert kernel.cancel(tick, sign, columns).tolist() == [0, 2 * rows - 1]


@given(st.lists(st.tuples(st.integers(0, 3), st.booleans()), max_size=60), st.integers(1, 2))
def test_only_the_first_and_last_copy_of_a_row_are_delivered(events: list[tuple[int, bool]], width: int) -> None:
    live: Counter[int] = Counter()
    signs: list[int] = []
    values: list[int] = []
    told: list[tuple[int, int]] = []
    for value, arrives in events:
        sign = 1 if arrives or not live[value] else -1
        live[value] += sign
        if live[value] == (1 if sign > 0 else 0):
            told.append((len(signs), sign))
        signs.append(sign)
        values.append(value)
    index = KeyTable(width)
    index.ensure(len(signs))
    rows = np.arange(len(signs), dtype=np.int32)
    tick, sign_out, out = np.empty_like(rows), np.empty(len(signs), np.int8), np.empty((width, len(signs)), np.int64)
    columns = np.array([values] * width, np.int64)
    hashes = np.empty(len(signs), np.int64)
    made = kernel.distinct(rows, np.array(signs, np.int8), columns, index.address, hashes, tick, sign_out, out)
    assert list(zip(tick[:made].tolist(), sign_out[:made].tolist(), strict=True)) == told
    assert out[:, :made].tolist() == columns[:, tick[:made]].tolist()


def test_a_row_that_was_never_there() -> None:
    index = KeyTable(1)
    made = kernel.distinct(
        np.zeros(1, np.int32), np.array([-1], np.int8), np.array([[5]]), index.address, np.empty(1, np.int64),
        np.empty(1, np.int32), np.empty(1, np.int8), np.empty((1, 1), np.int64),
    )  # fmt: skip
    assert made == kernel.NOT_THERE


def test_without_room_for_all_rows_nothing_changes() -> None:
    index = KeyTable(1)
    rows = index.capacity + 1
    tick, sign, columns = np.zeros(rows, np.int32), np.ones(rows, np.int8), np.arange(rows)[np.newaxis]
    out = np.empty(rows, np.int64), np.empty(rows, np.int32), np.empty(rows, np.int8), np.empty((1, rows), np.int64)
    assert kernel.distinct(tick, sign, columns, index.address, *out) == kernel.KEYS_FULL
    assert not kernel.count_rows(sign, columns, 0, rows, index.address)
    assert index.entries == 0
    index.ensure(rows)
    assert kernel.distinct(tick, sign, columns, index.address, *out) == rows


@pytest.mark.parametrize("width", [0, 1, 2])
@pytest.mark.parametrize("room", [1, 3, 5, 100])
def test_bags_are_reported_until_the_output_is_full(room: int, width: int) -> None:
    ticks: list[list[Signed]] = [
        [(1, 7, 0), (1, 8, 1), (1, 7, 0)],
        [],
        [(-1, 7, 0)],
        [(-1, 8, 1), (-1, 7, 0)],
        [(1, 9, 2)],
    ]
    tick, sign, columns = arrays(ticks, width)
    starts = np.searchsorted(tick, np.arange(len(ticks) + 1))
    bag = KeyTable(width)
    at, row, found = 0, 0, []
    while at < len(ticks):
        out_tick, out = np.empty(room, np.int32), np.empty((width, room), np.int64)
        at, row, rows, waiting = kernel.report_bag(
            at, len(ticks), row, starts, sign, columns, bag.address, out_tick, out
        )
        assert rows <= room
        assert at == len(ticks) or rows + waiting > room
        found += [(int(out_tick[k]), *out[:, k].tolist()) for k in range(rows)]
        room = max(room, waiting)
    live: Counter[tuple[int, ...]] = Counter()
    expected: Counter[tuple[int, ...]] = Counter()
    for number, changes in enumerate(ticks):
        for change in changes:
            live[change[1 : 1 + width]] += change[0]
        expected.update({(number, *row): count for row, count in live.items()})
    assert Counter(found) == +expected
    assert [number for number, *_ in found] == sorted(number for number, *_ in found)


def test_a_report_stops_before_a_tick_for_whose_rows_the_bag_has_no_room() -> None:
    bag = KeyTable(1)
    rows = bag.capacity + 1
    tick, sign, columns = np.repeat([0, 1], [2, rows]), np.ones(2 + rows, np.int8), np.arange(2 + rows)[np.newaxis]
    starts = np.searchsorted(tick, np.arange(3))
    out_tick, out = np.empty(2 * rows, np.int32), np.empty((1, 2 * rows), np.int64)
    told = kernel.report_bag(0, 2, 0, starts, sign, columns, bag.address, out_tick, out)
    assert told == (1, 2, 2, kernel.KEYS_FULL)
    assert out[0, :2].tolist() == [0, 1]
    bag.ensure(rows)
    at, row, made, _ = kernel.report_bag(1, 2, 2, starts, sign, columns, bag.address, out_tick, out)
    assert (at, row, made) == (2, 2 + rows, 2 + rows)
