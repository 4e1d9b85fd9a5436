"""One ring index, by hand: insertion with eviction of the oldest, and probing."""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import MADE, ROW, ByHand
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix

_ENTRY = 4


@jit_flat
def insert(keys, values, window, entries, rings, most, queue, cells, heads):
    """Entry: key, head, count. `rings` [entry, most]: slots of the window; `queue`, `cells` (window): entries and values by slot."""
    mask = len(entries) // _ENTRY - 1
    for row in range(len(keys)):
        key = keys[row]
        entry = mix(key) & mask
        while entries[entry * _ENTRY] != key and entries[entry * _ENTRY] != 0:
            entry = (entry + 1) & mask
        entries[entry * _ENTRY] = key
        slot = heads[0] % window
        if heads[0] >= window:
            old = np.int64(queue[slot]) * _ENTRY
            entries[old + 1] = (entries[old + 1] + 1) & (most - 1)
            entries[old + 2] -= 1
        queue[slot] = entry
        cells[slot] = values[row]
        heads[0] += 1
        head, count = entries[entry * _ENTRY + 1], entries[entry * _ENTRY + 2]
        if count == most:
            return False
        rings[entry * most + ((head + count) & (most - 1))] = slot
        entries[entry * _ENTRY + 2] = count + 1
    return True


@jit_flat
def probe(keys, cursor, entries, rings, most, out_tick, out):
    """The slots of all mappings with each key."""
    mask = len(entries) // _ENTRY - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(keys)):
        key = keys[row]
        entry = mix(key) & mask
        while entries[entry * _ENTRY] != key and entries[entry * _ENTRY] != 0:
            entry = (entry + 1) & mask
        head, count = entries[entry * _ENTRY + 1], entries[entry * _ENTRY + 2]
        if made + count > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return
        straight = min(count, most - head)
        # Unsigned positions cannot be negative: without that test LLVM vectorizes the stores of these loops.
        to = np.uint64(made)
        for k in range(to, to + np.uint64(count)):
            out_tick[k] = row
        first = np.uint64(entry * most + head)
        for i in range(np.uint64(straight)):
            out[0, to + i] = rings[first + i]
        to += np.uint64(straight)
        first = np.uint64(entry * most)
        for i in range(np.uint64(count - straight)):
            out[0, to + i] = rings[first + i]
        made += count
    cursor[ROW] = len(keys)
    cursor[MADE] = made


class RingByHand(ByHand):
    """Inserts the first input into the index, and probes it with the second; it delivers slots of the window."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 1, np.int32)
        self._window = setting.window
        self._most = setting.most_per_key
        self._entries = np.zeros(_ENTRY << int(2 * setting.keys - 1).bit_length(), np.int64)
        self._rings = np.zeros(len(self._entries) // _ENTRY * self._most, np.int32)
        self._queue = np.zeros(setting.window, np.int32)
        self._cells = np.zeros(setting.window, np.int64)

    def step(self, batch: Batch) -> bool:
        probing = batch.port[0] == 1
        if probing:
            probe(batch.columns[0], self.cursor, self._entries, self._rings, self._most, self.out_tick, self.out)
            return True
        self.cursor[ROW] = len(batch)
        done: bool = insert(
            batch.columns[0], batch.columns[1], self._window, self._entries, self._rings, self._most, self._queue,
            self._cells, self.heads,
        )  # fmt: skip
        return done

    def plain(self, row: tuple[int, ...]) -> tuple[int, ...]:
        return (int(self._cells[row[0]]),)
