"""The entry of GROUP BY. Python makes room, and finds values that are not inline; then the entry goes on."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.aggregates import group_by
from cqels_py.kernels.aggregates.accumulators import DEFERRED, OUT
from cqels_py.kernels.aggregates.group_records import APART, ARGUMENTS, CURSOR, FUNCTIONS, OF_AGGREGATES
from cqels_py.kernels.aggregates.updates import SEEN
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.compiler.native_call import INT8S, INT32S, INT64, INT64_ROWS, INT64S, UINT8S, NativeCall
from cqels_py.kernels.primitives.state_record import int8s, int32s, int64_rows, int64s, matrix, uint8s, uint32s
from cqels_py.kernels.primitives.status import DONE, PYTHON_NEEDED
from cqels_py.kernels.steps.deltas import COUNT, DELTA_COLUMNS, SIGN, TICK, close_gaps
from cqels_py.kernels.steps.driver import ROOM_NEEDED, VALUES_NEEDED
from cqels_py.kernels.steps.element import ARENA, KERNEL, LINKS, STATE, TABLE
from cqels_py.kernels.steps.rows import OUTPUT, SOURCE, WIDTH

RESULT_WIDTH, TAGS_OF, ASKED_TAGS, FLOATS, NUMBERS, TERMS = range(OUTPUT + 1, OUTPUT + 7)
"""LINKS, behind those of steps/rows.py, whose STATE is the GroupBy. RESULT_WIDTH: columns of results; TAGS_OF: the kernel that finds
the tags of arguments; ASKED_TAGS, FLOATS: a bit for each tag of a number that is not inline, and for that of floats; NUMBERS: the
record of no hashed numbers; TERMS: the record of `element.encode`, which has the dictionary's texts, or 0 if no aggregate needs
any."""
BEGUN, KEYS, KEYED = range(1, 4)
"""Arrays of the record. BEGUN (2): how far the entry is, and its kernel's status; KEYS: the columns of the groups; KEYED: scratch
for them."""
READY, AGGREGATING, AGGREGATED, RESOLVED = range(4)
"""BEGUN. AGGREGATED: the changes have values that are not inline; RESOLVED: Python has found these."""

TAGS = NativeCall(group_by.tags_of_arguments, INT64, INT64_ROWS, INT64S, INT64S)
_GIVEN = (INT32S, INT8S, INT64_ROWS, INT64_ROWS, INT64_ROWS, INT32S, INT8S, INT64_ROWS)
GROUP = NativeCall(group_by.group, INT64, INT64, INT64, *_GIVEN)
GROUP_TERMS = NativeCall(group_by.group_terms, INT64, INT64, INT64, UINT8S, INT64S, *_GIVEN)
_tags_of, _group, _group_terms = TAGS.call, GROUP.call, GROUP_TERMS.call


@jit_flat
def _needs_numbers(links, columns):
    """Are there arguments of SUM and AVG that are not inline, or floats for which nothing is prepared?"""
    state = links[STATE]
    of_aggregates = int64_rows(state, OF_AGGREGATES)
    tags = _tags_of(links[TAGS_OF], (columns, of_aggregates[ARGUMENTS], of_aggregates[FUNCTIONS]))
    return tags & links[ASKED_TAGS] != 0 or (tags & links[FLOATS] != 0 and len(uint32s(state, APART)) == 0)


@jit_flat
def _begin(record, columns):
    """Before the first call of the kernel: its cursor is set back, and the groups' columns are copied."""
    cursor, keys = int64s(int64s(record, LINKS)[STATE], CURSOR), int64s(record, KEYS)
    for field in range(SEEN):
        cursor[field] = 0
    rows = columns.shape[1]
    keyed = matrix(int64s(record, KEYED), len(keys), rows)
    for c in range(len(keys)):
        for i in range(rows):
            keyed[c, i] = columns[keys[c], i]


@jit_flat
def group(record):
    """The groups' changes. PYTHON_NEEDED: there are more rows than there is room for; VALUES_NEEDED: values are not inline."""
    links, begun = int64s(record, LINKS), int64s(record, BEGUN)
    source, output, state = links[SOURCE], links[OUTPUT], links[STATE]
    if begun[0] == RESOLVED:
        begun[0] = READY
        return np.int64(DONE)
    rows, tick, sign = int64s(source, COUNT)[0], int32s(output, TICK), int8s(output, SIGN)
    columns = matrix(int64s(source, DELTA_COLUMNS), links[WIDTH], rows)
    if begun[0] == READY:
        int64s(output, COUNT)[0] = 0
        if rows == 0:
            return np.int64(DONE)
        # A row changes one group's row, which is retracted and inserted.
        if 2 * rows > len(tick):
            return np.int64(PYTHON_NEEDED)
        if _needs_numbers(links, columns):
            return np.int64(VALUES_NEEDED)
        _begin(record, columns)
        begun[0] = AGGREGATING
    keyed, ticks, signs = (
        matrix(int64s(record, KEYED), len(int64s(record, KEYS)), rows), int32s(source, TICK)[:rows], int8s(source, SIGN)[:rows]
    )  # fmt: skip
    out = matrix(int64s(output, DELTA_COLUMNS), links[RESULT_WIDTH], len(tick))
    if links[TERMS] == 0:
        begun[1] = _group(
            links[KERNEL], (state, links[NUMBERS], ticks, signs, keyed, columns, columns, tick, sign, out)
        )  # fmt: skip
    else:
        begun[1] = _group_terms(
            links[KERNEL],
            (
                state, links[NUMBERS], uint8s(links[TERMS], ARENA), int64s(links[TERMS], TABLE), ticks, signs, keyed, columns,
                columns, tick, sign, out,
            ),
        )  # fmt: skip
    if begun[1] != DONE:
        return np.int64(ROOM_NEEDED)
    cursor = int64s(state, CURSOR)
    close_gaps(output, links[RESULT_WIDTH], cursor[OUT])
    begun[0] = READY if cursor[DEFERRED] == 0 else AGGREGATED
    return np.int64(DONE if begun[0] == READY else VALUES_NEEDED)
