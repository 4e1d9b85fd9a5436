"""Results into a table of a database that is a file: rows are added, or the table always equals the answer (`mode=upsert`).

A transaction holds the results of whole ticks, and the number of the last one in the table `_cqels_progress`.
"""

from __future__ import annotations

import logging
import uuid
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, ClassVar, Final, Protocol

from cqels_py.connections.location import Location
from cqels_py.connections.retry import Backoff
from cqels_py.errors import RefusedResult, RunError, UsageError
from cqels_py.sinks.groups_of_keys import MARKS, GroupsOfKeys, listed, quoted
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.table_changes import PROGRESS, Row, RowSink, check_results, in_one_line, net_counts, side_name

COUNT: Final = "_count"
"""The column that says how often a row is in the answer, where no key tells rows apart."""
CHANGES: Final = "_cqels_changes"
"""The temporary table of the changes of a transaction."""
_OWN: Final = ("_number", "_time", "_sign")
_MOST_REFUSED = 1_000
"""Refused rows of one transaction, after which the run ends."""

_LOG = logging.getLogger("cqels_py")


class Database(Protocol):
    """A kind of database. Names are quoted by `quoted`; values are parameters, and never part of a statement."""

    errors: type[Exception]
    """All exceptions of the library."""
    types: dict[str, str]
    """The types of the columns of a table that is made: "text", "number", "time", "small"."""
    equal: str
    """The operator that finds NULLs equal."""

    def connect(self) -> Any:
        """A connection without a transaction, whose `execute` takes a statement and values."""
        ...

    def columns(self, connection: Any, table: str) -> list[str]:
        """The columns of a table; none if it is not there."""
        ...

    def insert(self, connection: Any, table: str, columns: Sequence[str], rows: Sequence[Row]) -> None:
        """Add rows to a table, whose name is quoted."""
        ...

    def remove(self, connection: Any, columns: Sequence[str], keys: Sequence[Row]) -> None:
        """Remove the rows of the table that have these values of the columns."""
        ...

    def index(self, connection: Any, name: str, table: str, columns: Sequence[str]) -> None:
        """Have rows of a table, whose name is quoted, found by these columns."""
        ...

    def is_away(self, error: Exception) -> bool:
        """Does another process hold the database, so that it may be there later?"""
        ...

    def refuses(self, error: Exception) -> bool:
        """Is it about the values of a row?"""
        ...


@dataclass(frozen=True, slots=True)
class FileTable:
    """A table of a file.

    `before`: its schema in SQL, if there is one, and a point. `patience`: seconds for which a file that another holds is waited for.
    """

    shown: str
    path: str
    table: str
    before: str
    changelog: bool
    patience: float

    @property
    def qualified(self) -> str:
        """Its name in SQL."""
        return self.qualify(self.table)

    def qualify(self, table: str) -> str:
        """The name in SQL of another table that is beside it."""
        return self.before + quoted(table)

    @classmethod
    def of(cls, location: Location, *, schemas: bool) -> FileTable:
        """`scheme:PATH#table?mode=upsert&retry=5m`; with `schemas` also `#schema.table`."""
        options = location.options
        mode = options.choice("mode", ("append", "upsert"), "append")
        patience = options.seconds("retry", "5m")
        path = location.url.partition("#")[0].partition("?")[0].partition(":")[2]
        if not location.path or path.startswith("//"):
            raise UsageError(f"{location.shown} names no file: write {location.scheme}:weather.db#alerts")
        if not location.fragment or "\0" in location.fragment:
            raise UsageError(
                f"{location.shown} names no table: put it behind the file, {location.scheme}:weather.db#alerts"
            )
        schema, _, table = location.fragment.rpartition(".") if schemas else ("", "", location.fragment)
        before = f"{quoted(schema)}." if schema else ""
        return cls(
            location.shown,
            location.path,
            table,
            before,
            mode == "upsert",
            patience,
        )


@dataclass(frozen=True, slots=True)
class FileTableConnector:
    """A table as the sink of a query."""

    to: FileTable
    database: Database
    keeps_number: ClassVar[bool] = True

    @property
    def changelog(self) -> bool:
        return self.to.changelog

    def open(self, opening: SinkOpening) -> FileTableSink:
        """Open the file, and prepare the table. RunError if that fails, UsageError if the table does not fit the query."""
        check_results(opening, self.to.shown)
        return FileTableSink(self.to, self.database, opening)


class FileTableSink(RowSink):
    """A table of a file."""

    def __init__(self, to: FileTable, database: Database, opening: SinkOpening) -> None:
        super().__init__(opening, is_answer=to.changelog)
        self._to = to
        self._database = database
        self._progress = to.qualify(PROGRESS)
        self._groups_table = side_name(to.table, "groups")
        names = to.qualified, to.qualify(self._groups_table), quoted(CHANGES)
        self._groups = GroupsOfKeys(self._run, to.shown, names, self._variables, self._key, database.equal)
        # One process at a time writes, of a run that may outlive it.
        self._owner = f"{opening.run or ''}/{uuid.uuid4().hex}"
        self._columns: list[str] = []
        self._refused: list[RefusedResult] = []
        # So many of them have been reported.
        self._told = 0
        try:
            self._patiently(self._open)
        except (RunError, UsageError):
            self.close()
            raise

    def flush(self) -> None:
        """Rows that could not be written are written with the next ones: a later number says that the table has them."""
        if self._rows:
            self._told = 0
            self._patiently(lambda: self._write(self._rows))
            self._rows = []

    # --- the file -----------------------------------------------------------------------------------------------------

    def _patiently(self, action: Callable[[], None]) -> None:
        """Do it, and again as long as another process holds the file."""
        backoff, warned = Backoff(self._to.patience), False
        while True:
            try:
                return action()
            except self._database.errors as error:
                if not self._database.is_away(error):
                    raise RunError(f"{self._to.shown}: {in_one_line(error)}") from None
                if not warned:
                    _LOG.warning("%s: %s; trying again for %g s", self._to.shown, in_one_line(error), self._to.patience)
                warned = True
                if not backoff.wait():
                    message = (
                        f"{self._to.shown}: no success within {self._to.patience:g} s (retry=): {in_one_line(error)}"
                    )
                    raise RunError(message) from None

    def _transaction(self, action: Callable[[], None]) -> None:
        """Do it in a transaction, which is taken back at any exception."""
        self._connection.execute("BEGIN")
        try:
            action()
            self._connection.execute("COMMIT")
        except BaseException:
            # A commit that failed may have ended it.
            with suppress(self._database.errors):
                self._connection.execute("ROLLBACK")
            raise

    def _open(self) -> None:
        if self._connection is None:
            self._connection = self._database.connect()
        self._transaction(self._prepare)

    # --- the table ----------------------------------------------------------------------------------------------------

    def _prepare(self) -> None:
        """Make the tables that are not there, and find the number of the last result that the table has."""
        execute = self._connection.execute
        types = self._database.types
        execute(
            f"CREATE TABLE IF NOT EXISTS {self._progress} "
            f"(sink {types['text']} PRIMARY KEY, number {types['number']} NOT NULL, owner {types['text']})"
        )
        columns = self._database.columns(self._connection, self._to.table)
        if not columns:
            execute(self._creation())
            columns = self._database.columns(self._connection, self._to.table)
        own = [COUNT] if self._to.changelog and not self._key else []
        if missing := [name for name in [*self._variables, *own] if name not in columns]:
            raise UsageError(
                f"{self._to.shown}: the table has no column {', '.join(missing)}; it should be like {self._creation()}, with types "
                "of your choice"
            )
        self._columns = [name for name in _OWN if name in columns and not self._to.changelog] + self._variables
        select = f"SELECT number, owner FROM {self._progress} WHERE sink = ?"
        found = execute(select, (self._to.table,)).fetchall()
        number, owner = found[0] if found else (None, None)
        run = (owner or "").rpartition("/")[0] or None
        held = self._opening.held(None if number is None else int(number), run, f"{self._to.shown}: the table")
        if held is None and self._to.changelog:
            if not found and execute(f"SELECT 1 FROM {self._to.qualified} LIMIT 1").fetchall():
                raise UsageError(
                    f"{self._to.shown}: the table has rows of others, and mode=upsert would remove them: empty it, or name another"
                )
            # An answer is empty at first.
            execute(f"DELETE FROM {self._to.qualified}")
        if self._to.changelog:
            key = self._key or self._variables
            self._database.index(self._connection, side_name(self._to.table, "key"), self._to.qualified, key)
        if self._key:
            self._prepare_groups(fresh=held is None)
        self._held = held or 0
        execute(f"DELETE FROM {self._progress} WHERE sink = ?", (self._to.table,))
        execute(f"INSERT INTO {self._progress} VALUES (?, ?, ?)", (self._to.table, self._held, self._owner))

    def _prepare_groups(self, *, fresh: bool) -> None:
        name = self._groups_table
        known = bool(self._database.columns(self._connection, name))
        self._groups.prepare(fresh=fresh, known=known)
        self._database.index(self._connection, side_name(name, "key"), self._to.qualify(name), self._key)

    def _run(self, statement: str) -> list[Any]:
        return list(self._connection.execute(statement).fetchall())

    def _creation(self) -> str:
        types = self._database.types
        columns = [f"{quoted(name)} {types['text']}" for name in self._variables]
        if not self._to.changelog:
            columns = [
                f"_number {types['number']}",
                f"_time {types['time']}",
                f"_sign {types['small']}",
                *columns,
            ]
        elif not self._key:
            columns.append(f"{COUNT} {types['number']} NOT NULL")
        return f"CREATE TABLE {self._to.qualified} ({', '.join(columns)})"

    # --- rows ---------------------------------------------------------------------------------------------------------

    def _write(self, rows: list[Row]) -> None:
        """Write the rows in a transaction; those that the database refuses are left out, and reported."""
        if self._tried(rows) is None:
            return
        self._refused = []
        accepted = self._accepted([], rows)
        if self._opening.report is None:
            raise self._refused[0]
        # Before the commit: a process that ends between the two tells them, rather than that nobody knows of them.
        for error in self._refused[self._told :]:
            self._opening.report(error)
            self._told += 1
        self._transaction(lambda: self._apply(accepted))

    def _tried(self, rows: list[Row], *, keep: bool = True) -> Exception | None:
        """Write the rows if the database takes them all, otherwise nothing; its exception. Without `keep`, only try."""

        def apply() -> None:
            self._apply(rows)
            if not keep:
                raise _TakenBack

        try:
            self._transaction(apply)
        except _TakenBack:
            return None
        except self._database.errors as error:
            if not self._database.refuses(error):
                raise
            return error
        return None

    def _accepted(self, before: list[Row], rows: list[Row]) -> list[Row]:
        """The rows `before`, which the database takes, and those of the others that it takes with them."""
        error = self._tried([*before, *rows], keep=False)
        if error is None:
            return [*before, *rows]
        if len(rows) == 1:
            values = rows[0][3 : 3 + len(self._variables)]
            refused = RefusedResult(f"{self._to.shown} refuses a row: {in_one_line(error)}; the row is {values}")
            self._refused.append(refused.about(rows[0][0], dict(zip(self._variables, values, strict=True))))
            if len(self._refused) > _MOST_REFUSED:
                raise RunError(f"{self._refused[0]}; and so it does {_MOST_REFUSED:,} others of the same step")
            return before
        half = len(rows) // 2
        return self._accepted(self._accepted(before, rows[:half]), rows[half:])

    def _apply(self, rows: Sequence[Row]) -> None:
        select = f"SELECT owner FROM {self._progress} WHERE sink = ?"
        if self._connection.execute(select, (self._to.table,)).fetchall() != [(self._owner,)]:
            raise RunError(f"{self._to.shown}: another run writes into the table now; one at a time can")
        if not self._to.changelog:
            own = [_OWN.index(name) for name in self._columns if name in _OWN]
            added = [(*(row[at] for at in own), *row[3:]) for row in rows]
            self._database.insert(self._connection, self._to.qualified, self._columns, added)
        elif self._key:
            self._apply_by_key(rows)
        else:
            self._apply_counts(rows)
        self._connection.execute(
            f"UPDATE {self._progress} SET number = ? WHERE sink = ?", (self._number, self._to.table)
        )

    def _apply_by_key(self, rows: Sequence[Row]) -> None:
        changes = self._groups.changes(rows)
        several = self._groups.may_concern(changes)
        if several:
            self._load([*self._variables, *MARKS], self._groups.marks, changes)
            several = self._groups.settle()
        places = [self._variables.index(name) for name in self._key]
        keys = [tuple(change[place] for place in places) for change in changes]
        self._database.remove(self._connection, self._key, keys)
        if several:
            chosen = listed(self._variables)
            kept = f"SELECT {chosen} FROM {CHANGES} WHERE _keep = 1 ORDER BY _number"
            self._run(f"INSERT INTO {self._to.qualified} ({chosen}) {kept}")
        else:
            made = [change[: len(self._variables)] for change in changes if change[-2]]
            self._database.insert(self._connection, self._to.qualified, self._variables, made)

    def _apply_counts(self, rows: Sequence[Row]) -> None:
        """Take the rows that change out of the table, and put them back with their new counts."""
        changes = [(*values, count) for values, count in net_counts(rows).items()]
        self._load([*self._variables, COUNT], f"CAST(0 AS bigint) AS {COUNT}", changes)
        same = " AND ".join(f"t.{quoted(name)} {self._database.equal} c.{quoted(name)}" for name in self._variables)
        chosen, table = listed(self._variables), self._to.qualified
        self._run(
            f"INSERT INTO {CHANGES} SELECT {listed(self._variables, 't')}, t.{COUNT} "
            f"FROM (SELECT DISTINCT {chosen} FROM {CHANGES}) AS c CROSS JOIN {table} AS t WHERE {same}"
        )
        self._database.remove(self._connection, self._variables, [change[:-1] for change in changes])
        self._run(
            f"INSERT INTO {table} ({chosen}, {COUNT}) SELECT {chosen}, sum({COUNT}) FROM {CHANGES} GROUP BY {chosen} "
            f"HAVING sum({COUNT}) > 0"
        )

    def _load(self, columns: Sequence[str], marks: str, rows: Sequence[Row]) -> None:
        """Make the temporary table of changes, whose columns have the types of the table's own."""
        self._run(f"DROP TABLE IF EXISTS temp.{CHANGES}")
        self._run(
            f"CREATE TEMP TABLE {CHANGES} AS SELECT {listed(self._variables)}, {marks} FROM {self._to.qualified} LIMIT 0"
        )
        self._database.insert(self._connection, CHANGES, columns, rows)


class _TakenBack(Exception):
    """Ends a transaction that was only tried."""
