"""Left mappings without a right one of the same key, over count windows, by hand."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix


@jit_flat
def negation(port, keys, values, cursor, window, lines, rings, most, queues, heads, out_tick, out):
    """Line: key, (head, count) of its left values, right count. `rings` [line, most]; `queues` [port, window]:
    lines by age.
    """
    mask = len(lines) // LINE - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        if made + most > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        p = np.int64(port[row])
        key = keys[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        line = slot * LINE
        lines[line] = key
        place = heads[p] % window
        old = np.int64(-1)
        if heads[p] >= window:
            old = np.int64(queues[p, place])
        queues[p, place] = slot
        heads[p] += 1
        if p == 0:
            if old >= 0:
                lines[old * LINE + 1] = (lines[old * LINE + 1] + 1) & (most - 1)
                lines[old * LINE + 2] -= 1
            if lines[line + 2] == most:
                return False
            rings[slot * most + ((lines[line + 1] + lines[line + 2]) & (most - 1))] = values[row]
            lines[line + 2] += 1
            if lines[line + 3] == 0:
                out_tick[made] = row
                out[0, made] = key
                out[1, made] = values[row]
                made += 1
        elif old != slot:
            lines[line + 3] += 1
            if old >= 0:
                at = old * LINE
                lines[at + 3] -= 1
                if lines[at + 3] == 0:
                    for i in range(lines[at + 2]):
                        out_tick[made] = row
                        out[0, made] = lines[at]
                        out[1, made] = rings[old * most + ((lines[at + 1] + i) & (most - 1))]
                        made += 1
    cursor[ROW] = len(port)
    cursor[MADE] = made
    return True


class NegationByHand(ByHand):
    """Results: key, value of the left input."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 2)
        self._window = setting.window
        self._most = setting.most_per_key
        self._lines = table(setting.keys)
        self._rings = np.zeros(len(self._lines) // LINE * self._most, np.int64)
        self._queues = np.zeros((2, setting.window), np.int32)

    def step(self, batch: Batch) -> bool:
        done: bool = negation(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._window, self._lines, self._rings,
            self._most, self._queues, self.heads, self.out_tick, self.out,
        )  # fmt: skip
        return done
