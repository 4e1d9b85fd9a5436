"""Elements and terms as bytes for a log: terms by their texts, so that they can be read with any dictionary.

    terms      n, u, n positions (int32) among u texts, the lengths of these (uint32), the texts one after another
    elements   n, m, flags, times (int64), streams (int32), triples of each element (int32), those counted (int32, if given), terms

Numbers are little-endian. A blank node is written by the label that results show it with, which determines its id.
"""

from __future__ import annotations

import struct
from collections.abc import Hashable, Iterable, Sequence
from typing import Any, TypeVar

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.checkpoints.durable_files import Block
from cqels_py.dictionary import Dictionary, released
from cqels_py.kernels.rows.repeats import find_repeats
from cqels_py.kernels.values.dictionary import UNKNOWN, find_texts, write_texts
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

Number = TypeVar("Number", np.int32, np.uint32, np.int64)

_TERMS = struct.Struct("<QQ")
_ELEMENTS = struct.Struct("<QQB")
_ONE = struct.Struct("<QQBqiiQQ")
"""The bytes before the positions of a single element's terms."""
_TRIPLE = struct.Struct("<QQBqiiQQ3i3i")
"""All bytes of an element with one triple, but for its texts."""
_GRAPH, _COUNTED = 1, 2
_FEW = 64
"""So many ids are told apart faster by Python than by a kernel with its tables."""
_RECENT = 1 << 13
"""Ids among which repetitions are found: a table that a processor's cache holds."""
_MOST_KNOWN, _MOST_BYTES = 1 << 12, 1 << 20
"""Terms of single elements whose texts are remembered, and the bytes of these, but for those of the last element."""
_AT_LEAST = 1 << 12
"""Bytes of texts for which there is room at once."""
_BLANK = len("_:b")
_HEX = np.zeros(256, np.int64)
_HEX[list(b"0123456789abcdef")] = np.arange(16)
_WEIGHTS = np.int64(1) << (4 * np.arange(14, -1, -1, dtype=np.int64))


class Packing:
    """Packs terms and elements, each time in the same memory: the blocks hold until the next call. For one thread at a time."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._recent, self._places = np.empty(_RECENT, np.int64), np.empty(_RECENT, np.int32)
        self._ids = self._different = self._found = np.empty(0, np.int64)
        self._positions, self._lengths = np.empty(0, np.int32), np.empty(0, np.uint32)
        self._texts = np.empty(_AT_LEAST, np.uint8)
        self._known: object = None
        self._text_of: dict[int, bytes] = {}
        self._bytes = 0

    def elements(self, batch: ElementBatch) -> list[Block]:
        """Elements with their terms, as consecutive blocks. Streams are written by their numbers."""
        if (
            len(batch.time) == 1
            and batch.graph is None
            and batch.counted is None
            and 0 < 3 * len(batch.subject) <= _FEW
        ):
            return self._of_one(batch)
        columns = [batch.subject, batch.predicate, batch.object, *([] if batch.graph is None else [batch.graph])]
        flags = _GRAPH * (batch.graph is not None) + _COUNTED * (batch.counted is not None)
        count = len(columns) * len(batch.subject)
        self._make_room(count)
        ids = np.concatenate(columns, out=self._ids[:count])
        return [
            _ELEMENTS.pack(len(batch.time), len(batch.subject), flags),
            _bytes(batch.time),
            _bytes(batch.stream),
            _bytes(np.diff(batch.first).astype(np.int32)),
            b"" if batch.counted is None else _bytes(batch.counted.astype(np.int32)),
            *self._terms(ids),
        ]

    def _of_one(self, batch: ElementBatch) -> list[Block]:
        """An element without a graph: terms that recur from element to element are known."""
        full = len(self._text_of) > _MOST_KNOWN or self._bytes > _MOST_BYTES
        if full or self._dictionary.texts is not self._known:
            # Ids may be those of other terms now.
            self._known, self._text_of, self._bytes = self._dictionary.texts, {}, 0
        ids = [*batch.subject.tolist(), *batch.predicate.tolist(), *batch.object.tolist()]
        known, numbers = self._text_of, dict.fromkeys(ids)
        if unknown := [each for each in numbers if each not in known]:
            self._learn(unknown)
        texts = [known[each] for each in numbers]
        return _one(batch.time.item(0), batch.stream.item(0), ids, texts)

    def _learn(self, ids: list[int]) -> None:
        """Find the texts of terms."""
        self._make_room(len(ids))
        texts = bytes(self._write(np.array(ids, np.int64)))
        self._bytes += len(texts)
        at = 0
        for each, length in zip(ids, self._lengths[: len(ids)].tolist(), strict=True):
            self._text_of[each] = texts[at : at + length]
            at += length

    def terms(self, ids: Ids) -> list[Block]:
        """The terms of ids (n), as consecutive blocks; 0 is unbound."""
        self._make_room(len(ids))
        return self._terms(np.array(ids, np.int64))

    def _terms(self, ids: Ids) -> list[Block]:
        different, positions = self._without_repeats(ids)
        texts = self._write(different)
        head = _TERMS.pack(len(ids), len(different))
        return [head, _bytes(positions), _bytes(self._lengths[: len(different)]), texts]

    def _write(self, ids: Ids) -> Block:
        table, arena = self._dictionary.texts
        places = self._found[: len(ids)]
        room = find_texts(ids, table, places)
        if room == UNKNOWN:
            raise released()
        if room > len(self._texts):
            self._texts = np.empty(2 * room, np.uint8)
        return _bytes(self._texts[: write_texts(ids, places, table, arena, self._lengths, self._texts)])

    def _without_repeats(self, ids: Ids) -> tuple[Ids, npt.NDArray[np.int32]]:
        """The ids without most repetitions, and the position of each id among them."""
        if len(ids) <= _FEW:
            given = ids.tolist()
            numbers = {each: number for number, each in enumerate(dict.fromkeys(given))}
            return np.array(list(numbers), np.int64), np.array([numbers[each] for each in given], np.int32)
        self._places.fill(-1)
        count = find_repeats(ids, self._recent, self._places, self._positions, self._different)
        return self._different[:count], self._positions[: len(ids)]

    def _make_room(self, count: int) -> None:
        """For so many ids."""
        if len(self._ids) < count:
            self._ids, self._different, self._found = (np.empty(count, np.int64) for _ in range(3))
            self._positions, self._lengths = np.empty(count, np.int32), np.empty(count, np.uint32)


def element_of_lines(time: int, stream: int, lines: bytes) -> list[Block]:
    """An element without a graph, as `Packing.elements` packs it. `lines`: the terms of its triples, a line each, of which none is a
    blank node: their ids depend on more than their labels.
    """
    terms = lines.split(b"\n")
    if len(terms) == 3:
        # Most elements have a single triple, of three terms. One block takes less time than four.
        return [b"".join((_TRIPLE.pack(1, 1, 0, time, stream, 1, 3, 3, 0, 1, 2, *map(len, terms)), *terms))]
    terms = [*terms[::3], *terms[1::3], *terms[2::3]]
    return _one(time, stream, terms, [*dict.fromkeys(terms)])


def _one(time: int, stream: int, terms: Sequence[Hashable], texts: Sequence[bytes]) -> list[Block]:
    """An element. `terms`: those of its triples, column by column; `texts`: those of the different ones, in their order."""
    count, different = len(terms), len(texts)
    if count == different:
        positions: Iterable[int] = range(count)
    else:
        numbers = {term: number for number, term in enumerate(dict.fromkeys(terms))}
        positions = [numbers[term] for term in terms]
    return [
        _ONE.pack(1, count // 3, 0, time, stream, count // 3, count, different),
        struct.pack(f"<{count + different}i", *positions, *map(len, texts)),
        *texts,
    ]


def pack_terms(ids: Ids, dictionary: Dictionary) -> list[Block]:
    """The terms of ids (n), as consecutive blocks; 0 is unbound."""
    return Packing(dictionary).terms(ids)


def unpack_terms(data: memoryview, dictionary: Dictionary) -> Ids:
    """The ids (n) of the terms that `Packing` has written to the whole of these bytes."""
    count, different = _TERMS.unpack_from(data)
    columns = _Columns(data[_TERMS.size :])
    positions = columns.take(np.int32, count)
    offsets = np.concatenate([np.zeros(1, np.int64), np.cumsum(columns.take(np.uint32, different), dtype=np.int64)])
    texts = np.frombuffer(bytes(columns.rest) or b"\0", np.uint8)
    ids = dictionary.encode_bytes(texts, offsets, np.zeros(different, np.int64), existing=True)
    blank = np.flatnonzero((ids >> TAG_SHIFT) & 15 == TAG_BLANK)
    digits = texts[offsets[blank][:, np.newaxis] + _BLANK + np.arange(15)] if len(blank) else texts[:0].reshape(0, 15)
    ids[blank] = (TAG_BLANK << TAG_SHIFT) | (_HEX[digits] * _WEIGHTS).sum(axis=1)
    return ids[positions]


def count_of(data: memoryview) -> int:
    """The number of elements that `Packing` has written."""
    elements: int = _ELEMENTS.unpack_from(data)[0]
    return elements


def unpack_elements(data: memoryview, dictionary: Dictionary) -> ElementBatch:
    """The elements that `Packing` has written."""
    elements, triples, flags = _ELEMENTS.unpack_from(data)
    columns = _Columns(data[_ELEMENTS.size :])
    time, stream = columns.take(np.int64, elements), columns.take(np.int32, elements)
    sizes = columns.take(np.int32, elements)
    counted = columns.take(np.int32, elements).astype(np.int64) if flags & _COUNTED else None
    first = np.concatenate([np.zeros(1, np.int64), np.cumsum(sizes, dtype=np.int64)])
    ids = unpack_terms(columns.rest, dictionary).reshape(-1, triples) if triples else np.zeros((4, 0), np.int64)
    graph = ids[3] if flags & _GRAPH else None
    return ElementBatch(time, stream, first, ids[0], ids[1], ids[2], graph, counted)


class _Columns:
    """Arrays one after another. They are copied: kernels are compiled for arrays that are aligned and writable."""

    def __init__(self, data: memoryview) -> None:
        self.rest = data

    def take(self, dtype: type[Number], count: int) -> npt.NDArray[Number]:
        """The next array of this type and length."""
        size = np.dtype(dtype).itemsize * count
        found = np.frombuffer(self.rest[:size], dtype).copy()
        self.rest = self.rest[size:]
        return found


def _bytes(array: npt.NDArray[Any]) -> memoryview:
    """The memory of an array, which must not change until it is written."""
    return np.ascontiguousarray(array).data.cast("B") if array.size else memoryview(b"")
