"""Batches of results, from relation-to-stream operators to subscribers and sinks."""

from __future__ import annotations

from collections.abc import Hashable
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids


@dataclass(slots=True)
class ResultBatch:
    """n results in the order of their ticks. A batch is never changed, because several subscribers may get it.

    `time` (n): the tick's time in microseconds. `sign` (n): +1 or -1. `columns`: one id column (n) for each of `variables`;
    unbound is 0. An ASK query has the one column "boolean". `tick` (n): the tick's number within the step that made the results;
    a batch has all of a tick's results or none. None: results of the same time are of the same tick. `number`: that of the first
    result among all of its query, from 1; 0 until it has one. `made`: that which receivers have made of these results, such as
    lines, for others; None where no other query has the same results. `others`: the receivers that get these results, too, when they
    are delivered, with the numbers that the first one has for them.
    """

    variables: tuple[str, ...]
    time: npt.NDArray[np.int64]
    sign: npt.NDArray[np.int8]
    columns: tuple[Ids, ...]
    tick: npt.NDArray[np.int32] | None = None
    number: int = 0
    made: dict[Hashable, Any] | None = None
    others: tuple[tuple[Any, int], ...] = ()

    def __len__(self) -> int:
        return len(self.time)


def unnumbered(batch: ResultBatch) -> ResultBatch:
    """A copy without numbers, for another query with equal results."""
    return ResultBatch(batch.variables, batch.time, batch.sign, batch.columns, batch.tick, made=batch.made)


def copied(batch: ResultBatch) -> ResultBatch:
    """As `unnumbered`, with arrays of its own, into which subscribers may write."""
    columns = tuple([column.copy() for column in batch.columns])
    return replace(unnumbered(batch), time=batch.time.copy(), sign=batch.sign.copy(), columns=columns)


def first_rows(batch: ResultBatch, count: int) -> ResultBatch:
    """The first results of a batch."""
    if len(batch) <= count:
        return batch
    columns = tuple(column[:count] for column in batch.columns)
    tick = None if batch.tick is None else batch.tick[:count]
    return ResultBatch(batch.variables, batch.time[:count], batch.sign[:count], columns, tick, batch.number)


def last_rows(batch: ResultBatch, count: int) -> ResultBatch:
    """The last results of a batch, 1 or more."""
    tick = None if batch.tick is None else batch.tick[-count:]
    columns = tuple(column[-count:] for column in batch.columns)
    number = batch.number + len(batch) - count
    return ResultBatch(batch.variables, batch.time[-count:], batch.sign[-count:], columns, tick, number)


def detached(batch: ResultBatch) -> ResultBatch:
    """The batch in arrays of its own: a view would keep the whole buffer of its step alive."""
    tick = None if batch.tick is None else batch.tick.copy()
    columns = tuple([column.copy() for column in batch.columns])
    return ResultBatch(batch.variables, batch.time.copy(), batch.sign.copy(), columns, tick, batch.number)
