"""Elements that are ahead of the watermark: they wait for it in arrays that grow and never shrink."""

from __future__ import annotations

from dataclasses import fields
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements

_LEAST_ROOM = 64
_COLUMNS = tuple(each.name for each in fields(ElementBatch))


class EarlyElements:
    """`elements`: those that wait, as views of arrays that the next `keep` overwrites; None: none wait."""

    def __init__(self) -> None:
        self._arrays: dict[str, npt.NDArray[Any]] = {}
        self.elements: ElementBatch | None = None

    def with_others(self, batch: ElementBatch | None) -> ElementBatch | None:
        """Those that wait, then those of the batch, in arrays that `keep` does not overwrite; None: there are none."""
        if self.elements is None:
            return batch
        if batch is not None:
            return concatenate_elements([self.elements, batch])
        return _copied(self.elements)

    def keep(self, batch: ElementBatch | None) -> None:
        """From now on these wait."""
        if batch is None:
            self.elements = None
            return
        self.elements = ElementBatch(*(self._kept(name, getattr(batch, name)) for name in _COLUMNS))

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
        """Bytes of the arrays."""
        return sum(array.nbytes for array in self._arrays.values())


def _copied(batch: ElementBatch) -> ElementBatch:
    columns: list[Any] = [getattr(batch, name) for name in _COLUMNS]
    copies: list[Any] = [None if column is None else column.copy() for column in columns]
    return ElementBatch(*copies)
