"""RSTREAM with columns that are made as its results are delivered, and that are no part of any state."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2s.streams import Answers


class Maker(Protocol):
    """Makes a column."""

    def evaluate(self, columns: Sequence[Ids] | Ids, now: Ids | None) -> Ids:
        """A value for each result (n), of its inputs' columns and its tick's time `now` (n); 0 where there is none."""
        ...

    def live_ids(self) -> Iterable[Ids]:
        """The terms that it needs itself."""
        ...


class RowScope(Protocol):
    """The rows whose columns are made next: the same label in one of them is the same blank node."""

    def begin(self, rows: int) -> None: ...


@dataclass(frozen=True, slots=True)
class AddedStep:
    """A column `name`, made of the columns `inputs`, of which those that there are not are unbound."""

    name: str
    inputs: tuple[str, ...]
    maker: Maker


class AddedColumns:
    """Whole answers, in which columns are added to each row, one after the other; `variables` of them are delivered."""

    STATE = ("_answers", "_scope")

    def __init__(
        self, variables: tuple[str, ...], answers: Answers, steps: Sequence[AddedStep], scope: RowScope
    ) -> None:
        self._variables = variables
        self._answers = answers
        self._steps = tuple(steps)
        self._scope = scope

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        for batch in self._answers.process(ticks, chunks):
            known = dict(zip(batch.variables, batch.columns, strict=True))
            self._scope.begin(len(batch))
            unbound = np.zeros(len(batch), np.int64)
            for step in self._steps:
                inputs = [known.get(name, unbound) for name in step.inputs]
                known[step.name] = step.maker.evaluate(inputs, batch.time)
            columns = tuple([known.get(name, unbound) for name in self._variables])
            yield ResultBatch(self._variables, batch.time, batch.sign, columns, batch.tick)

    def live_ids(self) -> Iterable[Ids]:
        yield from self._answers.live_ids()
        for step in self._steps:
            yield from step.maker.live_ids()

    @property
    def nbytes(self) -> int:
        return self._answers.nbytes
