"""Evaluation of compiled expressions over columns of term ids."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.values.interpreter import UNRESOLVED, evaluate_rows
from cqels_py.state.stop import Stop

_NO_TIMES = np.empty(0, np.int64)


class SlowPath(Protocol):
    """Evaluates the rows that the kernel cannot decide, from the terms' texts. `stop`: where others ask it to stop."""

    stop: Stop

    def __call__(self, rows: Ids, now: Ids | None, as_test: bool) -> Ids:
        """`rows` (number of inputs, n) and `now` (n) -> (n) ids, 0 for errors; or 1 and 0 where `as_test`."""
        ...

    def clear(self) -> None:
        """Clear the cache of values by id."""
        ...


class Evaluator:
    """One expression: a program for the kernel, and a slow path for rows that need texts.

    `code` (m, 2): see kernels/values/interpreter.py. `constants`, `special`: ids.
    """

    def __init__(self, code: Ids, constants: Ids, special: Ids, slow: SlowPath) -> None:
        self._code = code
        self._constants = constants
        self._special = special
        self._slow = slow

    @property
    def stop(self) -> Stop:
        """Where others ask an evaluation to stop, which looks between two rows that need texts."""
        return self._slow.stop

    @property
    def program(self) -> tuple[Ids, Ids, Ids]:
        """Code, constants and special terms, as the kernel takes them."""
        return self._code, self._constants, self._special

    def evaluate(self, columns: Sequence[Ids] | Ids, now: Ids | None = None) -> Ids:
        """The value for each row: ids, 0 where it is an error.

        `columns`: the inputs' columns in their order, or one (inputs, n) array. `now` (n): the ticks' times in
        microseconds; needed by expressions with NOW, and by those without any input (they give n).
        """
        return self._run(columns, now, False)

    def test(self, columns: Sequence[Ids] | Ids, now: Ids | None = None) -> npt.NDArray[np.bool_]:
        """For each row: is the effective boolean value true? For an error it is not."""
        true: npt.NDArray[np.bool_] = self._run(columns, now, True) == 1
        return true

    def clear(self) -> None:
        """Call this when the dictionary releases terms: their ids may be reused for other terms."""
        self._slow.clear()

    def live_ids(self) -> tuple[Ids, Ids]:
        """The program's own terms, which a value may be."""
        return self._constants, self._special

    def _run(self, columns: Sequence[Ids] | Ids, now: Ids | None, as_test: bool) -> Ids:
        inputs = _matrix(columns, now)
        out = np.empty(inputs.shape[1], np.int64)
        times = _NO_TIMES if now is None else now
        unresolved = evaluate_rows(self._code, self._constants, self._special, inputs, times, as_test, out)
        if unresolved:
            self.resolve(inputs, now, as_test, out)
        return out

    def resolve(self, inputs: Ids, now: Ids | None, as_test: bool, out: Ids) -> None:
        """Find the values of the rows that the kernel has left UNRESOLVED in `out`; `inputs` (number of inputs, n)."""
        rows = np.flatnonzero(out == UNRESOLVED)
        out[rows] = self._slow(inputs[:, rows], None if now is None else now[rows], as_test)


def _matrix(columns: Sequence[Ids] | Ids, now: Ids | None) -> Ids:
    """One contiguous (inputs, n) array, the only layout for which the kernel is compiled."""
    if len(columns) == 0:
        return np.empty((0, 0 if now is None else len(now)), np.int64)
    if len(columns) == 1:
        return np.ascontiguousarray(columns[0], np.int64)[np.newaxis]
    return np.ascontiguousarray(columns, np.int64)
