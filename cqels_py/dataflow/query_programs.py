"""The programs of queries on shared scans, one for each, and how they give way to calls in the middle of a step.

A source that several queries read has one row, and one place for its changes: the first program of a step that has the row runs it
(kernels/steps/once.py). Where a program stops, calls go on, for the queries behind it too: they get the rows that the programs have
made.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.delta_sources import DataflowNode
from cqels_py.dataflow.program_builder import (
    KnownSources,
    Program,
    ProgramBuilder,
    RowCounts,
    replace_terms,
    result_batch,
)
from cqels_py.dataflow.program_parts import DeltaRecord, Part
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.shared_scans import SharedScans, SharedSource
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.steps import driver
from cqels_py.operators.r2s.streams import Changes


@dataclass(frozen=True, slots=True)
class QueryProgram:
    """The rows of one query. `sources`: those of `parts`; `counted`: the ids of those that it brought in, whose rows `counts` has.

    `changes`: those of the answer; `results`: those that its last row makes of them for this `output`, if it has one.
    """

    program: Program
    rows: int
    parts: Sequence[Part]
    sources: Sequence[DataflowNode]
    changes: DeltaRecord
    output: Changes | None
    results: DeltaRecord | None
    counts: RowCounts
    counted: Sequence[DataflowNode]

    @classmethod
    def built(
        cls, builder: ProgramBuilder, changes: DeltaRecord, output: Changes | None, status: npt.NDArray[np.int64]
    ) -> QueryProgram:
        """The program with the rows for these changes of the answer; it writes `status`."""
        results = None if output is None else builder.add_report(changes, output)
        counts = builder.add_counts()
        return cls(
            builder.finished(status), len(builder), builder.parts, builder.sources, changes, output, results, counts, builder.counted
        )  # fmt: skip

    def result_batch(self) -> ResultBatch | None:
        """The results that it has made; None if there are none."""
        assert self.results is not None and self.output is not None
        return result_batch(self.results, self.changes, self.output)


class QueryPrograms:
    """The programs by the numbers of their queries' readers. `terms`: the record with the dictionary's arrays."""

    def __init__(self, shared: SharedScans, dictionary: Dictionary, terms: ArrayTable) -> None:
        self._shared, self._dictionary = shared, dictionary
        self._status = np.zeros(1, np.int64)
        self._terms_record = terms
        self._terms: object = dictionary.texts
        self._known: KnownSources = {}
        # None: the query has none.
        self._programs: dict[int, QueryProgram | None] = {}
        self._unsettled: dict[int, QueryProgram] = {}
        # Of the current step: the programs that are done, and those that have failed, each with the number of its complete rows.
        self._ran: list[QueryProgram] = []
        self._failed: list[tuple[QueryProgram, int]] = []
        self._handed: set[int] = set()
        self._by_calls = False

    def keep_to(self, readers: Collection[int]) -> None:
        """Between two steps: these are the queries that are there, by the numbers of their readers."""
        gone = [number for number in self._programs if number not in readers]
        if not gone:
            return
        self.settle()
        for program in [self._programs.pop(number) for number in gone]:
            if program is None:
                continue
            if any(node.readers for node in program.counted):
                # Others read sources whose rows the program counts: all are made anew.
                self._programs.clear()
                self._known.clear()
                return
            for each in program.counted:
                del self._known[id(each)]

    def settle(self) -> None:
        """Between two steps: the sources get the counts of the rows that programs have made."""
        for program in self._unsettled.values():
            program.counts.settle()
        self._unsettled.clear()

    @property
    def routed(self) -> RoutedBatch:
        """The current step for calls."""
        raise NotImplementedError

    def _begin_step(self) -> None:
        self._ran, self._failed, self._by_calls = [], [], False
        self._handed.clear()

    def _make_room(self, part: Part) -> None:
        """Make room in the state of a row's source, as its entry has asked for."""
        raise NotImplementedError

    def _is_done(self, program: QueryProgram) -> bool:
        """Run a program. False: calls are to go on with what it has made."""
        address, parts, status = program.program.address, program.parts, self._status
        row = 0
        try:
            with self._dictionary.lock:
                row = driver.run(address, 0)
            while row < program.rows and status[0] >= driver.ROOM_NEEDED:
                if status[0] == driver.ROOM_NEEDED:
                    self._make_room(parts[row])
                else:
                    parts[row].find_values()
                    self._know_terms()
                row = driver.run(address, row)
        except Exception as error:
            # Other queries go on, by calls, and read the sources that are done.
            if row < len(program.sources):
                node = program.sources[row]
                if isinstance(node, SharedSource):
                    node.fail(error)
            self._failed.append((program, row))
            self._go_on_by_calls()
            raise
        if row == program.rows:
            self._ran.append(program)
            self._unsettled[id(program)] = program
            return True
        self._go_on_by_calls()
        self._hand_over(program, row, counted=False)
        if row < len(parts):
            parts[row].hand_over_begun(self.routed)
        return False

    def _go_on_by_calls(self) -> None:
        """From here on the queries of this step are processed by calls: they get the rows that programs have made."""
        if not self._by_calls:
            self._by_calls = True
            for program in self._ran:
                self._hand_over(program, len(program.parts), counted=True)
            for program, rows in self._failed:
                self._hand_over(program, rows, counted=False)

    def _hand_over(self, program: QueryProgram, rows: int, *, counted: bool) -> None:
        """Give the first sources of a program the changes that it has made. `counted`: it has counted these."""
        routed = self.routed
        brought = set(map(id, program.counted)) if counted else ()
        for node, part in zip(program.sources[:rows], program.parts, strict=False):
            if id(node) in self._handed:
                continue
            self._handed.add(id(node))
            work = node.work
            before = work.rows_in, work.rows_out
            part.hand_over(routed)
            if id(node) in brought:
                work.rows_in, work.rows_out = before

    def _know_terms(self) -> None:
        terms = self._dictionary
        if terms.texts is not self._terms:
            self._terms = terms.texts
            replace_terms(self._terms_record, terms)
