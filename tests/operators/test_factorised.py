"""Aggregation below a join against the oracle's aggregates over the joined mappings, at every tick."""

from __future__ import annotations

from collections.abc import Hashable, Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import product

import numpy as np
import pytest

from cqels_py.algebra.nodes import AggregateCall, VariableRef
from cqels_py.errors import RunError
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2r import factorised as operators
from cqels_py.operators.r2r.factorised import FactorisedGroupBy
from cqels_py.operators.r2r.group_by_key import GroupByKey
from cqels_py.operators.r2r.joined_rows import JoinedAggregate, JoinedInput
from tests.operators.deltas import Event, Live, Port, Row, assert_follows, changes, delta, random_steps
from tests.operators.plain_dictionary import typed
from tests.operators.test_aggregate import ANY_TICK, POOLS, Terms, V, bound_value, seen
from tests.oracle import naive_aggregates

INTEGER = "integer"
EVERY = ("COUNT", "SUM", "AVG", "MIN", "MAX", "SAMPLE")


@dataclass(frozen=True)
class Case:
    """A join in which every input has the key's columns, its own group variables (the carrier), then one argument.

    `groups`: columns of the carrier that the results are grouped by.
    """

    inputs: int
    key: int
    own: int
    groups: tuple[int, ...]
    carrier: int = 0
    expires_fifo: bool = False

    def width(self, port: int) -> int:
        return self.key + (self.own if port == self.carrier else 0) + 1

    def operator(self, aggregates: Sequence[JoinedAggregate], terms: Terms) -> FactorisedGroupBy | GroupByKey:
        key = tuple(range(self.key))
        inputs = [JoinedInput(self.width(port), key, self.expires_fifo) for port in range(self.inputs)]
        if self.groups and sorted(self.groups) == [*key]:
            return GroupByKey(inputs, self.groups, aggregates, terms.values)
        own = range(self.key, self.key + self.own)
        return FactorisedGroupBy(inputs, self.carrier, own, self.groups, aggregates, terms.values)

    def aggregates(self) -> list[JoinedAggregate]:
        found = [JoinedAggregate("COUNT(*)")]
        return found + [JoinedAggregate(f, port, self.width(port) - 1) for port in range(self.inputs) for f in EVERY]

    def answer(self, live: Live, aggregates: Sequence[JoinedAggregate], terms: Terms) -> Iterator[tuple[Hashable, ...]]:
        members: dict[Row, list[Sequence[Row]]] = {} if self.groups else {(): []}
        for rows in product(*live):
            if len({row[: self.key] for row in rows}) == 1:
                members.setdefault(tuple(rows[self.carrier][c] for c in self.groups), []).append(rows)
        for key, results in members.items():
            yield (*key, *(seen(self._value(results, each, terms)) for each in aggregates))

    @staticmethod
    def _value(results: Sequence[Sequence[Row]], each: JoinedAggregate, terms: Terms):  # type: ignore[no-untyped-def]
        if each.argument is None:
            return naive_aggregates.evaluate(AggregateCall("COUNT", None), [{}] * len(results), bound_value)
        found = [terms.term(rows[each.input][each.argument]) for rows in results]
        solutions = [{} if term is None else {V: term} for term in found]
        return naive_aggregates.evaluate(AggregateCall(each.function, VariableRef(V)), solutions, bound_value)


CASES = {
    "by a variable of one input": Case(2, 1, 1, (1,)),
    "by a variable of the other input": Case(2, 1, 1, (1,), carrier=1),
    "by the key": Case(2, 1, 0, (0,)),
    "by the key of three inputs": Case(3, 2, 0, (1, 0)),
    "as one group": Case(2, 1, 0, ()),
    "by key and variable": Case(3, 1, 1, (1, 0)),
    "by part of the key": Case(3, 2, 0, (1,), carrier=1),
    "by two variables of one input": Case(3, 1, 2, (2, 1), carrier=2),
    "without a key": Case(2, 0, 1, (0,)),
    "without a key as one group": Case(2, 0, 0, ()),
}


GROUPS = [pytest.param((), id="as one group"), pytest.param((0,), id="by the key")]


@pytest.mark.parametrize("expires_fifo", [False, True])
@pytest.mark.parametrize("pool", POOLS)
@pytest.mark.parametrize("name", CASES)
def test_every_tick_has_the_groups_difference(name: str, pool: str, expires_fifo: bool) -> None:
    case = replace(CASES[name], expires_fifo=expires_fifo)
    assert_groups_follow(case, case.aggregates(), pool, sum(map(ord, name + pool)))


def assert_groups_follow(case: Case, aggregates: Sequence[JoinedAggregate], pool: str, seed: int) -> None:
    """Over drawn steps, at every tick."""
    terms = Terms()
    arguments, nodes = terms.ids(POOLS[pool]), terms.ids(["<urn:g>", "<urn:h>"])
    operator = case.operator(aggregates, terms)
    n_groups = len(case.groups)

    def view(row: Row) -> tuple[Hashable, ...]:
        return (*row[:n_groups], *(seen(terms.term(i)) for i in row[n_groups:]))

    def placed(row: Row) -> Row:
        return (*(nodes[x % 2] for x in row[:-1]), arguments[row[-1] % len(arguments)])

    ports = [Port(case.width(p), case.expires_fifo, range(60)) for p in range(case.inputs)]
    steps = list(random_steps(seed, ports, 10, 6, 5))
    for step in steps:
        for events in step.inputs:
            events[:] = [(tick, sign, placed(row)) for tick, sign, row in events]
        for live in step.live:
            for rows in live:
                rows[:] = [placed(row) for row in rows]
    widths = [case.width(port) for port in range(case.inputs)]
    assert_follows(
        operator, widths, steps, lambda live: case.answer(live, aggregates, terms), chunk=seed % 4, view=view
    )


@pytest.mark.parametrize("name", CASES)
def test_groups_without_aggregates(name: str) -> None:
    """GROUP BY alone: which groups there are."""
    case, terms = CASES[name], Terms()
    steps = list(random_steps(5, [Port(case.width(p), False, range(2)) for p in range(case.inputs)], 10, 6, 5))
    for step in steps:
        # 0 is unbound.
        for events in step.inputs:
            events[:] = [(tick, sign, tuple(x + 1 for x in row)) for tick, sign, row in events]
        for live in step.live:
            for rows in live:
                rows[:] = [tuple(x + 1 for x in row) for row in rows]
    widths = [case.width(port) for port in range(case.inputs)]
    assert_follows(case.operator([], terms), widths, steps, lambda live: case.answer(live, [], terms))


@pytest.mark.parametrize("groups", GROUPS)
def test_no_results_are_never_too_many(groups: tuple[int, ...]) -> None:
    """One input has nothing of a key, whatever the others have."""
    terms = Terms()
    operator = Case(8, 1, 0, groups).operator([JoinedAggregate("COUNT(*)")], terms)
    large = [[delta([(0, 1, (7, 1))] * 2_000, 2)] for _ in range(6)]
    inputs = [[delta([(0, 1, (7, 1))], 2)], *large, []]
    assert not changes(operator.process(ANY_TICK, inputs))


BY_VARIABLE = CASES["by a variable of one input"]


def numbers(terms: Terms, *values: int) -> list[int]:
    return terms.ids([typed(str(value), INTEGER) for value in values])


@pytest.mark.parametrize("name", ["by a variable of one input", "by two variables of one input", "without a key"])
def test_room_for_one_tick_suffices(name: str, monkeypatch: pytest.MonkeyPatch) -> None:
    for name_of_room, room in {"_FEW_CONTRIBUTIONS": 1, "_CONTRIBUTIONS": 2, "_FEW_WIDE": 1}.items():
        monkeypatch.setattr(operators, name_of_room, room)
    for pool in ("integers", "anything"):
        test_every_tick_has_the_groups_difference(name, pool, False)


# Each combination of aggregates compiles another kernel: with MIN and MAX alone nothing is summed.
ASKED = {
    "least of the other input": [("MIN", 1)],
    "greatest of the carrier": [("MAX", 0)],
    "extremes of both": [("MIN", 1), ("MAX", 0), ("MAX", 1)],
    "results": [("COUNT(*)", 0)],
    "bound ones": [("COUNT", 1)],
    "sum of the other input": [("SUM", 1)],
    "mean of the carrier": [("AVG", 0)],
}


@pytest.mark.parametrize("room", [None, 2])
@pytest.mark.parametrize("expires_fifo", [False, True])
@pytest.mark.parametrize("asked", ASKED)
@pytest.mark.parametrize("name", ["by a variable of one input", "by key and variable", "as one group", "without a key"])
def test_single_aggregates(
    name: str, asked: str, expires_fifo: bool, room: int | None, monkeypatch: pytest.MonkeyPatch
) -> None:
    if room:
        for name_of_room in ("_FEW_CONTRIBUTIONS", "_CONTRIBUTIONS", "_FEW_WIDE"):
            monkeypatch.setattr(operators, name_of_room, room)
    case = replace(CASES[name], expires_fifo=expires_fifo)
    aggregates = [
        JoinedAggregate(f, port, None if f == "COUNT(*)" else case.width(port) - 1) for f, port in ASKED[asked]
    ]
    for seed in range(8):
        assert_groups_follow(case, aggregates, "integers" if seed % 2 else "anything", seed)


@pytest.mark.parametrize("expires_fifo", [False, True])
def test_many_ticks_in_a_step_give_the_same_results_as_many_steps(expires_fifo: bool) -> None:
    """More changes of contributions than are aggregated together; keys and groups are purged in between, or are not."""
    case, terms = replace(BY_VARIABLE, expires_fifo=expires_fifo), Terms()
    aggregates = [JoinedAggregate("COUNT(*)"), JoinedAggregate("AVG", 1, 1), JoinedAggregate("MIN", 1, 1)]
    aggregates += [JoinedAggregate("MAX", 0, 2), JoinedAggregate("SUM", 0, 2)]
    known = numbers(terms, *range(100))
    ports = [Port(3, expires_fifo, range(12)), Port(2, expires_fifo, range(12))]
    events: list[list[Event]] = [[], []]
    for n, step in enumerate(random_steps(7, ports, 600, 6, 60)):
        for mine, found in zip(events, step.inputs, strict=True):
            mine += [(6 * n + tick, sign, (*row[:-1], known[row[-1]])) for tick, sign, row in found]
    answers = []
    for size in (4_000, 150, 7):
        operator, answer = case.operator(aggregates, terms), {}
        for start in range(0, 4_000, size):
            parts = [[each for each in mine if start <= each[0] < start + size] for mine in events]
            inputs = [[delta(part, width)] for part, width in zip(parts, (3, 2), strict=True)]
            answer.update(changes(operator.process(ANY_TICK, inputs)))
        assert operator.visited > 11_700
        answers.append(answer)
    assert answers[0] == answers[1] == answers[2]


def value(terms: Terms, identifier: int) -> str:
    return str(terms.term(identifier))


def test_rows_whose_aggregates_do_not_change_are_not_visited() -> None:
    """The work of an arrival is the same at selectivity 1 and 100."""
    visits = {}
    for selectivity in (1, 100):
        terms = Terms()
        operator = BY_VARIABLE.operator([JoinedAggregate("MIN", 1, 1)], terms)
        least, *larger = numbers(terms, *range(selectivity + 300))
        left = [(0, 1, (7, 1000 + group, 0)) for group in range(selectivity)]
        right = [(0, 1, (7, number)) for number in (least, *larger[: selectivity - 1])]
        list(operator.process(ANY_TICK, [[delta(left, 3)], [delta(right, 2)]]))
        before = operator.visited
        # Rows of both sides are inserted and retracted, the smallest number stays.
        coming = [(2 * n, 1, (7, larger[-1 - n])) for n in range(100)]
        going = [(2 * n + 1, -1, (7, larger[-1 - n])) for n in range(100)]
        list(operator.process(ANY_TICK, [[], [delta(sorted([*coming, *going]), 2)]]))
        assert operator.visited == before
        changing = [(n, 1 - 2 * (n % 2), (7, 2000 + n // 2, 0)) for n in range(200)]
        list(operator.process(ANY_TICK, [[delta(changing, 3)], []]))
        visits[selectivity] = operator.visited - before
    assert visits[1] == visits[100] == 200


@pytest.mark.parametrize("changed", [1, 20])
def test_a_sum_is_added_once_a_tick_to_each_row_of_its_key(changed: int) -> None:
    terms = Terms()
    operator = BY_VARIABLE.operator([JoinedAggregate("SUM", 1, 1)], terms)
    (one,) = numbers(terms, 1)
    # Thirty mappings of three groups are three rows.
    left = [(0, 1, (key, 1000 + n % 3, 0)) for key in (7, 8) for n in range(30)]
    list(operator.process(ANY_TICK, [[delta(left, 3)], []]))
    before = operator.visited
    found = changes(operator.process(ANY_TICK, [[], [delta([(0, 1, (7, one))] * changed, 2)]]))
    assert operator.visited - before == 3
    assert {value(terms, row[1]) for row in found[0]} == {str(10 * changed)}  # type: ignore[arg-type]


@pytest.mark.parametrize("groups", GROUPS)
def test_counts_and_sums_are_exact_beyond_64_bits(groups: tuple[int, ...]) -> None:
    terms = Terms()
    case = Case(6, 1, 0, groups)
    aggregates = [JoinedAggregate("COUNT(*)"), JoinedAggregate("SUM", 5, 1), JoinedAggregate("COUNT", 2, 1)]
    operator = case.operator(aggregates, terms)
    (large,) = numbers(terms, 36028797018963967)
    key = (7,)
    ports = [[delta([(0, 1, (*key, large))] * 1000, 2)] for _ in range(6)]
    (found,) = changes(operator.process(ANY_TICK, ports)).values()
    ((row, _),) = found.items()
    count = 1000**6
    numbers_of = [value(terms, i) for i in row[len(groups) :]]  # type: ignore[arg-type]
    assert numbers_of == [str(count), str(36028797018963967 * count), str(count)]
    gone = [[delta([(0, -1, (*key, large))] * 999, 2)] for _ in range(6)]
    (found,) = changes(operator.process(ANY_TICK, gone)).values()
    ((row, _),) = ((row, n) for row, n in found.items() if n > 0)
    assert [value(terms, i) for i in row[len(groups) :]] == ["1", "36028797018963967", "1"]  # type: ignore[arg-type]


def test_sums_and_counts_of_all_sizes_and_kinds_pass_together() -> None:
    """Groups whose sums and counts have inline ids, and those whose have none, at several ticks of one step."""
    terms = Terms()
    aggregates = [JoinedAggregate("COUNT(*)"), JoinedAggregate("SUM", 0, 1), JoinedAggregate("SUM", 1, 1)]
    operator = Case(2, 1, 0, (0,)).operator(aggregates, terms)
    large = 2**55 - 1
    of_key = {1: str(large), 2: "3", 3: "-7", 4: str(-large), 5: "0.5", 6: "2"}
    known = terms.ids([typed(number, "decimal" if key == 5 else INTEGER) for key, number in of_key.items()])
    left = [(tick, 1, (key, term)) for tick in range(3) for key, term in zip(of_key, known, strict=True) if key != 6]
    right = [(1, 1, (key, term)) for key, term in zip(of_key, known, strict=True) for _ in range(2)]
    found = changes(operator.process(ANY_TICK, [[delta(left, 2)], [delta(right, 2)]]))
    assert list(found) == [1, 2]
    for tick, rows in found.items():
        there = {row[0]: [value(terms, i) for i in row[1:]] for row, n in rows.items() if n > 0}  # type: ignore[arg-type]
        mappings = tick + 1
        both = {
            key: int(2 * mappings * float(number)) if key == 5 else 2 * mappings * int(number)
            for key, number in of_key.items()
        }
        assert there == {key: [str(2 * mappings), str(both[key]), str(both[key])] for key in range(1, 6)}


@pytest.mark.parametrize(
    ("function", "groups", "number"),
    [
        pytest.param("COUNT(*)", (), typed("1", INTEGER), id="counted"),
        pytest.param("COUNT(*)", (0,), typed("1", INTEGER), id="counted by the key"),
        pytest.param("AVG", (), typed("1", INTEGER), id="averaged"),
        pytest.param("AVG", (0,), typed("1.5", "float"), id="rounded by the key"),
    ],
)
def test_more_results_than_can_be_counted_stop_the_query(function: str, groups: tuple[int, ...], number: str) -> None:
    terms = Terms()
    (one,) = terms.ids([number])
    inputs = 7 if function == "COUNT(*)" else 6
    aggregate = JoinedAggregate(function) if function == "COUNT(*)" else JoinedAggregate(function, 1, 1)
    operator = Case(inputs, 1, 0, groups).operator([aggregate], terms)
    with pytest.raises(RunError, match="more results than an aggregate can count"):
        list(operator.process(ANY_TICK, [[delta([(0, 1, (7, one))] * 1000, 2)] for _ in range(inputs)]))


def test_extremes_are_those_of_more_results_than_can_be_counted() -> None:
    terms = Terms()
    one, two = numbers(terms, 1, 2)
    aggregates = [JoinedAggregate("MIN", 0, 1), JoinedAggregate("MAX", 1, 1)]
    operator = Case(7, 1, 0, ()).operator(aggregates, terms)
    rows = [delta([(0, 1, (7, one))] * 999 + [(0, 1, (7, two))], 2)]
    (found,) = changes(operator.process(ANY_TICK, [rows] * 7)).values()
    ((row, _),) = ((row, n) for row, n in found.items() if n > 0)
    assert [value(terms, i) for i in row] == ["1", "2"]  # type: ignore[arg-type]


def test_a_sum_beyond_128_bits_stops_the_query() -> None:
    terms = Terms()
    (large,) = numbers(terms, 2**120)
    operator = BY_VARIABLE.operator([JoinedAggregate("SUM", 1, 1)], terms)
    with pytest.raises(RunError, match="does not fit 128 bits"):
        list(operator.process(ANY_TICK, [[delta([(0, 1, (7, 8, 0))] * 200, 3)], [delta([(0, 1, (7, large))], 2)]]))


@pytest.mark.parametrize("port", [0, 1])
@pytest.mark.parametrize("other", [[], [(0, 1, (7, 8))]])
def test_an_input_retracts_only_its_own_mappings_of_a_key(port: int, other: list[Event]) -> None:
    operator = CASES["by the key"].operator([JoinedAggregate("COUNT(*)")], Terms())
    inputs = [[delta([(1, -1, (7, 9))] if port == p else other, 2)] for p in range(2)]
    with pytest.raises(AssertionError, match="retracted"):
        list(operator.process(ANY_TICK, inputs))


@pytest.mark.parametrize("port", [0, 1])
def test_a_missing_mapping_cannot_be_retracted(port: int) -> None:
    operator = BY_VARIABLE.operator([JoinedAggregate("COUNT(*)")], Terms())
    inputs = [[delta([(0, -1, (7,) * width)], width)] if port == p else [] for p, width in enumerate((3, 2))]
    with pytest.raises(AssertionError, match="retracted"):
        list(operator.process(ANY_TICK, inputs))


def test_the_single_group_is_there_from_the_first_tick_on() -> None:
    terms = Terms()
    aggregates = [JoinedAggregate("COUNT(*)"), JoinedAggregate("SUM", 1, 1), JoinedAggregate("MIN", 1, 1)]
    operator = CASES["as one group"].operator(aggregates, terms)
    zero, one, five = numbers(terms, 0, 1, 5)
    first = Ticks(np.zeros(3, np.int64), first=True)
    found = changes(operator.process(first, [[delta([(2, 1, (7, zero))], 2)], [delta([(1, 1, (7, five))], 2)]]))
    assert found == {0: {(zero, zero, 0): 1}, 2: {(zero, zero, 0): -1, (one, five, five): 1}}


def test_huge_doubles_leave_no_error_behind() -> None:
    """Nor do the counters that they are multiplied by."""
    terms = Terms()
    tenth, huge, whole = terms.ids([typed(text, "double") for text in ("1E-1", "1.0E300", "4")])
    operator = CASES["as one group"].operator([JoinedAggregate("SUM", 1, 1)], terms)
    right = [(0, 1, (7, tenth)), (1, 1, (7, huge)), (2, -1, (7, huge)), (3, -1, (7, tenth)), (3, 1, (7, whole))]
    found = changes(operator.process(ANY_TICK, [[delta([(0, 1, (7, tenth))] * 3, 2)], [delta(right, 2)]]))
    sums = [float(value(terms, row[0])) for bag in found.values() for row, n in bag.items() if n > 0]  # type: ignore[arg-type]
    assert sums == pytest.approx([0.3, 3e300, 0.3, 12.0])


def test_state_by_key_follows_the_keys_that_are_alive() -> None:
    """Ever-new keys of both inputs, and as many at one tick as there is room for at no other."""
    terms = Terms()
    aggregates = [JoinedAggregate("MIN", 1, 1), JoinedAggregate("COUNT", 0, 1), JoinedAggregate("AVG", 1, 1)]
    operator = CASES["by the key"].operator(aggregates, terms)
    known = numbers(terms, *range(9_000))
    sizes = []
    for turn in range(300):
        now, then = known[turn * 30 : turn * 30 + 30], known[(turn - 1) * 30 : turn * 30]
        gone = [(0, -1, (n, n)) for n in then] if turn else []
        rows = delta([*gone, *((0, 1, (n, n)) for n in now)], 2)
        (found,) = changes(operator.process(ANY_TICK, [[rows], [rows]])).values()
        assert sum(n > 0 for n in found.values()) == 30
        sizes.append(operator.nbytes)
    assert sizes[-1] == sizes[150]
    many = delta([(0, 1, (100_000 + n, n)) for n in known], 2)
    (found,) = changes(operator.process(ANY_TICK, [[many], [many]])).values()
    assert sum(n > 0 for n in found.values()) == 9_000


def test_the_scale_of_a_sum_disappears_with_its_members() -> None:
    """A retracted member of 38 digits leaves room for large integers, though its key stays."""
    terms = Terms()
    small, large = terms.ids([typed("0." + "0" * 37 + "1", "decimal"), typed(str(2**100), INTEGER)])
    operator = CASES["by the key"].operator([JoinedAggregate("SUM", 1, 1)], terms)
    right = [(0, 1, (7, small)), (1, -1, (7, small)), (2, 1, (7, large))]
    found = changes(operator.process(ANY_TICK, [[delta([(0, 1, (7, small))], 2)], [delta(right, 2)]]))
    assert [value(terms, row[1]) for row, n in found[2].items() if n > 0] == [str(2**100)]  # type: ignore[arg-type]


def test_state_follows_the_keys_and_groups_that_are_alive() -> None:
    """Ever-new keys and groups, thirty mappings each; and many of both at one tick."""
    terms = Terms()
    aggregates = [JoinedAggregate("MIN", 1, 1), JoinedAggregate("MAX", 0, 2), JoinedAggregate("AVG", 1, 1)]
    operator = BY_VARIABLE.operator(aggregates, terms)
    known = numbers(terms, *range(9_000))
    sizes = []
    for turn in range(300):
        now, then = known[turn * 30 : turn * 30 + 30], known[(turn - 1) * 30 : turn * 30]
        left = [(0, -1, (turn - 1, n, n)) for n in then] if turn else []
        right = [(0, -1, (turn - 1, n)) for n in then] if turn else []
        left += [(0, 1, (turn, n, n)) for n in now]
        right += [(0, 1, (turn, n)) for n in now]
        (found,) = changes(operator.process(ANY_TICK, [[delta(left, 3)], [delta(right, 2)]])).values()
        assert sum(n > 0 for n in found.values()) == 30
        sizes.append(operator.nbytes)
    assert sizes[-1] == sizes[150]
    many = [(0, 1, (10_000 + n, n, n)) for n in known]
    (found,) = changes(
        operator.process(ANY_TICK, [[delta(many, 3)], [delta([(0, 1, (k, n)) for _, _, (k, n, _) in many], 2)]])
    ).values()
    assert sum(n > 0 for n in found.values()) == 9_000
