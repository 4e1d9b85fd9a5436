"""What knows its first member in the order, as tests put members into it: bags, and queues in their place."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

from cqels_py.kernels.structures import heaps
from cqels_py.kernels.structures.arena import ARENA_FIELDS, TOP
from tests.operators.plain_dictionary import inline_id

Kernel = Callable[..., Any]
NO_TEXTS = np.zeros(1, np.uint8)
NO_SPANS = np.zeros(3, np.int64)


def number(value: int) -> int:
    found = inline_id(str(value), "integer")
    assert found is not None
    return found


class Bags:
    """Several bags in one arena, by the kernels that make room in one and put a member into it."""

    def __init__(
        self, count: int, arena: int = 8, *, room: Kernel = heaps.bag_room, put: Kernel = heaps.bag_put
    ) -> None:
        self._room = room
        self._put = put
        self.words = np.zeros(count * heaps.BAG_WORDS, np.int64)
        self.heap = np.zeros(arena, np.int64)
        self.meta = np.full(ARENA_FIELDS, -1, np.int64)
        self.meta[TOP] = 0

    def put(self, bag: int, sign: int, value: int, *, largest: bool = False) -> None:
        self.put_id(bag, sign, number(value), largest=largest)

    def put_id(self, bag: int, sign: int, identifier: int, *, largest: bool = False) -> None:
        at = np.int64(bag * heaps.BAG_WORDS)
        while not self._room(self.words, at, np.int64(sign), self.heap, self.meta):
            self._grow()
        self._put(
            self.words, at, np.int64(sign), np.int64(identifier), self.heap, np.bool_(largest), NO_TEXTS, NO_SPANS
        )

    def replace(self, bag: int, gone: int | None, come: int | None, *, largest: bool = False) -> bool:
        ids = [0 if value is None else number(value) for value in (gone, come)]
        return self.replace_id(bag, *ids, largest=largest)

    def replace_id(self, bag: int, gone: int, come: int, *, largest: bool = False) -> bool:
        """0: none."""
        at, ids = np.int64(bag * heaps.BAG_WORDS), (np.int64(gone), np.int64(come))
        while not heaps.replace_room(self.words, at, *ids, self.heap, self.meta):
            self._grow()
        given = self.heap, np.bool_(largest), NO_TEXTS, NO_SPANS
        return bool(heaps.bag_replace(self.words, at, *ids, *given))

    def _grow(self) -> None:
        self.heap = np.concatenate([self.heap, np.zeros_like(self.heap)])

    def first(self, bag: int) -> int:
        return int(heaps.bag_first(self.words, np.int64(bag * heaps.BAG_WORDS), self.heap))

    def clear(self, bag: int) -> None:
        heaps.bag_clear(self.words, np.int64(bag * heaps.BAG_WORDS))
