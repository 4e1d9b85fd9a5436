"""Where the statements of Turtle and TriG begin and end, also of malformed text: where a reader goes on behind an error.

Behind an error the text goes on at the first of these:

- after a `.`, which ends the statement, or a `}`, which ends the graph;
- where a line begins with a token, no further to the right than the statement's first line does, and no `;` or `,` is before it:
  then a `.` is missing, or is part of a text or an IRI that is not closed.

A text in quotes that its line does not close ends at the line's end, and an IRI at the blank before; a text in three quotes so too,
where the document ends in it. A `{` inside of a graph says that the graph has not been closed: the text goes on at the first of
the lines that are no further to the right than the graph's first one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

_IN_NAME = rb"""[^\s<>"'{}\[\]();,.#|~^@\\]"""
_SKIPPED = rb"(?:[ \t\r\n]++|#[^\r\n]*+)*+"
_BEYOND = rb"<<\(?+|\)?+>>|\{\||\|\}|~|@[A-Za-z]++(?:-[A-Za-z0-9]++)*+--[A-Za-z]*+|@version\b"
_TOKEN = (
    rb"(?P<beyond>%(beyond)b)"
    rb"|(?:%(name)b|\\.|\.(?=[0-9]))(?:%(name)b|\\.|\.++(?=%(name)b|\\))*+"
    rb'|<[^<>"\r\n]*+>'
    rb'|"""(?:[^"\\]++|\\.|"{1,2}(?!"))*+"""|"(?!"")(?:[^"\\\r\n]++|\\[^\r\n])*+"'
    rb"|'''(?:[^'\\]++|\\.|'{1,2}(?!'))*+'''|'(?!'')(?:[^'\\\r\n]++|\\[^\r\n])*+'"
    rb"|[;,\[\]()]|\^\^?+|@[A-Za-z0-9-]*+"
) % {b"beyond": _BEYOND, b"name": _IN_NAME}
_STATEMENT = re.compile(rb"%b(?:(?:%b)%b)*+(?P<end>[.{}])" % (_SKIPPED, _TOKEN, _SKIPPED), re.DOTALL)
_BLANKS = re.compile(_SKIPPED)
_ANY_TOKEN = re.compile(
    rb"%b(?P<token>%b|[.{}]|(?P<open>[\"'][^\r\n]*+|<[^\s<>\"]*+)|.)" % (_SKIPPED, _TOKEN), re.DOTALL
)
_SEPARATORS = (b";", b",")
_NO_BEGINNING = (b".", b";", b",", b"]", b")")
_LONG_QUOTES = (b'"""', b"'''")
_INDENTED = re.compile(rb"[ \t]*+")
_LONG_LINE = 1 << 12
_LINE_END = re.compile(rb"\r\n?|\n")
_LIKELY_END = re.compile(rb"[.}][ \t]*+\r?\n(?=[^\s#])")
_VERSION = re.compile(
    rb"%b(?:@?(?:prefix|base)\b[^\r\n\"']*+%b)*+(?P<version>@?version)\s++[\"']" % (_SKIPPED, _SKIPPED), re.IGNORECASE
)


class Boundary(NamedTuple):
    """A position `at` between statements. `label`: that of the graph that is open there, if one is; it begins at `opened`."""

    at: int = 0
    label: bytes | None = None
    opened: int = 0

    def moved(self, by: int) -> Boundary:
        return Boundary(self.at + by, self.label, self.opened + by)


class Resumed(NamedTuple):
    """Where a text goes on. `unclosed`: the position of the graph that is not closed, if that is the error."""

    boundary: Boundary
    unclosed: int | None = None


class _Found(NamedTuple):
    start: int
    end: int
    word: bytes
    is_open: bool
    is_beyond: bool
    begins_line: bool


def _tokens(text: bytes, at: int) -> Iterator[_Found]:
    while (match := _ANY_TOKEN.match(text, at)) is not None:
        start, end = match.span("token")
        begins_line = _LINE_END.search(text, at, start) is not None
        yield _Found(start, end, match["token"], match["open"] is not None, match["beyond"] is not None, begins_line)
        at = end


def first_of(text: bytes, at: int) -> int:
    """The beginning of the first token from a position on."""
    found = _BLANKS.match(text, at)
    assert found is not None
    return found.end()


def _line_begin(text: bytes, first: int, at: int) -> int:
    """Where the line of a position begins; `first` if that is before it."""
    begin = max(first, text.rfind(b"\n", first, at) + 1)
    return max(begin, text.rfind(b"\r", begin, at) + 1)


def _indentation(text: bytes, at: int) -> int:
    """The number of blanks at the beginning of the line; lines that begin long before are taken to have none."""
    first = max(0, at - _LONG_LINE)
    begin = _line_begin(text, first, at)
    if begin == first > 0:
        return 0
    found = _INDENTED.match(text, begin, at)
    assert found is not None
    return found.end() - begin


def advanced(text: bytes, known: Boundary, limit: int) -> Boundary:
    """The last boundary up to `limit`, where the text up to it is well-formed."""
    at, label, opened = known
    while (match := _STATEMENT.match(text, at, limit)) is not None:
        if match["end"] == b"{" and label is None:
            opened = first_of(text, at)
            label = text[opened : match.end() - 1]
        elif match["end"] != b".":
            label = None
        at = match.end()
    return Boundary(at, label, opened)


def likely_boundary(text: bytes, limit: int) -> Boundary:
    """What seems to be a boundary before `limit`, of a text whose beginning is not known."""
    found = None
    for found in _LIKELY_END.finditer(text, max(0, limit - (1 << 16)), limit):
        if text[found.start()] == ord("}"):
            break
    return Boundary(limit if found is None else found.end())


def first_token_beyond(text: bytes, known: Boundary) -> int | None:
    """The position of the first token after a boundary that RDF 1.1 does not have."""
    return next((token.start for token in _tokens(text, known.at) if token.is_beyond), None)


def first_unclosed(text: bytes, known: Boundary, limit: int) -> int | None:
    """The position, up to a limit, of the first text or IRI after a boundary that its line does not close, and has to."""
    for token in _tokens(text, known.at):
        if token.start > limit or (token.is_open and (token.word[:3] in _LONG_QUOTES or token.end == len(text))):
            return None
        if token.is_open:
            return token.start
    return None


def version_announced(text: bytes) -> int | None:
    """The position of VERSION or @version among the directives with which a text begins."""
    found = _VERSION.match(text)
    return None if found is None else found.start("version")


def beyond_statements(line: bytes) -> int | None:
    """The position of what RDF 1.2 has in a line of N-Triples or N-Quads, and RDF 1.1 has not."""
    for token in _tokens(line, 0):
        if token.is_beyond and token.word[:1] in (b"<", b"@"):
            return token.start
    return version_announced(line)


def resumed(text: bytes, known: Boundary, error: int, ended: bool) -> Resumed | None:
    """Where a text goes on whose statement behind a boundary has an error at this position.

    None: that depends on text behind this one, unless it has `ended`.
    """
    first, before, in_block = first_of(text, known.at), b"", False
    indentation = _indentation(text, first)
    for token in _tokens(text, known.at):
        word = token.word
        may_go_on = token.end == len(text) or (token.is_open and word[:3] in _LONG_QUOTES)
        if may_go_on and not ended:
            return None
        if token.end > error:
            if token.begins_line and before not in _SEPARATORS and token.start > first and word not in _NO_BEGINNING:
                indented = _indentation(text, token.start)
                if indented <= indentation and word != b"}":
                    is_out = known.label is None or indented < indentation
                    return Resumed(Boundary(token.start) if is_out else known._replace(at=token.start))
            if word == b"}" or (token.is_open and known.label is not None and word.rstrip().endswith(b"}")):
                return Resumed(Boundary(token.end))
            if word == b"{" and known.label is not None:
                return _after_unclosed(text, known)
            in_block |= word == b"{"
            if word == b"." and not in_block:
                return Resumed(known._replace(at=token.end))
        before = word
    return Resumed(Boundary(len(text))) if ended else None


def _after_unclosed(text: bytes, known: Boundary) -> Resumed:
    """Where the text goes on behind a graph whose `}` is missing before the statement at `known`."""
    if known.label is None or known.opened < 0:
        return Resumed(Boundary(known.at), known.at)
    indentation = _indentation(text, known.opened)
    for token in _tokens(text, known.opened + len(known.label) + 1):
        if token.start >= known.at:
            break
        if token.begins_line and _indentation(text, token.start) <= indentation:
            return Resumed(Boundary(token.start), known.opened)
    return Resumed(Boundary(known.at), known.opened)


def lines_between(text: bytes, start: int, end: int) -> int:
    """How many lines end between two positions."""
    return sum(1 for _ in _LINE_END.finditer(text, start, end))


def column_of(text: bytes, at: int, known: int, column: int) -> int:
    """The column, from 1, of a position: in characters. `column`: that of the position `known`, from which on is counted; it may be
    behind in the same line."""
    if at < known:
        return column - _characters(text, at, known)
    begin = _line_begin(text, known, at)
    return (column if begin == known else 1) + _characters(text, begin, at)


def _characters(text: bytes, start: int, end: int) -> int:
    return len(text[start:end].decode("utf-8", "replace"))


def offset_of(text: bytes, start: int, lines: int, column: int) -> int:
    """The position of a character: its column, from 1, in the line that begins after so many line ends behind `start`."""
    at = start
    for _ in range(lines):
        found = _LINE_END.search(text, at)
        if found is None:
            return len(text)
        at = found.end()
    most = at + 4 * (column - 1)
    end = _LINE_END.search(text, at, most)
    line = text[at : most if end is None else end.start()].decode("utf-8", "surrogateescape")
    return at + len(line[: column - 1].encode("utf-8", "surrogateescape"))
