"""Rows of CSV, TSV, Parquet and Arrow tables to columns of terms.

A column is the variable of its name. Members of structs have the struct's name and `_` before theirs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence

import numpy as np
import pyarrow as pa

from cqels_py.batches.elements import Ids
from cqels_py.dictionary import Dictionary
from cqels_py.formats.lines import Malformed
from cqels_py.formats.tabular import Rows as TableRows
from cqels_py.formats.tabular import column_names, row_text, rows_of_lines
from cqels_py.mappings.rows import Rows, columns_of, variable_of
from cqels_py.mappings.terms import ids_of_column, ids_of_written

_ROWS = 1 << 16


def delimited_rows(
    blocks: Iterable[tuple[bytes, int]],
    delimiter: str,
    variables: Sequence[str],
    dictionary: Dictionary,
    source: str,
    malformed: Malformed,
) -> Iterator[Rows | None]:
    """The rows of blocks of whole lines of CSV or TSV; the first line names the columns. None where a block is empty.

    UsageError for a variable without a column, or with two.
    """
    names: list[str] | None = None
    places: dict[str, int] = {}
    for text, first in blocks:
        if not text:
            yield None
            continue
        if names is None:
            head, _, text = text.partition(b"\n")
            names = column_names(head, delimiter, first, source)
            places = columns_of(variables, names, source)
            first += 1
        if not text.strip():
            continue
        # Columns by number: names may be empty, or occur twice where the mapping does not read them.
        numbered = [str(place) for place in range(len(names))]
        used = list(dict.fromkeys(str(place) for place in places.values()))
        rows = rows_of_lines(text, first, numbered, used, delimiter, source)
        by_name = {variable: str(place) for variable, place in places.items()}
        yield from _mapped(rows, by_name, _written, dictionary, malformed)


def table_rows(
    batches: Iterable[pa.RecordBatch],
    variables: Sequence[str],
    dictionary: Dictionary,
    source: str,
    malformed: Malformed,
) -> Iterator[Rows]:
    """The rows of consecutive parts of a table; errors as of `delimited_rows`."""
    first = 1
    for batch in batches:
        flat = _flat(batch)
        places = columns_of(variables, flat.schema.names, source)
        for start in range(0, len(flat), _ROWS):
            part = flat.slice(start, _ROWS)
            lines = np.arange(first + start, first + start + len(part))
            rows = TableRows(part.rename_columns([str(place) for place in range(part.num_columns)]), lines)
            by_name = {variable: str(place) for variable, place in places.items()}
            yield from _mapped(rows, by_name, ids_of_column, dictionary, malformed)
        first += len(flat)


def needed_columns(names: Sequence[str], variables: Sequence[str]) -> list[str]:
    """The columns of which the variables are made: those with their names, and structs with such members."""
    found = [(name, variable_of(name)) for name in names]
    return [name for name, own in found if any(each == own or each.startswith(f"{own}_") for each in variables)]


def _flat(batch: pa.RecordBatch) -> pa.RecordBatch:
    """The batch with the members of structs as columns."""
    while any(pa.types.is_struct(field.type) for field in batch.schema):
        table = pa.Table.from_batches([batch]).flatten()
        batch = table.combine_chunks().to_batches()[0] if len(table) else pa.RecordBatch.from_pylist([], table.schema)
    return batch


def _written(column: pa.Array, name: str, dictionary: Dictionary) -> Ids:
    return ids_of_written(column, dictionary)


def _mapped(
    rows: TableRows,
    places: dict[str, str],
    ids: Callable[[pa.Array, str, Dictionary], Ids],
    dictionary: Dictionary,
    malformed: Malformed,
) -> Iterator[Rows]:
    for line in sorted(rows.errors):
        malformed(rows.errors[line])
    if len(rows.lines):
        columns = {each: ids(rows.table.column(place), each, dictionary) for each, place in places.items()}
        yield Rows(columns, rows.lines, lambda line: row_text(rows, line) or "")
