"""The persistent heap of Pinto & Riveros (section 5, Proposition 5.3): the runs of one state and key, by when they began.

A tree node holds a run (CONTENT), the greatest start of an event among its combinations (START), and two subtrees whose starts are
no greater. Inserting copies the nodes on one path and leaves the old tree as it was: who has its root still sees the old content.
The path alternates at each node (SIDE), and ends where a subtree is out of reach, whose nodes are never read again. A subtree d
levels down is entered once in 2^d insertions, so a path is about as long as the logarithm of the number of runs within reach.

(Pushed down: the new run takes the place of a smaller one, which goes on downwards. A new root on top of the old tree, as the
appendix can be read, becomes a path as long as the tree is large.)

Tree nodes are rows of a ring with these columns, of which POSITION is the caller's, to see which rows are free. A run is any number
that grows with its position.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

POSITION, CONTENT, LEFT, START, RIGHT, SIDE = 0, 2, 3, 4, 5, 6
TREE_FIELDS = 7
LONGEST = 62
"""More nodes than the path of any insertion has."""


@jit_inline
def is_dead(nodes, number, low, tail):
    """Is a tree empty, or out of reach with all that is in it?"""
    return number < tail or number == 0 or nodes[number & np.int64(len(nodes) - 1), START] < low


@jit_flat
def insert(nodes, following, root, content, start, low, tail):
    """Put a run, and its start, into a tree. New nodes are numbered from `following` on, and only their tree columns are written.

    `low`: runs that start before it are out of reach; `tail`: nodes before it are free. Returns the number after the last new node;
    the new root is `following`.
    """
    mask = np.int64(len(nodes) - 1)
    at, carried, began = root, content, start
    while True:
        row = following & mask
        following += 1
        if is_dead(nodes, at, low, tail):
            nodes[row, CONTENT], nodes[row, START] = carried, began
            nodes[row, LEFT], nodes[row, RIGHT], nodes[row, SIDE] = 0, 0, 0
            return following
        old = at & mask
        held, mine = nodes[old, CONTENT], nodes[old, START]
        if began > mine or (began == mine and carried > held):
            held, carried = carried, held
            mine, began = began, mine
        nodes[row, CONTENT], nodes[row, START] = held, mine
        if nodes[old, SIDE] == 0:
            nodes[row, LEFT], nodes[row, RIGHT], nodes[row, SIDE] = following, nodes[old, RIGHT], 1
            at = nodes[old, LEFT]
        else:
            nodes[row, LEFT], nodes[row, RIGHT], nodes[row, SIDE] = nodes[old, LEFT], following, 0
            at = nodes[old, RIGHT]
