"""Ring indexes on their own, against dictionaries of deques."""

from __future__ import annotations

import random
from collections import defaultdict, deque

import pytest

from cqels_py.kernels import ring_index as kernel
from cqels_py.state.join_state import JoinLayout, JoinPort, JoinState

KEY, VALUE, OTHER = 0, 1, 2


class Indexed:
    """Two inputs, both indexed by the variable they share: one table, two rings an entry."""

    def __init__(self, in_order: bool) -> None:
        ports = [JoinPort((KEY, VALUE), in_order), JoinPort((KEY, OTHER), in_order)]
        self.state = JoinState(JoinLayout(ports, frozenset()))
        self.index = self.state.layout.first[:2]

    def write(self, port: int, slot: int, key: int, value: int) -> int:
        """Ids into a leaf; returns where it starts in the cells."""
        leaf = int(self.state.ports[port, kernel.BASE]) + slot * 2
        self.state.cells[leaf : leaf + 2] = key, value
        return leaf

    def insert(self, port: int, slot: int, leaf: int) -> None:
        state = self.state
        while True:
            status = kernel.insert(
                self.index[port], -1, state.flat_indexes, state.flat_groups, state.key_columns, state.cells, leaf, slot,
                state.tables, state.rings, state.ring_meta, state.positions,
            )  # fmt: skip
            if status == kernel.DONE:
                return
            state.grow(status)

    def entry(self, port: int, leaf: int) -> int:
        state = self.state
        return int(
            kernel.find_leaf(
                self.index[port],
                state.flat_indexes,
                state.flat_groups,
                state.key_columns,
                state.cells,
                leaf,
                state.tables,
            )
        )

    def remove(self, port: int, slot: int, leaf: int) -> None:
        state = self.state
        kernel.remove(
            self.index[port], self.entry(port, leaf), state.flat_indexes, state.flat_groups, slot, state.tables, state.rings,
            state.positions,
        )  # fmt: skip

    def ring(self, port: int, leaf: int) -> list[int]:
        """Slots of the leaf's key, oldest first."""
        at, state = self.entry(port, leaf), self.state
        if at < 0:
            return []
        ring = at + int(state.indexes[self.index[port], kernel.MEMBER])
        count, head = int(state.tables[ring + 1] & kernel.LOW), int(state.tables[ring + 1] >> kernel.SHIFT)
        if count == 0:
            return []
        offset, size = int(state.tables[ring] >> kernel.SIZE_BITS), 1 << int(state.tables[ring] & kernel.SIZE_MASK)
        return [int(state.rings[offset + (head + i) % size]) for i in range(count)]


@pytest.mark.parametrize("keys", [1, 5, 40])
def test_rings_hold_what_came_last_in_order(keys: int) -> None:
    chance = random.Random(keys)
    indexed = Indexed(in_order=True)
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
    groups = indexed.state.groups
    assert groups[0, kernel.USED] == groups[0, kernel.ZERO] > 0


def test_indexes_over_the_same_variable_share_an_entry() -> None:
    indexed = Indexed(in_order=True)
    leaves = [indexed.write(port, 0, 7, port) for port in range(2)]
    for port in range(2):
        indexed.insert(port, 0, leaves[port])
    assert len(indexed.state.groups) == 1
    assert indexed.entry(0, leaves[0]) == indexed.entry(1, leaves[1]) >= 0
    assert indexed.state.groups[0, kernel.USED] == 1


def test_a_leaf_in_the_middle_of_a_ring_can_go() -> None:
    indexed = Indexed(in_order=False)
    indexed.state.ensure_leaves([8, 8])
    leaves = [indexed.write(0, slot, 3, 10 + slot) for slot in range(5)]
    for slot, leaf in enumerate(leaves):
        indexed.insert(0, slot, leaf)
    indexed.remove(0, 1, leaves[1])
    indexed.remove(0, 3, leaves[3])
    assert sorted(indexed.ring(0, leaves[0])) == [0, 2, 4]


def test_entries_without_leaves_give_their_rings_back() -> None:
    indexed = Indexed(in_order=True)
    for key in range(1, 2_000):
        leaf = indexed.write(0, 0, key, 1)
        indexed.insert(0, 0, leaf)
        indexed.remove(0, 0, leaf)
    assert len(indexed.state.tables) <= 64 * indexed.state.groups[0, kernel.STRIDE]
    assert len(indexed.state.rings) <= 1024
