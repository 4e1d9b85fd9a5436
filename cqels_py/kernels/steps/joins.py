"""Entries of joins: the rows of all inputs are merged by tick into the join's leaves, and its kernel takes them in.

A join that has begun cannot be done again: while BEGUN is set its rows are in the record, and its cursor tells how far they are.
"""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.compiler.native_call import INT8S, INT32S, INT64, INT64_ROWS, NativeCall
from cqels_py.kernels.joins import multiway, semi_anti_join, star
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64s, matrix
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import ROOM_NEEDED
from cqels_py.kernels.steps.element import KERNEL, LINKS, STATE
from cqels_py.kernels.structures import ring_index, ring_record
from cqels_py.kernels.structures.ring_index import CAPACITY, FIFO, LEAVES, OUT, OUT_FULL, PORT_FIELDS, PROBES, WIDTH

LOAD, OUTPUT, RESULT_WIDTH, ASKED, OPTION, BLOCKS, ALL_KNOWN, FIRST_INPUT = range(3, 11)
"""LINKS, behind those of every entry, whose STATE is the JoinState. RESULT_WIDTH: columns of results; ASKED: the record of that name
in a join; OPTION: whether results are retracted, or whether a semi-join is asked for; for a join that is no star the record that
tells where the Blocks are, and ALL_KNOWN. From FIRST_INPUT on: the inputs' deltas."""
AT = 0
"""The array of the record that BLOCKS names: their address (1)."""
PORTS, SLOTS, TICKS, SIGNS, PLACED, LOADED, STARTS, BEGUN = range(1, 9)
"""Arrays of the record: the rows in the order of ticks, as of `LeafRows`, with PLACED, their slots before the join; LOADED: the
slots input by input; STARTS (inputs + 1); BEGUN (2): 1 where the join has begun, and its kernel's status."""

STAR = NativeCall(
    star.step, INT64, INT32S, INT32S, INT32S, INT8S, INT64, INT64, INT64_ROWS, INT32S, INT8S, INT64
)  # fmt: skip
MULTIWAY = NativeCall(
    multiway.step, INT64, INT32S, INT32S, INT32S, INT8S, INT64, INT64, INT64, INT64, INT64_ROWS, INT32S, INT8S, INT64
)  # fmt: skip
SEMI = NativeCall(
    semi_anti_join.step, INT64, INT32S, INT32S, INT32S, INT8S, INT64, INT64, INT64_ROWS, INT32S, INT8S
)  # fmt: skip
COUNTING = NativeCall(
    semi_anti_join.step_counting_right, INT64, INT32S, INT32S, INT32S, INT8S, INT64, INT64, INT64_ROWS, INT32S, INT8S
)  # fmt: skip
LOADING = NativeCall(ring_index.load, INT64, INT64, INT64, INT64_ROWS, INT8S, INT32S)
_star, _multiway, _semi, _load = STAR.call, MULTIWAY.call, SEMI.call, LOADING.call


@jit_flat
def _needed_leaves(delta, rows, fifo):
    """How many leaves the rows of an input need: in a FIFO port only insertions."""
    if fifo == 0:
        return np.int64(rows)
    signs, needed = int8s(delta, SIGN), np.int64(0)
    for i in range(rows):
        needed += np.int64(signs[i] > 0)
    return needed


@jit_flat
def _look_for_room(links, starts, room):
    """Write where each input's rows start. Returns DONE; PYTHON_NEEDED: there are too many rows; ROOM_NEEDED: too few leaves."""
    ports, free = int64s(links[STATE], ring_record.PORTS), int64s(links[STATE], ring_record.FREE_META)
    starts[0], status = 0, np.int64(DONE)
    for p in range(len(starts) - 1):
        delta, port = links[FIRST_INPUT + p], p * PORT_FIELDS
        rows, fifo = int64s(delta, COUNT)[0], ports[port + FIFO]
        starts[p + 1] = starts[p] + rows
        free_leaves = ports[port + CAPACITY] - ports[port + LEAVES] if fifo != 0 else free[p]
        if rows > free_leaves and _needed_leaves(delta, rows, fifo) > free_leaves:
            status = np.int64(ROOM_NEEDED)
    return np.int64(PYTHON_NEEDED) if starts[len(starts) - 1] > room else status


@jit_flat
def _take_rows(record):
    """Load the rows of all inputs, and merge them by tick; at one tick those of the first input come first."""
    links, starts, loaded = int64s(record, LINKS), int64s(record, STARTS), int32s(record, LOADED)
    ports, slots, ticks, signs = (
        int32s(record, PORTS),
        int32s(record, SLOTS),
        int32s(record, TICKS),
        int8s(record, SIGNS),
    )
    placed, inputs, made = int32s(record, PLACED), len(starts) - 1, 0
    for p in range(inputs):
        delta, rows = links[FIRST_INPUT + p], starts[p + 1] - starts[p]
        if rows:
            width = int64s(links[STATE], ring_record.PORTS)[p * PORT_FIELDS + WIDTH]
            columns, sign = matrix(int64s(delta, DELTA_COLUMNS), width, rows), int8s(delta, SIGN)[:rows]
            _load(links[LOAD], (p, links[STATE], columns, sign, loaded[starts[p] : starts[p + 1]]))
        # From behind: no row is moved twice.
        left, at = made, made + rows
        for i in range(rows - 1, -1, -1):
            tick = int32s(delta, TICK)[i]
            while left > 0 and ticks[left - 1] > tick:
                at, left = at - 1, left - 1
                ports[at], slots[at], ticks[at], signs[at] = ports[left], slots[left], ticks[left], signs[left]
            at -= 1
            ports[at], slots[at], ticks[at], signs[at] = p, loaded[starts[p] + i], tick, int8s(delta, SIGN)[i]
        made += rows
    for i in range(made):
        placed[i] = slots[i]


@jit_flat
def _release(record, rows):
    """Free the slots of retracted leaves and the temporary ones, in inputs that are not FIFO."""
    state = int64s(record, LINKS)[STATE]
    ports, free, meta = (
        int64s(state, ring_record.PORTS),
        int32s(state, ring_record.FREE),
        int64s(state, ring_record.FREE_META),
    )
    row_port, most = int32s(record, PORTS), len(free) // len(meta)
    for slots in (int32s(record, SLOTS), int32s(record, PLACED)):
        for i in range(rows):
            p = np.int64(row_port[i])
            if int8s(record, SIGNS)[i] < 0 and ports[p * PORT_FIELDS + FIFO] == 0:
                free[p * most + meta[p]] = slots[i]
                meta[p] += 1


@jit_inline
def _begin(record):
    """Take in the rows of the inputs, if that has not been done. Returns how many there are; less than 0: a status of
    `_look_for_room`, as -status."""
    links, starts, begun = int64s(record, LINKS), int64s(record, STARTS), int64s(record, BEGUN)
    if begun[0] == 0:
        int64s(links[OUTPUT], COUNT)[0] = 0
        status = _look_for_room(links, starts, len(int32s(record, SLOTS)))
        if status != DONE:
            return -status
        if starts[len(starts) - 1] == 0:
            return np.int64(0)
        _take_rows(record)
        cursor = int64s(links[STATE], ring_record.CURSOR)
        for field in range(PROBES):
            cursor[field] = 0
        begun[0] = 1
    return starts[len(starts) - 1]


@jit_flat
def _end(record, status, rows):
    """The status of the entry after its kernel has returned this one."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    begun[1] = status
    if status != DONE:
        return np.int64(PYTHON_NEEDED if status == OUT_FULL else ROOM_NEEDED)
    begun[0] = 0
    close_gaps(links[OUTPUT], links[RESULT_WIDTH], int64s(links[STATE], ring_record.CURSOR)[OUT])
    _release(record, rows)
    return np.int64(DONE)


@jit_flat
def join(record):
    """A join that is a star. PYTHON_NEEDED: its inputs have too many rows, or there are more results than there is room for;
    ROOM_NEEDED: an array of its state is full."""
    links, rows = int64s(record, LINKS), _begin(record)
    if rows <= 0:
        return np.int64(-rows if rows < 0 else DONE)
    output, width = links[OUTPUT], links[RESULT_WIDTH]
    tick = int32s(output, TICK)
    status = _star(
        links[KERNEL],
        (
            int32s(record, PORTS)[:rows], int32s(record, SLOTS)[:rows], int32s(record, TICKS)[:rows],
            int8s(record, SIGNS)[:rows], links[STATE], links[ASKED], matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
            tick, int8s(output, SIGN), links[OPTION],
        ),
    )  # fmt: skip
    return _end(record, status, rows)


@jit_flat
def join_blocks(record):
    """A join that is no star; see `join`. It works in blocks that all programs of an engine share (dataflow/step_memory.py)."""
    links, rows = int64s(record, LINKS), _begin(record)
    if rows <= 0:
        return np.int64(-rows if rows < 0 else DONE)
    output, width = links[OUTPUT], links[RESULT_WIDTH]
    tick = int32s(output, TICK)
    status = _multiway(
        links[KERNEL],
        (
            int32s(record, PORTS)[:rows], int32s(record, SLOTS)[:rows], int32s(record, TICKS)[:rows],
            int8s(record, SIGNS)[:rows], links[STATE], links[ASKED], links[ALL_KNOWN], int64s(links[BLOCKS], AT)[0],
            matrix(int64s(output, DELTA_COLUMNS), width, len(tick)), tick, int8s(output, SIGN), links[OPTION],
        ),
    )  # fmt: skip
    return _end(record, status, rows)


@jit_flat
def negate(record):
    """A semi-join or an anti-join; see `join`."""
    links, rows = int64s(record, LINKS), _begin(record)
    if rows <= 0:
        return np.int64(-rows if rows < 0 else DONE)
    output, width = links[OUTPUT], links[RESULT_WIDTH]
    tick = int32s(output, TICK)
    status = _semi(
        links[KERNEL],
        (
            int32s(record, PORTS)[:rows], int32s(record, SLOTS)[:rows], int32s(record, TICKS)[:rows],
            int8s(record, SIGNS)[:rows], links[STATE], links[OPTION], matrix(int64s(output, DELTA_COLUMNS), width, len(tick)),
            tick, int8s(output, SIGN),
        ),
    )  # fmt: skip
    return _end(record, status, rows)
