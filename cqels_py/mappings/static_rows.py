"""Rows of a table to static data: triples without a time."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import Any

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.ntriples import ELEMENT_BITS
from cqels_py.mappings.filled_rows import FilledRows
from cqels_py.mappings.mapping import TIME, Bind, Mapping
from cqels_py.mappings.rows import Rows
from cqels_py.terms.values import text_of

_ESCAPES = {ord("\\"): "\\\\", ord('"'): '\\"', ord("\n"): "\\n", ord("\r"): "\\r"}


class StaticRows(FilledRows):
    """Makes the triples of rows. `source`: the table, for messages."""

    def __init__(self, mapping: Mapping, dictionary: Dictionary, source: str) -> None:
        super().__init__(mapping, dictionary)
        self._source = source
        self._scope = dictionary.next_document() << ELEMENT_BITS

    def triples(self, variables: Sequence[str], blocks: Iterable[Sequence[Sequence[Any]]]) -> Ids:
        """The triples (3, n) of blocks of rows, each with a value for each of the variables. None is unbound.

        DataError for a value that has no term. A row whose triples have unbound terms has none.
        """
        found, first = [np.empty((3, 0), np.int64)], 0
        with self._dictionary.holding(self.live):
            for block in blocks:
                lines = np.arange(first, first + len(block))
                columns = {
                    name: self._ids(name, values)
                    for name, values in zip(variables, zip(*block, strict=True), strict=True)
                }
                evaluated, kept = self.evaluated(Rows(columns, lines, str))
                triples, valid = self.filled(evaluated, -(self._scope + lines[kept]))
                found.append(triples[:, valid.reshape(-1)])
                first += len(block)
        return np.concatenate(found, axis=1)

    def _ids(self, name: str, values: Sequence[Any]) -> Ids:
        try:
            return self._dictionary.encode([_term(value) for value in values])
        except UsageError as error:
            raise DataError(f"{self._source}: the column of ?{name}: {error}") from None


def _term(value: Any) -> str | None:
    """A text is a plain literal; others are typed."""
    if value is None or value != value:
        return None
    return f'"{value.translate(_ESCAPES)}"' if isinstance(value, str) else text_of(value)


def needed(mapping: Mapping) -> list[str]:
    """The variables that the rows have to have: ?time only where the mapping says something about it."""
    read = [
        name
        for step in mapping.steps
        for name in (step.expression if isinstance(step, Bind) else step.condition).inputs
    ]
    used = {*read, *(part[1:] for triple in mapping.template for part in triple if part.startswith("?"))}
    return [name for name in mapping.columns if name != TIME or name in used]
