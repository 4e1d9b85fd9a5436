"""Limits of documents: of their statements, and of how deep they are nested.

Depth is found by a scan of a text's brackets, outside of its texts, IRIs and comments, before any library reads it: one that is
recursive ends the process where its stack does, and others take quadratic time and memory. FORMATS is the table of formats: an
automaton over bytes and the deepest that may be nested.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from itertools import islice
from typing import Any, Final

import numpy as np
import numpy.typing as npt

from cqels_py.errors import DataError, Place
from cqels_py.kernels.text import depth as kernel

MOST_OBJECTS: Final = 100
"""Of JSON's objects and arrays, and of XML's elements."""
MOST_BRACKETS: Final = 1000
"""Of Turtle's blank nodes, collections and graphs."""
MOST_TRIPLES: Final = 32
"""Of triple terms."""
MOST_UNCLOSED: Final = 1000
"""Of <<( without )>>, in texts too: some are read as triple terms where a reader goes on after an error."""
MOST_STATEMENTS: Final = 1_000_000
"""Of a document that is held in memory as a whole: a page, a message, a body of a request."""
_UNLIMITED: Final = 1 << 62

State = tuple[str, Mapping[bytes, str]]
"""The step at most bytes, and that at each of some: the name of the next state, behind a key of _ACTIONS if the byte does more."""
_ACTIONS: Final = {
    "+": kernel.OPEN,
    "-": kernel.CLOSE,
    "(": kernel.OPEN_TRIPLE,
    ")": kernel.CLOSE_TRIPLE,
    "0": kernel.RESET,
    "!": kernel.REFUSE,
}


class TooDeep(DataError):
    """From here on the document is nested too deeply to be read."""

    code = "CQ-DEPTH"


@dataclass(frozen=True, slots=True)
class Format:
    """`table`: the automaton, see `cqels_py.kernels.text.depth`. `what`: that is nested, for messages. `openings`: a text that has
    none too many of these is not scanned."""

    table: npt.NDArray[np.int16]
    brackets: int
    triples: int
    what: str
    openings: tuple[bytes, ...] = ()

    def message(self, state: npt.NDArray[np.int64]) -> str:
        if state[kernel.TRIPLES] > self.triples:
            return f"triple terms are nested more than {self.triples} deep"
        if state[kernel.BRACKETS] > self.brackets:
            return f"{self.what} are nested more than {self.brackets} deep"
        if state[kernel.UNCLOSED] > MOST_UNCLOSED:
            return f"<<( stands more than {MOST_UNCLOSED} times without )>>, in texts too: write \\u003C<( there"
        return "a declaration of DOCTYPE with < or > in it, other than those around it: write the values of entities without"


def _table(states: Mapping[str, State]) -> npt.NDArray[np.int16]:
    numbers = {name: number for number, name in enumerate(states)}
    table = np.empty((len(states), 256), np.int16)

    def cell(step: str) -> int:
        action = _ACTIONS.get(step[0], kernel.NOTHING)
        return numbers[step[1:] if action else step] | action << kernel.ACTION_SHIFT

    for name, (otherwise, steps) in states.items():
        table[numbers[name]] = cell(otherwise)
        for some, step in steps.items():
            table[numbers[name], list(some)] = cell(step)
    return table.ravel()


def _json(at_newlines: Mapping[bytes, str]) -> dict[str, State]:
    return {
        "json": ("json", {b'"': "text", b"[{": "+json", b"]}": "-json", **at_newlines}),
        "text": ("text", {b'"': "json", b"\\": "escape", **at_newlines}),
        "escape": ("text", at_newlines),
    }


def _turtle() -> dict[str, State]:
    turtle = {
        b"[({": "+turtle", b"])}": "-turtle", b"<": "less", b">": "greater", b'"': 'one "', b"'": "one '", b"#": "comment",
        b"\\": "escape",
    }  # fmt: skip
    return {
        "turtle": ("turtle", turtle),
        "escape": ("turtle", {}),
        "less": ("iri", {b"<": "(turtle", b">": "turtle"}),
        "iri": ("iri", {b">": "turtle"}),
        "greater": ("turtle", {**turtle, b">": ")turtle"}),
        "comment": ("comment", {b"\n\r": "turtle"}),
        **_texts(b'"', turtle),
        **_texts(b"'", turtle),
    }


def _texts(quote: bytes, turtle: Mapping[bytes, str]) -> dict[str, State]:
    """The states within texts of Turtle, in one quote or three."""
    one, two, short, long = (f"{name} {quote.decode()}" for name in ("one", "two", "short", "long"))
    in_short, in_long = {b"\\": f"escape {short}"}, {b"\\": f"escape {long}"}
    return {
        one: (short, {quote: two, **in_short}),
        # An empty text, which has ended, or the beginning of a long one.
        two: ("turtle", {**turtle, quote: long}),
        short: (short, {quote: "turtle", **in_short}),
        f"escape {short}": (short, {}),
        long: (long, {quote: f"{long} 1", **in_long}),
        f"{long} 1": (long, {quote: f"{long} 2", **in_long}),
        f"{long} 2": (long, {quote: "turtle", **in_long}),
        f"escape {long}": (long, {}),
    }


def _xml() -> dict[str, State]:
    """Of a DOCTYPE only what all readers divide in the same way passes: no < or > within its declarations."""
    tag = {b">": "xml", b"/": "slash", b'"': 'tag "', b"'": "tag '"}
    return {
        "xml": ("xml", {b"<": "less"}),
        "less": ("+tag", {b"/": "-end", b"?": "instruction", b"!": "mark"}),
        "tag": ("tag", tag),
        'tag "': ('tag "', {b'"': "tag"}),
        "tag '": ("tag '", {b"'": "tag"}),
        "slash": ("tag", {**tag, b">": "-xml"}),
        "end": ("end", {b">": "xml"}),
        "instruction": ("instruction", {b"?": "instruction ?"}),
        "instruction ?": ("instruction", {b"?": "instruction ?", b">": "xml"}),
        "mark": ("doctype", {b"-": "mark -", b"[": "characters"}),
        "mark -": ("comment", {}),
        **_until_two("comment", b"-"),
        **_until_two("characters", b"]"),
        "doctype": ("doctype", {b"[": "subset", b">": "xml", b"<": "!doctype"}),
        "subset": ("subset", {b"]": "doctype", b"<": "inner", b">": "!subset"}),
        "inner": ("inner", {b">": "subset", b"<": "!inner"}),
    }


def _until_two(name: str, byte: bytes) -> dict[str, State]:
    """The states of markup that ends with a byte twice and >."""
    return {
        name: (name, {byte: f"{name} 1"}),
        f"{name} 1": (name, {byte: f"{name} 2"}),
        f"{name} 2": (name, {byte: f"{name} 2", b">": "xml"}),
    }


_TURTLE: Final = Format(
    _table(_turtle()), MOST_BRACKETS, MOST_TRIPLES, "blank nodes and collections", (b"[", b"(", b"{", b"<<")
)
_JSON: Final = Format(_table(_json({})), MOST_OBJECTS, 0, "objects and arrays", (b"[", b"{"))
FORMATS: Final[Mapping[str, Format]] = {
    **dict.fromkeys(("nt", "nq", "ttl", "trig"), _TURTLE),
    "rdf": Format(_table(_xml()), MOST_OBJECTS, 0, "elements"),
    "jsonld": _JSON,
    "json": _JSON,
    "ndjson": Format(_table(_json({b"\n": "0json"})), MOST_OBJECTS, 0, "objects and arrays", (b"[", b"{")),
}
"""By the names of `formats.endings`."""


class _Scan:
    """The scan of one document, which comes in chunks."""

    def __init__(self, form: str) -> None:
        self._format = FORMATS[form]
        self._state = np.zeros(kernel.STATE_CELLS, np.int64)
        self._line, self._column = 1, 1

    def excess(self, chunk: bytes, source: str | None) -> tuple[int, TooDeep] | None:
        """Where in the next chunk the document is nested too deeply, and its error; None if it is not there."""
        format_ = self._format
        text = np.frombuffer(chunk, np.uint8)
        most = map(np.int64, (format_.brackets, format_.triples, MOST_UNCLOSED if format_.triples else _UNLIMITED))
        at = int(kernel.first_too_deep(text, format_.table, self._state, *most))
        lines, start = chunk.count(b"\n", 0, at), chunk.rfind(b"\n", 0, at) + 1
        self._line += lines
        self._column = (1 if lines else self._column) + len(chunk[start:at].decode("utf-8", "ignore"))
        if at == len(chunk):
            return None
        return at, TooDeep(format_.message(self._state), Place(self._line, self._column, source))


def check_depth(document: bytes, form: str, source: str | None = None, line: int | None = None) -> None:
    """TooDeep, with the place, for a document that is nested too deeply. `line`: that of the whole document in its source.

    >>> check_depth(b"[" * 101 + b"]" * 101, "json")
    Traceback (most recent call last):
    cqels_py.formats.depth.TooDeep: <query>:1:101: objects and arrays are nested more than 100 deep
    """
    openings = FORMATS[form].openings
    if openings and sum(map(document.count, openings)) <= MOST_TRIPLES:
        return
    found = _Scan(form).excess(document, source)
    if found is not None:
        error = found[1]
        if line is not None:
            error.place = Place(line, None, source)
        raise error


def is_too_deep(document: bytes, form: str) -> bool:
    """Is some of the document nested too deeply?"""
    try:
        check_depth(document, form)
    except TooDeep:
        return True
    return False


def shallow(chunks: Iterable[bytes], form: str, source: str) -> Iterator[bytes]:
    """The chunks of a document, up to the place where it is nested too deeply; there TooDeep is raised."""
    scan = _Scan(form)
    for chunk in chunks:
        found = scan.excess(chunk, source)
        if found is not None:
            at, error = found
            yield chunk[:at]
            raise error
        yield chunk


def at_most(statements: Iterable[Any], source: str | None = None, line: int | None = None) -> list[Any]:
    """The statements. DataError if there are more than MOST_STATEMENTS."""
    found = list(islice(statements, MOST_STATEMENTS + 1))
    if len(found) > MOST_STATEMENTS:
        raise too_many(Place(line or 1, None, source))
    return found


def too_many(place: Place) -> DataError:
    """The error of a document that has too many statements."""
    return DataError(f"the document has more than {MOST_STATEMENTS:,} statements: divide it", place)
