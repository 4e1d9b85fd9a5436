"""An Arrow table of a single element, read from its buffers: the way of tables with many rows takes much longer than its step."""

from __future__ import annotations

from typing import Any

from cqels_py.formats.times import LIKELY_FROM, LIKELY_TO
from cqels_py.formats.triples import are_plain

_COLUMNS = {"time", "subject", "predicate", "object"}
_TABLES = {"Table", "RecordBatch"}
_TIMES, _TEXTS = ("int64", "timestamp[us]", "timestamp[us, tz=UTC]"), ("string", "large_string")


def single_element(table: Any) -> tuple[int, list[bytes]] | None:
    """The time and the terms of a table with one row; None for any other table, and for values that take a closer look.

    The latter are columns of other types, a time that may be in another unit, and terms that are not plain, such as IRIs without
    brackets.
    """
    kind = type(table)
    if kind.__name__ not in _TABLES or kind.__module__ != "pyarrow.lib" or table.num_rows != 1:
        return None
    schema = table.schema
    if len(schema) != len(_COLUMNS) or set(schema.names) != _COLUMNS:
        return None
    types = dict(zip(schema.names, map(str, schema.types), strict=True))
    time = table.column("time")[0]
    if types.pop("time") not in _TIMES or any(each not in _TEXTS for each in types.values()) or not time.is_valid:
        return None
    found = [table.column(name)[0].as_buffer() for name in ("subject", "predicate", "object")]
    if any(text is None for text in found):
        return None
    texts, at = [text.to_pybytes() for text in found], time.value if hasattr(time, "value") else time.as_py()
    return (at, texts) if LIKELY_FROM <= at < LIKELY_TO and are_plain(texts) else None
