"""Results as JSON: one object a line, terms as in SPARQL 1.1 Query Results JSON Format."""

from __future__ import annotations

import json
from typing import IO

import pyarrow as pa

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


class JsonSink:
    """`{"time":…,"sign":"+","bindings":{variable:{"type":…,"value":…}}}`; of ASK `"boolean"` in place of the bindings."""

    def __init__(self, file: IO[str], dictionary: Dictionary, *, boolean: bool) -> None:
        self._file = file
        self._dictionary = dictionary
        self._boolean = boolean

    def write(self, batch: ResultBatch) -> None:
        head = join('{"time":"', render_times(batch.time), '","sign":"', render_signs(batch.sign), '",')
        if self._boolean:
            answers = render_terms(batch.columns[0], self._dictionary, lambda text: split_literal(text)[0])
            rows = join(head, '"boolean":', answers, "}\n")
        else:
            rows = join(head, '"bindings":{', self._bindings(batch), "}}\n")
        write_rows(self._file, rows)
        self._file.flush()

    def _bindings(self, batch: ResultBatch) -> pa.Array | str:
        found = [
            join(f"{_quoted(name)}:", render_terms(column, self._dictionary, term_object))
            for name, column in zip(batch.variables, batch.columns, strict=True)
        ]
        return join_present(*found, separator=",") if found else ""

    def close(self) -> None:
        pass


def term_object(text: str) -> str:
    """A term in N-Triples syntax as an object of the SPARQL results format.

    >>> term_object('"a"@en')
    '{"type":"literal","value":"a","xml:lang":"en"}'
    """
    if text.startswith("<"):
        return f'{{"type":"uri","value":{_quoted(text[1:-1])}}}'
    if text.startswith("_:"):
        return f'{{"type":"bnode","value":{_quoted(text[2:])}}}'
    lexical, rest = split_literal(text)
    value = _quoted(unescape(lexical))
    if rest.startswith("@"):
        return f'{{"type":"literal","value":{value},"xml:lang":{_quoted(rest[1:])}}}'
    datatype = f',"datatype":{_quoted(rest[3:-1])}' if rest else ""
    return f'{{"type":"literal","value":{value}{datatype}}}'


def _quoted(text: str) -> str:
    return json.dumps(text, ensure_ascii=False)
