"""Bytes eight at a time, against bytes one by one."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.compiler.jit import jit
from cqels_py.kernels.primitives.bits import first_byte
from cqels_py.kernels.values.words import copy, same, word


@jit
def equal(data, start, other, other_start, length):  # type: ignore[no-untyped-def]
    return same(data, start, other, other_start, length)


@jit
def copied(data, start, end, out, at):  # type: ignore[no-untyped-def]
    return copy(data, start, end, out, at)


@jit
def first_of(data):  # type: ignore[no-untyped-def]
    return first_byte(word(data, 0))


@given(st.binary(min_size=1, max_size=40), st.integers(0, 39), st.integers(1, 255))
def test_same_sees_every_byte(data: bytes, place: int, difference: int) -> None:
    changed = bytearray(data)
    changed[place % len(data)] ^= difference
    here = np.frombuffer(b"ab" + data, np.uint8)
    assert equal(here, 2, np.frombuffer(data, np.uint8), 0, len(data))
    assert not equal(here, 2, np.frombuffer(bytes(changed), np.uint8), 0, len(data))


@given(st.binary(max_size=40), st.integers(0, 9), st.integers(0, 9))
def test_a_copy_writes_the_slice_and_nothing_else(data: bytes, before: int, at: int) -> None:
    buffer = np.frombuffer(b"?" * before + data + b"!", np.uint8)
    out = np.full(at + len(data) + 9, 7, np.uint8)
    assert copied(buffer, before, before + len(data), out, at) == at + len(data)
    assert out.tobytes() == b"\7" * at + data + b"\7" * 9


@pytest.mark.parametrize("place", range(8))
def test_the_lowest_nonzero_byte(place: int) -> None:
    data = np.zeros(8, np.uint8)
    data[place:] = 128
    assert first_of(data) == place
    data[place:] = 0
    data[place] = 1
    assert first_of(data) == place


def test_a_zero_word_has_no_nonzero_byte() -> None:
    assert first_of(np.zeros(8, np.uint8)) == 8
