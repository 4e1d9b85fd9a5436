"""Elements that wait for the watermark: none is lost or changed, and their arrays do not shrink."""

from __future__ import annotations

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.runners.early import EarlyElements


def elements(*numbers: int, graph: bool = False) -> ElementBatch:
    ids = np.array(numbers, np.int64)
    first = np.arange(len(ids) + 1, dtype=np.int64)
    return ElementBatch(
        ids, np.zeros(len(ids), np.int32), first, ids + 100, ids + 200, ids + 300, ids + 400 if graph else None
    )


def terms(batch: ElementBatch | None) -> list[tuple[int, ...]]:
    assert batch is not None
    return list(zip(*(column.tolist() for column in batch.positions if len(column)), strict=True))


def test_elements_that_were_taken_out_are_not_overwritten() -> None:
    early = EarlyElements()
    early.keep(elements(1, 2, 3))
    taken = early.with_others(None)
    early.keep(elements(7, 8, 9))
    assert terms(taken) == terms(elements(1, 2, 3))
    assert terms(early.with_others(elements(10))) == terms(elements(7, 8, 9, 10))


def test_graphs_come_and_go() -> None:
    early = EarlyElements()
    early.keep(elements(1, graph=True))
    early.keep(elements(2))
    assert early.elements is not None
    assert early.elements.graph is None
    together = early.with_others(elements(3, graph=True))
    assert together is not None
    assert together.graph is not None
    assert together.graph.tolist() == [0, 403]


def test_room_grows_to_the_most_that_ever_waited() -> None:
    early = EarlyElements()
    assert early.nbytes == 0
    sizes = []
    for count in (1, 64, 10, 100, 1, 128):
        early.keep(elements(*range(count)))
        assert terms(early.elements) == terms(elements(*range(count)))
        sizes.append(early.nbytes)
    early.keep(None)
    assert early.elements is None
    assert sizes[0] < sizes[1] == sizes[2] < sizes[3] == sizes[4] < sizes[5] == early.nbytes
