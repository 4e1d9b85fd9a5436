"""STATE: the changes of the rules' conclusions, at their ticks."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

import numpy as np

from cqels_py.batches.delta import Delta, empty
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.ownership import Condition
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.running_rules import RunningRules, boundaries
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_source import StepSource
from cqels_py.operators.r2r.expressions import Evaluator
from cqels_py.operators.s2r.window import Timer
from cqels_py.plan.nodes import StateRows
from cqels_py.state.kept_rows import KeptRows


class StateScan(StepSource):
    """The rows of one STATE. Its deltas are made once a step."""

    STATE = ("rules", "_later")
    stream = -1
    patterns = ()

    def __init__(self, node: StateRows, rules: RunningRules, shared_scans: SharedScans) -> None:
        super().__init__(shared_scans)
        self.node = node
        self.rules = rules
        self._predicate = rules.answer(node.number)
        self.later_changes = KeptRows(rules.changes.shape[1])
        """The record of `_later`."""

    @property
    def _later(self) -> Ids:
        """The changes that have had no tick, as `RunningRules.changes`."""
        return self.later_changes.rows

    @_later.setter
    def _later(self, rows: Ids) -> None:
        self.later_changes.rows = rows

    @property
    def predicate(self) -> int:
        """That of its rows among the rules' changes."""
        return self._predicate

    @property
    def is_plain(self) -> bool:
        """Do the rules have entries?"""
        return self.rules.is_plain

    @property
    def conditions(self) -> tuple[Evaluator, ...]:
        """The evaluators of the rules."""
        return self.rules.evaluators

    @property
    def next_timer(self) -> Timer:
        """It takes part in every step."""
        return None

    def _advance(self, routed: RoutedBatch) -> Delta:
        ticks = routed.step.ticks
        mine = self.rules.changes[self.rules.changes[:, 0] == self._predicate]
        if len(self._later):
            mine = np.concatenate([self._later, mine])
        instant = boundaries(mine[:, -2], self.node.step)
        # At the end of its instant, or at the first tick after it where the streams have ended between. The end of a boundary's
        # instant may be to come, though an element of that instant has its tick now.
        tick = np.searchsorted(ticks.time, instant)
        last = np.searchsorted(ticks.time, instant, side="right") - 1
        tick = np.maximum(tick, last)
        seen = (tick < len(ticks)) & (instant <= self.rules.told_through)
        later, mine, tick = mine[~seen], mine[seen], tick[seen]
        self._later = later
        if not len(mine):
            return empty(len(self.node.variables))
        columns = np.ascontiguousarray(mine[:, 1 : 1 + len(self.node.variables)].T)
        return Delta(tick.astype(np.int32), mine[:, -1].astype(np.int8), columns)

    def keep_to(self, cell: Sequence[Condition]) -> None:
        """The rules leave facts to other parts that these need."""
        self.rules.keep_to(cell)

    def live_ids(self) -> Iterator[Ids]:
        yield from self.rules.live_ids()
        yield self._later[:, 1:-2].reshape(-1)

    @property
    def nbytes(self) -> int:
        return self.rules.nbytes
