"""Ring indexes on their own, against dictionaries of deques."""

from __future__ import annotations

import random
from collections import defaultdict, deque

import numpy as np
import pytest

from cqels_py.errors import RunError
from cqels_py.kernels.structures import arena
from cqels_py.kernels.structures import ring_index as kernel
from cqels_py.kernels.structures.ring_record import InputRows, RingArrays
from cqels_py.state.join_state import JoinLayout, JoinPort, JoinState

KEY, VALUE, OTHER = 0, 1, 2


class Indexed:
    """Two inputs, both indexed by the variable they share: one hash table with two rings per entry."""

    def __init__(self, expires_fifo: bool) -> None:
        ports = [JoinPort((KEY, VALUE), expires_fifo), JoinPort((KEY, OTHER), expires_fifo)]
        self.state = JoinState(JoinLayout(ports, frozenset()))
        self.index = self.state.layout.first[:2]

    @property
    def arrays(self) -> RingArrays:
        """As a kernel opens them from the state's record."""
        state = self.state
        return RingArrays(
            state.address, state.cursor, state.flat_ports, state.flat_indexes, state.flat_groups, state.key_columns, state.cells,
            state.tables, state.located, state.rings, state.ring_ids, state.ring_meta, state.positions,
        )  # fmt: skip

    def write(self, port: int, slot: int, key: int, value: int) -> int:
        """Write ids into a leaf; returns its position in the cells."""
        leaf = int(self.state.ports[port, kernel.BASE]) + slot * 2
        self.state.cells[leaf : leaf + 2] = key, value
        return leaf

    def insert(self, port: int, slot: int, leaf: int) -> None:
        state = self.state
        while True:
            status = kernel.insert(self.index[port], -1, leaf, slot, self.arrays)
            if status == kernel.DONE:
                return
            state.grow(status)

    def entry(self, port: int, leaf: int) -> int:
        return int(kernel.find_leaf(self.index[port], leaf, self.arrays))

    def remove(self, port: int, slot: int, leaf: int) -> None:
        kernel.remove(self.index[port], self.entry(port, leaf), slot, self.arrays)

    def ring(self, port: int, leaf: int) -> list[int]:
        """Slots of the leaf's key, oldest first."""
        at, state = self.entry(port, leaf), self.state
        if at < 0:
            return []
        word = state.tables[kernel.ring_of(at, self.index[port], state.flat_indexes)]
        first, mask, oldest, count = kernel.open_ring(word)
        assert mask == 0 or first % (mask + 1) == 0
        return [int(kernel.slot_in(first, mask, (oldest + i) & mask, state.rings)) for i in range(count)]


@pytest.mark.parametrize("keys", [1, 5, 40])
def test_rings_hold_the_last_leaves_in_order(keys: int) -> None:
    chance = random.Random(keys)
    indexed = Indexed(expires_fifo=True)
    live: list[deque[tuple[int, int]]] = [deque(), deque()]
    rings: dict[tuple[int, int], deque[int]] = defaultdict(deque)
    next_slot = [0, 0]
    for _ in range(600):
        port = chance.randrange(2)
        if live[port] and (len(live[port]) == 30 or chance.random() < 0.4):
            slot, leaf = live[port].popleft()
            key = int(indexed.state.cells[leaf])
            indexed.remove(port, slot, leaf)
            assert rings[port, key].popleft() == slot
        else:
            slot = next_slot[port] % indexed.state.capacity(port)
            next_slot[port] += 1
            key = 1 + chance.randrange(keys)
            leaf = indexed.write(port, slot, key, slot)
            indexed.insert(port, slot, leaf)
            live[port].append((slot, leaf))
            rings[port, key].append(slot)
        assert indexed.ring(port, leaf) == list(rings[port, key])
    for port in range(2):
        for slot, leaf in live[port]:
            indexed.remove(port, slot, leaf)
    assert indexed.state.groups[0, kernel.USED] > indexed.state.live_keys()[0] == 0


def test_indexes_over_the_same_variable_share_an_entry() -> None:
    indexed = Indexed(expires_fifo=True)
    leaves = [indexed.write(port, 0, 7, port) for port in range(2)]
    for port in range(2):
        indexed.insert(port, 0, leaves[port])
    assert len(indexed.state.groups) == 1
    assert indexed.entry(0, leaves[0]) == indexed.entry(1, leaves[1]) >= 0
    assert indexed.state.groups[0, kernel.USED] == 1


def test_a_leaf_in_the_middle_of_a_ring_can_be_removed() -> None:
    indexed = Indexed(expires_fifo=False)
    indexed.state.ensure_leaves([8, 8])
    leaves = [indexed.write(0, slot, 3, 10 + slot) for slot in range(5)]
    for slot, leaf in enumerate(leaves):
        indexed.insert(0, slot, leaf)
    indexed.remove(0, 1, leaves[1])
    indexed.remove(0, 3, leaves[3])
    assert sorted(indexed.ring(0, leaves[0])) == [0, 2, 4]


def test_entries_without_leaves_free_their_rings() -> None:
    indexed = Indexed(expires_fifo=True)
    for key in range(1, 2_000):
        leaf = indexed.write(0, 0, key, 1)
        indexed.insert(0, 0, leaf)
        indexed.remove(0, 0, leaf)
    assert len(indexed.state.tables) <= 1_280 * indexed.state.groups[0, kernel.STRIDE]
    assert len(indexed.state.rings) <= 1024


@pytest.mark.parametrize("seed", range(8))
def test_a_purge_keeps_entries_with_leaves(seed: int) -> None:
    """Keys far from their home slot, or wrapped around the table's end, are still found; those without leaves are not."""
    chance = random.Random(seed)
    indexed = Indexed(expires_fifo=True)
    state = indexed.state
    rings: dict[tuple[int, int], deque[tuple[int, int]]] = defaultdict(deque)
    for slot in range(60):
        port, key = chance.randrange(2), chance.randrange(1, 30)
        leaf = indexed.write(port, slot, key, slot)
        indexed.insert(port, slot, leaf)
        rings[port, key].append((slot, leaf))
    for _ in range(4):
        for (port, _), mine in rings.items():
            if chance.random() < 0.4:
                while mine:
                    slot, leaf = mine.popleft()
                    indexed.remove(port, slot, leaf)
        for leaves_at_a_time in (3, len(state.located)):
            kernel.purge(
                state.flat_groups, state.tables, state.rings, state.ring_meta, state.located[:leaves_at_a_time]
            )
            live = {key for (_, key), mine in rings.items() if mine}
            assert state.groups[0, kernel.USED] == state.live_keys()[0] == len(live)
            assert {int(key) for key in state.tables[:: int(state.groups[0, kernel.STRIDE])] if key} == live
            for (port, key), mine in rings.items():
                leaf = indexed.write(port, 63, key, 0)
                assert indexed.ring(port, leaf) == [slot for slot, _ in mine]


@pytest.mark.parametrize("seed", range(5))
def test_loaded_rows_get_consecutive_slots_of_a_circular_buffer(seed: int) -> None:
    """Against a deque of the slots in use: an insertion gets the next slot, and a retraction is of the oldest, whatever
    its ids."""
    chance = random.Random(seed)
    state = Indexed(expires_fifo=True).state
    capacity, base = state.capacity(1), int(state.ports[1, kernel.BASE])
    there: deque[tuple[int, list[int]]] = deque()
    following = 0
    for number in range(200):
        signs: list[int] = []
        more, room = chance.randrange(20), capacity - len(there)
        for _ in range(more):
            live = len(there) + sum(signs)
            comes = chance.random() < chance.choice([0.1, 0.5, 0.9]) and signs.count(1) < room
            signs += [1] if comes else [-1] * (live > 0)
        columns = np.array([[chance.randrange(1, 1_000) for _ in signs] for _ in range(2)], np.int64).reshape(2, -1)
        slots = np.full(len(signs), number, np.int32)
        assert kernel.load(1, state.address, columns, np.array(signs, np.int8), slots) == kernel.DONE
        expected = []
        for row, sign in enumerate(signs):
            if sign > 0:
                there.append((following, columns[:, row].tolist()))
                following = (following + 1) % capacity
            expected.append(there[-1][0] if sign > 0 else there.popleft()[0])
        assert slots.tolist() == expected
        assert state.leaves(1) == len(there)
        for slot, ids in there:
            assert state.cells[base + 2 * slot : base + 2 * slot + 2].tolist() == ids


@pytest.mark.parametrize("expires_fifo", [True, False], ids=["in order", "any order"])
def test_rows_without_room_leave_all_as_it_was(expires_fifo: bool) -> None:
    state = Indexed(expires_fifo=expires_fifo).state
    capacity = state.capacity(1)

    def load(rows: int) -> tuple[int, list[int]]:
        columns, slots = np.full((2, rows), rows, np.int64), np.zeros(rows, np.int32)
        return kernel.load(1, state.address, columns, np.ones(rows, np.int8), slots), slots.tolist()

    first, there = load(40)
    assert (first, len(set(there))) == (kernel.DONE, 40)

    def content() -> list[bytes]:
        return [value.tobytes() for value in vars(state).values() if isinstance(value, np.ndarray)]

    before = content()
    assert load(capacity - 39)[0] == kernel.LEAVES_FULL
    assert (content(), state.leaves(1)) == (before, 40)
    status, more = load(capacity - 40)
    assert (status, state.leaves(1)) == (kernel.DONE, capacity)
    assert sorted(there + more) == list(range(capacity))
    state.ensure_leaves([0, 9])
    status, last = load(9)
    assert (status, state.capacity(1) > capacity) == (kernel.DONE, True)
    assert not set(last) & {*there, *more}
    base = int(state.ports[1, kernel.BASE])
    assert {int(state.cells[base + 2 * slot]) for slot in there} == {40}


@pytest.mark.parametrize("ports", [(0,), (0, 1)], ids=["one port", "two ports"])
@pytest.mark.parametrize("full", [0.3, 0.95])
@pytest.mark.parametrize("seed", range(4))
def test_rows_find_the_entries_of_their_keys(seed: int, full: float, ports: tuple[int, ...]) -> None:
    """In a table of 64 slots: keys in their home slot, after it, far from it and wrapped around, until there is no room
    for a new key."""
    chance = random.Random(seed)
    indexed = Indexed(expires_fifo=True)
    state = indexed.state
    stride, limit = int(state.groups[0, kernel.STRIDE]), int(full * 64)
    state.groups[0, kernel.LIMIT] = limit
    # Keys above half a word, and that of an unbound term.
    keys = [0, *(chance.choice([1, 1 << 40]) * chance.randrange(2, 1 << 20) for _ in range(limit + 5))]
    known: dict[int, int] = {}
    first, rows = 0, 600
    port = np.array([chance.choice(ports) for _ in range(rows)], np.int32)
    slot = np.array([chance.randrange(64) for _ in range(rows)], np.int32)
    sign = np.array([chance.choice([1, 1, -1]) for _ in range(rows)], np.int8)
    ticks = np.zeros(rows, np.int32)
    while first < rows:
        for p in ports:
            for leaf in range(64):
                indexed.write(p, leaf, chance.choice(keys[: 3 + first // 4]), 0)
        # Fewer rows than can be looked up together.
        last = min(int(kernel.end_of_run(first, rows)), first + chance.choice([1, 7, 256]))
        before = int(state.cursor[kernel.PROBES])
        done = kernel.find_entries(first, last, InputRows(port, slot, ticks, sign), state.address)
        assert state.cursor[kernel.PROBES] - before == done - first
        for row in range(first, last):
            value = int(state.cells[state.ports[port[row], kernel.BASE] + 2 * slot[row]])
            key, place = value if value else 1, int(state.located[row % kernel.LOCATED_ROWS])
            if row == done:
                assert key not in known
                assert sign[row] > 0
                assert len(known) == limit
                break
            if sign[row] < 0 and key not in known:
                assert place == -1
                continue
            assert known.setdefault(key, place) == place
            assert state.tables[place] == key
            assert place % stride == 0
        assert state.groups[0, kernel.USED] == len(known)
        first = int(done) + (done < last)


def test_a_ring_that_its_word_cannot_count_is_refused() -> None:
    state = Indexed(expires_fifo=True).state
    size = kernel.MOST_IN_RING.bit_length() - 1
    state.tables[1] = kernel.word_of(0, size, kernel.MOST_IN_RING)
    assert kernel.enlarge(1, state.tables, state.rings, state.ring_meta) == kernel.RING_FULL
    with pytest.raises(RunError, match="33,554,432 mappings of one key"):
        state.grow(kernel.RING_FULL)


def test_gaps_left_for_alignment_are_used_for_shorter_runs() -> None:
    places, meta = np.zeros(64, np.int32), np.full(arena.ARENA_FIELDS, -1, np.int64)
    meta[arena.TOP] = 0
    got = [arena.allocate_aligned(places, meta, size) for size in (1, 4, 1, 2, 3, 5, 5)]
    assert got == [0, 16, 2, 4, 8, 32, -1]
