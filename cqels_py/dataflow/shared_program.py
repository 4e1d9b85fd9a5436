"""The step of a single element for all queries on shared scans: one program for each, of which those run that the step affects.

The first rows, up to the routing of triples, are one program for all. Then the matches and the timers say which queries take part
(`scan_readers.py`), in their order. A source that several of them read has one row, and one place for its changes: the first program
of a step that has the row runs it (kernels/steps/once.py). Where a program stops, calls go on, for the queries behind it too: they
get the rows that the programs have made.
"""

from __future__ import annotations

import os
from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import DataflowNode, DeltaSource
from cqels_py.dataflow.element_record import ElementRecord
from cqels_py.dataflow.program_builder import (
    ENCODED,
    ROUTED,
    TIMED,
    KnownSources,
    Program,
    ProgramBuilder,
    RowCounts,
    has_entries,
    result_batch,
)
from cqels_py.dataflow.program_parts import DeltaRecord, Part
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scan_readers import ScanReader
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_program import CALLS, EncodesElements, Outcome
from cqels_py.dataflow.work import CompiledSteps
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.steps import driver
from cqels_py.operators.r2s.streams import Changes


@dataclass(frozen=True, slots=True)
class _QueryProgram:
    """The rows of one query. `sources`: those of `parts`; `counted`: the ids of those whose rows `counts` has."""

    program: Program
    rows: int
    parts: Sequence[Part]
    sources: Sequence[DataflowNode]
    changes: DeltaRecord
    results: DeltaRecord
    output: Changes
    counts: RowCounts
    counted: frozenset[int]


class SharedProgram(EncodesElements):
    """The programs of the queries on shared scans. A step: `take` or `take_of`, then for those that are `affected` in turn `run`."""

    def __init__(self, shared: SharedScans, dictionary: Dictionary) -> None:
        self._shared, self._dictionary = shared, dictionary
        self._element = ElementRecord(shared.clock)
        self._status = np.zeros(1, np.int64)
        front = ProgramBuilder(self._element, shared)
        self._encode = front.add_front(dictionary)
        self._front, self._encoding = front.finished(self._status), front.encoding(self._status)
        self._terms = dictionary.texts
        self._known: KnownSources = {}
        # By the numbers of their readers; None: the query has none.
        self._programs: dict[int, _QueryProgram | None] = {}
        self._unsettled: dict[int, _QueryProgram] = {}
        # Of the current step.
        self._ran: list[_QueryProgram] = []
        self._handed: set[int] = set()
        self._current: _QueryProgram | None = None
        self._routed: RoutedBatch | None = None
        self._by_calls = False
        self._compiled = CompiledSteps(shared.steps)
        self._refused = False

    def keep_to(self, readers: Collection[int]) -> None:
        """Between two steps: these are the queries that are there, by the numbers of their readers."""
        gone = [number for number in self._programs if number not in readers]
        if not gone:
            return
        self.settle()
        for program in [self._programs.pop(number) for number in gone]:
            if program is None:
                continue
            counted = [node for node in program.sources if id(node) in program.counted]
            if any(node.readers for node in counted):
                # Others read sources whose rows the program counts: all are made anew.
                self._programs.clear()
                self._known.clear()
                return
            for each in program.counted:
                del self._known[each]

    def settle(self) -> None:
        """Between two steps: the sources get the counts of the rows that programs have made."""
        for program in self._unsettled.values():
            program.counts.settle()
        self._unsettled.clear()

    # --- a step -----------------------------------------------------------------------------------------------------

    def take(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """Take in an element as of `StepProgram.step`. False: nothing has happened, and calls are to do the whole step."""
        if not self._is_ready():
            self._refused = True
            return False
        return self._element.put_lines(stream, time, lines, triples, scope) and self._begin(0, stream, time, triples)

    def take_encoded(self, stream: int, time: int, triples: int) -> None:
        """The rest of `take`, after `encode`."""
        self._begin(ENCODED, stream, time, triples)

    def take_of(self, batch: ElementBatch) -> bool:
        """As `take`, for a batch of one element, which has ids."""
        refused, self._refused = self._refused, False
        if refused or not self._is_ready():
            return False
        triples = self._element.put_ids(batch)
        return triples > 0 and self._begin(ENCODED, batch.stream.item(0), batch.time.item(0), triples)

    def _is_ready(self) -> bool:
        """Some steps are measured, by calls; and the first tick of all is made by them."""
        return self._shared.clock.has_ticked and not self._compiled.next_is_measured()

    def _begin(self, first: int, stream: int, time: int, triples: int) -> bool:
        shared = self._shared
        if not shared.router.laid_out:
            shared.router.lay_out()
        self._know_terms()
        with self._dictionary.lock:
            row = driver.run(self._front.address, first)
        if row == ENCODED:
            row = driver.run(self._front.address, TIMED) if self._element.take_time() else TIMED
        elif row < ENCODED:
            return False
        shared.begin_one(stream, time, triples, self._element.last_tick)
        self._ran, self._routed, self._by_calls = [], None, False
        self._handed.clear()
        if row < ROUTED:
            self._by_calls = True
            self._routed = shared.routed_anew(self._element.batch(), self._element.step())
        return True

    def affected(self) -> list[ScanReader]:
        """The queries that take part in the step, in the order in which they were attached."""
        routed = self._routed
        return self._shared.readers.affected(self._shared.routed_one(self._element) if routed is None else routed)

    def run(self, dataflow: Dataflow) -> Outcome:
        """Let a query take part. COMPLETE: its results are those of `results`. STOPPED: it is to process `routed`."""
        program = None if self._by_calls else self._program_of(dataflow)
        if program is None:
            self._go_on_by_calls()
            return Outcome.STOPPED
        address, parts, status = program.program.address, program.parts, self._status
        with self._dictionary.lock:
            row = driver.run(address, 0)
        while row < program.rows and status[0] >= driver.ROOM_NEEDED:
            if status[0] == driver.ROOM_NEEDED:
                parts[row].make_room(self._element.time, self._element.triples)
            else:
                parts[row].find_values()
                self._know_terms()
            row = driver.run(address, row)
        if row == program.rows:
            self._current = program
            self._ran.append(program)
            self._unsettled[id(program)] = program
            return Outcome.COMPLETE
        self._go_on_by_calls()
        self._hand_over(program, row, counted=False)
        if row < len(parts):
            parts[row].hand_over_begun(self.routed)
        return Outcome.STOPPED

    def results(self) -> ResultBatch | None:
        """Those of the query that was run last, and is complete."""
        program = self._current
        assert program is not None
        return result_batch(program.results, program.changes, program.output)

    @property
    def routed(self) -> RoutedBatch:
        """The step for calls."""
        if self._routed is None:
            self._routed = self._shared.routed_by_program(self._element)
        return self._routed

    def _go_on_by_calls(self) -> None:
        """From here on the queries of this step are processed by calls: they get the rows that programs have made."""
        if not self._by_calls:
            self._by_calls = True
            for program in self._ran:
                self._hand_over(program, len(program.parts), counted=True)

    def _hand_over(self, program: _QueryProgram, rows: int, *, counted: bool) -> None:
        """Give the first sources of a program the changes that it has made. `counted`: it has counted these."""
        routed = self.routed
        for node, part in zip(program.sources[:rows], program.parts, strict=False):
            if id(node) in self._handed:
                continue
            self._handed.add(id(node))
            work = node.work
            before = work.rows_in, work.rows_out
            part.hand_over(routed)
            if counted and id(node) in program.counted:
                work.rows_in, work.rows_out = before

    # --- programs ---------------------------------------------------------------------------------------------------

    def _program_of(self, dataflow: Dataflow) -> _QueryProgram | None:
        number = dataflow.reader.number
        if number not in self._programs:
            if not dataflow.has_ticked:
                return None
            output = dataflow.changes_output
            whole = output is not None and has_entries(dataflow.root)
            self._programs[number] = self._make(dataflow.root, output) if whole and output is not None else None
        return self._programs[number]

    def _make(self, root: DeltaSource, output: Changes) -> _QueryProgram:
        taken = self._element
        builder = ProgramBuilder(taken, self._shared, texts=self._encode.address, known=self._known)
        changes = builder.add(root)
        results = builder.add_report(changes, output)
        counts = builder.add_counts()
        counted = frozenset(map(id, builder.counted))
        return _QueryProgram(
            builder.finished(self._status), len(builder), builder.parts, builder.sources, changes, results, output, counts, counted
        )  # fmt: skip


def shared_program_of(shared: SharedScans, dictionary: Dictionary) -> SharedProgram | None:
    """The programs of queries on these scans, made once; None if their steps have no programs."""
    if os.environ.get(CALLS) == "calls" or not shared.has_plain_steps:
        return None
    if shared.program is None:
        shared.program = SharedProgram(shared, dictionary)
    assert isinstance(shared.program, SharedProgram)
    return shared.program
