"""The statements that keep results in a table of PostgreSQL."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, Protocol

from cqels_py.errors import UsageError
from cqels_py.sinks.groups_of_keys import MARKS, GroupsOfKeys
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.table_changes import PROGRESS, Row, net_counts, side_name

COUNT = "_count"
"""The column beside those of the variables that says how often a row is in the answer."""

_ADDED = ("_number", "_time", "_sign")
_CHANGES = "_cqels_changes"
_LEAST_VERSION = 150_000


class TableNames(Protocol):
    """Which table. `shown`: its URL for messages; `changelog`: it equals the answer."""

    @property
    def shown(self) -> str: ...

    @property
    def schema(self) -> str | None: ...

    @property
    def table(self) -> str: ...

    @property
    def changelog(self) -> bool: ...


class Held(Exception):
    """Another process still holds the table: its session may be a broken one of our own, which the server has not noticed."""


class Table:
    """The statements for a table, on one connection."""

    def __init__(self, psycopg: Any, connection: Any, to: TableNames, opening: SinkOpening, key: Sequence[str]) -> None:
        self._connection = connection
        self._to = to
        self._opening = opening
        self._sql = psycopg.sql
        self._variables = list(opening.variables)
        self._key = list(key)
        self._schema = to.schema or connection.execute("SELECT current_schema()").fetchone()[0] or "public"
        self._of = self._sql.Identifier(self._schema, to.table)
        self._progress = self._sql.Identifier(self._schema, PROGRESS)
        self._columns: list[str] = []
        self._groups_table = self._sql.Identifier(self._schema, side_name(to.table, "groups"))
        of, groups, changes = (
            each.as_string(connection) for each in (self._of, self._groups_table, self._sql.Identifier(_CHANGES))
        )
        self._groups = GroupsOfKeys(
            self._rows_of, to.shown, (of, groups, changes), self._variables, self._key, "IS NOT DISTINCT FROM"
        )

    @property
    def _others(self) -> list[str]:
        return [name for name in self._variables if name not in self._key]

    def _run(self, text: str, *values: object, **parts: Any) -> Any:
        """Execute a statement with the names {table}, {progress}, {changes} and `parts`, which are quoted."""
        names = {
            name: self._sql.SQL(", ").join(map(self._sql.Identifier, part)) if isinstance(part, list) else part
            for name, part in parts.items()
        }
        statement = self._sql.SQL(text).format(
            table=self._of, progress=self._progress, changes=self._sql.Identifier(_CHANGES), **names
        )
        return self._connection.execute(statement, values or None)

    def _rows_of(self, statement: str) -> list[Any]:
        """Execute a statement whose names are quoted; returns its rows."""
        cursor = self._connection.execute(statement)
        return list(cursor.fetchall()) if cursor.description else []

    def lock(self) -> None:
        """Held while another process writes into the table."""
        name = f"cqels {self._schema}.{self._to.table}"
        if not self._run("SELECT pg_try_advisory_lock(hashtextextended(%s, 0))", name).fetchone()[0]:
            raise Held(f"another run writes into the table {self._schema}.{self._to.table}")

    def prepare(self, *, first: bool) -> int:
        """Make the tables that are not there; returns the number of the last result that the table has. `first`: by this sink."""
        if self._to.changelog and self._connection.info.server_version < _LEAST_VERSION:
            raise UsageError(f"{self._to.shown}: mode=upsert needs PostgreSQL 15 or later (NULLS NOT DISTINCT)")
        self._run(
            "CREATE TABLE IF NOT EXISTS {progress} "
            "(sink text PRIMARY KEY, number bigint NOT NULL, at timestamptz NOT NULL, run text)"
        )
        if "run" not in self._columns_of(self._progress):
            # A table of an earlier version.
            self._run("ALTER TABLE {progress} ADD COLUMN run text")
        had = self._columns_of(self._of)
        if not had and not first:
            raise self._lost()
        if not had:
            self._create()
        self._columns = self._fitting(had or self._columns_of(self._of))
        found = self._run("SELECT number, run FROM {progress} WHERE sink = %s", self._to.table).fetchone()
        number, run = found or (None, None)
        if not first and (number is None or run != self._opening.run):
            raise self._lost()
        held = self._opening.held(number, run, f"{self._to.shown}: the table") if first else number
        if held is None:
            if self._to.changelog:
                self._begin_answer(known=found is not None)
            self._run(
                "INSERT INTO {progress} (sink, number, at, run) VALUES (%s, 0, now(), %s) "
                "ON CONFLICT (sink) DO UPDATE SET number = 0, at = now(), run = excluded.run",
                self._to.table,
                self._opening.run,
            )
        if self._key:
            known = bool(self._columns_of(self._groups_table))
            self._groups.prepare(fresh=held is None, known=known)
        if self._to.changelog:
            self._make_changes()
        return int(held or 0)

    def note(self, number: int) -> None:
        """The table has the results up to this number."""
        noted = self._run("UPDATE {progress} SET number = %s, at = now() WHERE sink = %s", number, self._to.table)
        if not noted.rowcount:
            raise self._lost()

    def _lost(self) -> UsageError:
        return UsageError(
            f"{self._to.shown}: {PROGRESS} does not have the number of this run's last result any more, so nobody knows which the "
            "table lacks: somebody removed it, or another run wrote meanwhile. Register the query again, with an empty table"
        )

    def _columns_of(self, table: Any) -> list[str]:
        """The columns of a table; none if it is not there."""
        rows = self._run(
            "SELECT attname FROM pg_attribute WHERE attrelid = to_regclass(%s) AND attnum > 0 AND NOT attisdropped ORDER BY attnum",
            table.as_string(self._connection),
        )
        return [name for (name,) in rows]

    def _create(self) -> None:
        self._run(self._creation("{table}"))

    def _creation(self, table: str) -> str:
        quoted = [f"{self._quoted(name)} text" for name in self._variables]
        if self._to.changelog:
            own = [] if self._key else [f"{COUNT} bigint NOT NULL"]
        else:
            own = ["_number bigint", "_time timestamptz", "_sign smallint"]
        columns = ", ".join([*own, *quoted] if not self._to.changelog else [*quoted, *own])
        return f"CREATE TABLE {table} ({columns})"

    def _quoted(self, name: str) -> str:
        return _in_format(str(self._sql.Identifier(name).as_string(self._connection)))

    def _fitting(self, columns: list[str]) -> list[str]:
        """The columns that are written. UsageError for a table without one of the variables."""
        own = [COUNT] if self._to.changelog and not self._key else []
        if missing := [name for name in [*self._variables, *own] if name not in columns]:
            table = self._of.as_string(self._connection)
            raise UsageError(
                f"{self._to.shown}: the table has no column {', '.join(missing)}; it should be like "
                f"{self._creation(table)}, with types of your choice"
            )
        return [name for name in _ADDED if name in columns] + self._variables

    def _begin_answer(self, *, known: bool) -> None:
        """An answer is empty at first."""
        if not known and self._run("SELECT 1 FROM {table} LIMIT 1").fetchone():
            raise UsageError(
                f"{self._to.shown}: the table has rows of others, and mode=upsert would remove them: empty it, or name another"
            )
        self._run("DELETE FROM {table}")
        index, gone = side_name(self._to.table, "key"), side_name(self._to.table, "gone")
        for name in (index, gone):
            self._run("DROP INDEX IF EXISTS {index}", index=self._sql.Identifier(self._schema, name))
        columns = self._key or self._variables
        if columns:
            self._run(
                "CREATE UNIQUE INDEX {name} ON {table} ({columns}) NULLS NOT DISTINCT", name=[index], columns=columns
            )
        if not self._key:
            self._run(f"CREATE INDEX {{name}} ON {{table}} ({COUNT}) WHERE {COUNT} <= 0", name=[gone])

    def _make_changes(self) -> None:
        """The temporary table of changes has the types of the table itself."""
        marks = self._groups.marks if self._key else f"0::bigint AS {COUNT}"
        self._run("DROP TABLE IF EXISTS pg_temp.{changes}")
        self._run(
            f"CREATE TEMPORARY TABLE {{changes}} AS SELECT {{columns}}, {marks} FROM {{table}} WITH NO DATA",
            columns=self._variables,
        )

    # --- rows ---------------------------------------------------------------------------------------------------------

    def changes(self, rows: Sequence[Row]) -> list[Row]:
        """The changes of the answer that results make in all: rows with their sum, or with the MARKS of their group."""
        if not self._key:
            return [(*values, count) for values, count in net_counts(rows).items()]
        return self._groups.changes(rows)

    def apply(self, changes: Sequence[Row]) -> None:
        """Write them, in the transaction that is open."""
        if not self._to.changelog:
            own = [_ADDED.index(name) for name in self._columns[: -len(self._variables) or None] if name in _ADDED]
            self._copy("{table}", self._columns, ((*(row[at] for at in own), *row[3:]) for row in changes))
            return
        marks = MARKS if self._key else [COUNT]
        self._run("DELETE FROM {changes}")
        self._copy("{changes}", [*self._variables, *marks], changes)
        if self._key:
            if self._groups.may_concern(changes):
                self._groups.settle()
            self._apply_by_key()
        else:
            self._apply_counts()

    def _copy(self, table: str, columns: list[str], rows: Sequence[Row] | Iterator[Row]) -> None:
        statement = self._sql.SQL(f"COPY {table} ({{columns}}) FROM STDIN").format(
            table=self._of,
            changes=self._sql.Identifier(_CHANGES),
            columns=self._sql.SQL(", ").join(map(self._sql.Identifier, columns)),
        )
        with self._connection.cursor() as cursor, cursor.copy(statement) as copy:
            for row in rows:
                copy.write_row(row)

    def _apply_by_key(self) -> None:
        for way in self._groups.ways("t", "c"):
            self._run(f"DELETE FROM {{table}} AS t USING {{changes}} AS c WHERE c._keep = 0 AND {_in_format(way)}")
        new = ", ".join(f"{self._quoted(name)} = excluded.{self._quoted(name)}" for name in self._others)
        self._run(
            f"INSERT INTO {{table}} ({{columns}}) SELECT {{columns}} FROM {{changes}} WHERE _keep = 1 "
            f"ON CONFLICT ({{key}}) DO {f'UPDATE SET {new}' if new else 'NOTHING'}",
            columns=self._variables,
            key=self._key,
        )

    def _apply_counts(self) -> None:
        self._run(
            f"INSERT INTO {{table}} AS t ({{columns}}, {COUNT}) "
            f"SELECT {{columns}}, sum({COUNT}) FROM {{changes}} GROUP BY {{columns}} "
            f"ON CONFLICT ({{columns}}) DO UPDATE SET {COUNT} = t.{COUNT} + excluded.{COUNT}",
            columns=self._variables,
        )
        self._run(f"DELETE FROM {{table}} WHERE {COUNT} <= 0")


def _in_format(text: str) -> str:
    """A text as part of one that is formatted."""
    return text.replace("{", "{{").replace("}", "}}")
