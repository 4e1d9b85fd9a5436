"""COUNT and SUM by key of a binary join over time windows, by hand: counters of both inputs and one sum for each key."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import BEFORE, LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix
from cqels_py.terms.layout import VALUE_BITS

_VALUE = np.int64((1 << VALUE_BITS) - 1)


@jit_flat
def sums(port, keys, values, cursor, size, lines, queue, ages, out_tick, out):
    """Line: key, mappings on the left and on the right, sum of the right values, the count and the sum last delivered.

    `queue`, `ages`: by age, values, and line * 2 + port.
    """
    mask = len(lines) // LINE - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        if made + 2 > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        now = cursor[BEFORE] + row
        place = now % size
        key = keys[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        lines[slot * LINE] = key
        old = slot
        if now >= size:
            old = np.int64(ages[place] >> 1)
            gone = np.int64(ages[place] & 1)
            lines[old * LINE + 1 + gone] -= 1
            lines[old * LINE + 3] -= gone * queue[place]
        p = np.int64(port[row])
        value = values[row] & _VALUE
        queue[place] = value
        ages[place] = slot * 2 + p
        lines[slot * LINE + 1 + p] += 1
        lines[slot * LINE + 3] += p * value
        for changed in range(2):
            line = (slot if changed else old) * LINE
            count = lines[line + 1] * lines[line + 2]
            total = lines[line + 1] * lines[line + 3]
            if count > 0 and (count != lines[line + 4] or total != lines[line + 5]):
                out_tick[made] = row
                out[0, made] = lines[line]
                out[1, made] = count
                out[2, made] = total
                made += 1
            lines[line + 4] = count
            lines[line + 5] = total
    cursor[ROW] = len(port)
    cursor[MADE] = made
    return True


class SumsByHand(ByHand):
    """Inputs: (key, anything), (key, value number). Results: key, pairs, sum of the pairs' right values."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 3)
        self._size = setting.inputs * setting.window
        self._lines = table(setting.keys)
        self._queue = np.zeros(self._size, np.int64)
        self._ages = np.zeros(self._size, np.int64)

    def step(self, batch: Batch) -> bool:
        done: bool = sums(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._size, self._lines, self._queue, self._ages,
            self.out_tick, self.out,
        )  # fmt: skip
        return done
