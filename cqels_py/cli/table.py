"""The current answer as a table that changes in place."""

from __future__ import annotations

import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
import numpy.typing as npt
from rich.console import Console, Group
from rich.live import Live
from rich.table import Table
from rich.text import Text

from cqels_py.batches.elements import Ids
from cqels_py.batches.results import ResultBatch
from cqels_py.cli.printable import printable

LINES_AROUND = 8
"""Lines of the screen that are no rows: title, heading, borders, the count of omitted rows, progress, the cursor's."""

ROWS_WITHOUT_SCREEN = 100
SORTED_AT_MOST = 300
LONG_IRI = 30

Decode = Callable[[Ids], Sequence[str]]


class Answer:
    """The current answer, kept up to date by a changelog: the distinct rows and their multiplicities."""

    def __init__(self, width: int) -> None:
        self.rows: Ids = np.empty((0, width), np.int64)
        self.counts: npt.NDArray[np.int64] = np.empty(0, np.int64)

    def __len__(self) -> int:
        return int(self.counts.sum())

    def apply(self, batch: ResultBatch) -> None:
        """Insert and retract the batch's rows; other rows keep their places."""
        changed = np.stack(batch.columns, axis=1)
        rows = np.concatenate((self.rows, changed))
        signs = np.concatenate((self.counts, batch.sign.astype(np.int64)))
        distinct, first, place = np.unique(rows, axis=0, return_index=True, return_inverse=True)
        counts = np.zeros(len(distinct), np.int64)
        np.add.at(counts, place.ravel(), signs)
        order = np.argsort(first, kind="stable")
        kept = order[counts[order] != 0]
        self.rows, self.counts = distinct[kept], counts[kept]


@dataclass(frozen=True, slots=True)
class Heading:
    """The title above the table, and the order of its rows: (variable, descending)."""

    title: str
    variables: tuple[str, ...]
    order: tuple[tuple[str, bool], ...] = ()


class Rows(Protocol):
    """The rows of a table: their number is `len`. `sorted`: are they shown by value, not in their own order?"""

    sorted: bool

    def __len__(self) -> int: ...

    @property
    def distinct(self) -> int:
        """The number of different rows."""

    def terms(self, last: int | None, most: int) -> list[list[str]]:
        """The last different rows (None: all), each as often as it is there, but at most `most` times; terms as in N-Triples."""


class DecodedRows:
    """The rows of an `Answer`."""

    sorted = True

    def __init__(self, width: int, decode: Decode) -> None:
        self.answer = Answer(width)
        self._decode = decode

    def __len__(self) -> int:
        return len(self.answer)

    @property
    def distinct(self) -> int:
        return len(self.answer.rows)

    def terms(self, last: int | None, most: int) -> list[list[str]]:
        answer = self.answer
        chosen = slice(None) if last is None else slice(-last, None)
        rows = np.repeat(answer.rows[chosen], np.minimum(answer.counts[chosen], most), axis=0)
        terms = self._decode(rows.ravel())
        width = rows.shape[1]
        return [list(terms[first : first + width]) for first in range(0, len(terms), width)]


class LiveTable:
    """Shows rows on a terminal while they change, or once at the end elsewhere."""

    def __init__(self, heading: Heading, rows: Rows, console: Console | None = None) -> None:
        self._heading = heading
        self._rows = rows
        self._console = console or Console()
        self._live: Live | None = None

    def show(self, line: str) -> None:
        """Draw the current answer again, with a line of progress below; does nothing without a terminal."""
        if not self._console.is_terminal:
            return
        if self._live is None:
            self._live = Live(console=self._console, auto_refresh=False, vertical_overflow="crop")
            self._live.start()
        below = Text(printable(line), style="dim", no_wrap=True, overflow="ellipsis")
        self._live.update(Group(*self._title(), self._table(), below), refresh=True)

    def close(self, line: str) -> None:
        """The last answer stays on the screen."""
        if self._console.is_terminal:
            self.show(line)
        else:
            self._console.print(*self._title(), self._table(), sep="\n")
        if self._live is not None:
            self._live.stop()

    def _title(self) -> list[Text]:
        title = self._heading.title
        return [Text(printable(title), style="bold", no_wrap=True, overflow="ellipsis")] if title else []

    def _table(self) -> Table:
        room = self._room()
        table = Table()
        texts = self._texts(room)
        for number, variable in enumerate(self._heading.variables):
            numeric = bool(texts) and all(_is_number(row[number]) for row in texts)
            table.add_column(variable, justify="right" if numeric else "left", no_wrap=True, overflow="ellipsis")
        for row in texts[:room]:
            # A cell that is a plain string would be read as markup.
            table.add_row(*map(Text, row))
        more = len(self._rows) - min(len(texts), room)
        if more > 0:
            table.caption, table.caption_justify = f"… {more:,} more", "left"
        return table

    def _texts(self, room: int) -> list[list[str]]:
        """Readable rows, as often as they are in the answer; ordered as long as there are not too many of them."""
        few = self._rows.sorted and self._rows.distinct <= SORTED_AT_MOST
        found = self._rows.terms(None if few else room, room)
        if few:
            self._sort(found)
        return [list(map(readable, row)) for row in found]

    def _sort(self, rows: list[list[str]]) -> None:
        """By all columns, and then by the query's order, most important last: sorts are stable."""
        rows.sort(key=lambda row: [_sort_key(term) for term in row])
        for variable, descending in reversed(self._heading.order):
            place = self._heading.variables.index(variable)
            rows.sort(key=lambda row: _sort_key(row[place]), reverse=descending)

    def _room(self) -> int:
        if not self._console.is_terminal:
            return ROWS_WITHOUT_SCREEN
        return max(self._console.size.height - LINES_AROUND, 1)


class AnswerTable(LiveTable):
    """The table of the results of a run."""

    def __init__(self, heading: Heading, decode: Decode, console: Console | None = None) -> None:
        rows = DecodedRows(len(heading.variables), decode)
        super().__init__(heading, rows, console)
        self._answer = rows.answer

    def write(self, batch: ResultBatch) -> None:
        self._answer.apply(batch)

    def flush(self) -> None:
        """Nothing: the answer is drawn together with the progress."""

    def commit(self) -> None:
        """Nothing: a terminal is not durable."""


_LITERAL = re.compile(r'"((?:[^"\\]|\\.)*)"(?:@([A-Za-z0-9-]+)|\^\^<([^>]*)>)?', re.DOTALL)
_ESCAPES = {"\\n": " ", "\\r": " ", "\\t": " ", '\\"': '"', "\\\\": "\\"}


def readable(term: str) -> str:
    """A term in N-Triples syntax in a readable form: no datatypes, short IRIs, two fraction digits, no control characters."""
    return printable(_readable(term))


def _readable(term: str) -> str:
    if term.startswith("<"):
        return _short_iri(term[1:-1])
    literal = _LITERAL.fullmatch(term)
    if literal is None:
        return term
    lexical, language, datatype = literal.groups()
    if datatype and datatype.rsplit("#", 1)[-1] in ("decimal", "double", "float"):
        return _short_number(lexical)
    text = re.sub(r"\\.", lambda escape: _ESCAPES.get(escape[0], escape[0]), lexical)
    return f"{text}@{language}" if language else text


def _short_iri(iri: str) -> str:
    if len(iri) <= LONG_IRI:
        return iri
    parts = re.split(r"(?<=[/#])", iri)
    return "…/" + "".join(parts[-2:]) if len(parts) > 4 else iri


def _short_number(lexical: str) -> str:
    try:
        value = float(lexical)
    except ValueError:
        return lexical
    fraction = lexical.partition(".")[2]
    return lexical if len(fraction) <= 2 and "E" not in lexical.upper() else f"{value:.2f}"


def _is_number(text: str) -> bool:
    return text == "" or re.fullmatch(r"[-+]?\d+(\.\d+)?", text) is not None


def _sort_key(term: str) -> tuple[int, float, str]:
    """Numbers by value, before everything else by text."""
    literal = _LITERAL.fullmatch(term)
    try:
        return (0, float(literal[1]), "") if literal and literal[3] else (1, 0.0, term)
    except ValueError:
        return (1, 0.0, term)
