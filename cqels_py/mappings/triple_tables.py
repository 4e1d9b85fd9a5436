"""Tables of triples whose columns are not all in N-Triples syntax: typed objects, and IRIs without angle brackets."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pyarrow as pa
import pyarrow.compute as pc

from cqels_py.formats.tabular import exported
from cqels_py.mappings.terms import terms_of_column
from cqels_py.terms.canonical import BARE_IRI

_NODES = ("subject", "predicate")
_OBJECT = "object"
_NOT_BRACKETED = r"^[^<_]"


def in_ntriples(table: Any) -> pa.Table | pa.RecordBatchReader:
    """The table with objects that are numbers, truth values, timestamps or dates as literals, and with IRIs in angle brackets.

    DataError for a column of objects whose type has no terms.
    """
    if isinstance(table, pa.Table):
        if _is_plain(table.schema) and not any(map(_has_bare, table.to_batches())):
            return table
        batches = [_converted(batch) for batch in table.to_batches()]
        return pa.Table.from_batches(batches) if batches else table
    reader = exported(table)
    return pa.RecordBatchReader.from_batches(_schema(reader.schema), _all_converted(reader))


def _all_converted(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    for batch in reader:
        yield _converted(batch)


def _is_plain(schema: pa.Schema) -> bool:
    return _schema(schema) is schema


def _schema(schema: pa.Schema) -> pa.Schema:
    """Objects that are no texts become such, and nodes texts of a type that Arrow's functions take; other types stay."""
    for place, field in enumerate(schema):
        is_object = field.name == _OBJECT and not _is_text(field.type)
        if is_object or (field.name in _NODES and _is_view(field.type)):
            schema = schema.set(place, pa.field(field.name, pa.large_string()))
    return schema


def _converted(batch: pa.RecordBatch) -> pa.RecordBatch:
    schema = _schema(batch.schema)
    columns = [_column(column, field) for column, field in zip(batch.columns, schema, strict=True)]
    return pa.RecordBatch.from_arrays(columns, schema=schema)


def _column(column: pa.Array, field: pa.Field) -> pa.Array:
    if field.name == _OBJECT and not _is_text(column.type):
        return terms_of_column(column, field.name).cast(field.type)
    if field.name in _NODES:
        if _is_view(column.type):
            # Not validated here: the reader names the row that is not UTF-8.
            column = column.cast(field.type, safe=False)
        return _bracketed(column) if _bare(column) else column
    return column


def _has_bare(batch: pa.RecordBatch) -> bool:
    return any(name in _NODES and _bare(batch.column(place)) for place, name in enumerate(batch.schema.names))


def _bare(column: pa.Array) -> bool:
    """Does the column have texts that are in no angle brackets?"""
    if pa.types.is_dictionary(column.type):
        column = column.dictionary
    if column.type not in (pa.string(), pa.large_string()):
        return False
    return bool(pc.any(pc.match_substring_regex(column, _NOT_BRACKETED)).as_py())


def _bracketed(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        return pa.DictionaryArray.from_arrays(column.indices, _bracketed(column.dictionary))
    kind = column.type
    bare = pc.match_substring_regex(column, f"^{BARE_IRI}$")
    brackets = pa.scalar("<", kind), pa.scalar(">", kind)
    return pc.if_else(bare, pc.binary_join_element_wise(brackets[0], column, brackets[1], pa.scalar("", kind)), column)


def _is_view(kind: pa.DataType) -> bool:
    """Texts of Polars, which Arrow can cast, and not much more."""
    return str(kind) in ("string_view", "utf8_view")


def _is_text(kind: pa.DataType) -> bool:
    if pa.types.is_dictionary(kind):
        kind = kind.value_type
    return "string" in str(kind) or "utf8" in str(kind) or "binary" in str(kind) or pa.types.is_null(kind)
