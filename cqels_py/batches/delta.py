"""Delta batches: what operators exchange. Columns of ids with a tick and a sign, ordered by tick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids

_FEW = 64
"""So few rows are copied sooner than moved."""
TickColumn = npt.NDArray[np.int32]
SignColumn = npt.NDArray[np.int8]


class Delta:
    """n signed mappings: `tick` (n), not falling; `sign` (n), +1 or -1; `columns` (width, n), term ids."""

    __slots__ = ("columns", "sign", "tick")

    def __init__(self, tick: TickColumn, sign: SignColumn, columns: Ids) -> None:
        self.tick = tick
        self.sign = sign
        # One layout for all: kernels are compiled for it alone, so that a new query never compiles anything.
        self.columns = np.ascontiguousarray(columns)

    def __len__(self) -> int:
        return len(self.tick)

    def with_columns(self, columns: Ids) -> Delta:
        """The same ticks and signs over other columns."""
        return Delta(self.tick, self.sign, columns)

    def take(self, chosen: npt.NDArray[np.bool_] | npt.NDArray[np.int64]) -> Delta:
        """Some of the rows: a mask, or positions in rising order."""
        return Delta(self.tick[chosen], self.sign[chosen], self.columns[:, chosen])


@cache
def empty(width: int) -> Delta:
    """No mappings; always the same object."""
    return Delta(np.empty(0, np.int32), np.empty(0, np.int8), np.empty((width, 0), np.int64))


def insertions(columns: Ids, tick: int = 0) -> Delta:
    """Every row with a plus sign, at one tick."""
    rows = columns.shape[1]
    return Delta(np.full(rows, tick, np.int32), np.ones(rows, np.int8), columns)


def first_rows(tick: TickColumn, sign: SignColumn, columns: Ids, made: int) -> Delta:
    """The first `made` rows of a buffer that nobody writes to any more. If they fill most of it, its columns move together."""
    width, room = columns.shape
    if made == room:
        return Delta(tick, sign, columns)
    if made == 0:
        return empty(width)
    if made > _FEW and room <= 2 * made:
        places = columns.reshape(-1)
        for c in range(1, width):
            places[c * made : (c + 1) * made] = places[c * room : c * room + made]
        return Delta(tick[:made], sign[:made], places[: width * made].reshape(width, made))
    return Delta(tick[:made], sign[:made], columns[:, :made])


def concatenate(parts: Iterable[Delta], width: int) -> Delta:
    """Chunks of one operator's output, in their order, as one batch."""
    if isinstance(parts, tuple) and len(parts) < 2:
        alone: Delta = parts[0] if parts else empty(width)
        return alone
    chunks: Sequence[Delta] = [part for part in parts if len(part.tick)]
    if len(chunks) == 1:
        return chunks[0]
    if not chunks:
        return empty(width)
    return Delta(
        np.concatenate([chunk.tick for chunk in chunks]),
        np.concatenate([chunk.sign for chunk in chunks]),
        np.concatenate([chunk.columns for chunk in chunks], axis=1),
    )


def by_whole_ticks(chunks: Iterable[Delta], width: int, rows: int = 1 << 17) -> Iterable[Delta]:
    """Chunks of one operator's output as few larger ones of at least `rows` rows (the last one fewer), cut between ticks.

    What is kept at once is bounded by `rows` and by the largest tick, not by the step.
    """
    if isinstance(chunks, tuple) and len(chunks) < 2:
        return chunks if chunks and len(chunks[0].tick) else ()
    return _gathered(chunks, width, rows)


def _gathered(chunks: Iterable[Delta], width: int, rows: int) -> Iterator[Delta]:
    held: list[Delta] = []
    count, enough = 0, rows
    for chunk in chunks:
        if not len(chunk.tick):
            continue
        held.append(chunk)
        count += len(chunk.tick)
        if count < enough:
            continue
        together = concatenate(held, width)
        cut = int(np.searchsorted(together.tick, together.tick[-1]))
        if cut:
            yield together.take(np.arange(cut))
            together = together.take(np.arange(cut, count))
        held, count = [together], len(together)
        # A tick larger than that: how often it is put together must not grow with it.
        enough = max(rows, 2 * count)
    if count:
        yield held[0] if len(held) == 1 else concatenate(held, width)
