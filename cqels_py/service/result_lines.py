"""Results as lines of JSON with their numbers."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.construction import Template
from cqels_py.functions.dates import instant_text
from cqels_py.sinks.files import open_sink

_OPENING = len("{")


class ResultLines:
    """Writes results as `cqels run --format json` does, with a member `number` at the beginning.

    Those of CONSTRUCT have `"triples"`, as N-Triples; their blank nodes belong to the result.
    """

    def __init__(self, dictionary: Dictionary, form: str, variables: Sequence[str], template: Template) -> None:
        self._dictionary = dictionary
        self._template = template
        self._variables = variables
        self._file = io.StringIO()
        self._lines = (
            None
            if form == "CONSTRUCT"
            else open_sink("json", self._file, dictionary=dictionary, form=form, variables=variables)
        )

    def of(self, batch: ResultBatch, first: int) -> list[bytes]:
        """A line for each result; that of the first has the number `first`."""
        if self._lines is None:
            return self._graphs(batch, first)
        self._lines.write(batch)
        self._lines.flush()
        lines = self._file.getvalue().encode().split(b"\n")
        self._file.seek(0)
        self._file.truncate()
        lines.pop()
        return [b'{"number":%d,%b' % (number, line[_OPENING:]) for number, line in enumerate(lines, first)]

    def _graphs(self, batch: ResultBatch, first: int) -> list[bytes]:
        columns = [self._dictionary.decode(column) for column in batch.columns]
        rows = [dict(zip(self._variables, row, strict=True)) for row in zip(*columns, strict=True)]
        rows = rows or [{} for _ in range(len(batch))]
        times, signs = batch.time.tolist(), batch.sign.tolist()
        return [
            json.dumps(
                {
                    "number": number,
                    "time": instant_text(times[at]),
                    "sign": "+" if signs[at] > 0 else "-",
                    "triples": self._triples(row, number),
                },
                ensure_ascii=False,
                separators=(",", ":"),
            ).encode()
            for at, (number, row) in enumerate(enumerate(rows, first))
        ]

    def _triples(self, row: dict[str, str | None], number: int) -> str:
        """The triples of a solution; one with a part that is unbound, or cannot stand at its place, is left out."""
        found = []
        for triple in self._template:
            terms = [_term(part, row, number) for part in triple]
            subject, predicate, object_ = terms
            if subject and predicate and object_ and subject[0] != '"' and predicate[0] == "<":
                found.append(f"{subject} {predicate} {object_} .\n")
        return "".join(dict.fromkeys(found))


def _term(part: str, row: dict[str, str | None], number: int) -> str | None:
    if part.startswith("?"):
        return row[part[1:]]
    return f"_:r{number}{part[2:]}" if part.startswith("_:") else part
