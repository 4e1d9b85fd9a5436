"""The transitive closure of a changing graph: which nodes are reached from which over one edge or more.

As in streaming evaluation of path queries (Pacaci, Bonifati and Özsu 2020): a spanning tree for each source. An
inserted edge extends the trees that reach its start. A retracted edge detaches the subtrees below it. Nodes that
another edge still reaches are attached to it, and the others are retracted.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_flat, jit_inline
from cqels_py.kernels.structures.hash_table import ZERO, add, find, hash_row
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

DONE, TREES_FULL, OUT_FULL, NOT_THERE = 0, 1, 2, 3
ROW, PHASE, AT, QUEUED, TAKEN, DETACHED_COUNT, RETRACTED, OUT = 0, 1, 2, 3, 4, 5, 6, 7
USED, FREE, LIVE = 8, 9, 10
CURSOR_FIELDS = 11
NEW, ATTACHING, EXTENDING, DETACHING, RETRACTING = 0, 1, 2, 3, 4


@jit_inline
def _node(node_table, node_keys, node_counts, node_free, node_meta, width, ends, row):
    """The number of the node at an edge's end, counted once more."""
    mask = np.int64(len(node_table) - 1)
    hashed = hash_row(ends, row, width)
    node = find(node_table, mask, node_keys, width, ends, row, hashed)
    if node < 0:
        node = add(node_table, mask, node_keys, width, ends, row, hashed, node_counts, node_free, node_meta)
    if node_counts[node] == 0:
        node_meta[ZERO] -= 1
    node_counts[node] += 1
    return node


@jit
def keep_node(node_table, node_keys, node_counts, node_free, node_meta, width, ends):
    """Insert the one node in `ends` (`width`, 1) permanently; returns its number."""
    return _node(node_table, node_keys, node_counts, node_free, node_meta, width, ends, 0)


@jit_inline
def _release(node_counts, node_meta, node):
    node_counts[node] -= 1
    if node_counts[node] == 0:
        node_meta[ZERO] += 1


@jit_inline
def _emit(source, node, tick, sign, cursor, out_source, out_node, out_tick, out_sign):
    k = cursor[OUT]
    out_source[k] = source
    out_node[k] = node
    out_tick[k] = tick
    out_sign[k] = sign
    cursor[OUT] = k + 1


@jit_inline
def _attach_and_queue(edges, trees, t, edge, queue, cursor):
    """Attach a tree node to an edge, and queue it: the edges out of it are followed later."""
    attach(edges, trees, t, edge)
    queue[cursor[QUEUED]] = t
    cursor[QUEUED] += 1


@jit_inline
def _reach(
    source, edge, tick, loops, edges, trees, tree_table, queue, cursor, out_source, out_node, out_tick, out_sign
):
    """The source reaches the edge's start, and so its end: add a tree node, or attach the detached one. Unless DONE is
    returned nothing has changed."""
    node = np.int64(edges[edge * EDGE_FIELDS + END])
    if node == source and not loops:
        return DONE
    t = find_pair(trees, tree_table, source, node)
    if t >= 0:
        if trees[t * TREE_FIELDS + EDGE] == DETACHED:
            _attach_and_queue(edges, trees, t, edge, queue, cursor)
        return DONE
    t = cursor[FREE]
    if t < 0 and cursor[USED] * TREE_FIELDS == len(trees):
        return TREES_FULL
    if cursor[OUT] == len(out_tick):
        return OUT_FULL
    if t >= 0:
        cursor[FREE] = trees[t * TREE_FIELDS + NEXT_USER]
    else:
        t = cursor[USED]
        cursor[USED] += 1
    cursor[LIVE] += 1
    trees[t * TREE_FIELDS + SOURCE] = source
    trees[t * TREE_FIELDS + NODE] = node
    insert_pair(trees, tree_table, t)
    _attach_and_queue(edges, trees, t, edge, queue, cursor)
    _emit(source, node, tick, 1, cursor, out_source, out_node, out_tick, out_sign)
    return DONE


@jit_inline
def _remove_node(trees, tree_table, t, cursor):
    remove_pair(trees, tree_table, t)
    trees[t * TREE_FIELDS + NEXT_USER] = cursor[FREE]
    cursor[FREE] = t
    cursor[LIVE] -= 1


@jit_inline
def _detach_subtree(edges, heads, trees, tree_table, t, detached):
    """Detach a tree node and all nodes below it; returns how many."""
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
        edge = np.int64(heads[node * HEAD_FIELDS + FIRST_OUT])
        while edge >= 0:
            child = find_pair(trees, tree_table, source, np.int64(edges[edge * EDGE_FIELDS + END]))
            if child >= 0 and trees[child * TREE_FIELDS + EDGE] == edge:
                detach(edges, trees, child)
                detached[count] = child
                count += 1
            edge = np.int64(edges[edge * EDGE_FIELDS + NEXT_OUT])
    return count


@jit_inline
def _reconnect(edges, heads, trees, tree_table, detached, queue, cursor):
    """Attach detached nodes to edges whose start the source still reaches: the newest, which stays longest in a window."""
    source = np.int64(trees[np.int64(detached[0]) * TREE_FIELDS + SOURCE])
    for i in range(cursor[DETACHED_COUNT]):
        t = np.int64(detached[i])
        edge = np.int64(heads[np.int64(trees[t * TREE_FIELDS + NODE]) * HEAD_FIELDS + FIRST_IN])
        while edge >= 0:
            start = np.int64(edges[edge * EDGE_FIELDS + START])
            reached = start == source
            if not reached:
                parent = find_pair(trees, tree_table, source, start)
                reached = parent >= 0 and trees[parent * TREE_FIELDS + EDGE] != DETACHED
            if reached:
                _attach_and_queue(edges, trees, t, edge, queue, cursor)
                break
            edge = np.int64(edges[edge * EDGE_FIELDS + NEXT_IN])


@jit_flat
def step(
    row_tick,
    row_sign,
    columns,
    ends,
    width,
    only_source,
    loops,
    edge_table,
    edge_keys,
    edge_counts,
    edge_free,
    edge_meta,
    node_table,
    node_keys,
    node_counts,
    node_free,
    node_meta,
    edges,
    heads,
    trees,
    tree_table,
    queue,
    detached,
    cursor,
    out_source,
    out_node,
    out_tick,
    out_sign,
):
    """Process edges from cursor[ROW] on: `columns` have start, end, and the columns that tell graphs apart.

    `ends` (`width`, 2n): the nodes at which the n edges start, then those at which they end. `only_source`: the number
    of the one node whose tree is kept, or -1. `loops`: are pairs of a node with itself results? The hash tables of
    edges and nodes have room for all rows. Returns DONE, or why it stopped: the caller enlarges it and calls again with
    the same arguments. Results are node numbers: (source, node).
    """
    rows = len(row_tick)
    mask = np.int64(len(edge_table) - 1)
    edge_width = columns.shape[0]
    while cursor[ROW] < rows:
        row = cursor[ROW]
        tick = row_tick[row]
        if cursor[PHASE] == NEW:
            hashed = hash_row(columns, row, edge_width)
            edge = find(edge_table, mask, edge_keys, edge_width, columns, row, hashed)
            if row_sign[row] > 0:
                if edge < 0:
                    edge = add(
                        edge_table, mask, edge_keys, edge_width, columns, row, hashed, edge_counts, edge_free, edge_meta
                    )
                edge_counts[edge] += 1
                if edge_counts[edge] == 1:
                    edge_meta[ZERO] -= 1
                    start = _node(node_table, node_keys, node_counts, node_free, node_meta, width, ends, row)
                    end = _node(node_table, node_keys, node_counts, node_free, node_meta, width, ends, rows + row)
                    link_edge(edges, heads, edge, start, end)
                    cursor[PHASE] = ATTACHING
                    cursor[QUEUED] = cursor[TAKEN] = cursor[DETACHED_COUNT] = 0
            else:
                if edge < 0 or edge_counts[edge] == 0:
                    return NOT_THERE
                edge_counts[edge] -= 1
                if edge_counts[edge] == 0:
                    edge_meta[ZERO] += 1
                    unlink_edge(edges, heads, edge)
                    cursor[PHASE] = DETACHING
            cursor[AT] = edge
        edge = cursor[AT]
        if cursor[PHASE] == ATTACHING:
            # When the phase is resumed, nodes that were attached before are found and skipped.
            start = np.int64(edges[edge * EDGE_FIELDS + START])
            status = DONE
            if only_source < 0 or start == only_source:
                status = _reach(
                    start, edge, tick, loops, edges, trees, tree_table, queue, cursor, out_source, out_node, out_tick,
                    out_sign,
                )  # fmt: skip
            elif find_pair(trees, tree_table, only_source, start) >= 0:
                status = _reach(
                    only_source, edge, tick, loops, edges, trees, tree_table, queue, cursor, out_source, out_node, out_tick,
                    out_sign,
                )  # fmt: skip
            # The other sources that reach the start are those of the tree nodes on the edges into it.
            into = np.int64(heads[start * HEAD_FIELDS + FIRST_IN]) if only_source < 0 else NONE
            while status == DONE and into >= 0:
                t = np.int64(edges[into * EDGE_FIELDS + FIRST_USER])
                while status == DONE and t >= 0:
                    status = _reach(
                        np.int64(trees[t * TREE_FIELDS + SOURCE]), edge, tick, loops, edges, trees, tree_table, queue, cursor,
                        out_source, out_node, out_tick, out_sign,
                    )  # fmt: skip
                    t = np.int64(trees[t * TREE_FIELDS + NEXT_USER])
                into = np.int64(edges[into * EDGE_FIELDS + NEXT_IN])
            if status != DONE:
                return status
            cursor[PHASE] = EXTENDING
        while cursor[PHASE] != NEW:
            if cursor[PHASE] == DETACHING:
                t = np.int64(edges[edge * EDGE_FIELDS + FIRST_USER])
                if t < 0:
                    _release(node_counts, node_meta, np.int64(edges[edge * EDGE_FIELDS + START]))
                    _release(node_counts, node_meta, np.int64(edges[edge * EDGE_FIELDS + END]))
                    cursor[PHASE] = NEW
                    break
                cursor[DETACHED_COUNT] = _detach_subtree(edges, heads, trees, tree_table, t, detached)
                cursor[QUEUED] = cursor[TAKEN] = cursor[RETRACTED] = 0
                _reconnect(edges, heads, trees, tree_table, detached, queue, cursor)
                cursor[PHASE] = EXTENDING
            if cursor[PHASE] == EXTENDING:
                # Below an attached node all nodes were reached before: only detached ones are attached there.
                while cursor[TAKEN] < cursor[QUEUED]:
                    t = np.int64(queue[cursor[TAKEN]])
                    source = np.int64(trees[t * TREE_FIELDS + SOURCE])
                    node = np.int64(trees[t * TREE_FIELDS + NODE])
                    out = np.int64(heads[node * HEAD_FIELDS + FIRST_OUT]) if node != source else NONE
                    while out >= 0:
                        status = _reach(
                            source, out, tick, loops, edges, trees, tree_table, queue, cursor, out_source, out_node,
                            out_tick, out_sign,
                        )  # fmt: skip
                        if status != DONE:
                            return status
                        out = np.int64(edges[out * EDGE_FIELDS + NEXT_OUT])
                    cursor[TAKEN] += 1
                cursor[PHASE] = RETRACTING if cursor[DETACHED_COUNT] > 0 else NEW
            while cursor[PHASE] == RETRACTING and cursor[RETRACTED] < cursor[DETACHED_COUNT]:
                t = np.int64(detached[cursor[RETRACTED]])
                if trees[t * TREE_FIELDS + EDGE] == DETACHED:
                    if cursor[OUT] == len(out_tick):
                        return OUT_FULL
                    _emit(
                        trees[t * TREE_FIELDS + SOURCE], trees[t * TREE_FIELDS + NODE], tick, -1, cursor, out_source, out_node,
                        out_tick, out_sign,
                    )  # fmt: skip
                    _remove_node(trees, tree_table, t, cursor)
                cursor[RETRACTED] += 1
            if cursor[PHASE] == RETRACTING:
                cursor[PHASE] = DETACHING
        cursor[ROW] = row + 1
    return DONE
