"""The changelog of a plan's node, for another dataflow that reads it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Protocol

import numpy as np

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.event_time.windows import NEVER
from cqels_py.kernels.rows.distinct import cancel


@dataclass(frozen=True, slots=True)
class Changelog:
    """Ticks, and the changes at them; changes that cancel each other within a tick are left out."""

    ticks: Ticks
    delta: Delta


class ChangelogOutput:
    """Collects the changes of a node over one step or several, until they are fetched. `width`: the node's columns."""

    STATE = ("_steps",)

    def __init__(self, width: int) -> None:
        self._width = width
        self._steps: list[Changelog] = []

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        delta = concatenate(chunks, self._width)
        left = cancel(delta.tick, delta.sign, delta.columns)
        self._steps.append(Changelog(ticks, delta if len(left) == len(delta) else delta.take(left)))
        yield from ()

    def fetch(self) -> Changelog:
        """All changes since the last call, with ticks numbered consecutively."""
        steps, self._steps = self._steps, []
        if len(steps) == 1:
            return steps[0]
        starts = np.cumsum([0, *(len(step.ticks) for step in steps)]).astype(np.int32)
        deltas = [
            Delta(step.delta.tick + start, step.delta.sign, step.delta.columns)
            for step, start in zip(steps, starts, strict=False)
        ]
        time = np.concatenate([np.empty(0, np.int64), *(step.ticks.time for step in steps)])
        known_through = steps[-1].ticks.known_through if steps else NEVER
        ticks = Ticks(time, any(step.ticks.first for step in steps), known_through)
        return Changelog(ticks, concatenate(deltas, self._width))

    def live_ids(self) -> Iterable[Ids]:
        return [step.delta.columns.reshape(-1) for step in self._steps]

    @property
    def nbytes(self) -> int:
        return sum(step.delta.columns.nbytes for step in self._steps)


class Output(Protocol):
    """The last operator of a dataflow, which makes results of changes."""

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterable[ResultBatch]: ...

    def live_ids(self) -> Iterable[Ids]: ...

    @property
    def nbytes(self) -> int: ...


class ResultsAndChangelog:
    """Results, and a changelog of the same changes."""

    STATE = ("_results", "_changelog")

    def __init__(self, results: Output, changelog: ChangelogOutput) -> None:
        self._results = results
        self._changelog = changelog

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        kept = tuple(chunks)
        yield from self._changelog.process(ticks, kept)
        yield from self._results.process(ticks, kept)

    def live_ids(self) -> Iterable[Ids]:
        return [*self._results.live_ids(), *self._changelog.live_ids()]

    @property
    def nbytes(self) -> int:
        return self._results.nbytes + self._changelog.nbytes


class KeptChanges:
    """Keeps the changes of one step, as they come."""

    STATE = ()

    def __init__(self) -> None:
        self.deltas: list[Delta] = []

    def process(self, ticks: Ticks, chunks: Iterable[Delta]) -> Iterator[ResultBatch]:
        self.deltas += [Delta(each.tick.copy(), each.sign.copy(), each.columns.copy()) for each in chunks]
        yield from ()

    def live_ids(self) -> Iterable[Ids]:
        return [delta.columns.reshape(-1) for delta in self.deltas]

    @property
    def nbytes(self) -> int:
        return sum(delta.columns.nbytes for delta in self.deltas)
