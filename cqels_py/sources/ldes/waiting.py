"""Members that wait until no page is unread that may have earlier ones: sorted by time, on disk where they are many."""

from __future__ import annotations

import sqlite3
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from cqels_py.errors import RunError
from cqels_py.sources.ldes.bounds import LAST
from cqels_py.sources.ldes.pages import Triple

_CACHE_KIB = 16 << 10
"""SQLite writes to its temporary file only what does not fit into this much memory."""


class Waiting(NamedTuple):
    """A member that waits. `key`: the digest of its IRI; `page`: that of the page's URL; `time` in microseconds."""

    key: int
    page: int
    time: int
    triples: tuple[Triple, ...]


class WaitingMembers:
    """A priority queue by time, of members with different keys, in a temporary SQLite database without a name.

    `shown`: the stream in messages; `most`: bytes of members that may wait, with more `add` raises RunError; so do all if the
    temporary file cannot be written, as on a full disk.
    """

    def __init__(self, shown: str, most: int) -> None:
        self._shown = shown
        self._most = most
        self._nbytes = 0
        self._number = 0
        self._database = sqlite3.connect("", isolation_level=None, check_same_thread=False)
        self._database.executescript(
            f"""PRAGMA cache_size = -{_CACHE_KIB}; PRAGMA journal_mode = OFF; PRAGMA synchronous = OFF;
            CREATE TABLE waiting (number INTEGER PRIMARY KEY, key INTEGER UNIQUE, page INTEGER, time INTEGER, terms TEXT);
            CREATE INDEX by_time ON waiting (time, number);
            BEGIN"""
        )

    def add(self, member: Waiting) -> bool:
        """Is it new? One with the same key may wait already."""
        # Terms in N-Triples syntax have no line breaks.
        terms = "\n".join(term for triple in member.triples for term in triple)
        self._number += 1
        row = self._number, member.key, member.page, member.time, terms
        with self._stored():
            added = self._database.execute("INSERT OR IGNORE INTO waiting VALUES (?, ?, ?, ?, ?)", row).rowcount > 0
        self._nbytes += len(terms) if added else 0
        if self._nbytes > self._most:
            raise RunError(
                f"{self._shown}: more than {self._most:,} bytes of members wait for pages that may have earlier ones, as relations "
                "without a time lead to them: allow more with waiting=, or begin later with start="
            )
        return added

    def __contains__(self, key: int) -> bool:
        with self._stored():
            return self._database.execute("SELECT 1 FROM waiting WHERE key = ?", (key,)).fetchone() is not None

    @property
    def first(self) -> int:
        """The time of the first one; LAST if none waits."""
        with self._stored():
            ((time,),) = self._database.execute("SELECT min(time) FROM waiting")
        return LAST if time is None else int(time)

    def take(self, before: int, most: int) -> list[Waiting]:
        """The first ones, at most so many, with times before this one; they no longer wait."""
        with self._stored():
            found = self._database.execute(
                "SELECT * FROM waiting WHERE time < ? ORDER BY time, number LIMIT ?", (before, most)
            ).fetchall()
            if found:
                number, _, _, time, _ = found[-1]
                self._database.execute("DELETE FROM waiting WHERE (time, number) <= (?, ?)", (time, number))
        self._nbytes -= sum(len(row[-1]) for row in found)
        return [Waiting(key, page, time, _triples(terms)) for _, key, page, time, terms in found]

    def close(self) -> None:
        """Forget all of them, and remove the file."""
        self._database.close()

    @contextmanager
    def _stored(self) -> Iterator[None]:
        try:
            yield
        except sqlite3.Error as error:
            raise RunError(
                f"{self._shown}: members wait in a temporary file, which cannot be used: {error} (the environment variable "
                "SQLITE_TMPDIR names its folder)"
            ) from error


def _triples(terms: str) -> tuple[Triple, ...]:
    each = iter(terms.split("\n"))
    return tuple(zip(each, each, each, strict=True))
