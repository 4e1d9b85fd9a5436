"""3-way chain join (a, b), (b, c), (c, d) over count windows, by hand."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix


@jit_flat
def chain(
    port, keys, values, cursor, window, b_lines, c_lines, a_rings, b_rings, c_rings, d_rings, most, queues, other_queue,
    heads, out_tick, out,
):  # fmt: skip
    """Line of a b: key, (head, count) of its a, of its c. Line of a c: key, (head, count) of its b, of its d.

    Rings [line, most]: `a_rings` and `d_rings` hold ids, `c_rings` (by b) and `b_rings` (by c) lines of the other
    table. `queues` [port, window]: lines by age; the middle input's line of c is in `other_queue`.
    """
    mask = len(b_lines) // LINE - 1
    wrap = most - 1
    unsigned_wrap = np.uint64(wrap)
    one = np.uint64(1)
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        p = np.int64(port[row])
        b_slot, c_slot = np.int64(0), np.int64(0)
        if p != 2:
            key = keys[row]
            b_slot = mix(key) & mask
            while b_lines[b_slot * LINE] != key and b_lines[b_slot * LINE] != 0:
                b_slot = (b_slot + 1) & mask
            b_lines[b_slot * LINE] = key
        if p != 0:
            key = keys[row] if p == 2 else values[row]
            c_slot = mix(key) & mask
            while c_lines[c_slot * LINE] != key and c_lines[c_slot * LINE] != 0:
                c_slot = (c_slot + 1) & mask
            c_lines[c_slot * LINE] = key
        b_line, c_line = b_slot * LINE, c_slot * LINE
        # The maximum number of results: of two levels, the size of the second is only known on the way.
        if p == 0:
            bound = b_lines[b_line + 4] * most
        elif p == 1:
            bound = b_lines[b_line + 2] * c_lines[c_line + 4]
        else:
            bound = c_lines[c_line + 2] * most
        if made + bound > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        # Unsigned positions cannot be negative, which spares the inner loops a test.
        k = np.uint64(made)
        if p == 1:
            ring, first, count = (
                np.uint64(c_slot * most),
                np.uint64(c_lines[c_line + 3]),
                np.uint64(c_lines[c_line + 4]),
            )
            for i in range(b_lines[b_line + 2]):
                a = a_rings[b_slot * most + ((b_lines[b_line + 1] + i) & wrap)]
                for j in range(count):
                    out_tick[k] = row
                    out[0, k] = a
                    out[1, k] = keys[row]
                    out[2, k] = values[row]
                    out[3, k] = d_rings[ring + ((first + j) & unsigned_wrap)]
                    k += one
        elif p == 0:
            for i in range(b_lines[b_line + 4]):
                other = np.int64(c_rings[b_slot * most + ((b_lines[b_line + 3] + i) & wrap)])
                at = other * LINE
                c = c_lines[at]
                ring, first = np.uint64(other * most), np.uint64(c_lines[at + 3])
                for j in range(np.uint64(c_lines[at + 4])):
                    out_tick[k] = row
                    out[0, k] = values[row]
                    out[1, k] = keys[row]
                    out[2, k] = c
                    out[3, k] = d_rings[ring + ((first + j) & unsigned_wrap)]
                    k += one
        else:
            for i in range(c_lines[c_line + 2]):
                other = np.int64(b_rings[c_slot * most + ((c_lines[c_line + 1] + i) & wrap)])
                at = other * LINE
                b = b_lines[at]
                ring, first = np.uint64(other * most), np.uint64(b_lines[at + 1])
                for j in range(np.uint64(b_lines[at + 2])):
                    out_tick[k] = row
                    out[0, k] = a_rings[ring + ((first + j) & unsigned_wrap)]
                    out[1, k] = b
                    out[2, k] = keys[row]
                    out[3, k] = values[row]
                    k += one
        made = np.int64(k)
        place = heads[p] % window
        if heads[p] >= window:
            old = np.int64(queues[p, place]) * LINE
            if p == 0:
                b_lines[old + 1] = (b_lines[old + 1] + 1) & wrap
                b_lines[old + 2] -= 1
            elif p == 2:
                c_lines[old + 3] = (c_lines[old + 3] + 1) & wrap
                c_lines[old + 4] -= 1
            else:
                b_lines[old + 3] = (b_lines[old + 3] + 1) & wrap
                b_lines[old + 4] -= 1
                old = np.int64(other_queue[place]) * LINE
                c_lines[old + 1] = (c_lines[old + 1] + 1) & wrap
                c_lines[old + 2] -= 1
        queues[p, place] = c_slot if p == 2 else b_slot
        heads[p] += 1
        if p == 0:
            if b_lines[b_line + 2] == most:
                return False
            a_rings[b_slot * most + ((b_lines[b_line + 1] + b_lines[b_line + 2]) & wrap)] = values[row]
            b_lines[b_line + 2] += 1
        elif p == 2:
            if c_lines[c_line + 4] == most:
                return False
            d_rings[c_slot * most + ((c_lines[c_line + 3] + c_lines[c_line + 4]) & wrap)] = values[row]
            c_lines[c_line + 4] += 1
        else:
            if b_lines[b_line + 4] == most or c_lines[c_line + 2] == most:
                return False
            other_queue[place] = c_slot
            c_rings[b_slot * most + ((b_lines[b_line + 3] + b_lines[b_line + 4]) & wrap)] = c_slot
            b_lines[b_line + 4] += 1
            b_rings[c_slot * most + ((c_lines[c_line + 1] + c_lines[c_line + 2]) & wrap)] = b_slot
            c_lines[c_line + 2] += 1
    cursor[ROW] = len(port)
    cursor[MADE] = made
    return True


class ChainByHand(ByHand):
    """Inputs: (key b, value a), (key b, value c), (key c, value d). Results: a, b, c, d."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 4)
        self._window = setting.window
        self._most = setting.most_per_key
        self._lines = table(setting.keys), table(setting.keys)
        places = len(self._lines[0]) // LINE * self._most
        # Of a, b, c and d, in this order; b and c as lines.
        dtypes = (np.int64, np.int32, np.int32, np.int64)
        self._rings = tuple(np.zeros(places, dtype) for dtype in dtypes)
        self._queues = np.zeros((3, setting.window), np.int32)
        self._other_queue = np.zeros(setting.window, np.int32)

    def step(self, batch: Batch) -> bool:
        done: bool = chain(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._window, *self._lines, *self._rings,
            self._most, self._queues, self._other_queue, self.heads, self.out_tick, self.out,
        )  # fmt: skip
        return done
