"""One step's rows of all inputs of an aggregation below a join, laid out as its kernel reads them."""

from __future__ import annotations

from cqels_py.kernels.jit import jit


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
