"""Results as SPARQL 1.1 CSV and TSV, with leading columns for time and sign."""

from __future__ import annotations

from collections.abc import Sequence
from typing import IO

from cqels_py.batches.results import ResultBatch
from cqels_py.connectors.rendering import (
    join,
    join_present,
    render_signs,
    render_terms,
    render_times,
    split_literal,
    write_rows,
)
from cqels_py.dictionary.canonical import unescape
from cqels_py.dictionary.dictionary import Dictionary


class DelimitedSink:
    """A heading, then a line a result; unbound is empty. In TSV terms are complete and variables start with "?"."""

    def __init__(self, file: IO[str], dictionary: Dictionary, format: str, variables: Sequence[str]) -> None:
        self._file = file
        self._dictionary = dictionary
        self._separator, mark, self._render = (",", "", csv_value) if format == "csv" else ("\t", "?", tsv_term)
        # At once: without any result there is a heading all the same.
        names = ["time", "sign", *(mark + name for name in variables)]
        file.write(self._separator.join(names) + "\n")
        file.flush()

    def write(self, batch: ResultBatch) -> None:
        values = [render_terms(column, self._dictionary, self._render).fill_null("") for column in batch.columns]
        line = join_present(render_times(batch.time), render_signs(batch.sign), *values, separator=self._separator)
        write_rows(self._file, join(line, "\n"))
        self._file.flush()

    def close(self) -> None:
        pass


def csv_value(text: str) -> str:
    """The value alone, quoted where it must be (and where it is empty, to tell it from unbound).

    >>> csv_value('"a, b"@en')
    '"a, b"'
    """
    if text.startswith("<"):
        value = text[1:-1]
    elif text.startswith("_:"):
        return text
    else:
        value = unescape(split_literal(text)[0])
    if not value or any(c in value for c in ',"\n\r'):
        return '"' + value.replace('"', '""') + '"'
    return value


def tsv_term(text: str) -> str:
    """The term in Turtle syntax, on one line and without tabs."""
    return text.replace("\t", "\\t")
