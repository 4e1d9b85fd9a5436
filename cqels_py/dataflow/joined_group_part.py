"""Aggregates below joins as rows of programs (kernels/steps/joined_groups.py)."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy as np
import numpy.typing as npt

from cqels_py.dataflow.delta_sources import OperatorNode
from cqels_py.dataflow.program_parts import MOST_ROWS, CalledPart, CurrentTicks, DeltaRecord
from cqels_py.dataflow.step_memory import StepMemory
from cqels_py.kernels.aggregates import factorised_records as records
from cqels_py.kernels.steps import joined_groups as entries
from cqels_py.operators.r2r.aggregate import NO_HASHED_NUMBERS, OF_FLOATS, TO_ASK_OF
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey


class JoinedGroupPart(CalledPart):
    """GROUP BY over a join that is not made; `arrays`: those of its row, `entry`: its kernel.

    `memory`: that of the programs of the engine, in which rows and contributions are laid out.
    """

    def __init__(
        self,
        node: OperatorNode,
        operator: GroupByKey | FactorisedGroupBy,
        given: Sequence[DeltaRecord],
        output: DeltaRecord,
        step: CurrentTicks,
        memory: StepMemory,
    ) -> None:
        super().__init__(node, given, output, step)
        self._operator, self._layout, self._group_by = operator, operator.layout, operator.group_by
        # A row, or a contribution, changes one group's row, which is retracted and inserted.
        most = MOST_ROWS // 2
        self._begun, self._rows = np.zeros(3, np.int64), memory.numbers(self._layout.size * most)
        sources = [given[0] for _, _, given in self._layout.ways]
        places = np.empty(most, np.int32)
        self.arrays: tuple[npt.NDArray[Any], ...] = self._begun, self.called, places, self._rows, *sources
        self._carried = operator if isinstance(operator, FactorisedGroupBy) else None
        self._contributions = None if self._carried is None else memory.contributions(*self._carried.shape)
        self.entry: Any = entries.group_by_key if self._carried is None else entries.group_carried

    def links(self, texts: int) -> tuple[int, ...]:
        """Those of its row behind the element's record. `texts`: the record that has the dictionary's texts."""
        group_by, output, layout, carried = self._group_by, self._output, self._layout, self._carried
        keeps = group_by.keeps_terms or (carried is not None and carried.keeps_terms)
        of_way = []
        for port, width, (_, _, _, hashes) in layout.ways:
            of_way += [port, self._given[port].address, width, hashes]
        _, key_width, row_width, _ = layout.ways[0][2]
        return (
            self._kernel(), group_by.address, output.address, output.width, TO_ASK_OF, OF_FLOATS, NO_HASHED_NUMBERS.address,
            texts if keeps else 0, group_by.keeps_terms, entries.LAY.address(), layout.size, key_width, row_width,
            *self._links_of_contributions(), *of_way,
        )  # fmt: skip

    def _kernel(self) -> int:
        """The address of the kernel of the GroupBy."""
        if self._carried is None:
            kernel = entries.JOINED_TERMS if self._group_by.keeps_terms else entries.JOINED
        else:
            kernel = entries.DIFFERENCES_TERMS if self._group_by.keeps_terms else entries.DIFFERENCES
        return kernel.address()

    def _links_of_contributions(self) -> tuple[int, ...]:
        carried, contributions = self._carried, self._contributions
        if carried is None or contributions is None:
            return (0,) * (entries.FIRST_INPUT - entries.PUTTING)
        if not carried.sums:
            puts, kernel = entries.EXTREMES, entries.PUT_EXTREME_OF_TWO if carried.most_common else entries.PUT_EXTREMES
        elif not carried.keeps_terms:
            puts, kernel = entries.SUMS, entries.PUT_SUM_OF_TWO if carried.most_common else entries.PUT_SUMS
        else:
            puts, kernel = entries.BOTH, entries.PUT_ALL
        state = carried.state
        indexes = state.keys.address, state.row_index.address
        return kernel.address(), puts, carried.address, state.address, *indexes, contributions.address

    def _laid(self) -> npt.NDArray[np.int64]:
        count = self._begun.item(2)
        return self._rows[: self._layout.size * count].reshape(self._layout.size, count)

    def make_room(self, time: int, triples: int) -> None:
        # An error ends the step.
        state, self._begun[0] = self._begun.item(0), entries.READY
        status = self._begun.item(1)
        if self._carried is not None and self._contributions is not None:
            if state == entries.PUT:
                self._carried.make_room_for(status, self._begun.item(2))
            else:
                self._group_by.make_room_for(status, self._contributions.tick[: self._carried.made])
        else:
            self._group_by.make_room_for(status, self._laid()[records.ROW_TICK])
        self._begun[0] = state

    def find_values(self) -> None:
        state, self._begun[0] = self._begun.item(0), entries.READY
        if state == entries.AGGREGATED:
            self._group_by.resolve(self._output.columns)
            self._begun[0] = entries.RESOLVED
        elif state == entries.UNFINISHED:
            assert self._carried is not None and self._contributions is not None
            self._take(self._carried.resume(self._laid().copy(), self._contributions))
        else:
            super().find_values()
