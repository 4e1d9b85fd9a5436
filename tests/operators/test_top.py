"""ORDER BY with LIMIT and OFFSET against sorting, at every tick."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np
import pytest

from cqels_py.operators.r2r.top import TopRows
from tests.operators.deltas import Live, Port, Row, Seen, assert_follows, changes, delta, random_steps
from tests.operators.plain_dictionary import typed
from tests.operators.test_aggregate import Terms
from tests.operators.test_semi_anti_join import ANY_TICK
from tests.oracle import naive_values

Order = Sequence[tuple[int, bool]]

TEXTS = [
    *(typed(text, "integer") for text in ("-3", "5", "7")),
    *(typed(text, "decimal") for text in ("5.0", "5.00", "0.5", "123456789012345678.5")),
    *(typed(text, "double") for text in ("5.0", "1.0E300", "-INF")),
    *(
        typed(text, "dateTime")
        for text in ("2020-01-01T00:00:00Z", "2020-01-01T01:00:00+01:00", "1970-01-01T00:00:00Z")
    ),
    *("<urn:a>", "<urn:b>", '"a"', '"ab"', '"b"', '"a"@en', None),
    *(typed(text, "boolean") for text in ("true", "1")),
]


def sliced(rows: Sequence[Row], order: Order, offset: int, limit: int | None, terms: Terms) -> list[Row]:
    """By the values of the order's columns, ties by all columns in the order of terms."""
    ordered = sorted(rows, key=lambda row: [naive_values.order_key(terms.term(i)) for i in row])
    for column, descending in reversed(order):
        keys = {row: naive_values.value_key(terms.term(row[column])) for row in rows}
        ordered.sort(key=keys.__getitem__, reverse=descending)
    return ordered[offset : None if limit is None else offset + limit]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize(
    ("order", "offset", "limit"),
    [
        ([(0, False)], 0, 3),
        ([(0, True)], 0, 1),
        ([(1, False), (0, True)], 2, 4),
        ([(1, True), (1, False)], 0, 100),
        ([], 1, 3),
        ([(0, False)], 5, 0),
        ([(0, True)], 4, None),
        ([], 0, None),
    ],
)
def test_every_tick_has_the_slices_difference(order: Order, offset: int, limit: int | None, seed: int) -> None:
    terms = Terms()
    ids = terms.ids(TEXTS)
    steps = random_steps(seed, [Port(2, seed % 2 == 0, ids)], 20, 8, 12)

    def model(live: Live) -> list[Row]:
        # A stable sort keeps equal rows in the order of terms, whatever the direction.
        return sliced(live[0], order, offset, limit, terms)

    assert_follows(TopRows(2, order, offset, limit, terms.values), [2], steps, model, chunk=3 * seed)


@pytest.mark.parametrize(("by", "offset", "limit"), [([0], 0, 2), ([1], 1, 1), ([1, 0], 1, None), ([0], 2, 3)])
def test_each_key_has_a_slice_of_its_own(by: list[int], offset: int, limit: int | None) -> None:
    terms = Terms()
    ids = terms.ids(TEXTS[:9])
    steps = random_steps(offset, [Port(2, False, ids[:4])], 20, 8, 12)

    def model(live: Live) -> list[Row]:
        keys = sorted({tuple(row[c] for c in by) for row in live[0]})
        groups = [[row for row in live[0] if tuple(row[c] for c in by) == key] for key in keys]
        return [row for group in groups for row in sliced(group, [(0, True)], offset, limit, terms)]

    assert_follows(TopRows(2, [(0, True)], offset, limit, terms.values, by), [2], steps, model, chunk=3)


def test_a_row_below_the_slice_moves_nothing() -> None:
    terms = Terms()
    one, two, three = terms.ids([typed(text, "integer") for text in ("1", "2", "3")])
    top = TopRows(1, [(0, False)], 0, 2, terms.values)
    events = [(0, 1, (one,)), (0, 1, (two,)), (1, 1, (three,)), (2, -1, (three,)), (3, 1, (three,)), (4, -1, (one,))]
    assert changes(top.process(ANY_TICK, [[delta(events, 1)]])) == {
        0: {(one,): 1, (two,): 1},
        4: {(one,): -1, (three,): 1},
    }


def test_only_changes_of_the_slice_are_delivered() -> None:
    """A thousand rows are inserted and retracted below a slice of ten: the rows delivered are counted in tens."""
    terms = Terms()
    numbers = terms.ids([typed(str(i), "integer") for i in range(1000)])
    top = TopRows(1, [(0, False)], 0, 10, terms.values)
    every = [(i, 1, (x,)) for i, x in enumerate(numbers)]
    chunks = list(top.process(ANY_TICK, [[delta(every, 1)]]))
    assert sum(len(chunk) for chunk in chunks) == 10
    chunks = list(top.process(ANY_TICK, [[delta([(i, -1, row) for i, (_, _, row) in enumerate(reversed(every))], 1)]]))
    assert sum(len(chunk) for chunk in chunks) == 10


def test_a_missing_row_cannot_be_retracted() -> None:
    top = TopRows(1, [(0, False)], 0, 10, Terms().values)
    with pytest.raises(AssertionError, match="never inserted"):
        list(top.process(ANY_TICK, [[delta([(0, -1, (1,))], 1)]]))


def test_rows_are_live_while_they_are_kept() -> None:
    """Those of the slice, and those that may enter it later."""
    terms = Terms()
    numbers = terms.ids(["<urn:a>", "<urn:b>", "<urn:c>"])
    top = TopRows(1, [(0, False)], 0, 1, terms.values)
    list(top.process(ANY_TICK, [[delta([(0, 1, (x,)) for x in numbers], 1)]]))
    assert set(numbers) <= set(np.concatenate([np.ravel(ids) for ids in top.live_ids()]).tolist())


@pytest.mark.parametrize("by", [(), (0,)])
def test_many_rows(by: tuple[int, ...]) -> None:
    """More than a block of rows in order, inserted and retracted: the slice follows."""
    terms, rng = Terms(), np.random.default_rng(3)
    numbers = terms.ids([typed(str(n), "integer") for n in range(4_000)])
    rank = {number: place for place, number in enumerate(numbers)}
    values = [int(numbers[n]) for n in rng.permutation(4_000)]
    keys = [int(numbers[n % 3]) for n in range(4_000)]
    rows = list(zip(keys, values, strict=True))
    top = TopRows(2, [(1, True)], 2, 4, terms.values, by)
    shown: Counter[Seen] = Counter()
    live: list[Row] = []
    for step in range(8):
        come = rows[step * 500 : (step + 1) * 500]
        gone = [live.pop(int(rng.integers(len(live)))) for _ in range(400)] if step > 2 else []
        live += come
        given = [(0, -1, row) for row in gone] + [(0, 1, row) for row in come]
        for row, count in changes(top.process(ANY_TICK, [[delta(given, 2)]])).get(0, Counter()).items():
            shown[row] += count
        groups = [[row for row in live if not by or row[0] == key] for key in (sorted(set(keys)) if by else [0])]
        wanted = [row for group in groups for row in sorted(group, key=lambda row: rank[row[1]], reverse=True)[2:6]]
        assert +shown == Counter(wanted)
        assert not -shown
