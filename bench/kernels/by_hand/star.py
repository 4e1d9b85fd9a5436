"""3-way star join a.k = b.k = c.k over count windows, by hand."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix


@jit_flat
def star(port, keys, values, cursor, window, lines, rings, most, queues, heads, out_tick, out):
    """Line: key, (head, count) of the three rings. `rings` [line, port, most], `queues` [port, window]: lines by age."""
    mask = len(lines) // LINE - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        p = np.int64(port[row])
        key = keys[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        line = slot * LINE
        a = np.int64(1) if p == 0 else np.int64(0)
        b = np.int64(1) if p == 2 else np.int64(2)
        head_a, count_a = lines[line + 1 + 2 * a], lines[line + 2 + 2 * a]
        head_b, count_b = lines[line + 1 + 2 * b], lines[line + 2 + 2 * b]
        if made + count_a * count_b > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        lines[line] = key
        value = values[row]
        ring_a = (slot * 3 + a) * most
        ring_b = (slot * 3 + b) * most
        straight = min(count_b, most - head_b)
        for i in range(count_a):
            value_a = rings[ring_a + ((head_a + i) & (most - 1))]
            # Unsigned positions cannot be negative: without that test LLVM vectorizes the stores of these loops.
            to = np.uint64(made)
            end = to + np.uint64(count_b)
            for k in range(to, end):
                out_tick[k] = row
            for k in range(to, end):
                out[0, k] = key
            for k in range(to, end):
                out[1 + p, k] = value
            for k in range(to, end):
                out[1 + a, k] = value_a
            first = np.uint64(ring_b + head_b)
            for j in range(np.uint64(straight)):
                out[1 + b, to + j] = rings[first + j]
            to += np.uint64(straight)
            first = np.uint64(ring_b)
            for j in range(np.uint64(count_b - straight)):
                out[1 + b, to + j] = rings[first + j]
            made += count_b
        place = heads[p] % window
        if heads[p] >= window:
            old = np.int64(queues[p, place]) * LINE + 1 + 2 * p
            lines[old] = (lines[old] + 1) & (most - 1)
            lines[old + 1] -= 1
        queues[p, place] = slot
        heads[p] += 1
        mine = line + 1 + 2 * p
        if lines[mine + 1] == most:
            return False
        rings[(slot * 3 + p) * most + ((lines[mine] + lines[mine + 1]) & (most - 1))] = value
        lines[mine + 1] += 1
    cursor[ROW] = len(port)
    cursor[MADE] = made
    return True


class StarByHand(ByHand):
    """Results: key, value of each input."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 4)
        self._window = setting.window
        self._most = setting.most_per_key
        self._lines = table(setting.keys)
        self._rings = np.zeros(len(self._lines) // LINE * 3 * self._most, np.int64)
        self._queues = np.zeros((3, setting.window), np.int32)

    def step(self, batch: Batch) -> bool:
        done: bool = star(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._window, self._lines, self._rings,
            self._most, self._queues, self.heads, self.out_tick, self.out,
        )  # fmt: skip
        return done
