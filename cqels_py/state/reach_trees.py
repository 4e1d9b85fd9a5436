"""The state of a transitive closure: the edges, the nodes that they join, and a spanning tree for each source.

The arrays of `kernels.structures.reach_trees`, and their growth.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.rows import transitive_closure as kernel
from cqels_py.kernels.structures import reach_trees as layout
from cqels_py.kernels.structures.hash_table import ZERO
from cqels_py.state.arrays import SHRINK_FROM, new_numbers
from cqels_py.state.key_table import KeyTable
from cqels_py.state.stop import Stop

_SMALLEST = 64


class ReachTrees(StateRecord):
    """Edges (start, end and `context` more ids, by graph), counted, and the pairs (source, node) that they connect.

    `only_source`: the ids of the one node whose tree is kept; None: that of every node. `loops`: are nodes that reach themselves
    results?
    """

    edges = StateArray[np.int32](kernel.EDGES)
    heads = StateArray[np.int32](kernel.HEADS)
    trees = StateArray[np.int32](kernel.TREES)
    tree_table = StateArray[np.int64](kernel.TREE_TABLE)
    queue = StateArray[np.int32](kernel.QUEUE)
    detached = StateArray[np.int32](kernel.DETACHED_NODES)
    cursor = StateArray[np.int64](kernel.CURSOR)
    _options = StateArray[np.int64](kernel.OPTIONS)
    _stop_word = StateArray[np.int64](kernel.STOP)

    STATE = ("edge_index", "node_index", "edges", "heads", "trees", "tree_table", "queue", "detached", "cursor")

    def __init__(self, context: int, only_source: tuple[int, ...] | None, *, loops: bool = True) -> None:
        self.stop = Stop()
        self._stop_word = self.stop.word
        self.edge_index = KeyTable(2 + context)
        self.node_index = KeyTable(1 + context)
        self.edges = np.zeros(self.edge_index.capacity * layout.EDGE_FIELDS, np.int32)
        self.heads = np.full(self.node_index.capacity * layout.HEAD_FIELDS, layout.NONE, np.int32)
        self.trees = np.zeros(_SMALLEST * layout.TREE_FIELDS, np.int32)
        self.tree_table = np.zeros(2 * _SMALLEST, np.int64)
        self.queue = np.zeros(_SMALLEST, np.int32)
        self.detached = np.zeros(_SMALLEST, np.int32)
        self.cursor = np.zeros(kernel.CURSOR_FIELDS, np.int64)
        self.cursor[kernel.FREE] = layout.NONE
        self._options = np.zeros(kernel.OPTION_FIELDS, np.int64)
        self._options[kernel.ONLY_SOURCE] = -1 if only_source is None else self._keep_node(only_source)
        self._options[kernel.LOOPS] = loops

    def _keep_node(self, ids: tuple[int, ...]) -> int:
        """A node that is kept even without edges: the first of the table."""
        columns = np.array(ids, np.int64)[:, np.newaxis]
        kernel.keep_node(self.node_index.address, columns)
        assert self.node_index.meta[ZERO] == 0
        return 0

    @property
    def only_source(self) -> int:
        """The number of the one node whose tree is kept, or -1."""
        return self._options.item(kernel.ONLY_SOURCE)

    @property
    def pairs(self) -> int:
        """How many pairs are connected now."""
        return int(self.cursor[kernel.LIVE])

    def ensure(self, rows: int) -> None:
        """Make room for `rows` new edges, and for their ends."""
        if self.edge_index.ensure(rows):
            self.edges = _grown(self.edges, self.edge_index.capacity * layout.EDGE_FIELDS)
        if self.node_index.ensure(2 * rows):
            known = len(self.heads)
            self.heads = _grown(self.heads, self.node_index.capacity * layout.HEAD_FIELDS)
            self.heads[known:] = layout.NONE

    def grow_trees(self) -> None:
        """Make room for twice as many pairs."""
        self.trees = _grown(self.trees, 2 * len(self.trees))
        self.queue = _grown(self.queue, 2 * len(self.queue))
        self.detached = _grown(self.detached, 2 * len(self.detached))
        table = np.zeros(2 * len(self.tree_table), np.int64)
        layout.enter_all(self.trees, self.tree_table, table)
        self.tree_table = table

    def shrink(self) -> None:
        """Give back room, between two steps, after edges or pairs have become much fewer."""
        edges, nodes, room = self.edge_index.capacity, self.node_index.capacity, len(self.queue)
        kept_edges, kept_nodes = self.edge_index.compact(), self.node_index.compact()
        fewer = max(_SMALLEST, 1 << (self.pairs * 3 // 2).bit_length())
        if SHRINK_FROM * fewer <= room:
            room = fewer
        elif kept_edges is None and kept_nodes is None:
            return
        kept_trees = np.sort((self.tree_table[self.tree_table != 0] & layout.LOWER) - 1)
        of_trees = np.append(new_numbers(kept_trees, len(self.queue)), layout.NONE)
        of_edges, of_nodes = _numbers(kept_edges, edges), _numbers(kept_nodes, nodes)
        self.edges = _rows(self.edges, kept_edges, self.edge_index.capacity, {
            (layout.START, layout.END): of_nodes,
            (layout.NEXT_OUT, layout.BEFORE_OUT, layout.NEXT_IN, layout.BEFORE_IN): of_edges,
            (layout.FIRST_USER,): of_trees,
        })  # fmt: skip
        self.heads = _rows(
            self.heads, kept_nodes, self.node_index.capacity, {(layout.FIRST_OUT, layout.FIRST_IN): of_edges}
        )
        self.trees = _rows(self.trees, kept_trees, room, {
            (layout.SOURCE, layout.NODE): of_nodes,
            (layout.EDGE,): of_edges,
            (layout.NEXT_USER, layout.BEFORE_USER): of_trees,
        })  # fmt: skip
        self.queue, self.detached = np.zeros((2, room), np.int32)
        self.cursor[kernel.USED], self.cursor[kernel.FREE] = len(kept_trees), layout.NONE
        self.tree_table = np.zeros(2 * room, np.int64)
        layout.enter_all(self.trees, np.arange(1, len(kept_trees) + 1), self.tree_table)

    def ids_of(self, nodes: npt.NDArray[np.int32]) -> Ids:
        """The ids of nodes by number: (width, n)."""
        width = self.node_index.width
        return self.node_index.keys[: self.node_index.capacity * width].reshape(-1, width)[nodes].T

    def live_ids(self) -> tuple[Ids, ...]:
        return (self.edge_index.live_ids(), self.node_index.live_ids())

    @property
    def nbytes(self) -> int:
        arrays = (self.edges, self.heads, self.trees, self.tree_table, self.queue, self.detached, self.cursor)
        return self.edge_index.nbytes + self.node_index.nbytes + sum(array.nbytes for array in arrays)


def _grown(array: npt.NDArray[np.int32], size: int) -> npt.NDArray[np.int32]:
    return np.concatenate([array, np.zeros(size - len(array), np.int32)])


def _numbers(kept: npt.NDArray[np.int64] | None, before: int) -> npt.NDArray[np.int64]:
    """As `new_numbers`, where None keeps all as they are; behind them the number of none, which is -1."""
    return np.append(np.arange(before) if kept is None else new_numbers(kept, before), layout.NONE)


def _rows(
    array: npt.NDArray[np.int32],
    kept: npt.NDArray[np.int64] | None,
    room: int,
    numbers: Mapping[tuple[int, ...], npt.NDArray[np.int64]],
) -> npt.NDArray[np.int32]:
    """Records of which these are kept, None for all, in an array with room for so many; fields refer to others by new numbers."""
    fields = 1 + max(map(max, numbers))
    records = array.reshape(-1, fields)
    found = np.full((room, fields), layout.NONE, np.int32)
    count = len(records) if kept is None else len(kept)
    found[:count] = records if kept is None else records[kept]
    for places, new in numbers.items():
        found[:count, places] = new[found[:count, places]]
    return found.reshape(-1)
