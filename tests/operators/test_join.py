"""The n-ary join against nested loops, at every tick; and its work, counted."""

from __future__ import annotations

import random
from collections import Counter, defaultdict, deque
from collections.abc import Iterable, Iterator, Sequence
from itertools import islice, product

import numpy as np
import pytest

from cqels_py.batches.delta import Delta
from cqels_py.errors import RunError
from cqels_py.event_time.clock import Ticks
from cqels_py.kernels.structures import ring_index
from cqels_py.operators.r2r import leaf_join as operators
from cqels_py.operators.r2r.join import MultiwayJoin
from cqels_py.state import join_state
from cqels_py.state.join_state import OUT_ROWS, JoinState
from cqels_py.state.named_values import restore, values_of
from tests.operators.deltas import Event, Live, Port, Row, Seen, assert_follows, changes, delta, random_steps

Inputs = Sequence[Sequence[str]]

SHAPES: dict[str, Inputs] = {
    "two": (("a", "b"), ("b", "c")),
    "star": (("a", "b"), ("a", "c"), ("a", "d")),
    "chain": (("a", "b"), ("b", "c"), ("c", "d")),
    "triangle": (("a", "b"), ("b", "c"), ("c", "a")),
    "cross product": (("a",), ("b",)),
    "two keys": (("a", "b"), ("b", "a"), ("a", "b", "c")),
    "an input apart": (("a", "b"), ("a", "b", "c"), ("d",)),
    "without columns": (("a",), ()),
    "clique": (("a", "b", "c"), ("c", "d"), ("d", "a"), ("b", "d")),
    "keys of two and of one": (("c", "a", "d"), ("c", "a"), ("c", "b"), ("b", "d")),
    "many pairs": (("a", "b", "c"), ("a", "b"), ("b", "c"), ("a", "c")),
    "many different keys": (("a", "b", "c", "d"), ("a", "x"), ("b", "x"), ("c", "x"), ("d", "x")),
}
ANY_TICK = Ticks(np.zeros(1, np.int64), first=True)


def variables(inputs: Inputs) -> list[str]:
    return list(dict.fromkeys(name for names in inputs for name in names))


def nested_loops(inputs: Inputs, live: Live) -> Iterator[Row]:
    """All compatible combinations; 0 is unbound, and compatible with anything."""

    def extend(place: int, bound: dict[str, int]) -> Iterator[Row]:
        if place == len(inputs):
            yield tuple(bound.get(name, 0) for name in variables(inputs))
            return
        for row in live[place]:
            values = [(name, value) for name, value in zip(inputs[place], row, strict=True) if value != 0]
            if all(bound.get(name, value) == value for name, value in values):
                yield from extend(place + 1, {**bound, **dict(values)})

    return extend(0, {})


def check(join: MultiwayJoin, inputs: Inputs, ports: Sequence[Port], seed: int, steps: int = 12, most: int = 7) -> None:
    assert_follows(
        join,
        [port.width for port in ports],
        random_steps(seed, ports, steps, 6, most),
        lambda live: nested_loops(inputs, live),
        chunk=seed % 3,
    )


def assert_empty(join: MultiwayJoin) -> None:
    assert [join.state.leaves(p) for p in range(join.state.n)] == [0] * join.state.n
    assert not join.state.live_keys().any()


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("order", ["in order", "any order", "mixed"])
@pytest.mark.parametrize("shape", SHAPES)
def test_every_tick_has_the_joins_difference(shape: str, order: str, seed: int) -> None:
    inputs = SHAPES[shape]
    ports = [
        Port(len(names), order == "in order" or (order == "mixed" and p % 2 == 0)) for p, names in enumerate(inputs)
    ]
    most = 4 if len(inputs) > 3 else 7
    join = MultiwayJoin(inputs, [port.expires_fifo for port in ports], variables(inputs))
    check(join, inputs, ports, seed, most=most)
    assert_empty(join)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("expires_fifo", [True, False])
@pytest.mark.parametrize(
    ("inputs", "unbound"),
    [
        ((("a", "b"), ("a", "b")), {"b"}),
        ((("a", "b"), ("b", "c")), {"b"}),
        ((("a", "b"), ("b", "c"), ("c", "a")), {"a", "c"}),
        ((("a", "b"), ("a", "b"), ("a", "b", "c")), {"b"}),
        # Unbound in the only input that has them: there is nothing to compare.
        ((("a", "b"), ("a", "c"), ("a", "d")), {"b", "c", "d"}),
        ((("a", "b"), ("b", "c", "d"), ("c", "e")), {"a", "d", "e"}),
    ],
)
def test_an_unbound_variable_is_compatible_with_anything(
    inputs: Inputs, unbound: set[str], expires_fifo: bool, seed: int
) -> None:
    names = variables(inputs)
    maybe_unbound = frozenset(name for name in unbound if sum(name in each for each in inputs) > 1)
    join = MultiwayJoin(inputs, [expires_fifo] * len(inputs), names, maybe_unbound=maybe_unbound)
    # The values of an unbound column may be 0; those of the others never are.
    steps = list(random_steps(seed, [Port(len(each), expires_fifo, (1, 2, 3)) for each in inputs], 12, 6, 6))

    def unbind(place: int, row: Row) -> Row:
        return tuple(0 if n in unbound and v == 3 else v for n, v in zip(inputs[place], row, strict=True))

    for step in steps:
        for p, events in enumerate(step.inputs):
            events[:] = [(tick, sign, unbind(p, row)) for tick, sign, row in events]
        for live in step.live:
            for p, rows in enumerate(live):
                rows[:] = [unbind(p, row) for row in rows]
    assert_follows(join, [len(each) for each in inputs], steps, lambda live: nested_loops(inputs, live))
    assert_empty(join)


def test_output_columns_are_chosen() -> None:
    join = MultiwayJoin((("a", "b"), ("b", "c")), [True, True], ["c", "a"])
    found = changes(join.process(ANY_TICK, [[delta([(0, 1, (1, 2))], 2)], [delta([(0, 1, (2, 3))], 2)]]))
    assert found == {0: {(3, 1): 1}}


@pytest.mark.parametrize("expires_fifo", [True, False])
def test_without_retraction_only_new_results_are_delivered(expires_fifo: bool) -> None:
    inputs = SHAPES["chain"]
    ports = [Port(2, expires_fifo)] * 3
    join = MultiwayJoin(inputs, [expires_fifo] * 3, variables(inputs), retract=False)
    live: Live = [[], [], []]
    for step in random_steps(5, ports, 30, 1, 7):
        for p, events in enumerate(step.inputs):
            for event in events:
                before = list(nested_loops(inputs, live))
                _apply(live[p], event)
                chunks = [[delta([event], 2)] if q == p else [] for q in range(3)]
                found = changes(join.process(ANY_TICK, chunks)).get(0, Counter())
                new: list[Seen] = list(nested_loops(inputs, live))
                assert sum(found.values()) == max(len(new) - len(before), 0)
                assert all(count > 0 and new.count(row) >= count for row, count in found.items())
    assert [join.state.leaves(p) for p in range(3)] == [0, 0, 0]


def _apply(rows: list[Row], event: Event) -> None:
    _, sign, row = event
    if sign > 0:
        rows.append(row)
    else:
        rows.remove(row)


@pytest.mark.parametrize("retract", [True, False])
@pytest.mark.parametrize("expires_fifo", [True, False])
def test_more_results_than_a_chunk_holds(expires_fifo: bool, retract: bool) -> None:
    side = 150
    assert side * side > OUT_ROWS
    join = MultiwayJoin((("a",), ("b",)), [expires_fifo] * 2, ["a", "b"], retract=retract)
    left = [(0, 1, (i + 1,)) for i in range(side)]
    right = [(1, 1, (i + 1,)) for i in range(side)]
    chunks = list(join.process(ANY_TICK, [[delta(left, 1)], [delta(right, 1)]]))
    assert len(chunks) > 1
    assert changes(chunks) == {1: {(a, b): 1 for a in range(1, side + 1) for b in range(1, side + 1)}}
    gone = [delta([(0, -1, row) for _, _, row in rows], 1) for rows in (left, right)]
    withdrawn = changes(join.process(ANY_TICK, [[gone[0]], [gone[1]]]))
    assert sum(-count for bag in withdrawn.values() for count in bag.values()) == (side * side if retract else 0)
    assert_empty(join)


@pytest.mark.parametrize("room", [5, 40, OUT_ROWS])
@pytest.mark.parametrize("retract", [True, False])
@pytest.mark.parametrize("order", ["in order", "any order", "mixed"])
@pytest.mark.parametrize("shape", ["two", "star", "chain", "triangle", "an input apart"])
def test_many_rows_in_a_step_give_the_same_results_as_one_by_one(
    shape: str, order: str, retract: bool, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Enough rows for several chunks and blocks, and little room, so that every kernel is interrupted somewhere."""
    monkeypatch.setattr(operators, "OUT_ROWS", room)
    monkeypatch.setattr(operators, "room_for", lambda rows: room)
    inputs = SHAPES[shape]
    orders = [order == "in order" or (order == "mixed" and p != 1) for p in range(len(inputs))]
    joins = [MultiwayJoin(inputs, orders, variables(inputs), retract=retract) for _ in range(2)]
    ports = [Port(len(each), expires_fifo, (1, 2, 3, 4)) for each, expires_fifo in zip(inputs, orders, strict=True)]
    for step in random_steps(room, ports, 3, 150, 14):
        deltas = [delta(events, len(each)) for events, each in zip(step.inputs, inputs, strict=True)]
        ticks = Ticks(np.arange(len(step.live)), first=True)
        found = changes(joins[0].process(ticks, [[each] for each in deltas]))
        wanted = {}
        for tick in range(len(step.live)):
            at_tick = [
                [Delta(*(part[..., each.tick == tick] for part in (each.tick, each.sign, each.columns)))]
                for each in deltas
            ]
            wanted |= changes(joins[1].process(ticks, at_tick))
        assert found == wanted
    assert_empty(joins[0])


@pytest.mark.parametrize("retract", [True, False])
@pytest.mark.parametrize("shape", ["star", "star of two"])
def test_long_runs_of_rows_without_results_give_the_same_results_as_small_steps(shape: str, retract: bool) -> None:
    """For some hundred rows only one input has mappings; a key has one of them, or enough for its ring to hold ids."""
    inputs = SHAPES["star"][: 3 if shape == "star" else 2]
    joins = [MultiwayJoin(inputs, [True] * len(inputs), variables(inputs), retract=retract) for _ in range(2)]
    chance = random.Random(len(inputs))
    live: list[deque[Row]] = [deque() for _ in inputs]
    made = 0
    for _ in range(4):
        events: list[list[Event]] = [[] for _ in inputs]
        tick = 0
        for window in (300, 0, 20):
            port = chance.randrange(len(inputs))
            for _ in range(700):
                p = port if chance.random() < 0.997 else chance.randrange(len(inputs))
                tick += chance.randrange(2)
                row = (chance.choice((1, 1, chance.randrange(2, 400))), chance.randrange(1, 1_000))
                events[p].append((tick, 1, row))
                live[p].append(row)
                # Of the others no more than two.
                for q, mine in enumerate(live):
                    while len(mine) > (window if q == port else 2):
                        events[q].append((tick, -1, mine.popleft()))
        deltas = [delta(each, 2) for each in events]
        ticks = Ticks(np.arange(tick + 1), first=True)
        found = changes(joins[0].process(ticks, [[each] for each in deltas]))
        wanted = {}
        # Fewer rows than are located together.
        for now in range(0, tick + 1, 40):
            some = [[each.take((each.tick >= now) & (each.tick < now + 40))] for each in deltas]
            wanted |= changes(joins[1].process(ticks, some))
        assert found == wanted
        made += len(found)
    assert made > 20


def test_a_product_of_more_partners_than_there_is_room_for() -> None:
    join = MultiwayJoin(SHAPES["star"], [True] * 3, ["a", "b", "c", "d"])
    side = 3 * len(join.state.partners)
    sides = [delta([(0, 1, (1, 1 + i + shift)) for i in range(count)], 2) for count, shift in ((side, 0), (3, side))]
    changes(join.process(ANY_TICK, [[sides[0]], [sides[1]], []]))
    found = changes(join.process(ANY_TICK, [[], [], [delta([(0, 1, (1, 7)), (0, 1, (1, 8))], 2)]]))
    assert found[0] == Counter((1, 1 + i, 1 + j + side, d) for i in range(side) for j in range(3) for d in (7, 8))


@pytest.mark.parametrize("expires_fifo", [True, False])
@pytest.mark.parametrize("keys", [1, 40, 5000])
def test_leaves_tables_rings_and_results_grow(keys: int, expires_fifo: bool) -> None:
    """Few keys with long rings, or many keys; the buffer of leaves has wrapped around before it grows."""
    join = MultiwayJoin((("a", "b"), ("a", "c")), [expires_fifo] * 2, ["a", "b", "c"])
    probe: list[Event] = [(0, 1, (1, 9_999))]
    changes(join.process(ANY_TICK, [[], [delta(probe, 2)]]))
    live: list[Row] = []
    made = 0
    for size in (50, 60, 500, 20, 3000, 5):
        arriving: list[Row] = [((made + i) % keys + 1, made + i + 1) for i in range(size)]
        made += size
        leaving, live = live[: len(live) // 2], live[len(live) // 2 :] + arriving
        events = [*((0, -1, row) for row in leaving), *((1, 1, row) for row in arriving)]
        found = changes(join.process(ANY_TICK, [[delta(events, 2)], []]))
        assert found.get(0, {}) == {(1, b, 9_999): -1 for a, b in leaving if a == 1}
        assert found.get(1, {}) == {(1, b, 9_999): 1 for a, b in arriving if a == 1}
        assert join.state.leaves(0) == len(live)
    found = changes(
        join.process(ANY_TICK, [[delta([(0, -1, row) for row in live], 2)], [delta([(0, -1, probe[0][2])], 2)]])
    )
    assert sum(found.get(0, {}).values()) == -sum(a == 1 for a, _ in live)
    assert_empty(join)


@pytest.mark.parametrize("expires_fifo", [True, False])
def test_the_first_of_many_rows_gets_room_whatever_keys_the_others_bring(expires_fifo: bool) -> None:
    """A new table has room for few keys; those of port 0 are looked up before that of the row that comes first."""
    join = MultiwayJoin(SHAPES["chain"], [expires_fifo] * 3, ["a", "b", "c", "d"])
    deltas = [
        delta([(1 + i, 1, (i + 1, i + 1)) for i in range(1_000)], 2),
        delta([(0, 1, (1_000, 5))], 2),
        delta([(1_001, 1, (5, 7))], 2),
    ]
    ticks = Ticks(np.arange(1_002), first=True)
    assert changes(join.process(ticks, [[each] for each in deltas])) == {1_001: {(1_000, 1_000, 5, 7): 1}}
    assert join.state.leaves(0) == 1_000


STARS: dict[str, tuple[Inputs, tuple[int, ...]]] = {
    "two": ((("a", "b"), ("a", "c")), (300, 150)),
    "a key and more": ((("a", "b"), ("a",), ("c", "a")), (400, 3, 120)),
    "wide": ((("b", "a"), ("a", "c", "d"), ("a", "e")), (250, 90, 2)),
}


def arrivals_of_few_keys(widths: Sequence[int], windows: Sequence[int], seed: int) -> Iterator[tuple[int, int, Row]]:
    """(port, key, other ids): of each port more than its window has. Keys with many mappings come and go, as others do."""
    chance = random.Random(seed)
    for number in range(3 * sum(windows)):
        port = chance.choices(range(len(windows)), windows)[0]
        many = 1 + number // sum(windows)
        key = chance.choice((many, many, many, many, 10, 10, 100 + number // 10))
        yield port, key, tuple(chance.randrange(100, 10_000) for _ in range(widths[port] - 1))


def fifo_join(inputs: Inputs, *, retract: bool) -> MultiwayJoin:
    return MultiwayJoin(inputs, [True] * len(inputs), variables(inputs), retract=retract)


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("retract", [True, False])
@pytest.mark.parametrize("shape", STARS)
def test_rings_of_many_leaves_of_a_key(shape: str, retract: bool, seed: int) -> None:
    """They hold ids instead of slots where one id identifies a leaf. The state is restored on the way."""
    inputs, windows = STARS[shape]
    join = fifo_join(inputs, retract=retract)
    live: list[deque[tuple[int, Row]]] = [deque() for _ in inputs]

    def row_of(port: int, key: int, others: Row) -> Row:
        rest = iter(others)
        return tuple(key if name == "a" else next(rest) for name in inputs[port])

    def results_with(port: int, key: int, row: Row) -> Iterator[Row]:
        partners = [[row] if q == port else [found for k, found in live[q] if k == key] for q in range(len(inputs))]
        for rows in product(*partners):
            bound = {name: i for q, each in enumerate(rows) for name, i in zip(inputs[q], each, strict=True)}
            yield tuple(bound[name] for name in variables(inputs))

    chance, came = random.Random(seed), 0
    arrivals = arrivals_of_few_keys([len(names) for names in inputs], windows, seed)
    while batch := list(islice(arrivals, chance.choice((1, 7, 200)))):
        events: list[list[Event]] = [[] for _ in inputs]
        wanted: dict[int, Counter[Row]] = defaultdict(Counter)
        for tick, (port, key, others) in enumerate(batch):
            came += 1
            # At first there are fewer: the buffer of leaves wraps around before it grows.
            if len(live[port]) == (windows[port] if came > sum(windows) // 2 else -(-windows[port] // 4)):
                gone, old = live[port].popleft()
                events[port].append((tick, -1, old))
                if retract:
                    wanted[tick].subtract(results_with(port, gone, old))
            row = row_of(port, key, others)
            events[port].append((tick, 1, row))
            wanted[tick].update(results_with(port, key, row))
            live[port].append((key, row))
        deltas = [[delta(mine, len(names))] for mine, names in zip(events, inputs, strict=True)]
        found = changes(join.process(Ticks(np.arange(len(batch)), first=False), deltas))
        for tick in range(len(batch)):
            assert +found.get(tick, Counter()) == +wanted[tick]
            assert -found.get(tick, Counter()) == -wanted[tick]
        if chance.random() < 0.2:
            before, join = values_of(join), fifo_join(inputs, retract=retract)
            restore(join, before)
    assert (join.state.indexes[:, ring_index.IDS_FROM] != ring_index.NEVER).any()
    words = join.state.tables.reshape(-1, 1 + len(inputs))[:, 1:]
    assert any(ring_index.holds_ids(word) for word in words.reshape(-1).tolist())


TREES: dict[str, Inputs] = {
    "chain": SHAPES["chain"],
    "fork": (("b", "a"), ("b", "c"), ("d", "b"), ("d", "e")),
    "wide": (("a", "b"), ("x", "b", "c"), ("c", "d"), ("c",)),
}


class LiveRows:
    """The rows of some inputs, and which results each of them is in, found by single ids."""

    def __init__(self, inputs: Inputs) -> None:
        self.inputs = inputs
        self.rows: list[deque[Row]] = [deque() for _ in inputs]
        self._having: defaultdict[tuple[int, str, int], list[Row]] = defaultdict(list)

    def add(self, port: int, row: Row) -> None:
        self.rows[port].append(row)
        for name, value in zip(self.inputs[port], row, strict=True):
            self._having[port, name, value].append(row)

    def remove_oldest(self, port: int) -> Row:
        row = self.rows[port].popleft()
        for name, value in zip(self.inputs[port], row, strict=True):
            self._having[port, name, value].remove(row)
        return row

    def results_with(self, port: int, row: Row) -> Iterator[Row]:
        """Of a tree: each next input shares one variable with those before."""
        bound = dict(zip(self.inputs[port], row, strict=True))
        return self._extend(bound, [p for p in range(len(self.inputs)) if p != port])

    def _extend(self, bound: dict[str, int], left: list[int]) -> Iterator[Row]:
        if not left:
            yield tuple(bound[name] for name in variables(self.inputs))
            return
        port, name = next((p, name) for p in left for name in self.inputs[p] if name in bound)
        for row in self._having[port, name, bound[name]]:
            more = dict(zip(self.inputs[port], row, strict=True))
            yield from self._extend({**bound, **more}, [p for p in left if p != port])


@pytest.mark.parametrize("seed", range(2))
@pytest.mark.parametrize("retract", [True, False])
@pytest.mark.parametrize("room", [7, 100, OUT_ROWS])
@pytest.mark.parametrize("shape", TREES)
def test_trees_whose_keys_have_many_leaves(
    shape: str, room: int, retract: bool, seed: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Some keys have one mapping, some a SIMD vector of them, and some more. The state is restored on the way."""
    monkeypatch.setattr(operators, "OUT_ROWS", room)
    monkeypatch.setattr(operators, "room_for", lambda rows: room)
    inputs = TREES[shape]
    join = fifo_join(inputs, retract=retract)
    live, chance = LiveRows(inputs), random.Random(seed)
    draw = [lambda: 1, *[lambda: chance.randint(2, 4)] * 3, *[lambda: chance.randint(5, 60)] * 4]
    for step in range(12):
        events: list[list[Event]] = [[] for _ in inputs]
        wanted: dict[int, Counter[Row]] = defaultdict(Counter)
        ticks = chance.choice((1, 20, 90))
        for tick in range(ticks):
            port = chance.randrange(len(inputs))
            if len(live.rows[port]) == (90 if step > 3 else 40):
                old = live.remove_oldest(port)
                events[port].append((tick, -1, old))
                if retract:
                    wanted[tick].subtract(live.results_with(port, old))
            row = tuple(chance.choice(draw)() for _ in inputs[port])
            events[port].append((tick, 1, row))
            wanted[tick].update(live.results_with(port, row))
            live.add(port, row)
        deltas = [[delta(mine, len(names))] for mine, names in zip(events, inputs, strict=True)]
        found = changes(join.process(Ticks(np.arange(ticks), first=False), deltas))
        for tick in range(ticks):
            assert +found.get(tick, Counter()) == +wanted[tick]
            assert -found.get(tick, Counter()) == -wanted[tick]
        if chance.random() < 0.2:
            before, join = values_of(join), fifo_join(inputs, retract=retract)
            restore(join, before)
    tables = np.split(join.state.tables, join.state.groups[1:, ring_index.TABLE])
    strides = join.state.groups[:, ring_index.STRIDE].tolist()
    words = [
        word
        for table, stride in zip(tables, strides, strict=True)
        for word in table.reshape(-1, stride)[:, 1:].reshape(-1).tolist()
    ]
    assert any(ring_index.holds_ids(word) for word in words)
    assert any(ring_index.size_of(word) > 1 and not ring_index.holds_ids(word) for word in words)


def test_places_of_large_rings_are_used_again() -> None:
    join = MultiwayJoin((("a", "b"), ("a", "c")), [True, True], ["a"])
    sizes = []
    for turn in range(60):
        new = [(0, 1, (turn * 50 + i % 2 + 1, 1)) for i in range(200)] + [
            (0, 1, (turn * 50 + i, 1)) for i in range(3, 30)
        ]
        old = [(0, -1, (0, 0))] * (len(new) if turn else 0)
        changes(join.process(ANY_TICK, [[delta([*old, *new], 2)], []]))
        sizes.append(join.nbytes)
    assert sizes[-1] == sizes[29]


def move_rings_often(monkeypatch: pytest.MonkeyPatch) -> list[JoinState]:
    """As soon as what is short has room then; the list gets whose rings were moved."""
    moved: list[JoinState] = []
    move = JoinState._move_rings

    def counted(state: JoinState) -> bool:
        if move(state):
            moved.append(state)
            return True
        return False

    for name, value in (("_FIRST_RINGS", 16), ("_FEW_PLACES", 0), ("_SLOTS_ROOM", 0), ("_IDS_ROOM", 0)):
        monkeypatch.setattr(join_state, name, value)
    monkeypatch.setattr(JoinState, "_move_rings", counted)
    return moved


@pytest.mark.parametrize("order", ["in order", "any order", "mixed"])
@pytest.mark.parametrize("shape", sorted(SHAPES.keys() - {"cross product", "without columns"}))
def test_rings_move_while_rows_are_processed(shape: str, order: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = move_rings_often(monkeypatch)
    inputs = SHAPES[shape]
    ports = [
        Port(len(names), order == "in order" or (order == "mixed" and p % 2 == 0)) for p, names in enumerate(inputs)
    ]
    join = MultiwayJoin(inputs, [port.expires_fifo for port in ports], variables(inputs))
    for seed in range(4):
        check(join, inputs, ports, seed, steps=8, most=5 if len(inputs) > 3 else 12)
    assert moved
    assert_empty(join)


@pytest.mark.parametrize("shape", STARS)
def test_rings_of_ids_move(shape: str, monkeypatch: pytest.MonkeyPatch) -> None:
    moved = move_rings_often(monkeypatch)
    for seed in range(3, 9):
        test_rings_of_many_leaves_of_a_key(shape, True, seed)
    assert moved


def test_rings_of_ids_move_in_trees(monkeypatch: pytest.MonkeyPatch) -> None:
    moved = move_rings_often(monkeypatch)
    for seed in range(3, 9):
        test_trees_whose_keys_have_many_leaves("chain", OUT_ROWS, True, seed, monkeypatch)
    assert moved


@pytest.mark.parametrize("other", ["b", "a"], ids=["star", "chain"])
def test_a_key_keeps_no_room_for_mappings_it_no_longer_has(other: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each of 40 keys has a thousand mappings once, and two at any other time."""
    monkeypatch.setattr(join_state, "_FEW_PLACES", 1 << 12)
    join = MultiwayJoin((("a", "b"), (other, "c"), ("c", "d")), [True] * 3, ["a"])
    sizes, there = [], 0
    for turn in range(80):
        rows = [(turn % 40 + 1, 1)] * 1_000 + [(key + 1, 1) for key in range(40)] * 2
        new, old = [(0, 1, row) for row in rows], [(0, -1, (0, 0))] * there
        # Before the last mappings of any key leave, others have come.
        changes(join.process(ANY_TICK, [[delta([*new, *old], 2)], [], []]))
        there = len(rows)
        sizes.append(join.nbytes)
    assert sizes[-1] == sizes[19]


def test_state_does_not_grow_with_the_number_of_keys_seen() -> None:
    """Keys with a zero counter are purged: a window of 50 over ever-new keys stays as small as it was."""
    join = MultiwayJoin((("a", "b"), ("a", "c")), [True, True], ["a"])
    sizes = []
    for turn in range(60):
        new = [(0, 1, (turn * 50 + i + 1, 1)) for i in range(50)]
        old = [(0, -1, (0, 0))] * (50 if turn else 0)
        changes(join.process(ANY_TICK, [[delta([*old, *new], 2)], [delta([*old, *new], 2)]]))
        sizes.append(join.nbytes)
    assert sizes[-1] == sizes[29]


def test_keys_that_come_and_go_do_not_rebuild_another_large_table(monkeypatch: pytest.MonkeyPatch) -> None:
    """A window of one mapping with ever-new keys, and an input of 10,000 other keys that stays."""
    join = MultiwayJoin((("a", "b"), ("b", "c"), ("c", "d")), [True] * 3, ["a", "d"])
    changes(join.process(ANY_TICK, [[], [], [delta([(0, 1, (i + 1, i + 1)) for i in range(10_000)], 2)]]))
    grow = join.state.grow
    grown: list[int] = []
    monkeypatch.setattr(join.state, "grow", lambda status: (grown.append(status), grow(status)))
    events = [(i, sign, (i, i)) for i in range(1, 5_001) for sign in (1, -1)]
    changes(join.process(Ticks(np.arange(5_001), first=True), [[delta(events, 2)], [], []]))
    assert len(grown) <= 10


def probes_at(window: int) -> int:
    """The number of index lookups for 100 arrivals in windows of this size, each mapping of which has one match."""
    inputs = (("a", "b"), ("a", "c"), ("a", "d"))
    join = MultiwayJoin(inputs, [True] * 3, ["a", "b", "c", "d"])
    filling = [delta([(0, 1, (i + 1, p)) for i in range(window)], 2) for p in range(1, 4)]
    changes(join.process(ANY_TICK, [[each] for each in filling]))
    before = join.probes
    arriving = [delta([(0, -1, (0, 0)), (0, 1, (window + i + 1, 1))], 2) for i in range(100)]
    for each in arriving:
        changes(join.process(ANY_TICK, [[each], [each], [each]]))
    return join.probes - before


@pytest.mark.parametrize("window", [100, 10_000])
def test_the_work_of_an_arrival_does_not_follow_the_windows_size(window: int) -> None:
    """One lookup for each of the three mappings that expire and the three that arrive; and one more for each that finds
    the hash table full."""
    assert 600 <= probes_at(window) <= 610


def test_each_row_of_a_star_is_looked_up_once() -> None:
    """Five patterns of one observation, which displaces another; then one whose triples arrive one by one."""
    names = "abcde"
    join = MultiwayJoin([("s", name) for name in names], [True] * 5, ["s", *names])

    def arrives(subject: int, ports: Iterable[int]) -> tuple[int, list[Counter[Seen]]]:
        rows = [(0, -1, (0, 0)), (0, 1, (subject, 7))]
        before = join.probes
        made = changes(
            join.process(ANY_TICK, [[delta(rows[subject == 1 :], 2)] if p in ports else [] for p in range(5)])
        )
        return join.probes - before, list(made.values())

    assert arrives(1, range(5)) == (5, [Counter({(1, 7, 7, 7, 7, 7): 1})])
    assert arrives(2, range(5)) == (10, [Counter({(1, 7, 7, 7, 7, 7): -1, (2, 7, 7, 7, 7, 7): 1})])
    apart = [arrives(3, [p]) for p in range(5)]
    assert [lookups for lookups, _ in apart] == [2] * 5
    assert [bag for _, made in apart for bag in made] == [
        Counter({(2, 7, 7, 7, 7, 7): -1}),
        Counter({(3, 7, 7, 7, 7, 7): 1}),
    ]


def test_the_rarest_input_is_probed_first() -> None:
    """Algorithm 5: an arrival without a match in one input makes no loop, whatever the other inputs hold."""
    join = MultiwayJoin((("a", "b"), ("a", "c"), ("a", "d")), [True] * 3, ["a"])
    changes(join.process(ANY_TICK, [[], [delta([(0, 1, (1, i + 1)) for i in range(1000)], 2)], []]))
    before = join.probes
    changes(join.process(ANY_TICK, [[delta([(0, 1, (1, 1))], 2)], [], []]))
    assert join.probes - before <= 2


def test_more_mappings_than_rings_have_places_for_are_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(join_state, "_MOST_PLACES", 1_100)
    join = MultiwayJoin([("k", "a"), ("k", "b")], [True] * 2, ["a", "b"])
    rows = 2_000
    many = Delta(np.arange(rows, dtype=np.int32), np.ones(rows, np.int8), np.ones((2, rows), np.int64))
    with pytest.raises(RunError, match="1,100 places"):
        list(join.process(Ticks(np.arange(rows), first=False), [[many], []]))
