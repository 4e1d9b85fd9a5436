"""A sorted sequence in blocks: an insertion or removal anywhere moves the numbers of one block, not all that follow.

`blocks` (pool, SIZE) holds the numbers; `directory` (2, pool) holds the order of the blocks and the count of each. A
position is an index `d` into the directory and an index `i` into that block. A full block is split and nearly empty
neighbours are merged, so the number of blocks is optimal up to a constant factor.
"""

from __future__ import annotations

from typing import Final

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline

SIZE: Final = 512
"""Numbers per block: moving half of them costs about as much as finding the position."""
_SPARSE = SIZE // 4
BLOCK, COUNT = range(2)
USED, FREE = range(2)
"""state: USED, the number of blocks in the directory; FREE, the first free block, whose first number is the next free
one (-1: none)."""


@jit_inline
def number_at(blocks, directory, d, i):
    return blocks[directory[BLOCK, d], i]


@jit_flat
def numbers_before(directory, d):
    """How many numbers are in the blocks before the one at d."""
    total = np.int64(0)
    for each in range(d):
        total += directory[COUNT, each]
    return total


@jit_flat
def number_at_position(blocks, directory, used, position):
    """The number at a position in the whole sequence."""
    for d in range(used):
        if position < directory[COUNT, d]:
            return blocks[directory[BLOCK, d], position]
        position -= directory[COUNT, d]
    return np.int64(-1)


@jit_inline
def _open(directory, state, blocks, d):
    """Insert an empty block at d of the directory; later ones move right."""
    block = state[FREE]
    state[FREE] = blocks[block, 0]
    for each in range(state[USED], d, -1):
        directory[BLOCK, each] = directory[BLOCK, each - 1]
        directory[COUNT, each] = directory[COUNT, each - 1]
    directory[BLOCK, d] = block
    directory[COUNT, d] = 0
    state[USED] += 1


@jit_inline
def _close(directory, state, blocks, d):
    block = directory[BLOCK, d]
    blocks[block, 0] = state[FREE]
    state[FREE] = block
    state[USED] -= 1
    for each in range(d, state[USED]):
        directory[BLOCK, each] = directory[BLOCK, each + 1]
        directory[COUNT, each] = directory[COUNT, each + 1]


@jit_inline
def _append(blocks, directory, d, source, first, count):
    """Append the numbers first to first + count - 1 of the block at `source` to the block at d."""
    block, other, there = directory[BLOCK, d], directory[BLOCK, source], directory[COUNT, d]
    for i in range(count):
        blocks[block, there + i] = blocks[other, first + i]
    directory[COUNT, d] = there + count


@jit_flat
def put(blocks, directory, state, d, i, number):
    """Insert a number before index i (or at the end) of the block at d. There must be a free block."""
    if state[USED] == 0:
        _open(directory, state, blocks, 0)
    if directory[COUNT, d] == SIZE:
        _open(directory, state, blocks, d + 1)
        half = SIZE // 2
        _append(blocks, directory, d + 1, d, half, SIZE - half)
        directory[COUNT, d] = half
        if i > half:
            d, i = d + 1, i - half
    block = directory[BLOCK, d]
    for each in range(directory[COUNT, d], i, -1):
        blocks[block, each] = blocks[block, each - 1]
    blocks[block, i] = number
    directory[COUNT, d] += 1


@jit_flat
def take_out(blocks, directory, state, d, i):
    """Remove the number at index i of the block at d."""
    block = directory[BLOCK, d]
    directory[COUNT, d] -= 1
    for each in range(i, directory[COUNT, d]):
        blocks[block, each] = blocks[block, each + 1]
    if directory[COUNT, d] == 0:
        _close(directory, state, blocks, d)
    elif directory[COUNT, d] < _SPARSE:
        left = d if d + 1 < state[USED] else d - 1
        if left >= 0 and directory[COUNT, left] + directory[COUNT, left + 1] <= SIZE // 2:
            _append(blocks, directory, left, left + 1, 0, directory[COUNT, left + 1])
            _close(directory, state, blocks, left + 1)
