"""The step of a single element for all queries on shared scans: one program for each, of which those run that the step affects.

The first rows, up to the routing of triples, are one program for all. Then the matches and the timers say which queries take part
(`scan_readers.py`), in their order; see `query_programs.py`.
"""

from __future__ import annotations

import os

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.dataflow import Dataflow
from cqels_py.dataflow.delta_sources import DeltaSource
from cqels_py.dataflow.element_record import ElementRecord
from cqels_py.dataflow.program_builder import (
    ENCODED,
    ROUTED,
    TIMED,
    ProgramBuilder,
    has_entries,
)
from cqels_py.dataflow.program_parts import Part
from cqels_py.dataflow.query_programs import QueryProgram, QueryPrograms
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scan_readers import ScanReader
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.step_program import CALLS, EncodesElements, Outcome
from cqels_py.dataflow.work import CompiledSteps
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.steps import driver
from cqels_py.operators.r2s.streams import Changes


class SharedProgram(EncodesElements, QueryPrograms):
    """The programs of the queries on shared scans. A step: `take` or `take_of`, then for those that are `affected` in turn `run`."""

    def __init__(self, shared: SharedScans, dictionary: Dictionary) -> None:
        self._element = ElementRecord(shared.clock)
        front = ProgramBuilder(self._element, shared)
        self._encode = front.add_front(dictionary)
        super().__init__(shared, dictionary, self._encode)
        self._front, self._encoding = front.finished(self._status), front.encoding(self._status)
        # Of the current step.
        self._current: QueryProgram | None = None
        self._routed: RoutedBatch | None = None
        self._compiled = CompiledSteps(shared.steps)
        self._refused = False

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
        with self._dictionary.lock:
            self._know_terms()
            row = driver.run(self._front.address, first)
        if row == ENCODED:
            row = driver.run(self._front.address, TIMED) if self._element.take_time() else TIMED
        elif row < ENCODED:
            return False
        shared.begin_one(stream, time, triples, self._element.last_tick)
        self._routed = None
        self._begin_step()
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
        if not self._is_done(program):
            return Outcome.STOPPED
        self._current = program
        return Outcome.COMPLETE

    def _make_room(self, part: Part) -> None:
        part.make_room(self._element.time, self._element.triples)

    def results(self) -> ResultBatch | None:
        """Those of the query that was run last, and is complete."""
        assert self._current is not None
        return self._current.result_batch()

    @property
    def routed(self) -> RoutedBatch:
        """The step for calls."""
        if self._routed is None:
            self._routed = self._shared.routed_by_program(self._element)
        return self._routed

    # --- programs ---------------------------------------------------------------------------------------------------

    def _program_of(self, dataflow: Dataflow) -> QueryProgram | None:
        number = dataflow.reader.number
        if number not in self._programs:
            if not dataflow.has_ticked:
                return None
            output = dataflow.changes_output
            whole = output is not None and has_entries(dataflow.root)
            self._programs[number] = self._make(dataflow.root, output) if whole and output is not None else None
        return self._programs[number]

    def _make(self, root: DeltaSource, output: Changes) -> QueryProgram:
        taken = self._element
        builder = ProgramBuilder(taken, self._shared, texts=self._encode.address, known=self._known)
        return QueryProgram.built(builder, builder.add(root), output, self._status)


def shared_program_of(shared: SharedScans, dictionary: Dictionary) -> SharedProgram | None:
    """The programs of queries on these scans, made once; None if their steps have no programs."""
    if os.environ.get(CALLS) == "calls" or not shared.has_plain_steps:
        return None
    if shared.program is None:
        shared.program = SharedProgram(shared, dictionary)
    assert isinstance(shared.program, SharedProgram)
    return shared.program
