"""The net change of a micro-batch: results that come and go within it are left out."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.kernels.rows.distinct import cancel


def net_changes(batches: Sequence[ResultBatch]) -> ResultBatch:
    """Of the changes of one query (one batch at least), in order, those that are left when equal additions and removals cancel
    each other, with their own times.

    >>> ids = [np.array([7, 8, 7]), np.array([8])]
    >>> one = ResultBatch(("a",), np.array([1, 2, 3]), np.array([1, 1, -1], np.int8), (ids[0],))
    >>> other = ResultBatch(("a",), np.array([5]), np.array([1], np.int8), (ids[1],))
    >>> found = net_changes([one, other])
    >>> found.time.tolist(), found.sign.tolist(), found.columns[0].tolist()
    ([2, 5], [1, 1], [8, 8])
    """
    variables = batches[0].variables
    time, sign = (np.concatenate([getattr(each, name) for each in batches]) for name in ("time", "sign"))
    columns = np.array(
        [np.concatenate([each.columns[place] for each in batches]) for place in range(len(variables))], np.int64
    ).reshape(len(variables), len(time))
    left = cancel(np.zeros(len(time), np.int32), sign, columns)
    return ResultBatch(variables, time[left], sign[left], tuple(columns[:, left]))
