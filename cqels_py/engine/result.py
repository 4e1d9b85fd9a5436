"""A result as programs see it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from typing import Any

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.notebooks import html_table
from cqels_py.functions.dates import instant_text
from cqels_py.terms.layout import TRUE
from cqels_py.terms.rdf import Term, to_rdflib

_MOST_KNOWN = 1 << 12
"""Of terms that are kept, and of the results of a batch whose terms are."""


@dataclass(frozen=True, slots=True)
class Result:
    """One result: `time` in microseconds since the epoch, `sign` +1 or -1, `bindings` of variable names to rdflib terms.

    Of an ASK query, `bindings` is empty and `boolean` the answer. `number`: its place among all results of the query, from 1; with a
    checkpoint it is the same after a restart. Results are equal whatever their numbers are.
    """

    time: int
    sign: int
    bindings: dict[str, Any]
    boolean: bool | None = None
    number: int = field(default=0, compare=False)

    def _repr_html_(self) -> str:
        bindings = self.bindings if self.boolean is None else {"boolean": self.boolean}
        return html_table(
            ("time", "sign", *bindings), [(instant_text(self.time), f"{self.sign:+d}", *bindings.values())]
        )


class KnownTerms:
    """The rdflib terms of ids that a query's results have had: most terms of a live stream come again and again.

    Any thread may use it. An id is the same term as long as the dictionary releases none, or has the arrays of before.
    """

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary = dictionary
        self._terms: dict[int, Term] = {}
        self._texts = dictionary.texts

    def of(self, columns: Sequence[Sequence[int]]) -> Mapping[int, Term]:
        """The terms of at least these ids, but for unbound ones. UsageError for an id whose term has been released."""
        texts, terms = self._dictionary.texts, self._terms
        if texts is not self._texts or len(terms) > _MOST_KNOWN or len(columns[0]) > _MOST_KNOWN:
            # Another thread may be using the former ones.
            terms = self._terms = {}
            self._texts = texts
        # Each term once.
        if wanted := [id_ for id_ in dict.fromkeys(chain.from_iterable(columns)) if id_ and id_ not in terms]:
            found = self._dictionary.decode(np.array(wanted, np.int64))
            terms.update({id_: to_rdflib(text) for id_, text in zip(wanted, found, strict=True) if text is not None})
        return terms


def decoded(batch: ResultBatch, known: KnownTerms, form: str) -> Iterator[Result]:
    """The results of a batch of a query of this form; all terms are looked up at the first one."""
    times, signs, numbers = batch.time.tolist(), batch.sign.tolist(), count(batch.number)
    if form == "ASK":
        for time, sign, answer in zip(times, signs, batch.columns[0].tolist(), strict=True):
            yield Result(time, sign, {}, answer == TRUE, next(numbers))
        return
    columns = [column.tolist() for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else repeat((), len(batch))
    terms = known.of(columns) if columns else {}
    for row, time, sign in zip(rows, times, signs, strict=True):
        bindings = {name: terms[id_] for name, id_ in zip(batch.variables, row, strict=True) if id_}
        yield Result(time, sign, bindings, number=next(numbers))
