"""The average of each group over a count window, by hand."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix
from cqels_py.terms.layout import VALUE_BITS

_VALUE = np.int64((1 << VALUE_BITS) - 1)


@jit_flat
def average(keys, values, cursor, window, lines, shown, queue, ages, heads, out_tick, out, out_average):
    """Line: group, sum, count. `shown`: the average last delivered for a line. `queue`, `ages`: values and entries
    by age.
    """
    mask = len(lines) // LINE - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(keys)):
        if made + 2 > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        key = keys[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        lines[slot * LINE] = key
        value = values[row] & _VALUE
        place = heads[0] % window
        if heads[0] >= window:
            old = np.int64(ages[place])
            lines[old * LINE + 1] -= queue[place]
            lines[old * LINE + 2] -= 1
            if old != slot:
                count = lines[old * LINE + 2]
                now = lines[old * LINE + 1] / count if count > 0 else np.nan
                if count > 0 and now != shown[old]:
                    out_tick[made] = row
                    out[0, made] = lines[old * LINE]
                    out_average[made] = now
                    made += 1
                shown[old] = now
        queue[place] = value
        ages[place] = slot
        heads[0] += 1
        lines[slot * LINE + 1] += value
        lines[slot * LINE + 2] += 1
        now = lines[slot * LINE + 1] / lines[slot * LINE + 2]
        if now != shown[slot]:
            out_tick[made] = row
            out[0, made] = key
            out_average[made] = now
            made += 1
            shown[slot] = now
    cursor[ROW] = len(keys)
    cursor[MADE] = made
    return True


def rounded(value: float) -> float:
    """An average in the form that competitors compare: a double has 15 digits, the engine's decimal 19."""
    return round(value, 6)


class AverageByHand(ByHand):
    """Results: group, average as a float."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 2)
        self._window = setting.window
        self._lines = table(setting.keys)
        self._shown = np.full(len(self._lines) // LINE, np.nan)
        self._queue = np.zeros(setting.window, np.int64)
        self._ages = np.zeros(setting.window, np.int32)

    def step(self, batch: Batch) -> bool:
        done: bool = average(
            batch.columns[0], batch.columns[1], self.cursor, self._window, self._lines, self._shown, self._queue,
            self._ages, self.heads, self.out_tick, self.out[:1], self.out[1].view(np.float64),
        )  # fmt: skip
        return done

    def plain(self, row: tuple[int, ...]) -> tuple[int, float]:
        return row[0], rounded(float(np.int64(row[1]).view(np.float64)))
