"""Texts with values of a result in them, such as the topic `alerts/{room}`, by which the other side finds what it has."""

from __future__ import annotations

import logging
import re
from collections.abc import Sequence
from dataclasses import dataclass
from urllib.parse import quote

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.values import columns_of_terms, value_of

_VARIABLE = re.compile(r"\{([^{}]*)\}")
_UNBOUND, _EMPTY = "_", "__"
_MOST_REMEMBERED = 10_000
_MOST_REPORTED = 10

_LOG = logging.getLogger("cqels_py")


@dataclass(frozen=True, slots=True)
class Template:
    """`{room}` in the text stands for the value of the variable ?room.

    Characters of a value that are neither ASCII letters and digits nor among `safe` are percent-encoded. An unbound variable is `_`,
    an empty text `__`; of a text of such characters alone the first one is percent-encoded.
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

    def of(self, batch: ResultBatch, dictionary: Dictionary, names: Names) -> Sequence[str]:
        """The text for each result. `names`: those that there have been."""
        variables = sorted(set(self.variables))
        if not variables or not len(batch):
            return [self.text] * len(batch)
        ids = np.stack([batch.columns[batch.variables.index(name)] for name in variables])
        distinct, places = np.unique(ids, axis=1, return_inverse=True)
        texts = []
        for terms in zip(*columns_of_terms(list(distinct), dictionary), strict=True):
            shown = {name: self._shown(term) for name, term in zip(variables, terms, strict=True)}
            texts.append(_VARIABLE.sub(lambda match, shown=shown: shown[match[1]], self.text))  # type: ignore[misc]
            names.note(texts[-1], terms)
        return [texts[place] for place in places.ravel().tolist()]

    def _shown(self, term: str | None) -> str:
        if term is None:
            return _UNBOUND
        shown = quote(value_of(term), safe=self.safe)
        if "." not in self.safe:
            shown = shown.replace(".", "%2E")
        if not shown:
            return _EMPTY
        return shown if shown.strip(_UNBOUND) else f"%5F{shown[1:]}"


class Names:
    """Remembers of which terms a name was made, the first 10,000 of them, and warns once of one that stands for others, too.

    `shown`: the URL of the sink; `kind`: of name, for the warning.
    """

    def __init__(self, shown: str, kind: str) -> None:
        self._shown = shown
        self._kind = kind
        self._terms: dict[str, tuple[str | None, ...]] = {}
        self._reported: set[str] = set()

    def note(self, name: str, terms: tuple[str | None, ...]) -> None:
        """A result has this name, made of these terms."""
        before = self._terms.get(name, terms)
        if len(self._terms) < _MOST_REMEMBERED:
            self._terms[name] = before
        if before == terms or name in self._reported or len(self._reported) >= _MOST_REPORTED:
            return
        self._reported.add(name)
        one, other = (", ".join(term or "unbound" for term in each) for each in (before, terms))
        last = ". Further ones are not reported" if len(self._reported) == _MOST_REPORTED else ""
        _LOG.warning(
            "%s: results with %s and results with %s have the same %s, %s; to tell them apart, use a text with the language, the "
            'datatype or the kind in it, too, as BIND(CONCAT(STR(?x), "@", LANG(?x)) AS ?name) makes it of literals%s',
            self._shown, one, other, self._kind, name, last,
        )  # fmt: skip
