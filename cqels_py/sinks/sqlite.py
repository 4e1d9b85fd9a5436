"""Results into a table of an SQLite file."""

from __future__ import annotations

import sqlite3
from collections.abc import Sequence
from typing import Any

from cqels_py.connections.location import Location
from cqels_py.sinks.file_database import FileTable, FileTableConnector
from cqels_py.sinks.groups_of_keys import listed, quoted
from cqels_py.sinks.table_changes import Row

_BUSY = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
_AT_ONCE = 0.2
"""Seconds for which SQLite itself waits for another process."""


def sqlite_sink(location: Location) -> FileTableConnector:
    """`sqlite:PATH#table?mode=upsert`."""
    to = FileTable.of(location, schemas=False)
    return FileTableConnector(to, SqliteDatabase(to))


class SqliteDatabase:
    """Statements of SQLite, in which `IS` finds NULL, by an index."""

    errors: type[Exception] = sqlite3.Error
    equal = "IS"

    def __init__(self, to: FileTable) -> None:
        self._to = to
        self.types = {"text": "TEXT", "number": "INTEGER", "time": "TEXT", "small": "INTEGER"}

    def connect(self) -> Any:
        # The file may be opened in one thread, and written in another.
        return sqlite3.connect(self._to.path, timeout=_AT_ONCE, isolation_level=None, check_same_thread=False)

    def columns(self, connection: Any, table: str) -> list[str]:
        rows = connection.execute("SELECT name FROM pragma_table_info(?)", (table,))
        return [name for (name,) in rows]

    def insert(self, connection: Any, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        marks = ", ".join("?" * len(columns))
        connection.executemany(f"INSERT INTO {table} ({listed(columns)}) VALUES ({marks})", rows)

    def remove(self, connection: Any, columns: Sequence[str], keys: Sequence[Row]) -> None:
        same = " AND ".join(f"{quoted(name)} IS ?" for name in columns)
        connection.executemany(f"DELETE FROM {self._to.qualified} WHERE {same or '1'}", keys)

    def index(self, connection: Any, name: str, table: str, columns: Sequence[str]) -> None:
        connection.execute(f"DROP INDEX IF EXISTS {quoted(name)}")
        if columns:
            connection.execute(f"CREATE INDEX {quoted(name)} ON {table} ({listed(columns)})")

    def is_away(self, error: Exception) -> bool:
        return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY

    def refuses(self, error: Exception) -> bool:
        return isinstance(error, sqlite3.IntegrityError | sqlite3.DataError)
