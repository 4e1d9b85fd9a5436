"""One step's rows of all inputs of an aggregation below a join, laid out as its kernel reads them."""

from __future__ import annotations

from cqels_py.kernels.aggregate import TICK
from cqels_py.kernels.grouping import holds_hashed
from cqels_py.kernels.jit import jit
from cqels_py.kernels.key_table import hash_row
from cqels_py.kernels.merge import merge_by_tick


@jit
def lay_rows(
    start, port, tick, sign, columns, key, arguments, out_tick, out_sign, out_port, out_columns, out_arguments
):
    """Put an input's rows (n) behind the `start` rows of others.

    `key`: which of its `columns` become which of `out_columns`, from the first on. `arguments`: for each aggregate the column
    that it takes from this input, -1 for none: zeros. Returns how many rows have a plus sign.
    """
    come = 0
    for i in range(len(tick)):
        out_tick[start + i] = tick[i]
        out_sign[start + i] = sign[i]
        out_port[start + i] = port
        come += sign[i] > 0
    for k in range(len(out_columns)):
        for i in range(len(tick)):
            out_columns[k, start + i] = columns[key[k], i] if k < len(key) else 0
    for a in range(len(arguments)):
        for i in range(len(tick)):
            out_arguments[a, start + i] = columns[arguments[a], i] if arguments[a] >= 0 else 0
    return come


@jit
def order_rows(tick, starts, columns, key_width, arguments, each, summed, order, hashes, cursor):
    """The order of the rows of all inputs, that of input p being those from starts[p] to starts[p + 1], and their hashes.

    Writes `order` (n), `hashes` (2, n): by the first `key_width` columns and by all, and the first tick to `cursor`. Returns
    whether any of the `arguments` by aggregate (numbers `each`, functions `summed`) is one of which only the dictionary
    knows the number.
    """
    merge_by_tick(tick, starts, order)
    if len(order) > 0:
        cursor[TICK] = tick[order[0]]
    width = len(columns)
    for row in range(len(tick)):
        hashes[0, row] = hash_row(columns, row, key_width)
    for row in range(len(tick)):
        hashes[1, row] = hash_row(columns, row, width) if width > key_width else hashes[0, row]
    return holds_hashed(arguments, each, summed)
