"""DISTINCT over the values of a binary join, by hand: the latest expiry of each pair decides whether it is new."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import BEFORE, LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import combine, mix

_PAIR = 4


@jit_flat
def distinct(port, keys, values, cursor, size, lines, rings, arrived, most, queue, pairs, out_tick, out):
    """Line: key, (head, count) of both rings. `rings`, `arrived` [line, port, most]: values and their arrivals.

    `queue` [size]: line * 2 + port by age. `pairs`: value, value, latest expiry, in an open-addressing hash table.
    """
    mask = len(lines) // LINE - 1
    pair_mask = len(pairs) // _PAIR - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        if made + most > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        now = cursor[BEFORE] + row
        place = now % size
        if now >= size:
            old = np.int64(queue[place])
            at = (old >> 1) * LINE + 1 + 2 * (old & 1)
            lines[at] = (lines[at] + 1) & (most - 1)
            lines[at + 1] -= 1
        p = np.int64(port[row])
        key = keys[row]
        value = values[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        line = slot * LINE
        lines[line] = key
        queue[place] = slot * 2 + p
        other = line + 1 + 2 * (1 - p)
        for i in range(lines[other + 1]):
            match = (slot * 2 + 1 - p) * most + ((lines[other] + i) & (most - 1))
            expiry = arrived[match] + size
            left = value if p == 0 else rings[match]
            right = rings[match] if p == 0 else value
            at = (combine(mix(left), right) & pair_mask) * _PAIR
            while pairs[at] != 0 and (pairs[at] != left or pairs[at + 1] != right):
                at = (at + _PAIR) & (len(pairs) - 1)
            # A mapping that expires at this very tick was there just before it.
            if pairs[at] == 0 or pairs[at + 2] < now:
                out_tick[made] = row
                out[0, made] = left
                out[1, made] = right
                made += 1
                pairs[at] = left
                pairs[at + 1] = right
                pairs[at + 2] = expiry
            elif pairs[at + 2] < expiry:
                pairs[at + 2] = expiry
        mine = line + 1 + 2 * p
        if lines[mine + 1] == most:
            return False
        at = (slot * 2 + p) * most + ((lines[mine] + lines[mine + 1]) & (most - 1))
        rings[at] = value
        arrived[at] = now
        lines[mine + 1] += 1
    cursor[ROW] = len(port)
    cursor[MADE] = made
    return True


class DistinctByHand(ByHand):
    """Results: value of the left input, value of the right input. Time windows: `inputs` * `window` arrivals in all."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 2)
        self._size = setting.inputs * setting.window
        self._most = setting.most_per_key
        self._lines = table(setting.keys)
        self._rings = np.zeros(len(self._lines) // LINE * 2 * self._most, np.int64)
        self._arrived = np.zeros(len(self._rings), np.int64)
        self._queue = np.zeros(self._size, np.int64)
        # Room for all possible pairs.
        self._pairs = np.zeros(_PAIR << int(2 * setting.values[0] * setting.values[1]).bit_length(), np.int64)

    def step(self, batch: Batch) -> bool:
        done: bool = distinct(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._size, self._lines, self._rings,
            self._arrived, self._most, self._queue, self._pairs, self.out_tick, self.out,
        )  # fmt: skip
        return done
