"""Delta batches, which operators exchange: columns of ids with a tick and a sign, ordered by tick."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from functools import cache
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids

_FEW = 64
"""For so few rows a copy is faster than a move within the buffer."""
BLOCK_ROWS = 1 << 16
"""The number of rows of an input that are processed together, if it delivers more in a step."""
TickColumn = npt.NDArray[np.int32]
SignColumn = npt.NDArray[np.int8]


class TickSigns(Protocol):
    """The signs of the changes of the current step."""

    def has_one_sign(self, tick: int) -> bool:
        """Have all changes at this tick one sign, so that none cancels another? Only True is certain."""
        ...


class Delta:
    """n signed mappings: `tick` (n), not falling; `sign` (n), +1 or -1; `columns` (width, n), term ids."""

    __slots__ = ("columns", "sign", "tick")

    def __init__(self, tick: TickColumn, sign: SignColumn, columns: Ids) -> None:
        self.tick = tick
        self.sign = sign
        # One layout for all: kernels are compiled for C order alone, so that a new query never compiles anything.
        self.columns = np.ascontiguousarray(columns)

    def __len__(self) -> int:
        return len(self.tick)

    def with_columns(self, columns: Ids) -> Delta:
        """A delta with these ticks and signs over other columns."""
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


def retractions(columns: Ids, tick: int = 0) -> Delta:
    """Every row with a minus sign, at one tick."""
    rows = columns.shape[1]
    return Delta(np.full(rows, tick, np.int32), np.full(rows, -1, np.int8), columns)


def first_rows(tick: TickColumn, sign: SignColumn, columns: Ids, made: int) -> Delta:
    """The first `made` rows of a buffer that is no longer written to. If they fill most of it, its columns move together."""
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


def in_blocks(
    inputs: Sequence[Iterable[Delta]], widths: Sequence[int], rows: int = BLOCK_ROWS
) -> Iterable[Sequence[Delta]]:
    """The chunks of several inputs as blocks that follow each other in the order of ticks: one delta of each input, perhaps empty.

    A block may end within a tick. An input is read on when less than `rows` rows of it wait, so that memory is bounded by its
    chunks and by the others' rows of the same ticks, not by the step.
    """
    block: list[Delta] = []
    for chunks, width in zip(inputs, widths, strict=True):
        if not isinstance(chunks, tuple) or len(chunks) > 1:
            break
        block.append(chunks[0] if chunks else empty(width))
    else:
        return (block,)
    readers = [iter(chunks) for chunks in inputs]
    waiting = [enough(reader, rows) for reader in readers]
    block = [concatenate(read, width) for (read, _), width in zip(waiting, widths, strict=True)]
    unread = {i for i, (_, complete) in enumerate(waiting) if not complete}
    return _aligned(readers, block, unread, widths, rows) if unread else (block,)


def _aligned(
    readers: Sequence[Iterator[Delta]], waiting: list[Delta], unread: set[int], widths: Sequence[int], rows: int
) -> Iterator[Sequence[Delta]]:
    """`waiting`: the chunks of each input that have been read; `unread`: the inputs that may have more."""
    starts = [0] * len(widths)
    while True:
        # Up to the end of the first block of an input that may have more; that of others may begin with the same tick.
        last = min((int(waiting[i].tick[-1]) for i in unread), default=None)
        block = []
        for i, delta in enumerate(waiting):
            end = len(delta) if last is None else int(np.searchsorted(delta.tick, last, side="right"))
            block.append(_between(delta, starts[i], end))
            starts[i] = end
        yield block
        if not unread:
            return
        for i in sorted(unread):
            if starts[i] == len(waiting[i]):
                chunks, complete = enough(readers[i], rows)
                starts[i], waiting[i] = 0, concatenate(chunks, widths[i])
                if complete:
                    unread.discard(i)


def enough(chunks: Iterator[Delta], rows: int = BLOCK_ROWS) -> tuple[tuple[Delta, ...], bool]:
    """The next chunks, of at least `rows` rows if there are enough; and whether these are the last ones."""
    found: tuple[Delta, ...] = ()
    count = 0
    for chunk in chunks:
        found += (chunk,)
        count += len(chunk.tick)
        if count >= rows:
            return found, False
    return found, True


def _between(delta: Delta, first: int, last: int) -> Delta:
    if first == 0 and last == len(delta.tick):
        return delta
    return Delta(delta.tick[first:last], delta.sign[first:last], delta.columns[:, first:last])


def by_whole_ticks(
    chunks: Iterable[Delta], width: int, rows: int = 1 << 17, signs: TickSigns | None = None
) -> Iterable[Delta]:
    """Chunks of one operator's output as few larger ones of at least `rows` rows (the last one fewer), cut between ticks.

    The rows kept at once are bounded by `rows` and by the largest tick, not by the step; nor by a tick whose changes have one sign
    according to `signs`: it is cut too.
    """
    if isinstance(chunks, tuple) and len(chunks) < 2:
        return chunks if chunks and len(chunks[0].tick) else ()
    return _gathered(chunks, width, rows, signs)


def _gathered(chunks: Iterable[Delta], width: int, rows: int, signs: TickSigns | None) -> Iterator[Delta]:
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
        last = int(together.tick[-1])
        cut = count if signs is not None and signs.has_one_sign(last) else int(np.searchsorted(together.tick, last))
        if cut:
            yield _between(together, 0, cut)
            together = _between(together, cut, count)
        held, count = [together], len(together)
        # A tick larger than that: the number of concatenations must not grow with it.
        enough = max(rows, 2 * count)
    if count:
        yield held[0] if len(held) == 1 else concatenate(held, width)
