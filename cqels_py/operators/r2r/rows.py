"""Stateless operators on one mapping at a time: filter, extend, project; and union."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, in_blocks
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.windows.merge import merge_by_tick
from cqels_py.operators.operator import Stateless


class ColumnExpression(Protocol):
    """An expression over columns of ids."""

    def evaluate(self, columns: Sequence[Ids] | Ids, now: npt.NDArray[np.int64] | None) -> Ids:
        """Its value for each row; 0 where it is unbound or an error."""
        ...

    def test(self, columns: Sequence[Ids] | Ids, now: npt.NDArray[np.int64] | None) -> npt.NDArray[np.bool_]:
        """Whether its effective boolean value is true."""
        ...

    def live_ids(self) -> Iterable[Ids]:
        """The terms in the expression itself."""
        ...


class Filter(Stateless):
    """Keeps the mappings for which `condition` over the columns `inputs` is true."""

    def __init__(self, condition: ColumnExpression, inputs: Sequence[int]) -> None:
        self.condition = condition
        self.inputs = np.array(inputs, np.int64)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            if len(delta.tick):
                yield delta.take(self.condition.test(delta.columns[self.inputs], ticks.time[delta.tick]))

    def live_ids(self) -> Iterable[Ids]:
        return self.condition.live_ids()


class Extend(Stateless):
    """Adds a column: the value of `expression` over the columns `inputs`."""

    def __init__(self, expression: ColumnExpression, inputs: Sequence[int]) -> None:
        self.expression = expression
        self.inputs = np.array(inputs, np.int64)

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            columns = delta.columns
            added = self.expression.evaluate(columns[self.inputs], ticks.time[delta.tick])
            yield delta.with_columns(np.concatenate([columns, added[np.newaxis]]))

    def live_ids(self) -> Iterable[Ids]:
        return self.expression.live_ids()


class Project(Stateless):
    """Chooses columns; -1 makes a column of unbound values."""

    def __init__(self, columns: Sequence[int]) -> None:
        self.columns = np.array(columns, np.int64)
        self._missing = self.columns < 0
        self._complete = not self._missing.any()

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            source = delta.columns
            if self._complete:
                yield delta.with_columns(source[self.columns])
                continue
            columns = np.zeros((len(self.columns), len(delta)), np.int64)
            columns[~self._missing] = source[self.columns[~self._missing]]
            yield delta.with_columns(columns)


class UnionAll(Stateless):
    """All mappings of all inputs, merged by tick; the inputs have the same columns."""

    def __init__(self, width: int) -> None:
        self._width = width

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for deltas in in_blocks(inputs, [self._width] * len(inputs)):
            filled = [delta for delta in deltas if len(delta)]
            if len(filled) == 1:
                yield filled[0]
            elif filled:
                yield self._merged(filled)

    @staticmethod
    def _merged(filled: Sequence[Delta]) -> Delta:
        starts = np.concatenate([[0], np.cumsum([len(delta) for delta in filled])]).astype(np.int64)
        tick = np.concatenate([delta.tick for delta in filled])
        order = np.empty(len(tick), np.int64)
        merge_by_tick(tick, starts, order)
        sign = np.concatenate([delta.sign for delta in filled])
        columns = np.concatenate([delta.columns for delta in filled], axis=1)
        return Delta(tick[order], sign[order], columns[:, order])
