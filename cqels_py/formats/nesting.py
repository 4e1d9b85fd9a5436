"""Joins runs of triples with one subject to elements: nested blank nodes belong to the subject that refers to them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.text import nesting as kernel
from cqels_py.kernels.text.tokenizer import CONFLICT, FIRST_ROW, START_LINE, TIME_ID
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT


class Nesting:
    """Joins runs to elements, and keeps the runs that may still belong to a later subject.

    Runs and elements are columns of first row, id of the time, and line. Rows are columns of ids, subject first.
    """

    def __init__(self, lookahead: int = kernel.LOOKAHEAD) -> None:
        self._lookahead = lookahead
        self._state = np.zeros(kernel.STATE_CELLS, np.int64)
        self._runs = np.empty((3, 0), np.int64)
        self._rows = np.empty((4, 0), np.int64)

    @property
    def keeps(self) -> bool:
        """Are there runs that may still belong to a later subject?"""
        return self._runs.size > 0

    def live_ids(self) -> Iterator[Ids]:
        """The ids in the runs that are kept."""
        yield self._rows
        yield self._runs[TIME_ID]

    def put_together(self, runs: Ids, rows: Ids, following: int, ended: bool) -> tuple[Ids, Ids, Ids]:
        """Elements (3, n), their rows, and the subjects (n) that name them in messages.

        `following`: the subject of the next run, which is not complete yet; 0 if there is none. `ended`: no run
        follows.
        """
        subjects = rows[0, runs[FIRST_ROW]]
        nothing_nests = ended or not are_blank(np.array([following])).any()
        if nothing_nests and not self._runs.size and not are_blank(subjects).any():
            return runs, rows, subjects
        runs, rows = self._behind_kept(runs, rows)
        return self._settle(runs, rows, following, ended)

    def before_an_error(self, runs: Ids, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """The elements before an error in the last run: all but the one that this run belongs to. Shapes as in
        `put_together`.
        """
        runs, rows = self._behind_kept(runs, rows)
        if not runs.size:
            return runs, rows, rows[0]
        return self._settle(runs, rows, 0, ended=True, broken=True)

    def _behind_kept(self, runs: Ids, rows: Ids) -> tuple[Ids, Ids]:
        runs = runs.copy()
        runs[FIRST_ROW] += self._rows.shape[1]
        return np.concatenate([self._runs, runs], axis=1), np.concatenate([self._rows, rows], axis=1)

    def _settle(self, runs: Ids, rows: Ids, following: int, ended: bool, broken: bool = False) -> tuple[Ids, Ids, Ids]:
        count = runs.shape[1]
        first = np.append(runs[FIRST_ROW], rows.shape[1])
        table = np.zeros(2 << int(2 * count).bit_length(), np.int64)
        work = np.empty((kernel.WORK_ROWS, count), np.int64)
        names, owner = np.empty(rows.shape[1], np.int64), np.full(count, kernel.OPEN)
        kernel.number_labels(rows, first, table, work, names)
        kernel.settle(rows, first, following, ended, self._lookahead, names, self._state, work, owner)
        times = np.zeros((2, count), np.int64)
        kernel.settle_times(rows, first, runs[TIME_ID].copy(), owner, CONFLICT, times)
        self._keep(np.flatnonzero(owner == kernel.OPEN), runs, rows, first)
        settled = np.flatnonzero((owner != kernel.OPEN) & ((owner != owner[-1]) | (not broken)))
        settled = settled[np.lexsort((owner[settled], work[kernel.TURN, settled]))]
        opening = np.flatnonzero(np.diff(owner[settled], prepend=kernel.OPEN))
        roots = owner[settled[opening]]
        taken, bounds = _rows_of(settled, first)
        elements = np.empty((3, len(roots)), np.int64)
        elements[FIRST_ROW] = bounds[opening]
        elements[TIME_ID] = np.where(times[0, roots] != 0, times[0, roots], times[1, roots])
        elements[START_LINE] = runs[START_LINE, roots]
        return elements, rows.take(taken, axis=1), rows[0, first[roots]]

    def _keep(self, chosen: Ids, runs: Ids, rows: Ids, first: Ids) -> None:
        self._runs = runs.take(chosen, axis=1)
        taken, self._runs[FIRST_ROW] = _rows_of(chosen, first)
        self._rows = rows.take(taken, axis=1)


def are_blank(ids: Ids) -> npt.NDArray[np.bool_]:
    """Which ids are those of blank nodes?"""
    found: npt.NDArray[np.bool_] = (ids >> TAG_SHIFT) & 15 == TAG_BLANK
    return found


def _rows_of(runs: Ids, first: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    """The rows of runs, one run after another, and the position of each run's first row among them."""
    sizes = first[runs + 1] - first[runs]
    ends = np.cumsum(sizes)
    begins = ends - sizes
    shift = np.repeat(first[runs] - begins, sizes)
    return shift + np.arange(len(shift)), begins
