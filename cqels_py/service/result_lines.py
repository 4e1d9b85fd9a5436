"""Results as lines of JSON. Their store gives them their numbers, as queries with equal results share their lines."""

from __future__ import annotations

import io
import json
from collections.abc import Sequence

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.construction import Template
from cqels_py.functions.dates import instant_text
from cqels_py.sinks.files import open_sink


class ResultLines:
    """Writes results as `cqels run --format json` does.

    Those of CONSTRUCT have `"triples"`, as N-Triples; their blank nodes belong to the result.
    """

    def __init__(self, dictionary: Dictionary, form: str, variables: Sequence[str], template: Template) -> None:
        self._dictionary = dictionary
        self._template = template
        self._variables = variables
        self.key = (ResultLines, form, tuple(variables), tuple(template))
        """Of equal keys the same results have the same lines, unless they are numbered."""
        self.are_numbered = any(part.startswith("_:") for triple in template for part in triple)
        """Blank nodes are named after the number of their result."""
        self._file = io.StringIO()
        self._lines = (
            None
            if form == "CONSTRUCT"
            else open_sink("json", self._file, dictionary=dictionary, form=form, variables=variables)
        )

    def of(self, batch: ResultBatch, first: int) -> list[bytes]:
        """A line for each result, of which the first has the number `first`. It is the same list for queries with equal results."""
        made = None if self.are_numbered else batch.made
        if made is None:
            return self._rendered(batch, first)
        lines: list[bytes] | None = made.get(self.key)
        if lines is None:
            lines = made[self.key] = self._rendered(batch, first)
        return lines

    def _rendered(self, batch: ResultBatch, first: int) -> list[bytes]:
        if self._lines is None:
            return self._graphs(batch, first)
        self._lines.write(batch)
        self._lines.flush()
        lines = self._file.getvalue().encode().split(b"\n")
        self._file.seek(0)
        self._file.truncate()
        lines.pop()
        return lines

    def _graphs(self, batch: ResultBatch, first: int) -> list[bytes]:
        columns = [self._dictionary.decode(column) for column in batch.columns]
        rows = [dict(zip(self._variables, row, strict=True)) for row in zip(*columns, strict=True)]
        rows = rows or [{} for _ in range(len(batch))]
        times, signs = batch.time.tolist(), batch.sign.tolist()
        return [
            json.dumps(
                {
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
