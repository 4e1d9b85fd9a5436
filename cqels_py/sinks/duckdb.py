"""Results into a table of a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cqels_py.connections.duckdb import duckdb_for, open_duckdb
from cqels_py.connections.location import Location
from cqels_py.sinks.file_database import FileTable, FileTableConnector
from cqels_py.sinks.groups_of_keys import listed, quoted
from cqels_py.sinks.table_changes import Row

_ROWS = "_cqels_rows"
_KEYS = "_cqels_keys"


def duckdb_sink(location: Location) -> FileTableConnector:
    """`duckdb:PATH#schema.table?mode=upsert`."""
    duckdb = duckdb_for(location)
    to = FileTable.of(location, schemas=True)
    return FileTableConnector(to, DuckDatabase(duckdb, to))


class DuckDatabase:
    """Statements of DuckDB, which takes rows as columns, all at once."""

    equal = "IS NOT DISTINCT FROM"

    def __init__(self, duckdb: Any, to: FileTable) -> None:
        self.errors: type[Exception] = duckdb.Error
        self.types = {"text": "VARCHAR", "number": "BIGINT", "time": "TIMESTAMPTZ", "small": "TINYINT"}
        self._duckdb = duckdb
        self._to = to

    def connect(self) -> Any:
        return open_duckdb(self._duckdb, self._to.path)

    def columns(self, connection: Any, table: str) -> list[str]:
        schema = self._schema(connection)
        select = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? "
            "ORDER BY ordinal_position"
        )
        return [name for (name,) in connection.execute(select, (schema, table)).fetchall()]

    def insert(self, connection: Any, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if not rows:
            return
        with self._registered(connection, columns, rows):
            connection.execute(f"INSERT INTO {table} ({listed(columns)}) SELECT {listed(columns)} FROM {_ROWS}")

    def remove(self, connection: Any, columns: Sequence[str], keys: Sequence[Row]) -> None:
        """By a temporary table, in which the values have the types of the table's columns."""
        if not columns:
            connection.execute(f"DELETE FROM {self._to.qualified}")
            return
        connection.execute(f"DROP TABLE IF EXISTS temp.{_KEYS}")
        connection.execute(f"CREATE TEMP TABLE {_KEYS} AS SELECT {listed(columns)} FROM {self._to.qualified} LIMIT 0")
        self.insert(connection, _KEYS, columns, keys)
        same = " AND ".join(f"t.{quoted(name)} {self.equal} c.{quoted(name)}" for name in columns)
        connection.execute(f"DELETE FROM {self._to.qualified} AS t USING {_KEYS} AS c WHERE {same}")

    def index(self, connection: Any, name: str, table: str, columns: Sequence[str]) -> None:
        """None: it finds rows by scanning columns."""

    def is_away(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.IOException) and "lock" in str(error).lower()

    def refuses(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.DataError | self._duckdb.IntegrityError)

    def _schema(self, connection: Any) -> str:
        if self._to.before:
            return self._to.before[1:-2].replace('""', '"')
        return str(connection.execute("SELECT current_schema()").fetchall()[0][0])

    @contextmanager
    def _registered(self, connection: Any, columns: Sequence[str], rows: Sequence[Row]) -> Iterator[None]:
        """Inside, the rows are a view."""
        import pyarrow as pa

        arrays = [pa.array(column) for column in zip(*rows, strict=True)]
        # A column that is unbound in all rows has no type of its own.
        arrays = [each.cast(pa.string()) if pa.types.is_null(each.type) else each for each in arrays]
        connection.register(_ROWS, pa.Table.from_arrays(arrays, names=list(columns)))
        try:
            yield
        finally:
            # A transaction that a refused row has ended takes the view back itself.
            with suppress(self.errors):
                connection.unregister(_ROWS)
