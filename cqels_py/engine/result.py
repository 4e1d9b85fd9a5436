"""A result as programs see it."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from itertools import chain, count, repeat
from typing import Any

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.notebooks import html_table
from cqels_py.functions.dates import instant_text
from cqels_py.terms.layout import TRUE
from cqels_py.terms.rdf import to_rdflib


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


def decoded(batch: ResultBatch, dictionary: Dictionary, form: str) -> Iterator[Result]:
    """The results of a batch of a query of this form; all terms are looked up at the first one."""
    times, signs, numbers = batch.time.tolist(), batch.sign.tolist(), count(batch.number)
    if form == "ASK":
        for time, sign, answer in zip(times, signs, batch.columns[0].tolist(), strict=True):
            yield Result(time, sign, {}, answer == TRUE, next(numbers))
        return
    columns = [column.tolist() for column in batch.columns]
    rows = zip(*columns, strict=True) if columns else repeat((), len(batch))
    # Each term once.
    ids = [*dict.fromkeys(chain.from_iterable(columns))]
    texts = dictionary.decode(np.array(ids, np.int64))
    terms = {id_: to_rdflib(text) for id_, text in zip(ids, texts, strict=True) if text is not None}
    for row, time, sign in zip(rows, times, signs, strict=True):
        bindings = {name: terms[id_] for name, id_ in zip(batch.variables, row, strict=True) if id_ in terms}
        yield Result(time, sign, bindings, number=next(numbers))
