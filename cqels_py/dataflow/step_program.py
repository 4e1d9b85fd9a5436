"""The step of a single element as one compiled call.

A program (kernels/steps/driver.py) does what the calls of single kernels do: it reads and updates the same states, so that each step
may go either way. Where the program stops, as a term is unusual, a condition needs texts or an array is full, the calls go on from
there with what it has made. Programs are data: making one compiles nothing but entries that no plan has needed before.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from enum import Enum
from typing import Any, cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta
from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.router import RoutedBatch
from cqels_py.dataflow.scans import WindowScan
from cqels_py.dataflow.shared_scans import SharedScans
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.compiler.native_call import address_of
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.kernels.rows import distinct
from cqels_py.kernels.steps import deltas, driver, element, scan
from cqels_py.operators.r2s.streams import Changes
from cqels_py.operators.s2r.window import SlidingWindow

CALLS = "CQELS_STEPS"
"""With the value "calls" this environment variable leaves programs out: each kernel is called from Python, as for batches."""

_MOST_BYTES, _MOST_TRIPLES, _MOST_MATCHES, _MOST_ROWS = 1 << 12, 16, 64, 64
"""Of one element, and of the changes in its step. Larger ones are left to the calls."""
_MANY_STOPS, _FEW_STEPS, _REST = 16, 64, 1 << 12
"""A program that stops so often in so few steps rests for so many: going on after a stop takes longer than calls alone."""
_TIMED, _ROUTED = 2, 3
"""After so many rows the clock has taken in the element, and its triples are routed."""


_TIME = element.DUE_THROUGH + 1
_FIRST, _LAST, _NUMBERS = _TIME + 1, _TIME + 2, _TIME + 3
"""Where the element's time and its first and last triple are, in one array with its words."""


class Outcome(Enum):
    """REFUSED: nothing has happened, and calls are to do the whole step. STOPPED: they go on with it. COMPLETE: it is done."""

    REFUSED = 0
    STOPPED = 1
    COMPLETE = 2


def _view(array: npt.NDArray[Any]) -> memoryview:
    return memoryview(cast(bytearray, array))


class DeltaRecord:
    """Where an entry writes a delta of this width."""

    def __init__(self, width: int) -> None:
        self._width = width
        count = np.zeros(1, np.int64)
        self._count = _view(count)
        self._tick, self._sign = np.empty(_MOST_ROWS, np.int32), np.empty(_MOST_ROWS, np.int8)
        self._columns = np.empty(width * _MOST_ROWS, np.int64)
        self._table = ArrayTable(self._tick, self._sign, self._columns, count)
        self.address = self._table.address

    def __len__(self) -> int:
        return self._count[0]

    def taken(self, rows: int) -> tuple[npt.NDArray[np.int32], npt.NDArray[np.int8], Ids]:
        """Ticks, signs and columns (width, n) of the delta, copied. `rows`: the distance between columns."""
        count = len(self)
        columns = self._columns[: self._width * rows].reshape(self._width, rows)[:, :count].copy()
        return self._tick[:count].copy(), self._sign[:count].copy(), columns


class _Program:
    """Rows in the making, and what they read."""

    def __init__(self) -> None:
        self._rows: list[tuple[int, int]] = []
        self._kept: list[ArrayTable] = []

    def add(self, entry: Any, links: Sequence[int], *arrays: npt.NDArray[np.generic]) -> ArrayTable:
        """Add a row of this kernel; returns its record."""
        record = ArrayTable(np.array(links, np.int64), *arrays)
        self._rows.append((address_of(entry), record.address))
        self._kept.append(record)
        return record

    def finished(self, status: npt.NDArray[np.int64]) -> ArrayTable:
        """The record for the driver, which writes `status`. The rows' records live as long as this object."""
        return ArrayTable(np.array(self._rows, np.int64), status)

    def __len__(self) -> int:
        return len(self._rows)


class StepProgram:
    """The program of a query that is alone on its scans, and the record of the element that it takes in."""

    def __init__(
        self, scans: Sequence[WindowScan], output: Changes, shared: SharedScans, dictionary: Dictionary
    ) -> None:
        self._scans, self._output, self._shared, self._dictionary = tuple(scans), output, shared, dictionary
        # Numbers are written one by one, for which a memoryview takes a third of the time that an array takes.
        numbers, self._stream = np.zeros(_NUMBERS, np.int64), np.empty(1, np.int32)
        self._words, self._number = numbers[: element.DUE_THROUGH + 1], np.empty(1, np.int64)
        self._time, self._first = numbers[_TIME:_FIRST], numbers[_FIRST:_NUMBERS]
        self._columns, self._matches = np.empty(3 * _MOST_TRIPLES, np.int64), np.empty(_MOST_MATCHES, np.int64)
        self._element_tick, texts = np.empty(1, np.int32), np.empty(_MOST_BYTES, np.uint8)
        of_triple, none = np.zeros(_MOST_TRIPLES, np.int64), np.empty(0, np.int64)
        self._element = ArrayTable(
            self._words, self._time, self._stream, self._first, self._columns, of_triple, self._number, self._element_tick,
            self._matches, texts, none,
        )  # fmt: skip
        self._to_numbers, self._to_stream, self._to_texts = _view(numbers), _view(self._stream), _view(texts)
        self._status = np.zeros(1, np.int64)
        self._steps = self._stops = self._reached = self._rest = 0
        self._make()

    def _make(self) -> None:
        program, shared, kept = _Program(), self._shared, self._dictionary
        clock, router, here = shared.clock.address, shared.router.table, self._element.address
        self._known, self._router_table = kept.texts, router
        encode = (here, element.ENCODE.address(), kept.shift)
        self._encode = program.add(element.encode, encode, kept.table, kept.arena, kept.meta)
        program.add(element.tell_time, (here, element.CLOCK.address(), clock))
        program.add(element.route, (here, element.MATCH.address(), router.address))
        self._windows: list[SlidingWindow] = []
        self._scanned = [self._add_scan(program, each) for each in self._scans]
        (self._changes,) = self._scanned
        output, width = self._output, len(self._output.variables)
        self._results = DeltaRecord(1 + width)
        links = here, deltas.CHANGES.address(), clock, self._changes.address, width, *output.asked_signs
        program.add(
            deltas.report,
            (*links, self._results.address),
            np.empty(distinct.ROOM_A_ROW * _MOST_ROWS + distinct.ROOM, np.int64),
        )
        self._rows = len(program)
        self._parts, self._program = program, program.finished(self._status)
        self._address = self._program.address

    def _add_scan(self, program: _Program, each: WindowScan) -> DeltaRecord:
        window, tests, shared = each.window, each.tests, self._shared
        assert isinstance(window, SlidingWindow)
        self._windows.append(window)
        output = DeltaRecord(len(each.columns))
        links = self._element.address, scan.SLIDE.address(), window.address, shared.router.table.address, each.pattern
        evaluate = scan.EVALUATION.address() if tests else 0
        rows, points, now, true = np.empty((4, _MOST_TRIPLES), np.int64)
        inputs, entering = np.empty(3 * _MOST_TRIPLES, np.int64), np.empty(len(each.columns) * _MOST_TRIPLES, np.int64)
        arrays = each.columns, rows, inputs, points, now, true, entering, np.empty(0, np.int64)
        conditions = [
            array for condition, places in tests for array in (*condition.program, np.array(places, np.int64))
        ]
        program.add(
            scan.scan, (*links, len(tests), evaluate, shared.clock.address, output.address), *arrays, *conditions
        )
        return output

    def step(self, stream: int, time: int, texts: Sequence[bytes], scope: int) -> Outcome:
        """Take in an element that is not earlier than those before it, and has no graph. `stream`: its number within the query.

        `texts`: as of `formats.triples.triple_texts`; the scope of its blank nodes is `scope`.
        """
        self._steps += 1
        if self._rest:
            self._rest -= 1
            return Outcome.REFUSED
        lines, triples, shared = b"\n".join(texts), len(texts) // 3, self._shared
        length = len(lines)
        if not 0 < triples <= _MOST_TRIPLES or length > _MOST_BYTES or lines.count(b"\n") != len(texts) - 1:
            return Outcome.REFUSED
        if shared.router.table is not self._router_table:
            self._make()
        dictionary = self._dictionary
        if dictionary.texts is not self._known:
            self._replace_terms()
        self._to_texts[:length], self._to_stream[0], to = lines, stream, self._to_numbers
        to[element.LENGTH], to[element.TRIPLES], to[element.SCOPE] = length, triples, scope
        to[element.THROUGH], to[_TIME], to[_LAST] = shared.clock.told_before(time), time, triples
        with dictionary.lock:
            row = driver.run(self._address, 0)
        if row == self._rows or self._made_room(row, triples, time):
            shared.took_in(stream, time, triples)
            return Outcome.COMPLETE
        self._note_stop()
        return Outcome.REFUSED if self._reached < _TIMED else Outcome.STOPPED

    def _made_room(self, row: int, triples: int, time: int) -> bool:
        """Go on with a row whose state needs room. Is the program done then? Else it has stopped at `_reached`."""
        self._reached = row
        while self._reached < self._rows and self._status[0] == driver.ROOM_NEEDED:
            self._windows[self._reached - _ROUTED].reserve(np.full(triples, time))
            self._reached = driver.run(self._address, self._reached)
        return self._reached == self._rows

    def _replace_terms(self) -> None:
        """The dictionary has grown, or released terms: it has other arrays."""
        terms = self._dictionary
        self._known = terms.texts
        for number, array in ((element.TABLE, terms.table), (element.ARENA, terms.arena), (element.META, terms.meta)):
            self._encode.replace(number, array)

    def _note_stop(self) -> None:
        self._stops += 1
        if self._stops == _MANY_STOPS:
            self._rest = _REST if self._steps <= _FEW_STEPS else 0
            self._steps = self._stops = 0

    def results(self) -> ResultBatch | None:
        """Those of the step that was completed."""
        if not len(self._results):
            return None
        tick, sign, columns = self._results.taken(len(self._changes))
        time, *others = columns
        return ResultBatch(self._output.variables, time, sign, tuple(others), tick)

    def resume(self) -> tuple[ElementBatch, RoutedBatch]:
        """The step that has stopped: the scans that are done have their deltas."""
        words, shared = self._words.tolist(), self._shared
        columns = self._columns[: 3 * words[element.TRIPLES]].reshape(3, -1).copy()
        batch = ElementBatch(self._time.copy(), self._stream.copy(), self._first.copy(), *columns)
        step = shared.clock.step_of_one(
            batch.time.item(),
            words[element.TICKS],
            words[element.DUE_THROUGH],
            self._element_tick.copy(),
            self._number.copy(),
        )
        routed = shared.resume(batch, step)
        for each, delta in zip(self._scans, self._scanned[: max(self._reached - _ROUTED, 0)], strict=False):
            each.take_made(routed, Delta(*delta.taken(len(delta))))
        return batch, routed


def program_of(
    scans: Sequence[object], root: object, output: object, shared: SharedScans, dictionary: Dictionary
) -> StepProgram | None:
    """The program of a dataflow that is alone on its scans; None if some part of it has no entry."""
    if os.environ.get(CALLS) == "calls" or not shared.is_plain or type(output) is not Changes:
        return None
    found = [each for each in scans if isinstance(each, WindowScan) and each.is_plain]
    if len(found) < len(scans) or [*scans] != [root]:
        return None
    return StepProgram(found, output, shared, dictionary)
