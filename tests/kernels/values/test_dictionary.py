"""The dictionary's hash table: inserting, finding, growing, keeping a part, and decoding."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import numpy.typing as npt
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.kernels.values import dictionary as kernel

pytestmark = pytest.mark.filterwarnings("ignore:overflow encountered:RuntimeWarning")

Ids = npt.NDArray[np.int64]


class Table:
    """The kernels' arrays, of a fixed size."""

    def __init__(self, entries: int = 64, room: int = 4096) -> None:
        self.table = np.zeros(entries * kernel.WORDS, np.int64)
        self.arena = np.zeros(room, np.uint8)
        self.meta = np.zeros(2, np.int64)

    def encode(self, texts: list[str], shift: int = 4, at: int = 0) -> tuple[Ids, int, int]:
        data = [text.encode() for text in texts]
        offsets = np.cumsum([0, *map(len, data)]).astype(np.int64)
        out = np.zeros(len(texts), np.int64)
        buffer = np.frombuffer(b"".join(data), np.uint8)
        scopes = np.zeros(len(texts), np.int64)
        at, status = kernel.encode(buffer, offsets, scopes, at, shift, self.table, self.arena, self.meta, out)
        return out, at, status

    def decode(self, ids: Ids) -> list[str] | None:
        room = kernel.room_for_texts(ids, self.table)
        if room == kernel.UNKNOWN:
            return None
        out, offsets = np.empty(room + 1, np.uint8), np.empty(len(ids) + 1, np.int64)
        kernel.decode(ids, self.table, self.arena, out, offsets)
        return [out[a:b].tobytes().decode() for a, b in pairwise(offsets)]


def names(numbers: list[int]) -> list[str]:
    return [f"<http://ex.org/{number}>" for number in numbers]


@given(st.lists(st.integers(0, 99), min_size=1, max_size=30))
def test_a_text_is_inserted_once(numbers: list[int]) -> None:
    table = Table()
    ids, at, status = table.encode(names(numbers))
    assert (at, status) == (len(numbers), kernel.DONE)
    assert table.meta[kernel.ENTRIES] == len(set(numbers))
    assert table.meta[kernel.TOP] == sum(len(name) for name in names(list(set(numbers))))
    assert table.decode(ids) == names(numbers)


def test_encoding_stops_where_there_is_no_room_and_continues() -> None:
    texts = names(list(range(40)))
    table = Table(entries=16)
    _, at, status = table.encode(texts)
    assert status == kernel.TABLE_FULL
    # A hash table with open addressing must keep free slots, or an unsuccessful search never ends.
    assert at < 16
    larger = np.zeros(128 * kernel.WORDS, np.int64)
    kernel.rehash(table.table, larger)
    table.table = larger
    _, at, status = table.encode(texts, at=at)
    assert (at, status) == (40, kernel.DONE)
    assert table.meta[kernel.ENTRIES] == 40
    again, _, _ = table.encode(texts)
    assert table.decode(again) == texts


def test_a_full_arena_is_not_changed() -> None:
    table = Table(room=40)
    _, at, status = table.encode(names([1, 2, 3]))
    assert (at, status) == (2, kernel.ARENA_FULL)
    assert table.meta.tolist() == [2, 34]


def test_another_text_with_the_same_id_is_detected() -> None:
    table = Table()
    # One bit of the hash is left: two of three texts share it.
    out, at, status = table.encode(names([1, 2, 3]), shift=63)
    assert status == kernel.COLLISION
    assert out[at] in out[:at]


@pytest.mark.parametrize("text", ["<a b>", '"\\t"', '"a"@EN', "_:", "a", '"a"x'])
def test_texts_that_are_not_canonical_are_reported(text: str) -> None:
    table = Table()
    _, at, status = table.encode(["<http://ex.org/1>", text])
    assert (at, status) == (1, kernel.NOT_WRITTEN_SO)
    assert table.meta[kernel.ENTRIES] == 1


@given(st.sets(st.integers(0, 29)))
def test_only_the_kept_terms_are_there(kept: set[int]) -> None:
    table, smaller = Table(), Table()
    texts = names(list(range(30)))
    ids, _, _ = table.encode(texts)
    some = np.concatenate([ids[sorted(kept)], ids[sorted(kept)], np.array([0, 1, -5, 2**60 + 1])])
    kernel.keep(some, table.table, table.arena, smaller.table, smaller.arena, smaller.meta)
    assert smaller.meta[kernel.ENTRIES] == len(kept)
    for i in range(30):
        assert smaller.decode(ids[i : i + 1]) == ([texts[i]] if i in kept else None)


def test_a_text_can_be_inserted_under_any_id() -> None:
    table = Table()
    overflow = (4 << 60) | 1
    data = np.frombuffer(b'"any"', np.uint8)
    assert kernel.enter(overflow, data, table.table, table.arena, table.meta) == kernel.DONE
    assert table.decode(np.array([overflow, 0])) == ['"any"', ""]
