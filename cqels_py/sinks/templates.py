"""Texts with values of a result in them, such as the topic `alerts/{room}`."""

from __future__ import annotations

import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.values import columns_of_values

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_UNBOUND = "_"


@dataclass(frozen=True, slots=True)
class Template:
    """`{room}` in the text stands for the value of the variable ?room.

    Characters of a value that are neither ASCII letters and digits nor among `safe` are percent-encoded; an unbound variable or an
    empty text is `_`.
    """

    text: str
    safe: str

    @property
    def variables(self) -> list[str]:
        """The names of its variables, in order, each as often as it is there."""
        return _VARIABLE.findall(self.text)

    @property
    def without_variables(self) -> str:
        return _VARIABLE.sub("", self.text)

    def of(self, batch: ResultBatch, dictionary: Dictionary) -> Sequence[str]:
        """The text for each result."""
        names = sorted(set(self.variables))
        if not names:
            return [self.text] * len(batch)
        places = [batch.variables.index(name) for name in names]
        columns = columns_of_values([batch.columns[place] for place in places], dictionary)
        rows = [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]
        return [_VARIABLE.sub(lambda match, row=row: self._shown(row[match[1]]), self.text) for row in rows]  # type: ignore[misc]

    def _shown(self, value: str | None) -> str:
        shown = quote(value or "", safe=self.safe)
        if "." not in self.safe:
            shown = shown.replace(".", "%2E")
        return shown or _UNBOUND
