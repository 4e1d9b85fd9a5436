"""Elements that are ahead of the watermark, which they wait for.

On a live stream they come one by one, and wait one by one, by their times. Those of batches wait in arrays, which grow and never
shrink, and so do all while both come.
"""

from __future__ import annotations

from bisect import bisect_right
from collections.abc import Iterator
from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, slice_elements

_LEAST_ROOM = 64
_MOST_ALONE = 1 << 14
"""So many elements wait one by one, which takes about a kilobyte for each."""
_BYTES_ALONE = 1 << 10
_COLUMNS = tuple(each.name for each in fields(ElementBatch))


class EarlyElements:
    """The elements that wait: in order of time if they wait one by one; of one time, in order of arrival."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self._in_arrays: ElementBatch | None = None
        # The elements that wait one by one.
        self._times: list[int] = []
        self._alone: list[ElementBatch] = []
        self._came_alone = 0

    def __len__(self) -> int:
        return len(self._times) if self._in_arrays is None else len(self._in_arrays)

    @property
    def elements(self) -> ElementBatch | None:
        """Those that wait, perhaps as views of arrays that the next `keep` overwrites; None: none wait."""
        return concatenate_elements(self._alone) if self._times else self._in_arrays

    @property
    def times(self) -> npt.NDArray[np.int64]:
        """The times of those that wait."""
        return np.array(self._times, np.int64) if self._in_arrays is None else self._in_arrays.time

    def with_others(self, batch: ElementBatch | None) -> ElementBatch | None:
        """Those that wait, then those of the batch, in arrays that `keep` does not overwrite; None: there are none."""
        if batch is None or len(batch.time) > 1:
            self._came_alone = 0
        waiting = self.elements
        if waiting is None:
            return batch
        if batch is not None:
            return concatenate_elements([waiting, batch])
        return _copied(waiting)

    def keep(self, batch: ElementBatch | None) -> None:
        """From now on these wait."""
        self._times, self._alone = [], []
        if batch is None:
            self._in_arrays = None
            return
        self._in_arrays = ElementBatch(*(self._kept(name, getattr(batch, name)) for name in _COLUMNS))

    def add_one(self, batch: ElementBatch) -> bool:
        """A single element waits, too. False, with nothing done, if it has to be joined with those of batches."""
        if self._in_arrays is not None and not self._divide():
            return False
        if len(self._times) >= _MOST_ALONE:
            return False
        time = batch.time.item(0)
        at = bisect_right(self._times, time)
        self._times.insert(at, time)
        self._alone.insert(at, batch if _is_small(batch) else _copied(batch))
        return True

    def take_through(self, time: int) -> list[ElementBatch]:
        """Those that wait one by one and are not later, in order; they wait no more."""
        count = bisect_right(self._times, time)
        taken = self._alone[:count]
        del self._times[:count], self._alone[:count]
        return taken

    def live_ids(self) -> Iterator[Ids]:
        """Ids of those that wait."""
        for each in self._alone if self._in_arrays is None else [self._in_arrays]:
            yield from each.live_ids()

    def _divide(self) -> bool:
        """Once as many have come one by one as wait in arrays: from now on these wait one by one."""
        waiting = self._in_arrays
        assert waiting is not None
        self._came_alone += 1
        count = len(waiting)
        if self._came_alone < count or count > _MOST_ALONE:
            return False
        order = np.argsort(waiting.time, kind="stable").tolist()
        self.keep(None)
        self._times = waiting.time[order].tolist()
        self._alone = [_copied(slice_elements(waiting, at, at + 1)) for at in order]
        return True

    def _kept(self, name: str, column: npt.NDArray[Any] | None) -> Any:
        if column is None:
            return None
        array, count = self._arrays.get(name), len(column)
        if array is None or len(array) < count:
            size = max(_LEAST_ROOM, 1 << (count - 1).bit_length())
            array = self._arrays[name] = np.empty(size, column.dtype)
        array[:count] = column
        return array[:count]

    @property
    def nbytes(self) -> int:
        """Bytes of the arrays, and of those that wait one by one."""
        return sum(array.nbytes for array in self._arrays.values()) + _BYTES_ALONE * len(self._times)


def _is_small(batch: ElementBatch) -> bool:
    """Does a single element keep no memory alive beside its own?"""
    bases = batch.time.base, batch.subject.base
    return all(base is None or (isinstance(base, np.ndarray) and base.nbytes <= _BYTES_ALONE) for base in bases)


def _copied(batch: ElementBatch) -> ElementBatch:
    columns: list[Any] = [getattr(batch, name) for name in _COLUMNS]
    copies: list[Any] = [None if column is None else column.copy() for column in columns]
    return ElementBatch(*copies)
