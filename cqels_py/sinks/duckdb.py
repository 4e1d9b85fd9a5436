"""Results into a table of a DuckDB file."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

from cqels_py.connections.duckdb import duckdb_for, open_duckdb
from cqels_py.connections.location import Location
from cqels_py.sinks.file_database import COUNT, FileTable, FileTableConnector, listed, quoted
from cqels_py.sinks.table_changes import Row

_ROWS = "_cqels_rows"
_CHANGES = "_cqels_changes"


def duckdb_sink(location: Location) -> FileTableConnector:
    """`duckdb:PATH#schema.table?mode=upsert`."""
    duckdb = duckdb_for(location)
    to = FileTable.of(location, schemas=True)
    return FileTableConnector(to, DuckDatabase(duckdb, to))


class DuckDatabase:
    """Statements of DuckDB, which takes rows as columns, all at once."""

    def __init__(self, duckdb: Any, to: FileTable) -> None:
        self.errors: type[Exception] = duckdb.Error
        self.types = {"text": "VARCHAR", "number": "BIGINT", "time": "TIMESTAMPTZ", "small": "TINYINT"}
        self._duckdb = duckdb
        self._to = to

    def connect(self) -> Any:
        return open_duckdb(self._duckdb, self._to.path)

    def columns(self, connection: Any) -> list[str]:
        schema = self._schema(connection)
        select = (
            "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? "
            "ORDER BY ordinal_position"
        )
        return [name for (name,) in connection.execute(select, (schema, self._to.table)).fetchall()]

    def insert(self, connection: Any, columns: Sequence[str], rows: Sequence[Row]) -> None:
        if not rows:
            return
        with self._registered(connection, columns, rows):
            connection.execute(
                f"INSERT INTO {self._to.qualified} ({listed(columns)}) SELECT {listed(columns)} FROM {_ROWS}"
            )

    def replace(
        self, connection: Any, columns: Sequence[str], key: Sequence[str], change: Sequence[tuple[Row, Row | None]]
    ) -> None:
        self._load(connection, key, [values for values, _ in change])
        connection.execute(f"DELETE FROM {self._to.qualified} AS t USING {_CHANGES} AS c WHERE {_same(key)}")
        self.insert(connection, columns, [row for _, row in change if row is not None])

    def counts(self, connection: Any, columns: Sequence[str], rows: Sequence[Row]) -> list[int]:
        self._load(connection, columns, rows)
        select = f"SELECT c._place, t.{COUNT} FROM {_CHANGES} AS c JOIN {self._to.qualified} AS t ON {_same(columns)}"
        found = dict(connection.execute(select).fetchall())
        return [int(found.get(place, 0)) for place in range(len(rows))]

    def index(self, connection: Any, columns: Sequence[str]) -> None:
        """None: it finds rows by scanning columns."""

    def is_away(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.IOException) and "lock" in str(error).lower()

    def refuses(self, error: Exception) -> bool:
        return isinstance(error, self._duckdb.DataError | self._duckdb.IntegrityError)

    def _schema(self, connection: Any) -> str:
        if not self._to.qualified.startswith(f"{quoted(self._to.table)}"):
            before = self._to.qualified.removesuffix(f".{quoted(self._to.table)}")
            return before[1:-1].replace('""', '"')
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

    def _load(self, connection: Any, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """A temporary table of values, which have the types of the table's columns."""
        connection.execute(f"DROP TABLE IF EXISTS temp.{_CHANGES}")
        chosen = f"{listed(columns)}, " if columns else ""
        connection.execute(
            f"CREATE TEMP TABLE {_CHANGES} AS SELECT {chosen}0::BIGINT AS _place FROM {self._to.qualified} LIMIT 0"
        )
        if rows:
            with self._registered(connection, [*columns, "_place"], [(*row, place) for place, row in enumerate(rows)]):
                connection.execute(f"INSERT INTO {_CHANGES} SELECT * FROM {_ROWS}")


def _same(columns: Sequence[str]) -> str:
    return " AND ".join(f"t.{quoted(name)} IS NOT DISTINCT FROM c.{quoted(name)}" for name in columns) or "true"
