"""The terms that MIN, MAX and GROUP_CONCAT keep: bags, monotonic queues and sorted runs, by group."""

from __future__ import annotations

from collections.abc import Sequence
from enum import Enum
from typing import NamedTuple

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.kernels.aggregates.group_records import HEAP, HEAP_META
from cqels_py.kernels.primitives.state_record import StateArray, StateRecord
from cqels_py.kernels.structures import arena, heaps, monotonic_queue
from cqels_py.state.arrays import SHRINK_FROM

_FIRST_PLACES = 64
_ROOM, _FEW_PLACES = 2.5, 1 << 17
"""If the arena has this many times the places that members need, it is compacted instead of enlarged. With few places this does not
pay, as full runs soon grow again."""
_NO_RUNS = np.full(arena.ARENA_FIELDS, -1, np.int64)
_NO_RUNS[arena.TOP] = 0


class Form(Enum):
    """The module of kernels/structures that keeps an aggregate's terms: heaps.py, monotonic_queue.py or sorted_runs.py."""

    BAG, MONOTONIC_QUEUE, SORTED_RUN = range(3)


class RunsOf(NamedTuple):
    """Where the records of an aggregate's runs are: in each `width` words, those of one group, from `place` on."""

    form: Form
    words: Ids
    width: int
    place: int

    @property
    def places(self) -> tuple[int, ...]:
        """A bag has a second run, of retracted members."""
        return (self.place, self.place + heaps.RETRACTED) if self.form is Form.BAG else (self.place,)


class TermRuns(StateRecord):
    """The arena of the runs and its growth; `heap` and `meta` are public, as kernels work on them."""

    heap = StateArray[np.int64](HEAP)
    meta = StateArray[np.int64](HEAP_META)

    STATE = ("heap", "meta")

    def __init__(self) -> None:
        self.heap = np.zeros(_FIRST_PLACES, np.int64)
        self.meta = _NO_RUNS.copy()

    def grow(self, runs: Sequence[RunsOf]) -> None:
        """Make room for more members: compact the arena if groups need much less than they have, else enlarge it."""
        if len(self.heap) < _FEW_PLACES or not self._move(runs):
            self.heap = np.concatenate([self.heap, np.zeros_like(self.heap)])

    def _move(self, runs: Sequence[RunsOf]) -> bool:
        """Compact the arena: a group has room for the most members that it ever had, and then only for those that it has now, and
        one more of each aggregate. False: little would be gained, and nothing is changed."""
        least, needed = _places_for(runs)
        if len(self.heap) < max(_ROOM * least, needed):
            return False
        self._move_to(len(self.heap), runs)
        return True

    def shrink(self, runs: Sequence[RunsOf], *, groups_moved: bool) -> None:
        """Give back room, between two steps. `groups_moved`: the runs of groups that are gone are not among `runs`."""
        if not runs:
            return
        least, needed = _places_for(runs)
        places = max(_FIRST_PLACES, 1 << (max(least * 3 // 2, needed) - 1).bit_length())
        if groups_moved or SHRINK_FROM * places <= len(self.heap):
            self._move_to(places, runs)

    def _move_to(self, places: int, runs: Sequence[RunsOf]) -> None:
        """Move all runs to an arena of so many places."""
        old, self.heap = self.heap, np.zeros(places, np.int64)
        self.meta[:] = _NO_RUNS
        for of in runs:
            for place in of.places:
                heaps.move_runs(of.words, of.width, place, old, self.heap, self.meta)
            if of.form is Form.MONOTONIC_QUEUE:
                words = of.words.reshape(-1, of.width)
                words[:, of.place + monotonic_queue.START] = words[:, of.place + monotonic_queue.FIRST]


def _places_for(runs: Sequence[RunsOf]) -> tuple[int, int]:
    """The places that the members of runs take, and those with which each aggregate's largest run can grow too."""
    needs = [heaps.count_places(of.words, of.width, place) for of in runs for place in of.places]
    least, more = map(sum, zip(*needs, strict=True))
    return least, least + more + heaps.LANES
