"""Results into a table of PostgreSQL: rows are added, or the table always equals the answer (`mode=upsert`).

A transaction holds the results of whole ticks, and the number of the last one in the table `_cqels_progress`. While the server is
away, writing waits and tries again; a transaction whose fate is not known is looked up by that number, so that it is never repeated.
"""

from __future__ import annotations

import logging
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any, ClassVar

from cqels_py.connections.location import Location
from cqels_py.connections.postgresql import psycopg_for, settings_of
from cqels_py.connections.retry import Backoff
from cqels_py.connections.schemes import needed
from cqels_py.errors import RefusedResult, RunError, UsageError
from cqels_py.sinks.postgresql_table import Held, Table
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.table_changes import Row, RowSink, check_results, in_one_line

APPEND, UPSERT = "append", "upsert"
_A_MOMENT = 2.0
_LIMITS = "54"
"""The class of PostgreSQL's errors for values that are too long for an index, and the like."""

_LOG = logging.getLogger("cqels_py")


def postgresql_sink(location: Location) -> PostgresConnector:
    """`postgresql://user@host:port/database#schema.table?mode=upsert`, with any option of libpq."""
    psycopg_for(location)
    options = location.options
    mode = options.choice("mode", (APPEND, UPSERT), APPEND)
    patience = options.seconds("retry", "5m")
    if not location.fragment:
        raise UsageError(f"{location.shown} names no table: put it behind the database, {_example(location)}")
    settings = settings_of(location, "mode, retry")
    schema, _, table = location.fragment.rpartition(".")
    return PostgresConnector(location.shown, settings, schema or None, table, mode == UPSERT, patience)


def _example(location: Location) -> str:
    return f"{location.scheme}://{location.host or 'localhost'}/{location.path or 'weather'}#alerts"


@dataclass(frozen=True, slots=True)
class PostgresConnector:
    """A table. `settings`: of the connection, for libpq. `patience`: seconds for which an absent server is waited for."""

    shown: str
    settings: dict[str, str]
    schema: str | None
    table: str
    changelog: bool
    patience: float
    keeps_number: bool = True
    can_retry: ClassVar[bool] = True

    def open(self, opening: SinkOpening) -> PostgresSink:
        """Connect, and prepare the table. RunError if the server refuses, UsageError if the table does not fit the query."""
        check_results(opening, self.shown)
        return PostgresSink(self, opening)


class PostgresSink(RowSink):
    """A table of PostgreSQL."""

    def __init__(self, to: PostgresConnector, opening: SinkOpening) -> None:
        self._psycopg: Any = needed("psycopg", "psycopg", "postgres", "postgresql://")
        super().__init__(opening, is_answer=to.changelog)
        self._to = to
        self._backoff = Backoff(to.patience)
        self._table: Table
        # Rows that the server refuses in the transaction, so many of which have been reported, in this one or before it was lost.
        self._refusals: list[RefusedResult] = []
        self._told = 0
        self._open()

    def _open(self) -> None:
        """Connect; the session of a run that has just ended may hold the table for a moment."""
        patience = Backoff(_A_MOMENT)
        while True:
            try:
                self._connect(first=True)
                return
            except (self._psycopg.Error, Held) as error:
                self.close()
                if not isinstance(error, Held) or not patience.wait():
                    raise RunError(f"{self._to.shown}: {in_one_line(error)}") from None
            except UsageError:
                self.close()
                raise

    def flush(self) -> None:
        if self._rows:
            self._told = 0
            self._patiently(self._transaction)
            self._rows = []

    # --- the connection -----------------------------------------------------------------------------------------------

    def _connect(self, *, first: bool) -> None:
        self.close()
        self._connection = self._psycopg.connect(autocommit=True, **self._to.settings)
        self._table = Table(self._psycopg, self._connection, self._to, self._opening, self._key)
        self._table.lock()
        with self._connection.transaction():
            self._held = self._table.prepare(first=first)

    def _patiently(self, action: Callable[[], None]) -> None:
        """Do it, and again on a new connection as long as the server is away."""
        lost = False
        while True:
            try:
                if lost:
                    self._connect(first=False)
                    self._report_back()
                    lost = False
                action()
                self._backoff.reset()
                return
            except (self._psycopg.OperationalError, self._psycopg.InterfaceError, Held) as error:
                if not lost:
                    _LOG.warning("%s: %s; trying again for %g s", self._to.shown, in_one_line(error), self._to.patience)
                lost = True
                if not self._backoff.wait():
                    raise RunError(
                        f"{self._to.shown}: no success within {self._to.patience:g} s (retry=): {in_one_line(error)}"
                    ) from None
            except self._psycopg.Error as error:
                raise RunError(f"{self._to.shown}: {in_one_line(error)}") from None

    def _report_back(self) -> None:
        _LOG.warning("%s: connected again", self._to.shown)

    # --- transactions -------------------------------------------------------------------------------------------------

    def _transaction(self) -> None:
        if self._held >= self._number:
            # The connection was lost while this transaction was being committed, and it was.
            return
        changes = self._changes()
        self._refusals = []
        with self._connection.transaction():
            self._apply(changes)
            self._table.note(self._number)
            # Before the commit: a process that ends between the two tells them, rather than that nobody knows of them.
            self._tell()
        self._held = self._number

    def _changes(self) -> list[Row]:
        return self._table.changes(self._rows) if self._to.changelog else self._rows

    def _apply(self, changes: Sequence[Row]) -> None:
        """Apply changes; of those that the server refuses, leave out single ones, which are to be reported."""
        if not changes:
            return
        try:
            with self._connection.transaction():
                self._table.apply(changes)
        except self._psycopg.Error as error:
            if not self._refuses(error):
                raise
            if len(changes) == 1:
                self._refused(changes[0], error)
                return
            half = len(changes) // 2
            self._apply(changes[:half])
            self._apply(changes[half:])

    def _refuses(self, error: Any) -> bool:
        """Is it about the values of a row?"""
        if isinstance(error, self._psycopg.DataError | self._psycopg.IntegrityError):
            return True
        return str(getattr(error, "sqlstate", None) or "").startswith(_LIMITS)

    def _refused(self, row: Row, error: Exception) -> None:
        values = row[3:] if not self._to.changelog else row[: len(self._variables)]
        refused = RefusedResult(f"{self._to.shown} refuses a row: {in_one_line(error)}; the row is {values}").about(
            self._number if self._to.changelog else row[0], dict(zip(self._variables, values, strict=True))
        )
        if self._opening.report is None:
            raise refused
        self._refusals.append(refused)

    def _tell(self) -> None:
        """Report the refused rows of the transaction, each once, however often it is made."""
        report = self._opening.report
        if report is not None:
            for refused in self._refusals[self._told :]:
                self._told += 1
                report(refused)
