"""A template for connectors: tables of an SQLite file as a source of messages, and as a sink of results.

`mailbox:FILE?table=inbox` reads the table inbox (number, time, body: N-Triples), and removes messages once they are committed:
nothing is lost, and a message may come twice after a crash. As a sink it adds rows to a table, with the number of the last result
in the same transaction, so that a continued run writes no result twice.
"""

from __future__ import annotations

import re
import sqlite3
import time
from dataclasses import dataclass

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.connections.location import Location
from cqels_py.errors import DataError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sources.protocol import Opening

MOST = 1000
"""Messages that are taken at once: every input from outside has a limit."""
WAIT = 0.1
_TRIPLE = re.compile(r"(\S+)\s+(\S+)\s+(.+?)\s*\.")


def mailbox_source(location: Location) -> MailboxSource:
    """The connector of a URL. Options that it does not ask for are refused by the caller."""
    return MailboxSource(location.path, location.options.text("table", "inbox") or "")


def mailbox_sink(location: Location) -> MailboxSink:
    return MailboxSink(location.path, location.options.text("table", "outbox") or "")


@dataclass
class MailboxSource:
    """What `--stream IRI=mailbox:FILE` names. It connects only when it is opened."""

    file: str
    table: str

    def open(self, opening: Opening) -> Inbox:
        return Inbox(self, opening)


class Inbox:
    """The messages of a table, in order of their numbers. It does not end."""

    def __init__(self, of: MailboxSource, opening: Opening) -> None:
        self._database = sqlite3.connect(of.file, isolation_level=None)
        self._table = f'"{of.table}"'
        self._opening = opening
        self._last = 0
        self.idle = False

    def poll(self) -> ElementBatch:
        select = f"SELECT number, time, body FROM {self._table} WHERE number > ? ORDER BY number LIMIT {MOST}"
        messages = self._database.execute(select, (self._last,)).fetchall()
        if not messages:
            # An empty batch says "nothing now": the engine asks again.
            time.sleep(WAIT)
        else:
            self._last = messages[-1][0]
        elements = []
        for number, moment, body in messages:
            try:
                elements.append((moment, triples_of(body)))
            except ValueError as error:
                self._refuse(DataError(f"message {number}: {error}").about(body))
        return self._opening.elements(elements)

    def position(self) -> int:
        return self._last

    def commit(self, position: object) -> None:
        """The results are where they belong: the messages are no longer needed."""
        self._database.execute(f"DELETE FROM {self._table} WHERE number <= ?", (position,))

    def close(self) -> None:
        self._database.close()

    def _refuse(self, error: DataError) -> None:
        if self._opening.on_error == "stop" or self._opening.report is None:
            raise error
        self._opening.report(error)


def triples_of(body: str) -> list[tuple[str, str, str]]:
    found = [_TRIPLE.fullmatch(line.strip()) for line in body.splitlines() if line.strip()]
    if not found or None in found:
        raise ValueError("it is not a list of triples")
    return [match.groups() for match in found if match is not None]  # type: ignore[misc]


@dataclass
class MailboxSink:
    """What `--output mailbox:FILE` names. `changelog`: it does not need retractions."""

    file: str
    table: str
    changelog: bool = False

    def open(self, opening: SinkOpening) -> Outbox:
        return Outbox(self, opening)


class Outbox:
    """Adds a row for each result: its variables' terms in N-Triples syntax, NULL where they are unbound."""

    def __init__(self, of: MailboxSink, opening: SinkOpening) -> None:
        self._database = sqlite3.connect(of.file, isolation_level=None)
        self._dictionary = opening.dictionary
        self._table = f'"{of.table}"'
        columns = ", ".join(f'"{name}"' for name in opening.variables)
        self._insert = f"INSERT INTO {self._table} VALUES ({', '.join('?' * len(opening.variables))})"
        self._waiting: list[tuple[str | None, ...]] = []
        with self._database as database:
            database.execute("BEGIN")
            database.execute(f"CREATE TABLE IF NOT EXISTS {self._table} ({columns})")
            database.execute("CREATE TABLE IF NOT EXISTS progress (name PRIMARY KEY, number)")
            if opening.written is None:
                # The numbers of a new run begin anew.
                database.execute("INSERT OR REPLACE INTO progress VALUES (?, 0)", (of.table,))
            select = "SELECT number FROM progress WHERE name = ?"
            (self._held,) = database.execute(select, (of.table,)).fetchone()
        self._name = of.table
        self._number = opening.written or 0

    def write(self, batch: ResultBatch) -> None:
        """Terms are decoded now: later they may have been released."""
        rows = list(zip(*(self._dictionary.decode(column) for column in batch.columns), strict=True))
        self._waiting += rows[max(0, self._held - self._number) :]
        self._number += len(rows)

    def flush(self) -> None:
        if not self._waiting:
            return
        with self._database as database:
            database.execute("BEGIN")
            database.executemany(self._insert, self._waiting)
            database.execute("UPDATE progress SET number = ? WHERE name = ?", (self._number, self._name))
        self._waiting = []

    def commit(self) -> int:
        self.flush()
        return self._number

    def close(self) -> None:
        self._database.close()
