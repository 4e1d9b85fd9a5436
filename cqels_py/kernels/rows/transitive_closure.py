"""The transitive closure of a changing graph: which nodes are reached from which over one edge or more.

As in streaming evaluation of path queries (Pacaci, Bonifati and Özsu 2020): a spanning tree for each source. An
inserted edge extends the trees that reach its start. A retracted edge detaches the subtrees below it. Nodes that
another edge still reaches are attached to it, and the others are retracted.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.primitives.state_record import int32s, int64s
from cqels_py.kernels.structures.hash_table import hash_row
from cqels_py.kernels.structures.key_index import add_key, count_entry, find_key, has_room, open_index
from cqels_py.kernels.structures.reach_trees import (
    DETACHED,
    EDGE,
    EDGE_FIELDS,
    END,
    FIRST_IN,
    FIRST_OUT,
    FIRST_USER,
    HEAD_FIELDS,
    NEXT_IN,
    NEXT_OUT,
    NEXT_USER,
    NODE,
    NONE,
    SOURCE,
    START,
    TREE_FIELDS,
    attach,
    detach,
    find_pair,
    insert_pair,
    link_edge,
    remove_pair,
    unlink_edge,
)

DONE, TREES_FULL, OUT_FULL, NOT_THERE, KEYS_FULL, STOP_ASKED = range(6)
ROW, PHASE, AT, QUEUED, TAKEN, DETACHED_COUNT, RETRACTED, OUT = 0, 1, 2, 3, 4, 5, 6, 7
USED, FREE, LIVE = 8, 9, 10
CURSOR_FIELDS = 11
NEW, ATTACHING, EXTENDING, DETACHING, RETRACTING = 0, 1, 2, 3, 4

EDGES, HEADS, TREES, TREE_TABLE, QUEUE, DETACHED_NODES, CURSOR, OPTIONS, STOP = range(9)
"""The arrays of the record of ReachTrees. STOP: the word of `state.stop.Stop`."""
ONLY_SOURCE, LOOPS, OPTION_FIELDS = range(3)
"""OPTIONS: the number of the one node whose tree is kept, or -1; are pairs of a node with itself results?"""

Int32 = npt.NDArray[np.int32]
Int64 = npt.NDArray[np.int64]


class Forest(NamedTuple):
    """The edges and the trees over them (structures/reach_trees.py), the tree nodes whose edges are still to be
    followed, those that are detached, and the cursor."""

    edges: Int32
    heads: Int32
    trees: Int32
    tree_table: Int64
    queue: Int32
    detached: Int32
    cursor: Int64
    stop: Int64
    only_source: int
    loops: int


class Pairs(NamedTuple):
    """Room for results: numbers of nodes, ticks and signs."""

    source: Int32
    node: Int32
    tick: Int32
    sign: npt.NDArray[np.int8]


@jit_inline
def _open_forest(state):
    """The Forest of a record."""
    options = int64s(state, OPTIONS)
    return Forest(
        int32s(state, EDGES),
        int32s(state, HEADS),
        int32s(state, TREES),
        int64s(state, TREE_TABLE),
        int32s(state, QUEUE),
        int32s(state, DETACHED_NODES),
        int64s(state, CURSOR),
        int64s(state, STOP),
        options[ONLY_SOURCE],
        options[LOOPS],
    )


@jit_inline
def _node(nodes, ends, row):
    """The number of the node at an edge's end, counted once more."""
    width = ends.shape[0]
    hashed = hash_row(ends, row, width)
    node = find_key(nodes, width, ends, row, hashed)
    if node < 0:
        node = add_key(nodes, width, ends, row, hashed)
    count_entry(nodes, node, np.int64(1))
    return node


@jit
def keep_node(nodes, ends):
    """Insert the one node in `ends` (width, 1) permanently into the index with this address; returns its number."""
    return _node(open_index(nodes), ends, 0)


@jit_inline
def _emit(source, node, tick, sign, cursor, out):
    k = cursor[OUT]
    out.source[k] = source
    out.node[k] = node
    out.tick[k] = tick
    out.sign[k] = sign
    cursor[OUT] = k + 1


@jit_inline
def _attach_and_queue(t, edge, forest):
    """Attach a tree node to an edge, and queue it: the edges out of it are followed later."""
    attach(forest.edges, forest.trees, t, edge)
    forest.queue[forest.cursor[QUEUED]] = t
    forest.cursor[QUEUED] += 1


@jit_inline
def _reach(source, edge, tick, forest, out):
    """The source reaches the edge's start, and so its end: add a tree node, or attach the detached one. Unless DONE is
    returned nothing has changed."""
    trees, cursor = forest.trees, forest.cursor
    node = np.int64(forest.edges[edge * EDGE_FIELDS + END])
    if node == source and forest.loops == 0:
        return DONE
    t = find_pair(trees, forest.tree_table, source, node)
    if t >= 0:
        if trees[t * TREE_FIELDS + EDGE] == DETACHED:
            _attach_and_queue(t, edge, forest)
        return DONE
    t = cursor[FREE]
    if t < 0 and cursor[USED] * TREE_FIELDS == len(trees):
        return TREES_FULL
    if cursor[OUT] == len(out.tick):
        return OUT_FULL
    if t >= 0:
        cursor[FREE] = trees[t * TREE_FIELDS + NEXT_USER]
    else:
        t = cursor[USED]
        cursor[USED] += 1
    cursor[LIVE] += 1
    trees[t * TREE_FIELDS + SOURCE] = source
    trees[t * TREE_FIELDS + NODE] = node
    insert_pair(trees, forest.tree_table, t)
    _attach_and_queue(t, edge, forest)
    _emit(source, node, tick, 1, cursor, out)
    return DONE


@jit_inline
def _remove_node(t, forest):
    cursor = forest.cursor
    remove_pair(forest.trees, forest.tree_table, t)
    forest.trees[t * TREE_FIELDS + NEXT_USER] = cursor[FREE]
    cursor[FREE] = t
    cursor[LIVE] -= 1


@jit_inline
def _detach_subtree(t, forest):
    """Detach a tree node and all nodes below it; returns how many."""
    edges, trees, detached = forest.edges, forest.trees, forest.detached
    source = np.int64(trees[t * TREE_FIELDS + SOURCE])
    detach(edges, trees, t)
    detached[0] = t
    count = 1
    i = 0
    while i < count:
        node = np.int64(trees[np.int64(detached[i]) * TREE_FIELDS + NODE])
        i += 1
        if node == source:
            continue
        edge = np.int64(forest.heads[node * HEAD_FIELDS + FIRST_OUT])
        while edge >= 0:
            child = find_pair(trees, forest.tree_table, source, np.int64(edges[edge * EDGE_FIELDS + END]))
            if child >= 0 and trees[child * TREE_FIELDS + EDGE] == edge:
                detach(edges, trees, child)
                detached[count] = child
                count += 1
            edge = np.int64(edges[edge * EDGE_FIELDS + NEXT_OUT])
    return count


@jit_inline
def _reconnect(forest):
    """Attach detached nodes to edges whose start the source still reaches: the newest, which stays longest in a window."""
    edges, trees, detached = forest.edges, forest.trees, forest.detached
    source = np.int64(trees[np.int64(detached[0]) * TREE_FIELDS + SOURCE])
    for i in range(forest.cursor[DETACHED_COUNT]):
        t = np.int64(detached[i])
        edge = np.int64(forest.heads[np.int64(trees[t * TREE_FIELDS + NODE]) * HEAD_FIELDS + FIRST_IN])
        while edge >= 0:
            start = np.int64(edges[edge * EDGE_FIELDS + START])
            reached = start == source
            if not reached:
                parent = find_pair(trees, forest.tree_table, source, start)
                reached = parent >= 0 and trees[parent * TREE_FIELDS + EDGE] != DETACHED
            if reached:
                _attach_and_queue(t, edge, forest)
                break
            edge = np.int64(edges[edge * EDGE_FIELDS + NEXT_IN])


@jit_inline
def _change_edge(row, sign, columns, ends, edge_index, nodes, forest):
    """Insert or retract one copy of an edge, and set the phase for the first or the last one. False: it was not
    there."""
    cursor, width = forest.cursor, columns.shape[0]
    hashed = hash_row(columns, row, width)
    edge = find_key(edge_index, width, columns, row, hashed)
    if sign > 0:
        if edge < 0:
            edge = add_key(edge_index, width, columns, row, hashed)
        if count_entry(edge_index, edge, np.int64(1)) == 0:
            start = _node(nodes, ends, row)
            end = _node(nodes, ends, columns.shape[1] + row)
            link_edge(forest.edges, forest.heads, edge, start, end)
            cursor[PHASE] = ATTACHING
            cursor[QUEUED] = cursor[TAKEN] = cursor[DETACHED_COUNT] = 0
    else:
        if edge < 0 or edge_index.counts[edge] == 0:
            return False
        if count_entry(edge_index, edge, np.int64(-1)) == 1:
            unlink_edge(forest.edges, forest.heads, edge)
            cursor[PHASE] = DETACHING
    cursor[AT] = edge
    return True


@jit_inline
def _attach_end(edge, tick, forest, out):
    """Add the end of a new edge to all trees that have its start. When this is resumed, nodes that were attached before
    are found and skipped."""
    edges, trees, only_source = forest.edges, forest.trees, forest.only_source
    start = np.int64(edges[edge * EDGE_FIELDS + START])
    status = DONE
    if only_source < 0 or start == only_source:
        status = _reach(start, edge, tick, forest, out)
    elif find_pair(trees, forest.tree_table, only_source, start) >= 0:
        status = _reach(only_source, edge, tick, forest, out)
    # The other sources that reach the start are those of the tree nodes on the edges into it.
    into = np.int64(forest.heads[start * HEAD_FIELDS + FIRST_IN]) if only_source < 0 else NONE
    while status == DONE and into >= 0:
        t = np.int64(edges[into * EDGE_FIELDS + FIRST_USER])
        while status == DONE and t >= 0:
            status = _reach(np.int64(trees[t * TREE_FIELDS + SOURCE]), edge, tick, forest, out)
            t = np.int64(trees[t * TREE_FIELDS + NEXT_USER])
        into = np.int64(edges[into * EDGE_FIELDS + NEXT_IN])
    return status


@jit_inline
def _extend(tick, forest, out):
    """Follow the edges out of queued tree nodes. Below an attached node all nodes were reached before: only detached ones
    are attached there."""
    edges, trees, cursor = forest.edges, forest.trees, forest.cursor
    while cursor[TAKEN] < cursor[QUEUED]:
        t = np.int64(forest.queue[cursor[TAKEN]])
        source = np.int64(trees[t * TREE_FIELDS + SOURCE])
        node = np.int64(trees[t * TREE_FIELDS + NODE])
        edge = np.int64(forest.heads[node * HEAD_FIELDS + FIRST_OUT]) if node != source else NONE
        while edge >= 0:
            status = _reach(source, edge, tick, forest, out)
            if status != DONE:
                return status
            edge = np.int64(edges[edge * EDGE_FIELDS + NEXT_OUT])
        cursor[TAKEN] += 1
    return DONE


@jit_inline
def _retract(tick, forest, out):
    """Retract the nodes that have stayed detached."""
    trees, cursor = forest.trees, forest.cursor
    while cursor[RETRACTED] < cursor[DETACHED_COUNT]:
        t = np.int64(forest.detached[cursor[RETRACTED]])
        if trees[t * TREE_FIELDS + EDGE] == DETACHED:
            if cursor[OUT] == len(out.tick):
                return OUT_FULL
            _emit(trees[t * TREE_FIELDS + SOURCE], trees[t * TREE_FIELDS + NODE], tick, -1, cursor, out)
            _remove_node(t, forest)
        cursor[RETRACTED] += 1
    return DONE


@jit_inline
def _detach_next(edge, nodes, forest):
    """Detach the next subtree below a retracted edge. False: there is none any more, and the edge's ends are released."""
    edges, cursor = forest.edges, forest.cursor
    t = np.int64(edges[edge * EDGE_FIELDS + FIRST_USER])
    if t < 0:
        count_entry(nodes, np.int64(edges[edge * EDGE_FIELDS + START]), np.int64(-1))
        count_entry(nodes, np.int64(edges[edge * EDGE_FIELDS + END]), np.int64(-1))
        return False
    cursor[DETACHED_COUNT] = _detach_subtree(t, forest)
    cursor[QUEUED] = cursor[TAKEN] = cursor[RETRACTED] = 0
    _reconnect(forest)
    return True


@jit_inline
def _continue(edge, tick, nodes, forest, out):
    """Go through the phases from the current one on, until the edge's change is complete."""
    cursor = forest.cursor
    if cursor[PHASE] == ATTACHING:
        status = _attach_end(edge, tick, forest, out)
        if status != DONE:
            return status
        cursor[PHASE] = EXTENDING
    while cursor[PHASE] != NEW:
        if forest.stop[0] != 0:
            return STOP_ASKED
        if cursor[PHASE] == DETACHING:
            cursor[PHASE] = EXTENDING if _detach_next(edge, nodes, forest) else NEW
        if cursor[PHASE] == EXTENDING:
            status = _extend(tick, forest, out)
            if status != DONE:
                return status
            cursor[PHASE] = RETRACTING if cursor[DETACHED_COUNT] > 0 else NEW
        if cursor[PHASE] == RETRACTING:
            status = _retract(tick, forest, out)
            if status != DONE:
                return status
            cursor[PHASE] = DETACHING
    return DONE


@jit_flat
def step(tick, sign, columns, ends, state, edges, nodes, made, out_source, out_node, out_tick, out_sign):
    """Process edges from cursor[ROW] on: `columns` have start, end, and the columns that tell graphs apart.

    `ends` (width, 2n): the nodes at which the n edges start, then those at which they end. `state`, `edges`, `nodes`:
    the addresses of the records of a ReachTrees and of its indexes. `made`: so many results are in the output already.
    Returns DONE, or why it stopped: the caller enlarges it and calls again with the same edges. Results are node
    numbers: (source, node).
    """
    forest, edge_index, node_index = _open_forest(state), open_index(edges), open_index(nodes)
    out, cursor, rows = Pairs(out_source, out_node, out_tick, out_sign), forest.cursor, len(tick)
    # Between two calls the current edge may be in its index already.
    left = rows - cursor[ROW] - np.int64(cursor[PHASE] != NEW)
    if not (has_room(edge_index, columns.shape[0], left) and has_room(node_index, ends.shape[0], 2 * left)):
        return KEYS_FULL
    cursor[OUT] = made
    while cursor[ROW] < rows:
        row = cursor[ROW]
        if cursor[PHASE] == NEW and not _change_edge(row, sign[row], columns, ends, edge_index, node_index, forest):
            return NOT_THERE
        status = _continue(cursor[AT], tick[row], node_index, forest, out)
        if status != DONE:
            return status
        cursor[ROW] = row + 1
    cursor[ROW] = 0
    return DONE
