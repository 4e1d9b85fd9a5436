"""The state of MIN, MAX and GROUP_CONCAT follows the current content of groups, not their largest size."""

from __future__ import annotations

import random
from collections import deque
from dataclasses import replace

import pytest

from cqels_py.operators.r2r.aggregate import Aggregate, GroupBy
from cqels_py.operators.r2r.joined_rows import JoinedAggregate
from cqels_py.state import term_runs
from cqels_py.state.term_runs import TermRuns
from tests.operators import test_factorised
from tests.operators.deltas import Event, Row, changes, delta
from tests.operators.plain_dictionary import typed
from tests.operators.test_aggregate import ANY_TICK, BOTH, Terms

KEEPERS = [[Aggregate(function, 1)] for function in ("MIN", "MAX", "GROUP_CONCAT")]
KEEPERS.append([found for (found,) in KEEPERS])


def names(aggregates: list[Aggregate]) -> str:
    return " ".join(each.function for each in aggregates)


@pytest.fixture
def moves(monkeypatch: pytest.MonkeyPatch) -> list[TermRuns]:
    """Runs move as soon as what is short has room then. Here is whose did."""
    moved: list[TermRuns] = []
    move = TermRuns._move

    def counted(runs: TermRuns, of: list[term_runs.RunsOf]) -> bool:
        done = move(runs, of)
        moved.extend([runs] * done)
        return done

    for name, value in (("_FIRST_PLACES", 4), ("_FEW_PLACES", 0), ("_ROOM", 0)):
        monkeypatch.setattr(term_runs, name, value)
    monkeypatch.setattr(TermRuns, "_move", counted)
    return moved


@pytest.mark.parametrize("expires_fifo", BOTH)
@pytest.mark.parametrize("aggregates", KEEPERS, ids=names)
def test_runs_of_large_groups_move(aggregates: list[Aggregate], expires_fifo: bool, moves: list[TermRuns]) -> None:
    """Groups grow to hundreds of members and shrink, one after the other: bags become heaps and runs again. Values rise
    and fall, so that monotonic queues have many members."""
    chance, terms = random.Random(names(aggregates)), Terms()
    ids = terms.ids([typed(str(n), "integer") for n in range(500)])
    number = dict(zip(ids, range(500), strict=True))
    operator = GroupBy([0], aggregates, terms.values, expires_fifo=expires_fifo)
    live: deque[tuple[int, int]] = deque()
    for turn in range(240):
        events: list[Event] = []
        for _ in range(chance.randrange(1, 40)):
            group = turn // 30 % 4 if chance.random() < 0.9 else chance.randrange(4)
            row = group, ids[3 * min(turn, 240 - turn) + chance.randrange(20)]
            events.append((0, 1, row))
            live.append(row)
        while len(live) > 600:
            if not expires_fifo:
                live.rotate(chance.randrange(len(live)))
            events.append((0, -1, live.popleft()))
        for row, sign in changes(operator.process(ANY_TICK, [[delta(events, 2)]])).get(0, {}).items():
            if sign > 0:
                members = sorted(number[value] for group, value in live if group == row[0])
                wanted = {"MIN": members[:1], "MAX": members[-1:], "GROUP_CONCAT": members}
                for each, found in zip(aggregates, row[1:], strict=True):
                    text = " ".join(map(str, wanted[each.function]))
                    assert str(terms.term(int(found))) == text, f"{each.function} at {turn}"  # type: ignore[call-overload]
    assert moves


@pytest.mark.parametrize("expires_fifo", BOTH)
@pytest.mark.parametrize("functions", [("MIN", "MAX"), ("MAX", "MIN")])
def test_runs_of_large_groups_below_a_join_move(
    functions: tuple[str, str], expires_fifo: bool, moves: list[TermRuns]
) -> None:
    """Of (key, group, value) and (key, value), joined on the key: for each group the extremes of both values."""
    chance, terms = random.Random(" ".join(functions)), Terms()
    ids = terms.ids([typed(str(n), "integer") for n in range(500)])
    number = dict(zip(ids, range(500), strict=True))
    case = replace(test_factorised.CASES["by a variable of one input"], expires_fifo=expires_fifo)
    operator = case.operator([JoinedAggregate(functions[0], 0, 2), JoinedAggregate(functions[1], 1, 1)], terms)
    extremes = [{"MIN": min, "MAX": max}[function] for function in functions]
    live: tuple[deque[Row], deque[Row]] = deque(), deque()
    shown: dict[int, Row] = {}
    for turn in range(240):
        events: tuple[list[Event], list[Event]] = [], []
        for port in 0, 1:
            for _ in range(chance.randrange(1, 40)):
                key = turn // 30 % 3 if chance.random() < 0.9 else chance.randrange(4)
                own = (chance.randrange(2),) if port == 0 else ()
                row = (key, *own, ids[3 * min(turn, 240 - turn) + chance.randrange(20)])
                events[port].append((0, 1, row))
                live[port].append(row)
            while len(live[port]) > 600:
                if not expires_fifo:
                    live[port].rotate(chance.randrange(len(live[port])))
                events[port].append((0, -1, live[port].popleft()))
        found = changes(operator.process(ANY_TICK, [[delta(events[0], 3)], [delta(events[1], 2)]])).get(0, {})
        shown = {group: (group, *rest) for group, *rest in shown.values() if found.get((group, *rest), 0) >= 0}
        shown |= {int(row[0]): row for row, sign in found.items() if sign > 0}  # type: ignore[call-overload, misc]
        right = {
            key: extremes[1](number[value] for of, value in live[1] if of == key) for key in {k for k, _ in live[1]}
        }
        for group in 0, 1:
            left = [(key, number[value]) for key, of, value in live[0] if of == group and key in right]
            wanted = extremes[0](value for _, value in left), extremes[1](right[key] for key, _ in left)
            assert tuple(int(str(terms.term(i))) for i in shown[group][1:]) == wanted
    assert moves


@pytest.mark.parametrize("expires_fifo", BOTH)
@pytest.mark.parametrize("aggregates", KEEPERS, ids=names)
def test_a_group_keeps_no_room_for_former_members(
    aggregates: list[Aggregate], expires_fifo: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Each of 40 groups has 400 members once, and two at any other time."""
    monkeypatch.setattr(term_runs, "_FEW_PLACES", 1 << 11)
    terms, sizes, old = Terms(), [], list[Event]()
    # A monotonic queue keeps the members that no later one precedes.
    rising = terms.ids([typed(str(n), "integer") for n in range(400)])
    if aggregates[0].function == "MAX":
        rising.reverse()
    operator = GroupBy([0], aggregates, terms.values, expires_fifo=expires_fifo)
    for turn in range(80):
        rows = [(turn % 40, value) for value in rising] + [(group, rising[0]) for group in range(40)] * 2
        # Other groups' members are inserted before the last ones of a group are retracted.
        changes(operator.process(ANY_TICK, [[delta([*((0, 1, row) for row in rows), *old], 2)]]))
        old = [(0, -1, row) for row in rows]
        sizes.append(operator.nbytes)
    assert sizes[-1] == sizes[9]


@pytest.mark.parametrize("function", ["MIN", "MAX"])
@pytest.mark.parametrize("port", [0, 1])
def test_below_a_join_neither(function: str, port: int, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(term_runs, "_FEW_PLACES", 1 << 11)
    terms, sizes, old = Terms(), [], list[Event]()
    values = terms.ids([typed(str(n), "integer") for n in range(400)])
    case = test_factorised.CASES["as one group"]
    operator = case.operator([JoinedAggregate(function, port, 1)], terms)
    for turn in range(80):
        rows = [(turn % 40, value) for value in values] + [(key, values[0]) for key in range(40)] * 2
        taken = delta([*((0, 1, row) for row in rows), *old], 2)
        changes(operator.process(ANY_TICK, [[taken], [taken]]))
        old = [(0, -1, row) for row in rows]
        sizes.append(operator.nbytes)
    assert sizes[-1] == sizes[9]
