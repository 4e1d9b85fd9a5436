"""ORDER BY with LIMIT and OFFSET, incrementally: only rows that enter or leave the slice are delivered."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import Ids
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.rows.distinct import cancel
from cqels_py.operators.r2r.aggregate import TermValues
from cqels_py.state.ordered_rows import OrderedRows


class TopRows:
    """The rows at positions offset to offset + limit, by the values of `order` (column, descending), ties by all
    columns in term order.

    `limit` None: all from offset on. `by`: such rows for each value of these columns.
    """

    STATE = ("_rows",)

    def __init__(
        self,
        width: int,
        order: Sequence[tuple[int, bool]],
        offset: int,
        limit: int | None,
        values: TermValues,
        by: Sequence[int] = (),
    ) -> None:
        self._rows = OrderedRows(width, order, offset, limit, by)
        self._values = values

    @property
    def rows(self) -> OrderedRows:
        """Its state."""
        return self._rows

    def process(self, ticks: Ticks, inputs: Sequence[Iterable[Delta]]) -> Iterator[Delta]:
        for delta in inputs[0]:
            if len(delta):
                moved = self._rows.take(delta, *self._values.texts())
                yield moved.take(cancel(moved.tick, moved.sign, moved.columns))

    def live_ids(self) -> Iterable[Ids]:
        return (self._rows.live_ids(),)

    @property
    def nbytes(self) -> int:
        return self._rows.nbytes
