"""What the parts of a stage keep between micro-batches, and what they do with what a micro-batch brings."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Protocol

import numpy as np
import pyarrow as pa

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow import Dataflow
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.operators.r2s.changelog_output import ChangelogOutput
from cqels_py.plan.nodes import TemplateTriple
from cqels_py.runners.local import LocalRunner
from cqels_py.runners.spark.exchange import Changes, Exchange, received, sent
from cqels_py.runners.spark.routing import Share, combine
from cqels_py.runners.spark.rows import solution_rows, triple_rows
from cqels_py.runners.statistics import Counters, Statistics

_COLLECT_FROM = 100_000
ROUTED = pa.schema([("part", pa.int32()), ("task", pa.int32()), ("share", pa.binary())])
"""What goes to the parts of a stage, from a task of the one before."""


def routed_rows(task: int, packed: list[bytes]) -> pa.RecordBatch:
    """A row for each part, with what it gets from one task."""
    return pa.record_batch(
        [
            pa.array(np.arange(len(packed)), pa.int32()),
            pa.array(np.full(len(packed), task), pa.int32()),
            pa.array(packed, pa.binary()),
        ],
        schema=ROUTED,
    )


class Rendered:
    """Takes results and turns them into rows at once, as long as their terms are known. Numbers them through.

    `ticks`: rows say which ticks of one time were first.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        columns: tuple[str, ...],
        template: tuple[TemplateTriple, ...],
        part: int,
        *,
        ticks: bool = False,
    ) -> None:
        self._dictionary = dictionary
        self._columns = columns
        self._template = template
        self._part = part
        self._delivered = 0
        self._rows: list[pa.RecordBatch] = []
        self._step: int | None = 0 if ticks else None
        self.wanted = True

    def deliver(self, batch: ResultBatch) -> None:
        first = self._delivered
        self._delivered += len(batch)
        if not self.wanted:
            return
        if not self._template:
            self._rows.append(solution_rows(batch, self._dictionary, self._columns, self._step))
            return
        numbers = pa.array([f"{self._part}x{n}" for n in range(first, self._delivered)], pa.large_string())
        self._rows.extend(triple_rows(batch, self._dictionary, self._template, numbers))

    def fail(self, error: RunError) -> None:
        raise error

    def next_step(self) -> None:
        """What comes now are the results of another step."""
        if self._step is not None:
            self._step += 1

    def fetch(self) -> list[pa.RecordBatch]:
        rows, self._rows = self._rows, []
        if self._step is not None:
            self._step = 0
        return rows


class Handover:
    """Takes the changelog of a stage and turns it into rows for the parts of the next one."""

    def __init__(self, dictionary: Dictionary, changelog: ChangelogOutput, exchange: Exchange, part: int) -> None:
        self._dictionary = dictionary
        self._changelog = changelog
        self._exchange = exchange
        self._part = part
        self.wanted = True

    def deliver(self, batch: ResultBatch) -> None:
        raise AssertionError("a stage that another one follows has no results")

    def fail(self, error: RunError) -> None:
        raise error

    def next_step(self) -> None:
        """The changelog numbers the ticks of all steps through."""

    def fetch(self) -> list[pa.RecordBatch]:
        changelog = self._changelog.fetch()
        if not self.wanted:
            return []
        changes = sent(changelog, self._exchange, self._dictionary, with_ticks=self._part == 0)
        return [routed_rows(self._part, [each.pack() for each in changes])]


class PartState(Protocol):
    """All that one part keeps, and what it does with the shares that a micro-batch brings it."""

    results: Rendered | Handover

    @property
    def rows(self) -> int:
        """How many triples or changes the part has got so far: its load."""
        ...

    def take(self, share_data: list[bytes], *, final: bool, in_order: bool) -> None:
        """Take in a micro-batch; what follows is fetched from `results`."""
        ...

    @property
    def statistics(self) -> Statistics:
        """What the part has counted."""
        ...


@dataclass
class ReadingState:
    """A part of the stage that reads the streams: a local runner with the one query, and its dictionary."""

    dictionary: Dictionary
    runner: LocalRunner
    results: Rendered | Handover
    needed: int = 0
    skipped: int = 0

    @property
    def rows(self) -> int:
        return self.runner.counters.triples

    def take(self, share_data: list[bytes], *, final: bool, in_order: bool) -> None:
        parts = [Share.unpack(data) for data in share_data]
        self.needed += sum(share.needed for share in parts)
        self.skipped += sum(share.skipped for share in parts)
        self.runner.push(combine(parts, self.dictionary, in_order=in_order))
        if final:
            self.results.next_step()
            self.runner.finish()

    @property
    def statistics(self) -> Statistics:
        return replace(self.runner.counters.snapshot(), triples=self.needed, malformed=self.skipped)


@dataclass
class LaterState:
    """A part of a stage that gets the changes of the one before. `width`: their columns; `counted`: by the dataflow."""

    dictionary: Dictionary
    dataflow: Dataflow
    results: Rendered | Handover
    width: int
    counted: Counters
    rows: int = 0
    delivered: int = 0
    collect_at: int = _COLLECT_FROM

    def take(self, share_data: list[bytes], *, final: bool, in_order: bool) -> None:
        changes = received([Changes.unpack(data) for data in share_data], self.width, self.dictionary)
        self.rows += len(changes.delta)
        for batch in self.dataflow.receive(changes.ticks, changes.delta):
            self.delivered += len(batch)
            self.results.deliver(batch)
        self._release_terms()

    def _release_terms(self) -> None:
        """Let go of terms that nothing refers to, whenever the dictionary has doubled since the last time."""
        if len(self.dictionary) >= self.collect_at:
            self.dictionary.collect(list(self.dataflow.live_ids()))
            self.dataflow.forget_evaluations()
            self.collect_at = max(_COLLECT_FROM, 2 * len(self.dictionary))

    @property
    def statistics(self) -> Statistics:
        return replace(self.counted.snapshot(), results=self.delivered)
