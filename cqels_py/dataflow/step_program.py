"""The step of a single element as one compiled call.

A program (kernels/steps/driver.py) does the same as the calls of single kernels: it reads and updates the same states, so that each
step may go either way. Where the program stops, as a term is unusual, a condition needs texts or an array is full, the calls go on
from there with its results. Programs are data: making one compiles nothing but entries that no plan has needed before.
"""

from __future__ import annotations

import os
from enum import Enum

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.delta_sources import Constant, DeltaSource, OperatorNode, sources_below
from cqels_py.dataflow.element_record import ElementRecord
from cqels_py.dataflow.program_builder import (
    ENCODED,
    ROUTED,
    TIMED,
    Program,
    ProgramBuilder,
    has_entries,
    replace_terms,
    result_batch,
)
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dataflow.work import CompiledSteps
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import driver
from cqels_py.operators.r2s.streams import Changes

CALLS = "CQELS_STEPS"
"""With the value "calls" this environment variable leaves programs out: each kernel is called from Python, as for batches."""

_MANY_STOPS, _FEW_STEPS, _REST = 16, 64, 1 << 12
"""A program that stops so often in so few steps rests for so many: going on after a stop takes longer than calls alone."""

_NOTHING = empty_elements()


class Outcome(Enum):
    """REFUSED: nothing has happened, and calls are to do the whole step. STOPPED: they go on with it, also where
    the program ends before operators that have no entries. COMPLETE: it is done."""

    REFUSED = 0
    STOPPED = 1
    COMPLETE = 2


class EncodesElements:
    """Has programs whose first row, `_encoding`, gives the terms of an element ids; `_encode`: the record of that row."""

    _dictionary: Dictionary
    _element: ElementRecord
    _encode: ArrayTable
    _encoding: Program
    # The texts of the dictionary when the record was given its arrays last.
    _terms: object
    # Has an element been refused that would be refused as well once it has ids? It comes next.
    _refused: bool

    def encode(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> bool:
        """The first part of a step: the terms have ids, and nothing else has happened yet. The rest is to follow at once.

        False: calls are to do the whole step. Arguments as of `StepProgram.step`.
        """
        if not self._is_ready():
            self._refused = True
            return False
        if not self._element.put_lines(stream, time, lines, triples, scope):
            return False
        with self._dictionary.lock:
            self._know_terms()
            row = driver.run(self._encoding.address, 0)
        return bool(row == ENCODED)

    def _is_ready(self) -> bool:
        """Is the next step to be tried?"""
        raise NotImplementedError

    def _know_terms(self) -> None:
        """If the dictionary has grown, or released terms, it has other arrays.

        Rows that write to these run under the lock under which they are known: another thread may make the dictionary grow.
        """
        terms = self._dictionary
        if terms.texts is not self._terms:
            self._terms = terms.texts
            replace_terms(self._encode, terms)


class StepProgram(EncodesElements):
    """The program of a query that is alone on its scans, and the record of the element that it takes in.

    Without an `output` it ends before the operators that have no entries: each step is STOPPED there.
    """

    def __init__(self, root: DeltaSource, output: Changes | None, shared: SharedScans, dictionary: Dictionary) -> None:
        self._root, self._output, self._shared, self._dictionary = root, output, shared, dictionary
        self._element = ElementRecord(shared.clock)
        self._status = np.zeros(1, np.int64)
        self._steps = self._stops = self._reached = self._rest = 0
        self._compiled = CompiledSteps(shared.steps)
        self._refused = False
        self._make()

    def _make(self) -> None:
        shared, terms = self._shared, self._dictionary
        self._terms = terms.texts
        program = ProgramBuilder(self._element, shared)
        self._encode = program.add_front(terms)
        program.add_scans(self._root)
        self._scanned = len(program)
        if self._output is None:
            program.add_sources_with_entries(self._root)
            # The calls that go on count the rows that the sources make.
            self.counts = program.own_counts()
        else:
            self._changes = program.add(self._root)
            self._results = program.add_report(self._changes, self._output)
            self.counts = program.add_counts()
        self._program, self._encoding = program.finished(self._status), program.encoding(self._status)
        self._parts, self._rows, self._address = program.parts, len(program), self._program.address

    def step(self, stream: int, time: int, lines: bytes, triples: int, scope: int) -> Outcome:
        """Take in an element that is not earlier than those before it, and has no graph. `stream`: its number within the query.

        `lines`: the terms of its triples as of `formats.triples.term_lines`; the scope of its blank nodes is `scope`.
        """
        if not self._is_ready():
            self._refused = True
            return Outcome.REFUSED
        if not self._element.put_lines(stream, time, lines, triples, scope):
            return Outcome.REFUSED
        return self._run(0, stream, time, triples)

    def step_encoded(self, stream: int, time: int, triples: int) -> Outcome:
        """The rest of `step`, after `encode`. It is not REFUSED."""
        return self._run(ENCODED, stream, time, triples)

    def step_of(self, batch: ElementBatch) -> Outcome:
        """As `step`, for a batch of one element, which has ids. Streams have their numbers within the query."""
        refused, self._refused = self._refused, False
        if refused or not self._is_ready():
            return Outcome.REFUSED
        triples = self._element.put_ids(batch)
        return self._run(ENCODED, batch.stream.item(0), batch.time.item(0), triples) if triples else Outcome.REFUSED

    @property
    def is_whole(self) -> bool:
        """Does it do steps to their end, where it does not stop before?"""
        return self._output is not None

    def _is_ready(self) -> bool:
        """Is the next step to be tried? Not while the program rests, and some steps are measured, by calls."""
        self._steps += 1
        if self._rest:
            self._rest -= 1
            return False
        compiled = self._compiled
        compiled.left -= 1
        if compiled.left:
            return True
        compiled.measure_next()
        return False

    def _run(self, first: int, stream: int, time: int, triples: int) -> Outcome:
        """Run the rows from `first` on."""
        shared, dictionary = self._shared, self._dictionary
        if not shared.router.laid_out:
            shared.router.lay_out()
        with dictionary.lock:
            # Not always called, as each further call would be a noticeable part of the time of a push.
            if dictionary.texts is not self._terms:
                self._know_terms()
            row = driver.run(self._address, first)
        if row == ENCODED:
            if self._status[0] == driver.VALUES_NEEDED:
                shared.foresee_one(self._element.batch())
            row = driver.run(self._address, TIMED) if self._element.take_time() else TIMED
        if row == self._rows or self._made_room(row, triples, time):
            if self._output is None:
                self._reached = self._rows
                return Outcome.STOPPED
            shared.took_in(stream, time, triples, self._element.last_tick)
            return Outcome.COMPLETE
        if self._reached < self._scanned:
            self._note_stop()
        return Outcome.STOPPED if self._reached else Outcome.REFUSED

    def _made_room(self, row: int, triples: int, time: int) -> bool:
        """Go on with a row that needs room or values. Is the program done then? Else it has stopped at `_reached`."""
        self._reached = row
        # The rows before have no parts: there the status may be one that has been seen to.
        while ROUTED <= self._reached < self._rows and self._status[0] >= driver.ROOM_NEEDED:
            part = self._parts[self._reached - ROUTED]
            if self._status[0] == driver.ROOM_NEEDED:
                part.make_room(time, triples)
            else:
                part.find_values()
                self._know_terms()
            self._reached = driver.run(self._address, self._reached)
        return self._reached == self._rows

    def _note_stop(self) -> None:
        self._stops += 1
        if self._stops == _MANY_STOPS:
            self._rest = _REST if self._steps <= _FEW_STEPS else 0
            self._steps = self._stops = 0

    def results(self) -> ResultBatch | None:
        """Those of the step that was completed."""
        return None if self._output is None else result_batch(self._results, self._changes, self._output)

    def resume(self) -> tuple[ElementBatch, RoutedBatch]:
        """The step that has stopped, and its element if windows have to take it in: the sources that are done have their deltas."""
        taken, shared = self._element, self._shared
        step = taken.step()
        if self._reached >= self._scanned:
            batch, routed = _NOTHING, shared.scanned(taken.stream, taken.triples, step)
        else:
            batch = taken.batch()
            routed = shared.resume(batch, step)
        done = self._reached - ROUTED
        for part in self._parts[: max(done, 0)]:
            part.hand_over(routed)
        if 0 <= done < len(self._parts):
            self._parts[done].hand_over_begun(routed)
        return batch, routed


def program_of(
    root: DeltaSource, output: object, shared: SharedScans, dictionary: Dictionary, *, every_tick: bool
) -> StepProgram | None:
    """The program of a dataflow that is alone on its scans; None if some window of it has no entry.

    `every_tick`: something happens at ticks without changes, too. Then, and where an operator or the output has no entry, calls go
    on where the program ends.
    """
    if os.environ.get(CALLS) == "calls" or not shared.is_plain:
        return None
    if not all(
        has_entries(source) for source in sources_below(root) if not isinstance(source, OperatorNode | Constant)
    ):
        return None
    whole = isinstance(output, Changes) and has_entries(root) and not every_tick
    return StepProgram(root, output if whole and isinstance(output, Changes) else None, shared, dictionary)
