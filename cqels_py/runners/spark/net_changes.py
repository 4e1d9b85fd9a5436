"""The net change of a micro-batch: results that come and go within it are left out."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch, detached
from cqels_py.kernels.rows.distinct import cancel

_PIECE = 1 << 15
"""Changes that are looked at together, at least: few enough for a processor's cache, in which equal ones are found in half of the
time."""


class NetChanges:
    """Collects the changes of one query in order, and keeps those that are left when equal additions and removals cancel each
    other, with their own times. Its size follows the number of those.

    `piece`: so many changes at a time, at least, meet those that are left of the changes before.

    >>> changes = NetChanges()
    >>> ids = np.array([7, 8, 7])
    >>> changes.add(ResultBatch(("a",), np.array([1, 2, 3]), np.array([1, 1, -1], np.int8), (ids,)))
    >>> changes.add(ResultBatch(("a",), np.array([5]), np.array([1], np.int8), (np.array([8]),)))
    >>> found, left_out = changes.fetch()
    >>> found.time.tolist(), found.sign.tolist(), found.columns[0].tolist(), left_out
    ([2, 5], [1, 1], [8, 8], 2)
    """

    def __init__(self, piece: int = _PIECE) -> None:
        self._piece = piece
        self._kept: list[ResultBatch] = []
        self._size = self._added = 0
        self._full = piece

    def add(self, batch: ResultBatch) -> None:
        self._added += len(batch)
        for start in range(0, len(batch), self._piece):
            piece = _slice(batch, start, start + self._piece)
            self._kept.append(detached(piece))
            self._size += len(piece)
            if self._size >= self._full:
                self._shorten()

    def live_ids(self) -> Iterator[Ids]:
        """The ids of all values that are kept."""
        for batch in self._kept:
            yield from batch.columns

    def fetch(self) -> tuple[ResultBatch | None, int]:
        """The changes that are left, None if nothing came, and the number of those that are not; then begins anew."""
        if not self._kept:
            return None, 0
        self._shorten()
        (left,) = self._kept
        left_out = self._added - len(left)
        self._kept, self._full = [], self._piece
        self._size = self._added = 0
        return left, left_out

    def _shorten(self) -> None:
        left = _left(self._kept)
        self._kept, self._size = [left], len(left)
        self._full = max(self._piece, 2 * len(left))


def _slice(batch: ResultBatch, start: int, end: int) -> ResultBatch:
    columns = tuple(column[start:end] for column in batch.columns)
    return ResultBatch(batch.variables, batch.time[start:end], batch.sign[start:end], columns)


def _left(batches: list[ResultBatch]) -> ResultBatch:
    """The changes that are left when those that cancel each other are taken out."""
    variables = batches[0].variables
    time, sign = (np.concatenate([getattr(each, name) for each in batches]) for name in ("time", "sign"))
    columns = np.array(
        [np.concatenate([each.columns[place] for each in batches]) for place in range(len(variables))], np.int64
    ).reshape(len(variables), len(time))
    left = cancel(np.zeros(len(time), np.int32), sign, columns)
    return ResultBatch(variables, time[left], sign[left], tuple(columns[:, left]))
