"""RSTREAM with columns that are evaluated when results are delivered, and that are not part of any state."""

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
    """Evaluates a column."""

    def evaluate(self, columns: Sequence[Ids] | Ids, now: Ids | None) -> Ids:
        """A value for each result (n), from its inputs' columns and its tick's time `now` (n); 0 where there is none."""
        ...

    def live_ids(self) -> Iterable[Ids]:
        """The terms that it needs itself."""
        ...


class RowScope(Protocol):
    """The rows whose columns are evaluated next: equal labels in a row are one blank node."""

    def begin(self, rows: int) -> None: ...


@dataclass(frozen=True, slots=True)
class AddedStep:
    """A column `name`, evaluated from the columns `inputs`; missing inputs are unbound."""

    name: str
    inputs: tuple[str, ...]
    maker: Maker


class AddedColumns:
    """Whole answers, with columns added to each row, one after the other; `variables` of them are delivered."""

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
