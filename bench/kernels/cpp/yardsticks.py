"""The C++ yardsticks as competitors, each with state of its own; numpy arrays go in and out.

One kind does the work of `by_hand` and knows its keys in advance; the other (`same_work`) does the work of the engine.
"""

from __future__ import annotations

import ctypes
from collections.abc import Iterator
from typing import Any, ClassVar

import numpy as np

from bench.arrivals import Batch, Setting
from bench.contest import IN_CPP, SAME_RETRACTING, SAME_WORK, Changes, Competitor, Entry, Rows
from bench.kernels.by_hand.average import rounded
from bench.kernels.cpp.library import compiler, library
from cqels_py.dictionary import Dictionary
from cqels_py.terms.layout import VALUE_BITS

_FIRST_ROOM = 8192
_VALUE = (1 << VALUE_BITS) - 1


class _Setting(ctypes.Structure):
    _fields_ = [(name, ctypes.c_int64) for name in ("window", "inputs", "keys", "groups", "values", "most")]


class _Batch(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("port", "key", "value")),
        *((name, ctypes.c_int64) for name in ("rows", "before")),
    ]


class _Results(ctypes.Structure):
    _fields_ = [
        *((name, ctypes.c_void_p) for name in ("tick", "cells")),
        *((name, ctypes.c_int64) for name in ("room", "made")),
        ("sign", ctypes.c_void_p),
    ]


class InCpp(Competitor):
    """Calls the library of NAME.cpp until it has processed a batch, and delivers its buffer whenever that is full."""

    beyond: ClassVar[str] = "C++ has met more mappings of one key than it has room for"
    """The reason of a stop."""

    def __init__(self, name: str, setting: Setting, width: int, dtype: type[np.generic] = np.int64) -> None:
        self.library = library(name)
        self.library.create.restype = ctypes.c_void_p
        self.library.destroy.argtypes = [ctypes.c_void_p]
        self.library.take.argtypes = [ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64, ctypes.c_void_p]
        self.library.take.restype = ctypes.c_int64
        values = setting.values
        given = _Setting(setting.window, setting.inputs, setting.keys, values[0], values[-1], setting.most_per_key)
        self.state = self.library.create(ctypes.byref(given))
        if self.state is None:
            raise MemoryError(f"{name}.cpp could not make its state")
        self._width, self._dtype = width, dtype
        self._before = 0
        self._make_room(_FIRST_ROOM)

    def __del__(self) -> None:
        if getattr(self, "state", None) is not None:
            self.library.destroy(self.state)

    def _make_room(self, room: int) -> None:
        self._tick = np.empty(room, np.int32)
        self._out = np.empty((self._width, room), self._dtype)
        self._sign = np.empty(room, np.int8)
        self._results = _Results(self._tick.ctypes.data, self._out.ctypes.data, room, 0, self._sign.ctypes.data)

    def _chunk(self, made: int) -> Rows:
        return Rows(self._tick[:made], self._out[:, :made])

    def take(self, batch: Batch) -> Iterator[Rows]:
        key, value = batch.columns
        given = _Batch(batch.port.ctypes.data, key.ctypes.data, value.ctypes.data, len(batch), self._before)
        row = 0
        while row < len(batch):
            self._results.made = 0
            reached = self.library.take(self.state, ctypes.byref(given), row, ctypes.byref(self._results))
            if reached < 0:
                raise RuntimeError(self.beyond)
            made = int(self._results.made)
            if made:
                yield self._chunk(made)
            elif reached == row:
                self._make_room(2 * len(self._tick))
            row = reached
        self._before += len(batch)


class RingInCpp(InCpp):
    """Results are slots of the window."""

    def __init__(self, setting: Setting) -> None:
        super().__init__("ring", setting, 1, np.int32)
        self.library.value_of.argtypes = [ctypes.c_void_p, ctypes.c_int64]
        self.library.value_of.restype = ctypes.c_int64

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return (self.library.value_of(self.state, row[0]),)


class AverageInCpp(InCpp):
    """Averages are the bits of doubles."""

    def __init__(self, setting: Setting) -> None:
        super().__init__("average", setting, 2)

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[0], rounded(float(np.int64(row[1]).view(np.float64)))


class SameWork(InCpp):
    """Knows only the windows in advance, forgets expired keys, and retracts results."""

    beyond = "C++ has met a value that is no integer, or a result without an id of its own"

    def __init__(self, name: str, setting: Setting, width: int) -> None:
        super().__init__(f"same_work/{name}", setting, width)
        self.library.bytes.argtypes = [ctypes.c_void_p]
        self.library.bytes.restype = ctypes.c_int64

    def _chunk(self, made: int) -> Rows:
        return Changes(self._tick[:made], self._out[:, :made], self._sign[:made])

    @property
    def nbytes(self) -> int:
        """The size of the state in bytes."""
        return int(self.library.bytes(self.state))


class SameJoin(SameWork):
    """Insertions only, like the engine's join for a consumer that knows how long results live."""

    def _chunk(self, made: int) -> Rows:
        return Rows(self._tick[:made], self._out[:, :made])


class SameAverage(SameWork):
    """Averages are the ids of exact decimals."""

    def __init__(self, setting: Setting) -> None:
        super().__init__("average", setting, 2)
        self._dictionary = Dictionary()

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        (text,) = self._dictionary.decode(np.array(row[1:]))
        assert text is not None
        return row[0], rounded(float(text.split('"')[1]))


class SameSums(SameWork):
    """Counts and sums are ids of integers."""

    def __init__(self, setting: Setting) -> None:
        super().__init__("sums", setting, 3)

    def plain(self, row: tuple[Any, ...]) -> tuple[Any, ...]:
        return row[0], row[1] & _VALUE, row[2] & _VALUE


def _joins(name: str) -> list[Entry]:
    return [
        Entry(IN_CPP, lambda setting: InCpp(name, setting, 4)),
        Entry(SAME_WORK, lambda setting: SameJoin(name, setting, 4)),
        Entry(SAME_RETRACTING, lambda setting: SameWork(f"{name}_withdrawing", setting, 4)),
    ]


_WIDTHS = {"negation": 2, "minimum": 2, "distinct": 2}
_ENTRIES: dict[str, list[Entry]] = {
    "ring": [Entry(IN_CPP, RingInCpp), Entry(SAME_WORK, lambda setting: SameJoin("ring", setting, 1))],
    "star": _joins("star"),
    "chain": _joins("chain"),
    "sums": [Entry(IN_CPP, lambda setting: InCpp("sums", setting, 3)), Entry(SAME_WORK, SameSums)],
    "average": [Entry(IN_CPP, AverageInCpp), Entry(SAME_WORK, SameAverage)],
}


def in_cpp(name: str) -> list[Entry]:
    """The entries of NAME.cpp and of same_work/NAME.cpp; none where there is no g++."""
    if compiler() is None:
        return []
    if name in _ENTRIES:
        return _ENTRIES[name]
    return [
        Entry(IN_CPP, lambda setting: InCpp(name, setting, _WIDTHS[name])),
        Entry(SAME_WORK, lambda setting: SameWork(name, setting, _WIDTHS[name])),
    ]
