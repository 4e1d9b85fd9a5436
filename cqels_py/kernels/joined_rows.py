"""One step's rows of all inputs of an aggregation below a join, laid out as its kernel reads them (kernels/factorised.py)."""

from __future__ import annotations

from cqels_py.kernels.aggregate import TICK
from cqels_py.kernels.grouping import holds_hashed
from cqels_py.kernels.jit import jit, jit_flat
from cqels_py.kernels.joined_records import FIRST, KEY_HASH, ORDER, ROW_HASH, ROW_PORT, ROW_SIGN, ROW_TICK
from cqels_py.kernels.key_table import hash_row
from cqels_py.kernels.merge import merge_by_tick


@jit_flat
def lay_rows(start, port, tick, sign, columns, key, arguments, width, rows):
    """Put an input's rows (n) behind the `start` rows of others.

    `key`: which of its `columns` become the first of the `width` ones of a key and its row; the others are zeros. `arguments`:
    for each aggregate the column that it takes from this input, -1 for none: zeros. Returns how many rows have a plus sign.
    """
    come = 0
    for i in range(len(tick)):
        rows[ROW_TICK, start + i] = tick[i]
        rows[ROW_SIGN, start + i] = sign[i]
        rows[ROW_PORT, start + i] = port
        come += sign[i] > 0
    for k in range(width):
        for i in range(len(tick)):
            rows[FIRST + k, start + i] = columns[key[k], i] if k < len(key) else 0
    for a in range(len(arguments)):
        for i in range(len(tick)):
            rows[FIRST + width + a, start + i] = columns[arguments[a], i] if arguments[a] >= 0 else 0
    return come


@jit
def order_rows(rows, starts, key_width, width, each, summed, cursor):
    """Bring the rows of all inputs in order, that of input p being those from starts[p] to starts[p + 1], and hash them.

    Writes the first tick to `cursor`. Returns whether any of the arguments by aggregate (numbers `each`, functions `summed`)
    is one of which only the dictionary knows the number.
    """
    tick, order, columns = rows[ROW_TICK], rows[ORDER], rows[FIRST : FIRST + width]
    merge_by_tick(tick, starts, order)
    if len(order) > 0:
        cursor[TICK] = tick[order[0]]
    for row in range(len(tick)):
        rows[KEY_HASH, row] = hash_row(columns, row, key_width)
    for row in range(len(tick)):
        rows[ROW_HASH, row] = hash_row(columns, row, width) if width > key_width else rows[KEY_HASH, row]
    return holds_hashed(rows[FIRST + width :], each, summed)
