"""The rows of one part of a stage among those that it makes, where states were split: it still holds rows of its sister parts."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.ownership import Condition, owner_of_rows
from cqels_py.distribution.stages import PlannedStage
from cqels_py.runners.spark.layout import conditions_of


@dataclass(frozen=True, slots=True)
class OwnRows:
    """`variables`: those of the stage's rows; `conditions` of the part, or the `part` of `parts` by the columns `by`."""

    variables: tuple[str, ...]
    conditions: tuple[Condition, ...]
    by: tuple[str, ...]
    parts: int
    part: int

    @staticmethod
    def of(stage: PlannedStage, part: int) -> OwnRows:
        """Those of one part of a stage."""
        return OwnRows(stage.root.variables, conditions_of(stage, part), stage.by, stage.parts, part)

    def results(self, batch: ResultBatch) -> ResultBatch:
        """Its results among these."""
        mine = self._mine(batch.variables, batch.columns, len(batch))
        if mine.all():
            return batch
        tick = None if batch.tick is None else batch.tick[mine]
        columns = tuple(column[mine] for column in batch.columns)
        return replace(batch, time=batch.time[mine], sign=batch.sign[mine], columns=columns, tick=tick)

    def changes(self, delta: Delta) -> Delta:
        """Its changes among these, which have the columns of the stage."""
        return delta.take(self._mine(self.variables, delta.columns, len(delta)))

    def _mine(self, variables: Sequence[str], columns: Sequence[Ids] | Ids, rows: int) -> npt.NDArray[np.bool_]:
        mine = np.ones(rows, np.bool_)
        for each in self.conditions:
            mine &= each.mine(columns[variables.index(each.variable)])
        if self.by:
            keys = np.array([columns[variables.index(name)] for name in self.by])
            mine &= owner_of_rows(keys, self.parts) == self.part
        return mine
