"""`cqels tail`: the results of a query of the service, as a live table or as lines of JSON."""

from __future__ import annotations

import json
import sys
import time
from collections import deque
from collections.abc import Iterator
from contextlib import suppress
from itertools import islice
from typing import Any

from cqels_py.cli.failures import say
from cqels_py.cli.remote_output import as_json, shown_as
from cqels_py.cli.table import Heading, LiveTable
from cqels_py.client import Client
from cqels_py.client.failures import TO_BE_TRIED_AGAIN
from cqels_py.errors import RunError, UsageError
from cqels_py.service.failures import Conflict
from cqels_py.terms.canonical import escape

_REFRESH_SECONDS = 0.125
_CHECK_SECONDS = 1.0
_MANY = 100
"""Results that came together, after which there is no pause: the reader is behind."""
_KEPT = 1_000
_TRIES = 20
_ANSWER = "application/sparql-results+json"
_STRING = "http://www.w3.org/2001/XMLSchema#string"
_BOOLEAN = "http://www.w3.org/2001/XMLSchema#boolean"


def follow(client: Client, name: str, start: int | None, limit: int | None, format_: str | None) -> None:
    """Show results until the query is removed, the limit is reached, or a signal."""
    figures = client.show(name)
    graphs = figures.get("form") in ("CONSTRUCT", "DESCRIBE")
    if graphs and format_ == "table":
        raise UsageError("a table has no room for the triples of CONSTRUCT: leave --format table out")
    if graphs or shown_as(format_) == "json":
        for results in _limited(client, name, start, limit):
            sys.stdout.writelines(f"{as_json(result)}\n" for result in results)
            sys.stdout.flush()
        return
    _show_table(client, figures, start, limit)


def _show_table(client: Client, figures: dict[str, Any], start: int | None, limit: int | None) -> None:
    """Each text of the query has a table of its own: one that replaces another begins with empty windows."""
    more: int | None = limit
    while more is None or more > 0:
        shown = TextTable(client, figures, start)
        following, taken = shown.follow(more)
        if following is None:
            return
        figures, start, more = following, shown.next, None if more is None else more - taken


class TextTable:
    """The table of one text of a query. `start`: the number of its first result; None: the answer as it stands, or from now on."""

    def __init__(self, client: Client, figures: dict[str, Any], start: int | None) -> None:
        self._client = client
        self._name, self._generation = figures["name"], figures["generation"]
        self._variables = _variables(figures)
        self._rows: ChangingRows | LastRows = LastRows()
        self._start = start
        if figures["changelog"] and start is None:
            try:
                self._rows, self._start = _standing(client, self._name, self._variables)
            except Conflict:
                say(f"{self._name} has no answer that changes: the table has its last results")
        # The number of the next result: all that follow are shown, here or in the table of the text to which they belong.
        self._number = figures["results"] + 1 if self._start is None else self._start
        self._line = "waiting for results"
        self._checked = time.monotonic()
        self.next: int | None = None
        """Where the table of another text begins: of one with a changelog, with its answer."""

    def follow(self, limit: int | None) -> tuple[dict[str, Any] | None, int]:
        """Show results until another text replaces this one: its figures; None at the limit. And the number of results."""
        table = LiveTable(Heading(self._name, self._variables), self._rows)
        table.show(self._line)
        taken = 0
        try:
            for results in _limited(self._client, self._name, self._number, limit):
                replaced = self._replaced()
                if replaced is not None:
                    self.next = None if replaced["changelog"] else self._number
                    return replaced, taken
                self._take(results)
                taken += len(results)
                table.show(self._line)
                if len(results) < _MANY:
                    time.sleep(_REFRESH_SECONDS)
            return None, taken
        finally:
            table.close(self._line)

    def _take(self, results: list[dict[str, Any]]) -> None:
        for result in results:
            self._rows.take(_row(result.get("bindings", result), self._variables), result["sign"] == "+")
            self._number = result["number"] + 1
            self._line = f"result {result['number']:,} · {result['time']}"

    def _replaced(self) -> dict[str, Any] | None:
        """The figures of another text, looked for once a second."""
        if time.monotonic() - self._checked < _CHECK_SECONDS:
            return None
        self._checked = time.monotonic()
        with suppress(*TO_BE_TRIED_AGAIN):
            figures = self._client.show(self._name)
            return figures if figures["generation"] != self._generation else None
        return None


def _limited(client: Client, name: str, start: int | None, limit: int | None) -> Iterator[list[dict[str, Any]]]:
    for results in client.tail_batches(name, start):
        yield results if limit is None else list(islice(results, limit))
        if limit is not None:
            limit -= len(results)
            if limit <= 0:
                return


def _standing(client: Client, name: str, variables: tuple[str, ...]) -> tuple[ChangingRows, int]:
    """The answer as it stands, and the number of the first result behind it. Conflict for queries without one."""
    for _ in range(_TRIES):
        before = client.show(name)["results"]
        answer = json.loads(client.answer(name, _ANSWER))
        if client.show(name)["results"] == before:
            rows = ChangingRows()
            for row in [answer] if "boolean" in answer else answer["results"]["bindings"]:
                rows.take(_row(row, variables), True)
            return rows, before + 1
    raise RunError(
        f"the answer of {name} changes too often to be taken over; --from 0 shows its last results, --format json all of them"
    )


class ChangingRows:
    """An answer as a changelog makes it: rows and their multiplicities, in the order in which they came."""

    sorted = True

    def __init__(self) -> None:
        self._counts: dict[tuple[str, ...], int] = {}
        self._length = 0

    def take(self, row: tuple[str, ...], added: bool) -> None:
        change = 1 if added else -1
        self._length += change
        self._counts[row] = self._counts.get(row, 0) + change
        if not self._counts[row]:
            del self._counts[row]

    def __len__(self) -> int:
        return self._length

    @property
    def distinct(self) -> int:
        return len(self._counts)

    def terms(self, last: int | None, most: int) -> list[list[str]]:
        newest = islice(reversed(self._counts.items()), last)
        return [list(row) for row, count in reversed(list(newest)) for _ in range(min(count, most))]


class LastRows:
    """The last results, whatever their sign."""

    sorted = False

    def __init__(self) -> None:
        self._rows: deque[tuple[str, ...]] = deque(maxlen=_KEPT)
        self._length = 0

    def take(self, row: tuple[str, ...], added: bool) -> None:
        self._rows.append(row)
        self._length += 1

    def __len__(self) -> int:
        return self._length

    @property
    def distinct(self) -> int:
        return len(self._rows)

    def terms(self, last: int | None, most: int) -> list[list[str]]:
        newest = islice(reversed(self._rows), last)
        return [list(row) for row in newest][::-1]


def _variables(figures: dict[str, Any]) -> tuple[str, ...]:
    return ("boolean",) if figures.get("form") == "ASK" else tuple(figures.get("variables", ()))


def _row(values: dict[str, Any], variables: tuple[str, ...]) -> tuple[str, ...]:
    return tuple([_term(values.get(name)) for name in variables])


def _term(value: Any) -> str:
    """A value of SPARQL's JSON as in N-Triples; unbound is empty."""
    if value is None:
        return ""
    if isinstance(value, bool):
        return f'"{str(value).lower()}"^^<{_BOOLEAN}>'
    text = value["value"]
    if value["type"] == "uri":
        return f"<{text}>"
    if value["type"] == "bnode":
        return f"_:{text}"
    quoted = f'"{escape(text)}"'
    if "xml:lang" in value:
        return f"{quoted}@{value['xml:lang']}"
    datatype = value.get("datatype", _STRING)
    return quoted if datatype == _STRING else f"{quoted}^^<{datatype}>"
