"""Runs of triples with one subject to elements: nested blank nodes go with the subject that names them."""

from __future__ import annotations

from collections.abc import Iterator

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.kernels.text import nesting as kernel
from cqels_py.kernels.text.tokenizer import CONFLICT, FIRST_ROW, START_LINE, TIME_ID
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT


class Nesting:
    """Puts runs together as elements, and keeps those of which it depends on what follows.

    Runs and elements are columns of first row, time's id and line; rows are columns of ids, subjects first.
    """

    def __init__(self, lookahead: int = kernel.LOOKAHEAD) -> None:
        self._lookahead = lookahead
        self._state = np.zeros(kernel.STATE_CELLS, np.int64)
        self._runs = np.empty((3, 0), np.int64)
        self._rows = np.empty((4, 0), np.int64)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of what is kept."""
        yield self._rows
        yield self._runs[TIME_ID]

    def put_together(self, runs: Ids, rows: Ids, following: int, ended: bool) -> tuple[Ids, Ids, Ids]:
        """Elements (3, n), their rows, and the subjects (n) after which they are called.

        `following`: the subject of the run behind these, which is not complete; 0: there is none. `ended`: there will be none.
        """
        subjects = rows[0, runs[FIRST_ROW]]
        nothing_nests = ended or not _are_blank(np.array([following])).any()
        if nothing_nests and not self._runs.size and not _are_blank(subjects).any():
            return runs, rows, subjects
        runs, rows = self._behind_kept(runs, rows)
        return self._settle(runs, rows, following, ended)

    def before_an_error(self, runs: Ids, rows: Ids) -> tuple[Ids, Ids, Ids]:
        """The same where the last run breaks off: all elements but the one that it belongs to."""
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


def _are_blank(ids: Ids) -> npt.NDArray[np.bool_]:
    found: npt.NDArray[np.bool_] = (ids >> TAG_SHIFT) & 15 == TAG_BLANK
    return found


def _rows_of(runs: Ids, first: Ids) -> tuple[Ids, npt.NDArray[np.int64]]:
    """The rows of runs, one run after the other, and where each run begins among them."""
    sizes = first[runs + 1] - first[runs]
    ends = np.cumsum(sizes)
    begins = ends - sizes
    shift = np.repeat(first[runs] - begins, sizes)
    return shift + np.arange(len(shift)), begins
