"""The state of a transitive closure: the edges, the nodes that they join, and a spanning tree for each source.

The arrays of `kernels.structures.reach_trees`, and their growth.
"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.rows import transitive_closure as kernel
from cqels_py.kernels.structures import reach_trees as layout
from cqels_py.kernels.structures.hash_table import ZERO
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
