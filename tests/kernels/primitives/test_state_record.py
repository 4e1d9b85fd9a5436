"""State records: arrays that kernels read by the address of their record."""

from __future__ import annotations

import gc
import pickle
from collections.abc import Callable
from copy import deepcopy

import numba
import numpy as np
import pytest

from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.primitives import state_record
from cqels_py.kernels.primitives.state_record import (
    ArrayTable,
    StateArray,
    StateRecord,
    flag_rows,
    flags,
    float64s,
    int8s,
    int32s,
    int64_rows,
    int64s,
    uint8_rows,
    uint32s,
)


@jit_flat
def change_all(record):
    """Add one to the last element of each array, or invert it."""
    numbers, small, large = int64s(record, 0), int32s(record, 1), uint32s(record, 2)
    rows, bytes_, truths, rows_of_truths = (
        int64_rows(record, 3),
        uint8_rows(record, 4),
        flags(record, 5),
        flag_rows(record, 6),
    )
    last = rows.shape[0] - 1, rows.shape[1] - 1
    tiny, reals = int8s(record, 7), float64s(record, 8)
    tiny[len(tiny) - 1] += 1
    reals[len(reals) - 1] += 1
    numbers[len(numbers) - 1] += 1
    small[len(small) - 1] += 1
    large[len(large) - 1] += 1
    rows[last] += 1
    bytes_[len(bytes_) - 1, bytes_.shape[1] - 1] += 1
    truths[len(truths) - 1] = not truths[len(truths) - 1]
    rows_of_truths[len(rows_of_truths) - 1, 0] = not rows_of_truths[len(rows_of_truths) - 1, 0]


@jit_flat
def length(record, number):
    return len(int64s(record, number))


def arrays() -> list[np.ndarray]:
    return [
        np.arange(5), np.arange(3, dtype=np.int32), np.arange(4, dtype=np.uint32), np.arange(6).reshape(2, 3),
        np.zeros((3, 2), np.uint8), np.array([False, True]), np.zeros((2, 1), np.bool_),
        np.arange(2, dtype=np.int8), np.arange(3) / 2,
    ]  # fmt: skip


def test_kernels_read_and_write_the_arrays_themselves() -> None:
    made, expected = arrays(), arrays()
    table = ArrayTable(*made)
    for array in expected:
        array[(-1,) * array.ndim] = not array[-1, 0] if array.ndim == 2 and array.dtype == bool else array.flat[-1] + 1
    expected[5][-1] = False
    change_all(table.address)
    assert [array.tolist() for array in made] == [array.tolist() for array in expected]


def test_an_empty_array_has_its_shape() -> None:
    table = ArrayTable(np.empty(0, np.int64))
    assert length(table.address, 0) == 0


def test_arrays_live_as_long_as_the_table() -> None:
    table = ArrayTable(*arrays())
    np.full(5, 7)
    change_all(table.address)
    assert table.array(0).tolist() == [0, 1, 2, 3, 5]


def test_arrays_that_are_not_contiguous_are_refused() -> None:
    with pytest.raises(AssertionError):
        ArrayTable(np.arange(10)[::2])


NUMBERS, MORE = range(2)


class Counters(StateRecord):
    numbers = StateArray[np.int64](NUMBERS)
    more = StateArray[np.uint32](MORE)

    def __init__(self) -> None:
        self.numbers, self.more, self.plain = np.arange(3), np.arange(2, dtype=np.uint32), "kept"


class MoreCounters(Counters):
    last = StateArray[np.int64](2)

    def __init__(self) -> None:
        super().__init__()
        self.last = np.arange(7)


@jit_flat
def length_and_last(record, number):
    array = int64s(record, number)
    return 10 * len(array) + array[len(array) - 1]


def test_a_record_stays_where_it_is_and_has_the_array_that_was_set_last() -> None:
    owner = Counters()
    address = owner.address
    assert length_and_last(owner.address, NUMBERS) == 32
    owner.numbers = np.arange(5) * 2
    assert owner.address == address
    assert length_and_last(owner.address, NUMBERS) == 58
    assert owner.numbers.tolist() == [0, 2, 4, 6, 8]


def test_a_subclass_has_its_own_arrays_and_those_of_its_base() -> None:
    owner = MoreCounters()
    assert [length_and_last(owner.address, number) for number in (NUMBERS, 2)] == [32, 76]


@pytest.mark.parametrize("made", [pickle.dumps, deepcopy], ids=lambda each: each.__name__)
def test_a_record_is_not_copied_with_the_addresses_of_another_one(made: Callable[[object], object]) -> None:
    with pytest.raises(TypeError, match="take its values"):
        made(ArrayTable(*arrays()))
    with pytest.raises(TypeError, match="take its values"):
        made(Counters())


plain_only = pytest.mark.skipif(
    not numba.config.DISABLE_JIT, reason="needs NUMBA_DISABLE_JIT=1: scripts/check runs it so"
)


@plain_only
def test_in_plain_python_a_record_without_an_owner_is_an_error() -> None:
    address = Counters().address
    gc.collect()
    with pytest.raises(KeyError):
        length_and_last(address, NUMBERS)


@plain_only
def test_in_plain_python_a_wrong_number_or_type_is_an_error() -> None:
    owner = Counters()
    with pytest.raises(IndexError):
        length_and_last(owner.address, 2)
    with pytest.raises(AssertionError):
        length_and_last(owner.address, MORE)


@jit_flat
def overwrite(record):
    int64s(record, NUMBERS)[0] = 1


def test_another_view_of_an_array_replaces_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_record, "CHECKED", True)
    owner = Counters()
    owner.numbers = owner.numbers[:]
    state_record.check_replaced()
    assert owner.numbers.tolist() == [0, 1, 2]


def test_writing_to_an_array_that_was_replaced_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(state_record, "CHECKED", True)
    monkeypatch.setattr(state_record, "_filled", [])
    owner, stale = Counters(), ArrayTable(np.arange(3))
    owner.numbers = stale.array(NUMBERS)
    owner.numbers = np.arange(5)
    state_record.check_replaced()
    state_record.check_replaced()
    owner.numbers = stale.array(NUMBERS)
    owner.numbers = np.arange(7)
    state_record.check_replaced()
    overwrite(stale.address)
    with pytest.raises(AssertionError, match="has written to an array of 24 bytes"):
        state_record.check_replaced()
