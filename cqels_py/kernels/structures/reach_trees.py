"""Edges of a graph and the spanning trees over it, one for each source, in flat arrays.

`edges`: a record for each entry of the hash table of edges: its ends, its links in the doubly linked lists of edges out
of its start and into its end (newest first), and the first of the tree nodes attached to it. `trees`: a record for each
pair (source, node) such that the node is reached from the source: the edge by which its tree reaches it, and its links
in the doubly linked list of tree nodes on that edge. Its parent is the pair (source, start of the edge), or the root
where that start is the source. So a node that is its own source is always a leaf. `tree_table`: hash table pair -> tree
node with open addressing; 0 is empty, else the upper half of the hash with the number + 1 in the lower half. `heads`:
for each entry of the hash table of nodes its first edge out and its first edge in.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit, jit_inline
from cqels_py.kernels.structures.hashing import mix

START, END, NEXT_OUT, BEFORE_OUT, NEXT_IN, BEFORE_IN, FIRST_USER, EDGE_FIELDS = 0, 1, 2, 3, 4, 5, 6, 7
SOURCE, NODE, EDGE, NEXT_USER, BEFORE_USER, TREE_FIELDS = 0, 1, 2, 3, 4, 5
FIRST_OUT, FIRST_IN, HEAD_FIELDS = 0, 1, 2

NONE = np.int64(-1)
DETACHED = np.int64(-1)
"""The edge of a tree node that is detached from its tree."""

_SHIFT = np.int64(32)
_UPPER = np.int64(-(1 << 32))
LOWER = np.int64((1 << 32) - 1)


@jit_inline
def hash_pair(source, node):
    return mix((np.int64(source) << _SHIFT) | np.int64(node))


@jit_inline
def find_pair(trees, tree_table, source, node):
    """The tree node, or -1 where the source does not reach the node."""
    mask = np.int64(len(tree_table) - 1)
    hashed = hash_pair(source, node)
    position = hashed & mask
    while tree_table[position] != 0:
        word = tree_table[position]
        if word & _UPPER == hashed & _UPPER:
            t = (word & LOWER) - 1
            if trees[t * TREE_FIELDS + SOURCE] == source and trees[t * TREE_FIELDS + NODE] == node:
                return np.int64(t)
        position = (position + 1) & mask
    return NONE


@jit_inline
def insert_pair(trees, tree_table, t):
    """Insert a pair into the hash table. The caller has made sure that there is room and that the pair is not there."""
    mask = np.int64(len(tree_table) - 1)
    hashed = hash_pair(trees[t * TREE_FIELDS + SOURCE], trees[t * TREE_FIELDS + NODE])
    position = hashed & mask
    while tree_table[position] != 0:
        position = (position + 1) & mask
    tree_table[position] = (hashed & _UPPER) | (t + 1)


@jit_inline
def remove_pair(trees, tree_table, t):
    """Remove a pair from the hash table. Entries after it are shifted back, so that no tombstone is left."""
    mask = np.int64(len(tree_table) - 1)
    hole = hash_pair(trees[t * TREE_FIELDS + SOURCE], trees[t * TREE_FIELDS + NODE]) & mask
    while (tree_table[hole] & LOWER) - 1 != t:
        hole = (hole + 1) & mask
    position = (hole + 1) & mask
    while tree_table[position] != 0:
        other = (tree_table[position] & LOWER) - 1
        home_slot = hash_pair(trees[other * TREE_FIELDS + SOURCE], trees[other * TREE_FIELDS + NODE]) & mask
        if ((position - home_slot) & mask) >= ((position - hole) & mask):
            tree_table[hole] = tree_table[position]
            hole = position
        position = (position + 1) & mask
    tree_table[hole] = 0


@jit_inline
def attach(edges, trees, t, edge):
    """Attach a detached tree node to an edge."""
    first = edges[edge * EDGE_FIELDS + FIRST_USER]
    trees[t * TREE_FIELDS + EDGE] = edge
    trees[t * TREE_FIELDS + NEXT_USER] = first
    trees[t * TREE_FIELDS + BEFORE_USER] = NONE
    if first >= 0:
        trees[first * TREE_FIELDS + BEFORE_USER] = t
    edges[edge * EDGE_FIELDS + FIRST_USER] = t


@jit_inline
def detach(edges, trees, t):
    """Detach a tree node from its edge."""
    at = t * TREE_FIELDS
    following = trees[at + NEXT_USER]
    before = trees[at + BEFORE_USER]
    if before >= 0:
        trees[before * TREE_FIELDS + NEXT_USER] = following
    else:
        edges[trees[at + EDGE] * EDGE_FIELDS + FIRST_USER] = following
    if following >= 0:
        trees[following * TREE_FIELDS + BEFORE_USER] = before
    trees[at + EDGE] = DETACHED


@jit_inline
def link_edge(edges, heads, edge, start, end):
    """Insert an edge into the lists of its ends; no tree node is attached to it yet."""
    at = edge * EDGE_FIELDS
    out = heads[start * HEAD_FIELDS + FIRST_OUT]
    into = heads[end * HEAD_FIELDS + FIRST_IN]
    edges[at + START] = start
    edges[at + END] = end
    edges[at + NEXT_OUT] = out
    edges[at + BEFORE_OUT] = NONE
    edges[at + NEXT_IN] = into
    edges[at + BEFORE_IN] = NONE
    edges[at + FIRST_USER] = NONE
    if out >= 0:
        edges[out * EDGE_FIELDS + BEFORE_OUT] = edge
    if into >= 0:
        edges[into * EDGE_FIELDS + BEFORE_IN] = edge
    heads[start * HEAD_FIELDS + FIRST_OUT] = edge
    heads[end * HEAD_FIELDS + FIRST_IN] = edge


@jit_inline
def unlink_edge(edges, heads, edge):
    """Remove an edge from the lists of its ends."""
    at = edge * EDGE_FIELDS
    following = edges[at + NEXT_OUT]
    before = edges[at + BEFORE_OUT]
    if before >= 0:
        edges[before * EDGE_FIELDS + NEXT_OUT] = following
    else:
        heads[edges[at + START] * HEAD_FIELDS + FIRST_OUT] = following
    if following >= 0:
        edges[following * EDGE_FIELDS + BEFORE_OUT] = before
    following = edges[at + NEXT_IN]
    before = edges[at + BEFORE_IN]
    if before >= 0:
        edges[before * EDGE_FIELDS + NEXT_IN] = following
    else:
        heads[edges[at + END] * HEAD_FIELDS + FIRST_IN] = following
    if following >= 0:
        edges[following * EDGE_FIELDS + BEFORE_IN] = before


@jit
def enter_all(trees, old_table, tree_table):
    """Insert the pairs of `old_table` into a larger table (all zero)."""
    for position in range(len(old_table)):
        if old_table[position] != 0:
            insert_pair(trees, tree_table, (old_table[position] & LOWER) - 1)
