"""A query that is given elements of before, while the other queries go on.

    elements of before ─────────── backfill ─┐
    inputs of meanwhile ─ note ─ wait ─┐     ├─ complete ─ catch_up ─ joined: one of the runner's queries
                                       └─────┘

It has a group of its own, which takes in the elements of before, and then all inputs of meanwhile in their order: so it gets where
a query would be that had been there.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.dataflow.shared_scans import SharedScansPool
from cqels_py.errors import RunError
from cqels_py.event_time.ahead import Guard
from cqels_py.runners.event_time_group import EventTimeGroup, Key
from cqels_py.runners.running import RunningQuery

if TYPE_CHECKING:
    from cqels_py.runners.local import LocalRunner

LATE, AHEAD, DUPLICATE = "late", "ahead", "duplicate"
"""Why elements are dropped: older than the watermark, too far ahead of the elements before them, or taken in before."""
MOST_OF_MEANWHILE = 1_000_000
"""So many elements may wait for a query that is given elements of before."""
Mask = npt.NDArray[np.bool_]


class _Standing:
    """The time that the clock had when an input came."""

    def __init__(self) -> None:
        self.time = 0

    def now(self) -> int:
        return self.time

    def hold(self, time: int | None = None) -> int:
        return self.time


@dataclass(frozen=True, slots=True)
class _Input:
    """Inputs that came while the query was not there yet. `now`: by the clock; `step`: its effect on the query's group.

    `elements`: those of its streams, of which `counted` have been told as dropped; None: the input is none of elements.
    """

    now: int
    step: Callable[[EventTimeGroup], None] | None
    elements: ElementBatch | None = None
    counted: Mask | None = None


class Joining:
    """The query and the inputs that wait for it.

    `there`: the group that it joins, if its time has begun. `guard`: leaves out elements of before with a wrong clock. `advanced`:
    the last promise so far.
    """

    def __init__(
        self,
        runner: LocalRunner,
        query: RunningQuery,
        key: Key,
        lateness: int,
        there: EventTimeGroup | None,
        guard: Guard | None,
        advanced: int | None,
    ) -> None:
        self.key = key
        self._advanced = advanced
        self.there = there
        self._runner = runner
        self._guard = guard
        self._clock = _Standing()
        streams, follows = key
        # Its steps decide nothing about queries that are registered meanwhile.
        own = (streams, lateness, runner.counters, SharedScansPool(), runner.drops)
        # Elements of before do not wait for the clock.
        self._before = EventTimeGroup(*own)
        clock = None if runner.clock is None or not follows else runner.clock.by(self._clock)
        self.group = EventTimeGroup(*own, clock)
        for group in (self._before, self.group):
            group.set_queries([query], may_wait=False)
        self._until = None if there is None else there.time
        if there is not None:
            self.group.go_on_as(there)
            self.group.hold_as(there)
        self._inputs: deque[_Input] = deque()
        self.waiting = 0
        """How many elements wait."""
        self.overfull = False
        """Have so many come that they could not be kept?"""

    @property
    def is_crowded(self) -> bool:
        """Is it time that nothing else comes until the query has joined?"""
        return self.waiting > MOST_OF_MEANWHILE // 2

    def live_ids(self) -> Iterator[Ids]:
        """Ids of the elements that wait."""
        yield from self._before.live_ids()
        yield from self.group.live_ids()
        for each in self._inputs:
            if each.elements is not None:
                yield from each.elements.live_ids()

    @property
    def nbytes(self) -> int:
        """Bytes of the elements that wait."""
        return sum(ids.nbytes for ids in self.live_ids())

    # --- before -------------------------------------------------------------------------------------------------------

    def backfill(self, batch: ElementBatch) -> None:
        """Elements of before, in order of arrival. Those that the group it joins had not processed when this began are left out: the
        query sees them with that."""
        if self._guard is not None and (near := self._guard.admit(batch.time, batch.stream)) is not None:
            self._runner.drop_of_before(AHEAD, batch, ~near)
            batch = take_elements(batch, np.flatnonzero(near))
        part = batch if self._until is None else take_elements(batch, np.flatnonzero(batch.time <= self._until))
        self._take(self._before, part, None)

    def complete(self) -> None:
        """No more elements of before follow."""
        if self._until is not None:
            self._before.complete()
            return
        self.group.go_on_as(self._before)
        if self._advanced is not None:
            self.group.begin(self._advanced)

    # --- meanwhile ----------------------------------------------------------------------------------------------------

    def hold_clock(self) -> None:
        """From here to the end of the step it is one time, for this query and for the others."""
        if self.key[1] and self._runner.clock is not None:
            clock = self._runner.clock.clock
            clock.hold(clock.now())

    def note_elements(self, batch: ElementBatch, counted: Mask | None) -> None:
        """Elements have come, of which `counted` (n) have been told as dropped."""
        mine = np.flatnonzero(np.isin(batch.stream, list(self.key[0])))
        self.waiting += len(mine)
        if self.waiting > MOST_OF_MEANWHILE:
            self.overfull = True
            self._inputs.clear()
        if len(mine) and not self.overfull:
            told = None if counted is None else counted[mine]
            self._inputs.append(_Input(self._now(), None, take_elements(batch, mine), told))

    def note(self, step: Callable[[EventTimeGroup], None]) -> None:
        """Time has gone on, or its conditions have changed."""
        if not self.overfull:
            self._inputs.append(_Input(self._now(), step))

    def _now(self) -> int:
        clock = self._runner.clock
        return clock.clock.now() if self.key[1] and clock is not None else 0

    def catch_up(self, most: int | None = None) -> bool:
        """Take in so many of the elements of meanwhile, or all; does none wait any more? RunError if not all could be kept."""
        if self.overfull:
            raise RunError(
                f"more than {MOST_OF_MEANWHILE:,} elements came while the query was given elements of before: register it when "
                "fewer come, for example before a run"
            )
        taken = 0
        while self._inputs and (most is None or taken < most):
            each = self._inputs.popleft()
            self._clock.time = each.now
            if each.elements is None:
                assert each.step is not None
                each.step(self.group)
                continue
            taken += len(each.elements)
            self.waiting -= len(each.elements)
            part, counted = each.elements, each.counted
            if (near := self.group.near(part)) is not None:
                self._drop(AHEAD, part, ~near, counted)
                part = take_elements(part, np.flatnonzero(near))
                counted = None if counted is None else counted[near]
            self._take(self.group, part, counted)
        return not self._inputs

    def _take(self, group: EventTimeGroup, part: ElementBatch, counted: Mask | None) -> None:
        admitted = group.admit(part)
        if admitted is not None:
            self._drop(LATE, part, ~admitted, counted)
            part = take_elements(part, np.flatnonzero(admitted))
            counted = None if counted is None else counted[admitted]
        if (new := group.new(part)) is not None:
            self._drop(DUPLICATE, part, ~new, counted)
            part = take_elements(part, np.flatnonzero(new))
        group.take(part)

    def _drop(self, reason: str, batch: ElementBatch, dropped: Mask, counted: Mask | None) -> None:
        """Tell elements that are dropped, but those that have been told for another query."""
        self._runner.drop_of_before(reason, batch, dropped if counted is None else dropped & ~counted)

    # --- the end ------------------------------------------------------------------------------------------------------

    def joined(self, groups: list[EventTimeGroup]) -> list[EventTimeGroup]:
        """The groups, with one of which the query goes on."""
        self.group.settle(self._runner.clock if self.key[1] else None, self._runner.pool)
        there = next((each for each in groups if each.key == self.key), None)
        if there is None:
            return [*groups, self.group]
        if there is self.there:
            # It had the same inputs, and is at the same time.
            return groups
        if not there.has_begun:
            # Now its time begins, and nothing is evaluated for that.
            there.go_on_as(self.group)
            return groups
        merged = there.beside(self.group)
        return [merged if each is there else each for each in groups]
