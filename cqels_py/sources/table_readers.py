"""Tables of databases, read as they are now: rows of Python values, some at a time."""

from __future__ import annotations

import sqlite3
from collections.abc import Callable, Iterator, Sequence
from contextlib import closing
from pathlib import Path
from typing import Any, Protocol
from urllib.parse import quote

from cqels_py.connections.duckdb import duckdb_for, open_duckdb
from cqels_py.connections.location import Location
from cqels_py.connections.postgresql import psycopg_for, settings_of
from cqels_py.errors import RunError, UsageError

AT_ONCE = 1 << 14
_WAIT = 5.0
"""Seconds for which SQLite waits for a process that writes."""

Choose = Callable[[Sequence[str]], Sequence[str]]
"""The names of the columns that are read, of all; they may be repeated."""


class TableReader(Protocol):
    """Reads a table, or a view. RunError if that fails, UsageError if it is not there."""

    def blocks(self, choose: Choose) -> Iterator[Sequence[Sequence[Any]]]:
        """The rows with the chosen columns, some at a time."""
        ...


def quoted(name: str) -> str:
    return '"' + name.replace('"', '""') + '"'


def _select(schema: str | None, table: str, columns: Sequence[str]) -> str:
    of = quoted(table) if schema is None else f"{quoted(schema)}.{quoted(table)}"
    return f"SELECT {', '.join(map(quoted, columns)) or '1'} FROM {of}"


def _file(location: Location) -> tuple[str, str]:
    """The path and the table of a URL."""
    if not location.path or location.url.partition(":")[2].startswith("//") or not location.fragment:
        raise UsageError(
            f"{location.shown} names no table of a file: one is written like {location.scheme}:weather.db?map=rooms.rq#rooms"
        )
    return location.path, location.fragment


class SqliteTable:
    """`sqlite:PATH#table`, opened for reading only."""

    def __init__(self, location: Location) -> None:
        self._shown = location.shown
        self._path, self._table = _file(location)

    def blocks(self, choose: Choose) -> Iterator[Sequence[Sequence[Any]]]:
        if not Path(self._path).is_file():
            raise UsageError(f"{self._shown}: there is no file {self._path}")
        try:
            url = f"file:{quote(self._path)}?mode=ro"
            with closing(sqlite3.connect(url, uri=True, timeout=_WAIT, check_same_thread=False)) as connection:
                # Views of the file call no functions of others.
                connection.execute("PRAGMA trusted_schema = OFF")
                found = [
                    name for (name,) in connection.execute("SELECT name FROM pragma_table_info(?)", (self._table,))
                ]
                if not found:
                    raise UsageError(f"{self._shown}: there is no table {self._table}")
                rows = connection.execute(_select(None, self._table, choose(found)))
                while block := rows.fetchmany(AT_ONCE):
                    yield block
        except sqlite3.Error as error:
            raise RunError(f"{self._shown}: {error}") from None


class DuckdbTable:
    """`duckdb:PATH#schema.table`, opened for reading only, unless this process writes into the file."""

    def __init__(self, location: Location) -> None:
        self._duckdb = duckdb_for(location)
        self._shown = location.shown
        self._path, named = _file(location)
        schema, _, self._table = named.rpartition(".")
        self._schema = schema or "main"

    def blocks(self, choose: Choose) -> Iterator[Sequence[Sequence[Any]]]:
        if not Path(self._path).is_file():
            raise UsageError(f"{self._shown}: there is no file {self._path}")
        try:
            with closing(self._connected()) as connection:
                select = (
                    "SELECT column_name FROM information_schema.columns WHERE table_schema = ? AND table_name = ? "
                    "ORDER BY ordinal_position"
                )
                found = [name for (name,) in connection.execute(select, (self._schema, self._table)).fetchall()]
                if not found:
                    raise UsageError(f"{self._shown}: there is no table {self._schema}.{self._table}")
                rows = connection.execute(_select(self._schema, self._table, choose(found)))
                while block := rows.fetchmany(AT_ONCE):
                    yield block
        except self._duckdb.Error as error:
            raise RunError(f"{self._shown}: {' '.join(str(error).split())}") from None

    def _connected(self) -> Any:
        try:
            return open_duckdb(self._duckdb, self._path, read_only=True)
        except self._duckdb.ConnectionException:
            return open_duckdb(self._duckdb, self._path)


class PostgresTable:
    """`postgresql://user@host/database#schema.table`, with any option of libpq."""

    def __init__(self, location: Location) -> None:
        self._psycopg = psycopg_for(location)
        if not location.fragment:
            raise UsageError(
                f"{location.shown} names no table: put it behind the database, postgresql://localhost/weather?map=rooms.rq#rooms"
            )
        self._shown = location.shown
        schema, _, self._table = location.fragment.rpartition(".")
        self._schema = schema or None
        self._settings = settings_of(location, "map, refresh")

    def blocks(self, choose: Choose) -> Iterator[Sequence[Sequence[Any]]]:
        sql = self._psycopg.sql
        try:
            with self._psycopg.connect(**self._settings) as connection:
                connection.read_only = True
                of = sql.Identifier(self._table) if self._schema is None else sql.Identifier(self._schema, self._table)
                select = (
                    "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped "
                    "ORDER BY attnum"
                )
                found = [name for (name,) in connection.execute(select, (of.as_string(connection),))]
                if not found:
                    raise UsageError(f"{self._shown}: there is no table {self._table}")
                columns = sql.SQL(", ").join(map(sql.Identifier, choose(found)))
                # A cursor of the server: rows come some at a time.
                with connection.cursor(name="cqels") as cursor:
                    cursor.execute(sql.SQL("SELECT {} FROM {}").format(columns, of))
                    while block := cursor.fetchmany(AT_ONCE):
                        yield block
        except self._psycopg.Error as error:
            raise RunError(f"{self._shown}: {' '.join(str(error).split())}") from None
