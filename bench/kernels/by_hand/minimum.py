"""MIN of each group after a binary join, by hand: a monotonic queue for each group, and a calendar of the expiries of
minima.
"""

from __future__ import annotations

import numpy as np

from bench.arrivals import Batch, Setting
from bench.kernels.by_hand.by_hand import BEFORE, LINE, MADE, ROW, ByHand, table
from cqels_py.kernels.compiler.jit import jit_flat
from cqels_py.kernels.structures.hashing import mix

STEPS = 64
"""The maximum length of a queue: for uniform values it is about the logarithm of the group's size."""


@jit_flat
def minimum(
    port, keys, values, cursor, size, lines, rings, arrived, most, queue, groups, numbers, steps, expiries, heights,
    calendar, following, previous, due, shown, touched, touched_at, out_tick, out,
):  # fmt: skip
    """Line: key, (head, count) of both rings. `rings`, `arrived` [line, port, most]: groups or values, and their
    arrivals.

        `groups`: an open-addressing hash table of group ids, numbered by their positions; a left ring holds positions.
        `steps`, `expiries` [group, STEPS], `heights`: a group's monotonic queue; the last step is the smallest and expires first.
        `calendar` [size]: the first group whose last step expires at a tick, linked by `following` and `previous` (-1 ends);
        `due` [group]: its position in the calendar, or -1. `shown` [group]: the value last delivered, 0 for none.
        `touched`, `touched_at` [group]: the groups that this tick changes, and the last tick that changed each.
    """
    mask = len(lines) // LINE - 1
    group_mask = len(groups) - 1
    room = len(out_tick)
    made = cursor[MADE]
    for row in range(cursor[ROW], len(port)):
        now = cursor[BEFORE] + row
        place = now % size
        p = np.int64(port[row])
        key = keys[row]
        value = values[row]
        slot = mix(key) & mask
        while lines[slot * LINE] != key and lines[slot * LINE] != 0:
            slot = (slot + 1) & mask
        line = slot * LINE
        other = line + 1 + 2 * (1 - p)
        # Every group may lose its minimum at one tick.
        if made + numbers[0] + 1 > room:
            cursor[ROW] = row
            cursor[MADE] = made
            return True
        if now >= size:
            old = np.int64(queue[place])
            at = (old >> 1) * LINE + 1 + 2 * (old & 1)
            lines[at] = (lines[at] + 1) & (most - 1)
            lines[at + 1] -= 1
        lines[line] = key
        queue[place] = slot * 2 + p
        changed = 0
        group = np.int64(calendar[place])
        calendar[place] = -1
        while group >= 0:
            while heights[group] > 0 and expiries[group * STEPS + heights[group] - 1] <= now:
                heights[group] -= 1
            due[group] = -1
            touched_at[group] = now
            touched[changed] = group
            changed += 1
            group = np.int64(following[group])
        if p == 0:
            group = mix(value) & group_mask
            while groups[group] != value and groups[group] != 0:
                group = (group + 1) & group_mask
            if groups[group] == 0:
                groups[group] = value
                numbers[0] += 1
            value = group
        for i in range(lines[other + 1]):
            match = (slot * 2 + 1 - p) * most + ((lines[other] + i) & (most - 1))
            expiry = arrived[match] + size
            group = value if p == 0 else rings[match]
            step = rings[match] if p == 0 else value
            base = group * STEPS
            height = heights[group]
            low = height
            while low > 0 and expiries[base + low - 1] < expiry:
                low -= 1
            if low > 0 and steps[base + low - 1] <= step:
                continue
            if low > 0 and expiries[base + low - 1] == expiry:
                low -= 1
            high = low
            while high < height and steps[base + high] >= step:
                high += 1
            rest = height - high
            if low + 1 + rest > STEPS:
                return False
            if high == low:
                for k in range(rest - 1, -1, -1):
                    steps[base + low + 1 + k] = steps[base + high + k]
                    expiries[base + low + 1 + k] = expiries[base + high + k]
            elif high > low + 1:
                for k in range(rest):
                    steps[base + low + 1 + k] = steps[base + high + k]
                    expiries[base + low + 1 + k] = expiries[base + high + k]
            steps[base + low] = step
            expiries[base + low] = expiry
            heights[group] = low + 1 + rest
            # Only a new last step changes the delivered value.
            if rest == 0 and touched_at[group] != now:
                touched_at[group] = now
                touched[changed] = group
                changed += 1
        for i in range(changed):
            group = np.int64(touched[i])
            height = heights[group]
            step = steps[group * STEPS + height - 1] if height > 0 else np.int64(0)
            if step != 0 and step != shown[group]:
                out_tick[made] = row
                out[0, made] = groups[group]
                out[1, made] = step
                made += 1
            shown[group] = step
            day = expiries[group * STEPS + height - 1] % size if height > 0 else np.int64(-1)
            if day == due[group]:
                continue
            if due[group] >= 0:
                if following[group] >= 0:
                    previous[following[group]] = previous[group]
                if previous[group] >= 0:
                    following[previous[group]] = following[group]
                else:
                    calendar[due[group]] = following[group]
            due[group] = day
            if day >= 0:
                first = calendar[day]
                following[group] = first
                previous[group] = -1
                if first >= 0:
                    previous[first] = group
                calendar[day] = group
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


class MinimumByHand(ByHand):
    """Inputs: (key, value group), (key, value number). Results: group, smallest number. Time windows, as for DISTINCT."""

    def __init__(self, setting: Setting) -> None:
        super().__init__(setting, 2)
        self._size = setting.inputs * setting.window
        self._most = setting.most_per_key
        self._lines = table(setting.keys)
        self._rings = np.zeros(len(self._lines) // LINE * 2 * self._most, np.int64)
        self._arrived = np.zeros(len(self._rings), np.int64)
        self._queue = np.zeros(self._size, np.int64)
        self._calendar = np.full(self._size, -1, np.int32)
        groups = 1 << int(2 * setting.values[0] - 1).bit_length()
        self._groups = np.zeros(groups, np.int64)
        self._numbers = np.zeros(1, np.int64)
        self._steps = np.zeros(groups * STEPS, np.int64)
        self._expiries = np.zeros(groups * STEPS, np.int64)
        self._heights = np.zeros(groups, np.int64)
        self._links = np.full((3, groups), -1, np.int32)
        self._shown = np.zeros(groups, np.int64)
        self._touched = np.zeros(groups, np.int32)
        self._touched_at = np.full(groups, -1, np.int64)

    def step(self, batch: Batch) -> bool:
        done: bool = minimum(
            batch.port, batch.columns[0], batch.columns[1], self.cursor, self._size, self._lines, self._rings,
            self._arrived, self._most, self._queue, self._groups, self._numbers, self._steps, self._expiries, self._heights,
            self._calendar, *self._links, self._shown, self._touched, self._touched_at, self.out_tick, self.out,
        )  # fmt: skip
        return done
