"""GROUP BY over a join of inputs by exactly the key on which they are joined: a group's answer follows from its rows of
each input.

It has as many results as the product of its numbers of rows of each input, and the sums, counts and extremes of its
arguments follow from the rows of one input each. So every arrival costs the same, however many others it meets.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.aggregates import factorised_records as records
from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy, GroupRun, OfInputs, TermValues
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput, JoinedRows


class GroupByKey:
    """Groups the join of all inputs on their key by all of it, as GroupBy would group its results.

    `groups`: the places in the key of the groups' columns, which come first in the result, then the aggregates.
    """

    STATE = ("_group_by",)

    def __init__(
        self,
        inputs: Sequence[JoinedInput],
        groups: Sequence[int],
        aggregates: Sequence[JoinedAggregate],
        values: TermValues,
    ) -> None:
        width = len(groups)
        taken = [(port, [each.key[place] for place in groups]) for port, each in enumerate(inputs)]
        self.layout = JoinedRows(inputs, taken, width, width, aggregates, values, hashes=False)
        ports = [each.input for each in aggregates]
        expires_fifo = [inputs[port].expires_fifo for port in ports]
        made = [Aggregate(each.function, column) for column, each in enumerate(aggregates)]
        self._group_by = GroupBy(range(width), made, values, of_inputs=OfInputs(len(inputs), ports, expires_fifo))
        self._first_argument = records.FIRST + width

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterable[Delta]:
        blocks = self.layout.blocks(inputs)
        if isinstance(blocks, tuple):
            return self._changes(ticks, inputs)
        return (delta for block in blocks for delta in self._changes(ticks, block))

    def _changes(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> tuple[Delta, ...]:
        """The groups' changes caused by one block."""
        filled, count = self.layout.filled(inputs)
        if not count:
            return ()
        rows, _, _, odd = self.layout.lay(filled, count, one_tick=len(ticks.time) == 1)
        self._group_by.reserve_notes(count)
        run = GroupRun(self._group_by, count)
        run.take_joined(rows, rows[records.FIRST : self._first_argument], rows[self._first_argument :], odd)
        return (run.output(),)

    @property
    def group_by(self) -> GroupBy:
        """That of its groups."""
        return self._group_by

    def standing_rows(self) -> Ids:
        """As `GroupBy.standing_rows`."""
        return self._group_by.standing_rows()

    def live_ids(self) -> Iterable[Ids]:
        return self._group_by.live_ids()

    @property
    def nbytes(self) -> int:
        return self._group_by.nbytes
