"""Arrow tables of a single element, read from their buffers: the way of tables with many rows takes much longer than its step."""

from __future__ import annotations

from typing import Any

from cqels_py.formats.times import LIKELY_FROM, LIKELY_TO
from cqels_py.formats.triples import joined_lines

_COLUMNS = "time", "subject", "predicate", "object"
_TABLES = {"Table", "RecordBatch"}
_TIMES, _TEXTS = ("int64", "timestamp[us]", "timestamp[us, tz=UTC]"), ("string", "large_string")
_NODES, _OBJECTS = (b"<",), (b"<", b'"')


class SingleRows:
    """Reads tables of one row. Most have the schema of the one before, which is looked at once."""

    def __init__(self) -> None:
        # The type of the table, its schema, and where its columns are: in one attribute, as several threads may read tables.
        self._known: tuple[Any, Any, list[int]] = None, None, []

    def element(self, table: Any) -> tuple[int, bytes] | None:
        """The time and the terms, a line each, of a table with one row; None for others, and for values that take a closer look.

        The latter are columns of other types, a time that may be in another unit, and terms such as blank nodes, or IRIs without
        brackets. A program looks at the rest of a term.
        """
        kind, schema, places = self._known
        if type(table) is not kind or table.schema != schema:
            if (known := _known(table)) is None:
                return None
            self._known = _, _, places = known
        if table.num_rows != 1:
            return None
        column = table.column
        time, *terms = cells = [column(place)[0] for place in places]
        if not all(cell.is_valid for cell in cells):
            return None
        at = time.value if hasattr(time, "value") else time.as_py()
        subject, predicate, object_ = [term.as_buffer().to_pybytes() for term in terms]
        if not (subject.startswith(_NODES) and predicate.startswith(_NODES) and object_.startswith(_OBJECTS)):
            return None
        lines = joined_lines(b"\n".join((subject, predicate, object_)), 3)
        return None if lines is None or not LIKELY_FROM <= at < LIKELY_TO else (at, lines)


def _known(table: Any) -> tuple[type, Any, list[int]] | None:
    """Type, schema and places of a table's columns; None if they are not those of elements without a graph."""
    kind = type(table)
    if kind.__name__ not in _TABLES or kind.__module__ != "pyarrow.lib":
        return None
    schema = table.schema
    names = schema.names
    types = dict(zip(names, map(str, schema.types), strict=True))
    if sorted(names) != sorted(_COLUMNS) or types["time"] not in _TIMES:
        return None
    if any(types[name] not in _TEXTS for name in _COLUMNS[1:]):
        return None
    return kind, schema, [names.index(name) for name in _COLUMNS]
