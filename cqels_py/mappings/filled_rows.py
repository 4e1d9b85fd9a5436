"""A mapping's steps over the columns of rows, and its template filled with them."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import combinations

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids
from cqels_py.dataflow.expressions import build_evaluator
from cqels_py.dictionary import Dictionary
from cqels_py.formats.construction import Filling
from cqels_py.mappings.mapping import Bind, Mapping
from cqels_py.mappings.rows import Rows


class FilledRows:
    """Evaluates a mapping column by column."""

    def __init__(self, mapping: Mapping, dictionary: Dictionary) -> None:
        self._mapping = mapping
        self._dictionary = dictionary
        self._filling = Filling(mapping.template, dictionary)
        self._evaluators = [
            build_evaluator(step.expression if isinstance(step, Bind) else step.condition, dictionary)
            for step in mapping.steps
        ]

    def live(self) -> Iterator[Ids]:
        """Called when terms are about to be released: values that expressions keep by ids are forgotten."""
        for evaluator in self._evaluators:
            evaluator.clear()
            yield from evaluator.live_ids()

    def evaluated(self, rows: Rows) -> tuple[dict[str, Ids], npt.NDArray[np.int64]]:
        """The columns after all steps, and the places of the rows that are left."""
        columns, kept = dict(rows.columns), np.arange(len(rows.lines))
        for step, evaluator in zip(self._mapping.steps, self._evaluators, strict=True):
            if isinstance(step, Bind):
                inputs = [columns[name] for name in step.expression.inputs]
                columns[step.variable] = evaluator.evaluate(inputs, np.zeros(len(kept), np.int64))
            else:
                inputs = [columns[name] for name in step.condition.inputs]
                true = evaluator.test(inputs, np.zeros(len(kept), np.int64))
                columns, kept = {name: ids[true] for name, ids in columns.items()}, kept[true]
        return columns, kept

    def filled(self, columns: dict[str, Ids], scopes: Ids) -> tuple[Ids, npt.NDArray[np.bool_]]:
        """The triples (3, n * size) of n rows, and which of them (n, size) there are. `scopes` (n): those of blank nodes."""
        triples, size = self._filling.triples(columns, scopes), len(self._filling)
        valid = (self._filling.valid(triples) & ~_repeated(triples, size)).reshape(-1, size)
        return triples, valid


def _repeated(triples: Ids, size: int) -> npt.NDArray[np.bool_]:
    """Triples that an earlier triple of the same row is equal to: an element has each once."""
    by_triple = triples.reshape(3, -1, size)
    found = np.zeros(by_triple.shape[1:], np.bool_)
    for earlier, later in combinations(range(size), 2):
        found[:, later] |= (by_triple[:, :, earlier] == by_triple[:, :, later]).all(axis=0)
    return found.reshape(-1)
