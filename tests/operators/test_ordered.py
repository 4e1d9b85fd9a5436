"""RSTREAM in order, against sorting at every tick."""

from __future__ import annotations

import numpy as np
import pytest

from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2s.ordered import OrderedAnswers
from tests.operators.deltas import Live, Port, Row, random_steps
from tests.operators.deltas import delta as delta_of
from tests.operators.test_aggregate import Terms
from tests.operators.test_top import TEXTS, Order, sliced


@pytest.mark.parametrize("distinct", [False, True])
@pytest.mark.parametrize("order", [[(2, False)], [(1, True), (2, False)], [(0, True)], []])
def test_each_report_is_in_order(order: Order, distinct: bool) -> None:
    """Of three columns the first two are reported."""
    terms = Terms()
    steps = random_steps(len(order), [Port(3, False, terms.ids(TEXTS))], 10, 5, 10)
    operator = OrderedAnswers(("a", "b"), 3, order, terms.values, distinct=distinct)

    def model(live: Live) -> list[Row]:
        rows = [row[:2] for row in sliced(live[0], order, 0, len(live[0]), terms)]
        return list(dict.fromkeys(rows)) if distinct else rows

    for step in steps:
        ticks = Ticks(np.arange(len(step.live)), first=False)
        reports = list(operator.process(ticks, [delta_of(step.inputs[0], 3)]))
        found = {int(report.time[0]): np.stack(report.columns).T.tolist() for report in reports}
        expected = {tick: [list(row) for row in model(live)] for tick, live in enumerate(step.live)}
        assert found == {tick: rows for tick, rows in expected.items() if rows}
        assert all((report.sign == 1).all() for report in reports)


def test_rows_are_live_while_they_are_kept() -> None:
    terms = Terms()
    ids = terms.ids(["<urn:a>", "<urn:b>"])
    operator = OrderedAnswers(("a",), 1, [(0, False)], terms.values)
    list(operator.process(Ticks(np.zeros(1, np.int64), first=True), [delta_of([(0, 1, (i,)) for i in ids], 1)]))
    assert set(ids) <= set(np.concatenate([np.ravel(found) for found in operator.live_ids()]).tolist())
    assert operator.nbytes > 0
