"""The state of an n-ary join: leaf mappings, and ring indexes over them (the paper's sections 3.1 to 3.4).

Everything is in flat arrays that `kernels.structures.ring_index` and `kernels.joins` work on; here they are laid out, grown and
purged.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from operator import mul

import numpy as np
import numpy.typing as npt

from cqels_py.errors import RunError
from cqels_py.kernels.joins import multiway as join_kernel
from cqels_py.kernels.joins import star as star_kernel
from cqels_py.kernels.joins import state as record
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures import arena, ring_record
from cqels_py.kernels.structures import ring_index as kernel
from cqels_py.state.arrays import SHRINK_FROM, aligned, longer_aligned, new_numbers
from cqels_py.state.stop import Stop

Int64 = npt.NDArray[np.int64]
Int32 = npt.NDArray[np.int32]

_FIRST_CAPACITY = 64
_FIRST_TABLE = 64
_FIRST_RINGS = 1024
_FIRST_PARTNERS = 1024
_ROOM = 9 / 8
"""The factor by which the room for leaves exceeds their number when it is enlarged: a move then costs at most a constant for each
leaf since the last one, and the free part does not depend on the window's size, as it would with powers of two."""
_KEYS_ROOM, _USED_PART = 1.8, 0.65
"""The load factor of hash tables: with a higher one, keys are often far from their home slots."""
_SMALL_TABLE, _SMALL_KEYS_ROOM, _SMALL_USED_PART = 1 << 16, 4, 0.4
"""A table of no more entries than these takes so little memory that it gets more room, with keys nearer to their home slots."""
_TURNOVER_ROOM = 1.25
"""A table gets room for this many times the keys that lost all leaves since the last purge: the faster keys change, the more."""
_LEAST_TURNOVER_ROOM = 1280
"""Where keys come and go, so many slots more, as a purge has costs that do not depend on the size: it comes after 500 new keys."""
_RINGS_PART = 8
"""The memory of rings grows by this fraction (1/n): it is the largest array of a join whose keys have many mappings each."""
_SLOTS_ROOM, _IDS_ROOM, _FEW_PLACES = 2.3, 1.7, 1 << 20
"""If rings have this many times the places that they need, their memory is compacted instead of enlarged. Rings of ids take twice
as much and have more members each, so compacting pays sooner. With few places it does not pay, as full rings soon grow again."""
_MOST_PLACES = (1 << 31) - 2
"""The place of a ring takes half a word. An even number, as an id takes two places."""
_SMALLEST_PART = 16
"""How many times as large as one table all of a join's are at most, once they have grown."""
_MOST_KEYS = 3
_NO_RINGS = np.full(arena.ARENA_FIELDS, -1, np.int64)
_NO_RINGS[arena.TOP] = 1
OUT_ROWS = 16384
"""Results in a chunk: enough to make the cost of a chunk itself negligible, few enough to stay in the processor's cache."""


@dataclass(frozen=True, slots=True)
class JoinPort:
    """An input of a join: the numbers of its variables by column, and whether its leaves expire in their order of arrival."""

    variables: tuple[int, ...]
    expires_fifo: bool


@dataclass(frozen=True, slots=True)
class RingIndex:
    """A ring index of a port, by columns."""

    port: int
    columns: tuple[int, ...]


class JoinLayout:
    """The indexes that the ports need, and the one to probe for each set of bound ports (Algorithm 5's choices).

    `maybe_unbound` variables may be unbound in some input: they are compared, never indexed.
    """

    def __init__(self, ports: Sequence[JoinPort], maybe_unbound: frozenset[int]) -> None:
        self.ports = tuple(ports)
        self.maybe_unbound = maybe_unbound
        n = len(self.ports)
        self._columns: list[list[tuple[int, ...]]] = [[] for _ in range(n)]
        keys = self._keys()
        self._simplify(keys)
        for (_, q), columns in keys.items():
            if columns not in self._columns[q]:
                self._columns[q].append(columns)
        for q, port in enumerate(self.ports):
            if not port.expires_fifo:
                self._columns[q].append(tuple(range(len(port.variables))))
        self.indexes = tuple(RingIndex(q, columns) for q in range(n) for columns in self._columns[q])
        self.first = [sum(len(self._columns[x]) for x in range(q)) for q in range(n + 1)]
        plain = self._is_plain(keys)
        self.star = plain and self._is_star(keys)
        self.tree = plain and not self.star
        self._lay_options(keys)

    def _lay_options(self, keys: dict[tuple[int, int], tuple[int, ...]]) -> None:
        """The arrays that `kernels.join` describes. A star's kernel needs none of them."""
        n = len(self.ports)
        sets = 0 if self.star else 1 << n
        self.options = np.full((sets * n + 1) * 2, -1, np.int64)
        self.source_first, self.check_first = (np.zeros(sets * n + 1, np.int64) for _ in range(2))
        sources: list[int] = []
        checks: list[int] = []
        for place in range(sets * n):
            bound, q = divmod(place, n)
            self.source_first[place], self.check_first[place] = len(sources), len(checks) // 2
            if (bound, q) in keys:
                columns = keys[bound, q]
                self._add_option(bound, q, columns)
                sources += [self._sources(bound, variable)[0] for variable in self.index_key(RingIndex(q, columns))[1]]
                checks += self._checks(bound, q, columns)
        self.source_first[-1], self.check_first[-1] = len(sources), len(checks) // 2
        self.sources, self.checks = np.array([*sources, 0], np.int64), np.array([*checks, 0, 0], np.int64)

    def _add_option(self, bound: int, q: int, columns: tuple[int, ...]) -> None:
        place = bound * len(self.ports) * 2
        while self.options[place] >= 0:
            place += 2
        self.options[place : place + 2] = q, self.first[q] + self._columns[q].index(columns)

    def indexes_from(self, port: int) -> list[int]:
        """The indexes that mappings of a port alone may lead to. None of a star, whose kernel has no such choice."""
        if self.star:
            return []
        n = len(self.ports)
        of_set = self.options[(1 << port) * n * 2 :][: n * 2].reshape(n, 2)
        return [index for q, index in of_set.tolist() if q >= 0]

    def _sources(self, bound: int, variable: int) -> list[int]:
        """The bound columns that have a variable."""
        return [
            p * join_kernel.COLUMNS + port.variables.index(variable)
            for p, port in enumerate(self.ports)
            if bound >> p & 1 and variable in port.variables
        ]

    def _checks(self, bound: int, q: int, columns: tuple[int, ...]) -> list[int]:
        """The columns of port q that are compared, and the columns they are compared with: all, if it may be unbound, else one."""
        pairs: list[int] = []
        for c, variable in enumerate(self.ports[q].variables):
            # Keys of several ids are distinguished by comparing these.
            if columns != (c,):
                sources = self._sources(bound, variable)
                for source in sources if variable in self.maybe_unbound else sources[:1]:
                    pairs += [c, source]
        return pairs

    def index_key(self, index: RingIndex) -> tuple[list[int], tuple[int, ...]]:
        """The columns of an index, and their variables, in the order in which they make its keys."""
        variables = self.ports[index.port].variables
        columns = sorted(index.columns, key=lambda c: variables[c])
        return columns, tuple(variables[c] for c in columns)

    def _is_plain(self, keys: dict[tuple[int, int], tuple[int, ...]]) -> bool:
        """Is every port in order, and probed by a single variable whatever is bound, with nothing to be compared?"""
        return all(port.expires_fifo for port in self.ports) and all(
            len(columns) == 1 and not self._checks(bound, q, columns) for (bound, q), columns in keys.items()
        )

    def _is_star(self, keys: dict[tuple[int, int], tuple[int, ...]]) -> bool:
        """Are all ports probed by the same variables?"""
        return len({tuple(self.ports[q].variables[c] for c in columns) for (_, q), columns in keys.items()}) == 1

    def key_column(self, port: int) -> int:
        """The column that alone makes the keys of a port's first index; -1 if several do."""
        first = self._columns[port][0]
        return first[0] if len(first) == 1 else -1

    def ids_from(self, index: RingIndex) -> int:
        """log2 of the capacity from which on rings of an index hold, instead of slots, the ids of the one column beside the key."""
        if not (self.star or self.tree) or len(self.ports[index.port].variables) != 2:
            return kernel.NEVER
        return star_kernel.IDS_FROM if self.star else join_kernel.IDS_FROM

    def columns_of(self, port: int) -> list[tuple[int, ...]]:
        """The column sets of a port's indexes."""
        return self._columns[port]

    def probed(self, port: int) -> list[tuple[int, ...]]:
        """The column sets by which a port is probed."""
        return self._columns[port][: len(self._columns[port]) - self._full(port)]

    def _full(self, port: int) -> int:
        """1 if the port's last index is the one over all columns, by which negative mappings find their leaves."""
        return 0 if self.ports[port].expires_fifo else 1

    def _bound_variables(self, bound: int) -> set[int]:
        return {v for p, port in enumerate(self.ports) if bound >> p & 1 for v in port.variables}

    def _keys(self) -> dict[tuple[int, int], tuple[int, ...]]:
        """The columns by which each port is probed, for every set of ports that can be bound together."""
        n = len(self.ports)
        keys: dict[tuple[int, int], tuple[int, ...]] = {}
        reached = {1 << p for p in range(n)}
        for bound in range(1, (1 << n) - 1):
            if bound not in reached:
                continue
            mine = {q: self._key(bound, q) for q in range(n) if not bound >> q & 1}
            # A port without a bound key is only probed if no port has one: a cross product.
            alone = not any(mine.values())
            for q, columns in mine.items():
                if columns or alone:
                    keys[bound, q] = columns
                    reached.add(bound | 1 << q)
        return keys

    def _key(self, bound: int, q: int) -> tuple[int, ...]:
        known = self._bound_variables(bound) - self.maybe_unbound
        return tuple(c for c, v in enumerate(self.ports[q].variables) if v in known)

    def _simplify(self, keys: dict[tuple[int, int], tuple[int, ...]]) -> None:
        """Each index costs time at every arrival: a port with many different keys gets one index a column, and compares the rest."""
        for q in range(len(self.ports)):
            mine = {columns for (_, port), columns in keys.items() if port == q and columns}
            if len(mine) > _MOST_KEYS:
                for bound, port in keys:
                    if port == q:
                        keys[bound, q] = keys[bound, q][:1]


class Blocks(StateRecord):
    """The work memory of `kernels.joins` during a step. Joins of the same shape use the same blocks one after the other: with a
    thousand queries their own would be most of the memory."""

    by_port = StateArray[np.int32](record.BY_PORT)
    changes = StateArray[np.int64](record.CHANGES)
    change_chains = StateArray[np.int32](record.CHANGE_CHAINS)
    records = StateArray[np.int64](record.RECORDS)
    pending = StateArray[np.int64](record.PENDING)
    matched = StateArray[np.int64](record.MATCHED)

    def __init__(self, n: int, groups: int) -> None:
        size = join_kernel.BLOCK
        self.records = np.zeros((n - 1) * size * (join_kernel.R_LEAVES + n + groups), np.int64)
        self.pending = np.zeros(size * (1 + 3 * groups), np.int64)
        self.matched = np.zeros((n - 1) * size, np.int64)
        self.by_port = np.zeros(n * join_kernel.LANE, np.int32)
        self.changes = np.zeros(1 + kernel.LOCATED_ROWS * groups, np.int64)
        self.change_chains = np.zeros(join_kernel.CHANGE_CHAINS + len(self.changes), np.int32)


_unused_blocks: defaultdict[tuple[int, int], list[Blocks]] = defaultdict(list)
"""By the numbers of inputs and of groups of indexes."""


class JoinState(StateRecord):
    """Arrays of one join. `rings_of_ids`: large rings may hold ids instead of slots, as the kernels of stars and trees know them."""

    cursor = StateArray[np.int64](ring_record.CURSOR)
    flat_ports = StateArray[np.int64](ring_record.PORTS)
    flat_indexes = StateArray[np.int64](ring_record.INDEXES)
    flat_groups = StateArray[np.int64](ring_record.GROUPS)
    key_columns = StateArray[np.int64](ring_record.KEY_COLUMNS)
    cells = StateArray[np.int64](ring_record.CELLS)
    tables = StateArray[np.int64](ring_record.TABLES)
    located = StateArray[np.int64](ring_record.LOCATED)
    flat_free = StateArray[np.int32](ring_record.FREE)
    free_meta = StateArray[np.int64](ring_record.FREE_META)
    rings = StateArray[np.int32](ring_record.RINGS)
    ring_ids = StateArray[np.int64](ring_record.RING_IDS)
    ring_meta = StateArray[np.int64](ring_record.RING_META)
    levels = StateArray[np.int64](record.LEVELS)
    leaf_places = StateArray[np.int64](record.LEAF_PLACES)
    positions = StateArray[np.int32](ring_record.POSITIONS)
    since = StateArray[np.int32](record.SINCE)
    products = StateArray[np.int64](record.PRODUCTS)
    partners = StateArray[np.int32](record.PARTNERS)
    partner_ids = StateArray[np.int64](record.PARTNER_IDS)
    _stop_word = StateArray[np.int64](record.STOP)

    STATE = (
        *("ports", "indexes", "groups", "cells", "tables", "positions"),
        *("free", "free_meta", "rings", "ring_meta", "cursor"),
    )

    def __init__(self, layout: JoinLayout, *, rings_of_ids: bool = False) -> None:
        self.layout = layout
        self.stop = Stop()
        self._stop_word = self.stop.word
        n = len(layout.ports)
        self.n = n
        self.ports = np.zeros((n, kernel.PORT_FIELDS), np.int64)
        for p, port in enumerate(layout.ports):
            self.ports[p, kernel.WIDTH] = len(port.variables)
            self.ports[p, kernel.FIFO] = port.expires_fifo
            self.ports[p, kernel.FIRST_INDEX] = layout.first[p]
            self.ports[p, kernel.LAST_INDEX] = layout.first[p + 1]
            self.ports[p, kernel.FULL] = -1 if port.expires_fifo else layout.first[p + 1] - 1
            self.ports[p, kernel.KEY_COLUMN] = layout.key_column(p)
        self._init_indexes(layout, rings_of_ids=rings_of_ids)
        self.cells = np.zeros(0, np.int64)
        self.positions = np.zeros(1, np.int32)
        self._set_free(np.zeros((n, 0), np.int32))
        self.free_meta = np.zeros(n, np.int64)
        self._set_rings(aligned(_FIRST_RINGS, np.int32))
        self.ring_meta = _NO_RINGS.copy()
        self.cursor = np.zeros(kernel.CURSOR_FIELDS, np.int64)
        self._make_scratch()
        # Kernels index flat views: two-dimensional access costs them a multiplication and two loads each.
        self.flat_ports = self.ports.reshape(-1)
        self.flat_indexes = self.indexes.reshape(-1)
        self.flat_groups = self.groups.reshape(-1)
        self._lay_out([_FIRST_CAPACITY] * n)

    def after_restore(self) -> None:
        self._set_rings(self.rings)
        self._set_free(self.free)
        self._lay_out_since()

    def _set_free(self, free: Int32) -> None:
        """The free slots of each port, as ring_index.load describes them."""
        self.free, self.flat_free = free, free.reshape(-1)

    def _set_rings(self, rings: Int32) -> None:
        """Their memory, which kernels read as slots and as ids."""
        self.rings, self.ring_ids = rings, rings.view(np.int64)

    def _make_scratch(self) -> None:
        """Work memory whose content is void between two steps."""
        n, star = self.n, self.layout.star
        most = 1 if star else max(len(self.layout.columns_of(p)) for p in range(n))
        # The entries of rows, their keys, and those that are searched for.
        self.located = np.zeros((2 * most + 1) * kernel.LOCATED_ROWS, np.int64)
        self.leaf_places = np.zeros(n * join_kernel.LAID_OUT, np.int64)
        self.products = np.zeros(kernel.LOCATED_ROWS * (n + star_kernel.PRODUCT_COUNTS) if star else 0, np.int64)
        self._make_partners(_FIRST_PARTNERS if star else 0)
        self.levels = np.zeros(n * max(star_kernel.LEVEL_FIELDS, join_kernel.LEVEL_FIELDS), np.int64)

    def _make_partners(self, most: int) -> None:
        self.partners, self.partner_ids = np.zeros(most, np.int32), np.zeros(most, np.int64)

    def borrow_blocks(self) -> Blocks:
        """For one step; to be given back."""
        try:
            # Another engine's thread may take the last ones first.
            return _unused_blocks[self.n, len(self.groups)].pop()
        except IndexError:
            return Blocks(self.n, len(self.groups))

    def give_back(self, blocks: Blocks) -> None:
        _unused_blocks[self.n, len(self.groups)].append(blocks)

    def _init_indexes(self, layout: JoinLayout, *, rings_of_ids: bool) -> None:
        """Indexes of several ports over the same variables share a table."""
        self.indexes = np.zeros((len(layout.indexes), kernel.INDEX_FIELDS), np.int64)
        members: dict[tuple[int, ...], int] = {}
        key_columns: list[int] = []
        for i, index in enumerate(layout.indexes):
            columns, key = layout.index_key(index)
            members[key] = members.get(key, 0) + 1
            self.indexes[i, kernel.PORT] = index.port
            self.indexes[i, kernel.GROUP] = list(members).index(key)
            self.indexes[i, kernel.MEMBER] = members[key]
            self.indexes[i, kernel.KEY_FIRST] = len(key_columns)
            self.indexes[i, kernel.KEY_WIDTH] = len(columns)
            self.indexes[i, kernel.POSITIONS] = -1
            self.indexes[i, kernel.IDS_FROM] = layout.ids_from(index) if rings_of_ids else kernel.NEVER
            self.indexes[i, kernel.ID_COLUMN] = 1 - columns[0] if columns else 0
            key_columns += columns
        self.key_columns = np.array([*key_columns, 0], np.int64)
        known = np.full((len(layout.ports), len(members)), -1, np.int64)
        for i, index in enumerate(layout.indexes):
            known[index.port, self.indexes[i, kernel.GROUP]] = i - layout.first[index.port]
        self.known = known.reshape(-1)
        self.all_known = all(
            known[p, self.indexes[index, kernel.GROUP]] >= 0 for p in range(self.n) for index in layout.indexes_from(p)
        )
        self.groups = np.zeros((len(members), kernel.GROUP_FIELDS), np.int64)
        self.groups[:, kernel.STRIDE] = [1 + count for count in members.values()]
        self.groups[:, kernel.SIZE] = _FIRST_TABLE
        self.groups[:, kernel.LIMIT] = int(_SMALL_USED_PART * _FIRST_TABLE)
        sizes = _FIRST_TABLE * self.groups[:, kernel.STRIDE]
        self.groups[:, kernel.TABLE] = np.cumsum(sizes) - sizes
        self.tables = np.zeros(int(sizes.sum()), np.int64)

    # --- leaves ---------------------------------------------------------------------------------------------------

    def capacity(self, port: int) -> int:
        return self.ports.item(port, kernel.CAPACITY)

    def leaves(self, port: int) -> int:
        """Live leaf mappings of a port."""
        if self.layout.ports[port].expires_fifo:
            return self.ports.item(port, kernel.LEAVES)
        return self.capacity(port) - int(self.free_meta[port])

    def leaf_ids(self, port: int) -> Int64:
        """The ids (width, n) of the live leaf mappings of a port. A copy."""
        cells: Int64 = self._cells_of(port)[self._slots(port)].T.copy()
        return cells

    def _cells_of(self, port: int) -> Int64:
        """The ids of a port's leaves, by slot: (capacity, width)."""
        base, width, capacity = (self.ports.item(port, field) for field in (kernel.BASE, kernel.WIDTH, kernel.CAPACITY))
        return self.cells[base : base + capacity * width].reshape(capacity, width)

    def _slots(self, port: int) -> Int64:
        """The slots of a port's live leaves; where they expire in order, in that order."""
        capacity = self.capacity(port)
        if self.layout.ports[port].expires_fifo:
            slots: Int64 = (self.ports.item(port, kernel.HEAD) + np.arange(self.leaves(port))) % max(capacity, 1)
            return slots
        return np.setdiff1d(np.arange(capacity), self.free[port, : int(self.free_meta[port])])

    def has_room(self, new: Sequence[int]) -> bool:
        """Is there room for `new[p]` more rows in each port?"""
        return all(self.leaves(p) + count <= self.capacity(p) for p, count in enumerate(new) if count)

    def ensure_leaves(self, new: Sequence[int]) -> None:
        """Make room for `new[p]` more rows in each port; rows that expire in the same step still keep theirs."""
        if self.has_room(new):
            return
        # All that are nearly full grow at once: each time all of them are moved.
        self._lay_out([max(self.capacity(p), int((self.leaves(p) + new[p]) * _ROOM)) for p in range(self.n)])

    def _lay_out(self, capacities: Sequence[int]) -> None:
        """Move every port to a buffer of the given capacity, never smaller."""
        old_ports = self.ports.copy()
        widths = old_ports[:, kernel.WIDTH]
        cells = np.zeros(int(sum(w * c for w, c in zip(widths, capacities, strict=True))), np.int64)
        # Ports that expire in order never look for a free slot.
        most_free = max(
            (c for c, port in zip(capacities, self.layout.ports, strict=True) if not port.expires_fifo), default=0
        )
        free = np.zeros((self.n, most_free), np.int32)
        base = 0
        for p, capacity in enumerate(capacities):
            old_capacity, width, head = self.capacity(p), int(widths[p]), int(old_ports[p, kernel.HEAD])
            expires_fifo = self.layout.ports[p].expires_fifo
            old_base = int(old_ports[p, kernel.BASE])
            old = self.cells[old_base : old_base + old_capacity * width].reshape(old_capacity, width)
            new = cells[base : base + capacity * width].reshape(capacity, width)
            if expires_fifo and capacity != old_capacity and head + self.leaves(p) > old_capacity:
                slots = (head + (np.arange(old_capacity) - head) % old_capacity) % capacity
                new[slots] = old
                self._renumber_slots(p, slots)
            else:
                new[:old_capacity] = old
            if not expires_fifo:
                kept = int(self.free_meta[p])
                added = np.arange(old_capacity, capacity, dtype=np.int32)
                free[p, :kept] = self.free[p, :kept]
                free[p, kept : kept + len(added)] = added
                self.free_meta[p] = kept + len(added)
            self.ports[p, kernel.BASE] = base
            self.ports[p, kernel.CAPACITY] = capacity
            base += capacity * width
        self.cells = cells
        self._set_free(free)
        self._lay_out_positions([np.arange(length) for length in old_ports[:, kernel.CAPACITY].tolist()])

    def _renumber_slots(self, port: int, slots: Int64) -> None:
        kernel.renumber_slots(
            port, self.flat_ports, self.flat_indexes, self.flat_groups, self.tables, self.rings, slots
        )

    def _lay_out_positions(self, slots: Sequence[Int64]) -> None:
        """By port, the former slots of those that are the first ones now."""
        old, top = self.positions, 0
        blocks: list[Int32] = []
        for i, index in enumerate(self.layout.indexes):
            if self.layout.ports[index.port].expires_fifo:
                continue
            block = np.zeros(self.capacity(index.port), np.int32)
            before = int(self.indexes[i, kernel.POSITIONS])
            if before >= 0:
                block[: len(slots[index.port])] = old[before + slots[index.port]]
            self.indexes[i, kernel.POSITIONS] = top
            top += len(block)
            blocks.append(block)
        self.positions = np.concatenate(blocks) if blocks else np.zeros(1, np.int32)
        self._lay_out_since()

    def _lay_out_since(self) -> None:
        """Nothing is kept there from step to step."""
        top = 0
        for p, port in enumerate(self.layout.ports):
            self.ports[p, kernel.SINCE] = -1 if port.expires_fifo else top
            top += 0 if port.expires_fifo else self.capacity(p)
        self.since = np.zeros(top, np.int32)

    def release(self, port: int, slots: Int32) -> None:
        """Free slots of a port whose leaves expire in any order."""
        count = int(self.free_meta[port])
        self.free[port, count : count + len(slots)] = slots
        self.free_meta[port] = count + len(slots)

    # --- between two steps -------------------------------------------------------------------------------------------

    def shrink(self) -> None:
        """Give back room after keys or leaves have become much fewer."""
        self._shrink_tables()
        self._shrink_leaves()
        self._shrink_rings()

    def _shrink_tables(self) -> None:
        sizes, limits = self._sizes_for(
            self.live_keys().tolist(), [0] * len(self.groups), [_FIRST_TABLE] * len(self.groups)
        )
        if SHRINK_FROM * int(np.dot(sizes, self.groups[:, kernel.STRIDE])) <= len(self.tables):
            self._enter_tables(sizes, limits)

    def _shrink_leaves(self) -> None:
        capacities = [max(_FIRST_CAPACITY, int(self.leaves(p) * _ROOM)) for p in range(self.n)]
        if SHRINK_FROM * sum(capacities) > sum(map(self.capacity, range(self.n))):
            return
        widths = self.ports[:, kernel.WIDTH].tolist()
        slots = [self._slots(p) for p in range(self.n)]
        cells = np.zeros(sum(map(mul, widths, capacities)), np.int64)
        free = np.zeros(
            (
                self.n,
                max([c for c, p in zip(capacities, self.layout.ports, strict=True) if not p.expires_fifo], default=0),
            ),
            np.int32,
        )
        base = 0
        for p, (capacity, width) in enumerate(zip(capacities, widths, strict=True)):
            count = len(slots[p])
            cells[base : base + count * width] = self._cells_of(p)[slots[p]].reshape(-1)
            if count:
                self._renumber_slots(p, new_numbers(slots[p], self.capacity(p)))
            if not self.layout.ports[p].expires_fifo:
                free[p, : capacity - count] = np.arange(count, capacity)
                self.free_meta[p] = capacity - count
            base += capacity * width
        self.ports[:, kernel.BASE] = np.cumsum(np.multiply(widths, capacities)) - np.multiply(widths, capacities)
        self.ports[:, kernel.CAPACITY], self.ports[:, kernel.HEAD] = capacities, 0
        self.cells = cells
        self._set_free(free)
        self._lay_out_positions(slots)

    def _shrink_rings(self) -> None:
        runs = np.empty(kernel.RUN_SIZES, np.int64)
        of_slots, of_ids, next_one = kernel.count_least_places(self.flat_groups, self.tables, runs)
        least = of_slots + of_ids
        places = max(_FIRST_RINGS, int(least * _ROOM) + 5 * next_one // 2) & -2
        if SHRINK_FROM * places <= len(self.rings):
            self._copy_rings(runs, places, anyhow=False)

    # --- growth within a step ---------------------------------------------------------------------------------------

    def grow(self, status: int) -> None:
        """Make room where `kernels.joins` ran short of it, according to the status that it returned. Stopped, if it is to stop."""
        if status == kernel.STOP_ASKED:
            self.stop.look()
        elif status == kernel.TABLE_FULL:
            self._grow_tables()
        elif status == kernel.RINGS_FULL:
            self._grow_rings()
        elif status == kernel.PARTNERS_FULL:
            self._make_partners(2 * len(self.partners))
        elif status == kernel.RING_FULL:
            raise RunError(
                f"a join's input holds more than {kernel.MOST_IN_RING:,} mappings of one key, which a ring index has no room for;"
                " a smaller window would have fewer"
            )
        else:
            raise AssertionError(f"a retracted mapping was never inserted (status {status})")

    def _grow_rings(self) -> None:
        """Make room for larger rings: compact the memory if the rings need much less than they have, else enlarge it."""
        if len(self.rings) >= _FEW_PLACES and self._move_rings():
            return
        more = min(len(self.rings) // _RINGS_PART, _MOST_PLACES - len(self.rings)) & -2
        if more == 0:
            raise RunError(
                f"a join's inputs hold more mappings than the {_MOST_PLACES:,} places of its ring indexes; smaller windows, or"
                " a key that fewer of them share, would need less"
            )
        self._set_rings(longer_aligned(self.rings, len(self.rings) + more, np.int32))

    def _move_rings(self) -> bool:
        """Compact the memory of rings: a key has room for the most leaves that it ever had, until it has none, and then only for
        those that it has now; the ring that was short has room then, wherever it begins. False: little would be gained, and nothing
        is changed."""
        runs = np.empty(kernel.RUN_SIZES, np.int64)
        of_slots, of_ids, next_one = kernel.count_least_places(self.flat_groups, self.tables, runs)
        least, places = of_slots + of_ids, len(self.rings)
        if places < max(_SLOTS_ROOM * of_slots + _IDS_ROOM * of_ids, least + 5 * next_one // 2):
            return False
        self._copy_rings(runs, places, anyhow=places >= 2 * (least + next_one))
        return True

    def _copy_rings(self, runs: Int64, places: int, *, anyhow: bool) -> None:
        """Move rings to another memory, of so many places; `anyhow`: in any order."""
        rings, ids = self.rings, self.ring_ids
        self._set_rings(aligned(places, np.int32))
        self.ring_meta[:] = _NO_RINGS
        kernel.move_rings(
            self.flat_groups, self.tables, runs, anyhow, rings, ids, self.rings, self.ring_ids, self.ring_meta
        )

    def _grow_tables(self) -> None:
        """Purge entries with a zero counter, all at once (3.4), and enlarge the tables that are full without them."""
        live, groups = self.live_keys().tolist(), self.groups
        now, used = (groups[:, each].tolist() for each in (kernel.SIZE, kernel.USED))
        size, limits = self._sizes_for(live, [taken - keys for taken, keys in zip(used, live, strict=True)], now)
        if size != now:
            self._enter_tables(size, limits)
            return
        # Entries move: those that were found are to be found again.
        self.cursor[kernel.LOCATED] = 0
        groups[:, kernel.LIMIT] = limits
        kernel.purge(self.flat_groups, self.tables, self.rings, self.ring_meta, self.located)

    def _enter_tables(self, size: Sequence[int], limits: Sequence[int]) -> None:
        """Move entries to tables of these sizes, of which so many may be used; entries with a zero counter are left behind."""
        self.cursor[kernel.LOCATED] = 0
        self.groups[:, kernel.LIMIT] = limits
        sizes = np.array(size, np.int64)
        words = sizes * self.groups[:, kernel.STRIDE]
        tables = np.zeros(int(words.sum()), np.int64)
        kernel.enter_tables(
            self.tables, self.flat_groups, tables, np.cumsum(words) - words, sizes, self.rings, self.ring_meta
        )
        self.tables = tables

    def _sizes_for(
        self, live: Sequence[int], gone: Sequence[int], least_sizes: Sequence[int]
    ) -> tuple[list[int], list[int]]:
        """The sizes that tables need for so many live keys, not less than the given ones, and how many entries of each may be used.

        `gone`: how many keys have lost all leaves since the last purge.

        A small table with many new keys beside a large one has room for a part of the large one's size: as all tables are purged
        together, each new key of the small one would else cost a part of the large one.
        """
        # Numbers of Python: they are few, and keys that come and go fill a small table at each step.
        stride = self.groups[:, kernel.STRIDE].tolist()
        sizes, are_small = [], []
        for size, keys, lost in zip(least_sizes, live, gone, strict=True):
            turnover = max(_TURNOVER_ROOM * lost, _LEAST_TURNOVER_ROOM) if lost else 0
            small = max(size, int(_SMALL_KEYS_ROOM * keys + turnover))
            are_small.append(small <= _SMALL_TABLE)
            sizes.append(small if are_small[-1] else max(size, int(_KEYS_ROOM * keys + turnover), _SMALL_TABLE))
        least = sum(map(mul, sizes, stride)) // _SMALLEST_PART
        enough = [max(size, -(-least // each)) for size, each in zip(sizes, stride, strict=True)]
        parts = [_SMALL_USED_PART if is_small else _USED_PART for is_small in are_small]
        return enough, [int(part * size) for part, size in zip(parts, enough, strict=True)]

    def live_keys(self) -> Int64:
        """By group of indexes, how many keys have leaves."""
        live = np.zeros(len(self.groups), np.int64)
        kernel.count_live(self.flat_groups, self.tables, live)
        return live

    def live_ids(self) -> Int64:
        """Ids that leaf mappings may refer to (a superset: cells not used now are included)."""
        return self.cells

    @property
    def nbytes(self) -> int:
        of_leaves = (self.cells, self.positions, self.since, self.free)
        arrays = (*of_leaves, self.rings, self.tables, self.partners, self.partner_ids)
        return sum(array.nbytes for array in arrays)
