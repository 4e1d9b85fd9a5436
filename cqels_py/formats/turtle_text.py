"""A parser of Turtle and TriG that goes on behind malformed statements, and names places in the user's text.

The RDF library parses; where it stops, another parser begins behind the error, with the prefixes and the graph of that place.
"""

from __future__ import annotations

import re
from collections import deque
from collections.abc import Iterator
from typing import IO, Any, Final, cast

import pyoxigraph

from cqels_py.errors import DataError, Place
from cqels_py.formats.turtle_syntax import (
    Boundary,
    advanced,
    column_of,
    first_token_beyond,
    first_unclosed,
    likely_boundary,
    lines_between,
    offset_of,
    resumed,
    version_announced,
)
from cqels_py.terms.versions import refusal

FORMS: Final = {"ttl": pyoxigraph.RdfFormat.TURTLE, "trig": pyoxigraph.RdfFormat.TRIG}

_KEPT: Final = 24 << 20
"""Bytes of text that are kept to go on behind an error: more than the library's parser reads ahead."""
_BEGINNING: Final = 1 << 16
_AT_ONCE: Final = 1 << 16
"""Bytes of a malformed statement from which on it is searched for its end each time that it has grown by an eighth."""
_SHORT_AHEAD: Final = 1 << 16
_MOST_AHEAD: Final = 64 << 20
"""Bytes of the prefixes that parsers read in front of the text, in all; those of short prefixes are not counted."""
PARSER_ERRORS: Final = (SyntaxError, MemoryError, ValueError)
"""Exceptions of the library for input that it cannot read; MemoryError if a buffer of its own is too small."""
_POSITION = re.compile(r"^Parser error (?:at|between) [^:]*: ")
_RELATIVE = "No scheme found in an absolute IRI"
_QUOTES = "the text in quotes is not closed"
_NOT_CLOSED: Final = {b"<": "an IRI ends with '>' on its line", b'"': _QUOTES, b"'": _QUOTES}
_POINT_MISSING: Final = ("A dot is expected", "A '}' or a '.' is expected")
_REST = "the rest of the document is not read, as it has too many errors for so many prefixes: mend this one, or use fewer prefixes"
_CUT_OFF = "Unexpected end of file"


def library_message(error: Exception) -> str:
    """The library's message without its position, with a way out where there is one."""
    if isinstance(error, MemoryError):
        return "a term, or another unit that has to be read at once, is longer than 16 MiB"
    message = _POSITION.sub("", str(error.args[0] if error.args else error))
    if _RELATIVE in message:
        message += ": a relative IRI needs a base before it (@base, or xml:base)"
    return message


class _KeptText:
    """The text of a document as a readable file that keeps its last part: positions are those of the whole text, in bytes."""

    def __init__(self, chunks: Iterator[bytes]) -> None:
        self._chunks = chunks
        self._parts = deque[bytes]()
        self._next = self._end = 0
        self._ahead = b""
        self.begin = 0
        self.begin_line = self.begin_column = 1
        self.ended = False
        self.error: DataError | None = None

    def read(self, size: int) -> bytes:
        """The next bytes, at most `size`; empty at the end."""
        if self._ahead:
            found, self._ahead = self._ahead[:size], self._ahead[size:]
            return found
        if self._next == self._end and not self.read_more():
            return b""
        at = self._end
        for part in reversed(self._parts):
            at -= len(part)
            if at <= self._next:
                found = part[self._next - at : self._next - at + size]
                self._next += len(found)
                return found
        raise AssertionError

    def read_more(self) -> bool:
        """Keep more text, if there is more. An error of the chunks ends the text, and is kept in `error`."""
        found = b""
        try:
            while not found and not self.ended:
                found = next(self._chunks)
        except StopIteration:
            self.ended = True
        except DataError as error:
            self.ended, self.error = True, error
        if not found:
            return False
        self._parts.append(found)
        self._end += len(found)
        while self._end - self.begin - len(self._parts[0]) > _KEPT:
            self._begin_behind(self._parts.popleft())
        return True

    def read_further(self, start: int) -> None:
        """Keep more text, if there is more, to search what begins at `start` again: an eighth more, where much has been searched."""
        searched = self._end - start
        wanted = self._end + (searched // 8 if searched > _AT_ONCE else 1)
        while self._end < wanted and self.read_more():
            pass

    def forget(self, before: int) -> None:
        """The text before a position is not needed any more."""
        whole = self.kept()
        # Seldom, as what is kept is copied.
        if 2 * (gone := before - self.begin) > len(whole):
            self._parts = deque([whole[gone:]])
            self._begin_behind(whole[:gone])

    def _begin_behind(self, gone: bytes) -> None:
        self.begin += len(gone)
        self.begin_line += gone.count(b"\n")
        self.begin_column = column_of(gone, len(gone), 0, self.begin_column)

    def kept(self) -> bytes:
        """The text from `begin` on."""
        whole = b"".join(self._parts)
        self._parts = deque([whole])
        return whole

    def at(self, at: int, size: int) -> bytes:
        """The text from a position on."""
        return self.kept()[at - self.begin : at - self.begin + size]

    def before(self, at: int) -> bytes:
        """The text up to a position, as far as it may be blank."""
        return self.at(max(self.begin, at - _BEGINNING), min(_BEGINNING, at - self.begin))

    def go_on(self, at: int, ahead: bytes) -> None:
        """What is read next: `ahead`, and then the text from a position on."""
        self._ahead, self._next = ahead, at


class TurtleText:
    """The statements of a text of Turtle or TriG, and what is wrong with it. `base`: for relative IRIs.

    `parser`: the iterator of statements; where it raises one of PARSER_ERRORS, `recover` replaces it. None: there are no more.
    """

    def __init__(self, chunks: Iterator[bytes], form: str, source: str, base: str | None = None) -> None:
        self._text = _KeptText(chunks)
        self._format = FORMS[form]
        self._source = source
        # Where the parser's text begins, its line and column, and how many of the parser's lines are before that.
        self._origin, self._origin_place, self._lines_ahead = Boundary(), (1, 1), 0
        self._ahead_bytes = 0
        self.parser: Any = self._parse(base)

    @property
    def error(self) -> DataError | None:
        """The error of the chunks, behind which nothing is read."""
        return self._text.error

    def announcement(self) -> DataError | None:
        """The error of a text that announces, at its beginning, that it is RDF 1.2."""
        self._text.read_more()
        at = version_announced(self._text.kept()[:_BEGINNING])
        return None if at is None else self._beyond(at)

    def recover(self, error: Exception, batch: list[Any]) -> DataError:
        """What is wrong at the parser's error, behind which reading goes on. `batch`: its last statements.

        Those of a graph that is not closed are taken out of the batch.
        """
        text, message, told = self._text, library_message(error), None
        at = self._offset(error.lineno or 1, error.offset or 1) if isinstance(error, SyntaxError) else None
        unclosed = self._unclosed(at)
        at = at if unclosed is None else unclosed
        if at is None:
            self.parser = None
            return DataError(f"{self._source}: {message}")
        if unclosed is not None or message == _CUT_OFF:
            message = _NOT_CLOSED.get(text.at(at, 1), message)
        if message.startswith(_POINT_MISSING):
            # It is missing behind the token before.
            told = at - len(ahead := text.before(at)) + len(ahead.rstrip())
        return self._resume(at, DataError(message, self._place(at if told is None else told)), batch)

    def refuse(self, batch: list[Any]) -> DataError:
        """As `recover`, for a statement of RDF 1.2 that the parser has read; it would have followed the batch."""
        text, known = self._text, self._known(self._text.begin)
        at = first_token_beyond(text.kept(), known.moved(-text.begin))
        if at is None:
            self.parser = None
            return DataError("a statement of RDF 1.2, which is not supported yet", self._place(known.at))
        return self._resume(text.begin + at, self._beyond(text.begin + at), batch)

    def _parse(self, base: str | None) -> Any:
        return pyoxigraph.parse(cast(IO[bytes], self._text), format=self._format, base_iri=base)

    def _beyond(self, at: int) -> DataError:
        found = self._text.at(at, 64).decode("utf-8", "replace")
        return DataError(refusal(found) or "RDF 1.2 is not supported yet", self._place(at))

    def _known(self, before: int) -> Boundary:
        """The last boundary that is known; where its text is no longer kept, one that seems to be a boundary."""
        text = self._text
        if self._origin.at >= text.begin:
            return self._origin
        return likely_boundary(text.kept(), before - text.begin).moved(text.begin)

    def _reference(self) -> tuple[int, int, int]:
        """A position of the text that is kept, its line and its column."""
        if self._origin.at >= self._text.begin:
            return self._origin.at, *self._origin_place
        return self._text.begin, self._text.begin_line, self._text.begin_column

    def _offset(self, line: int, column: int) -> int:
        """The position of a character of the parser's text."""
        at, first, _ = self._reference()
        lines = self._origin_place[0] + line - 1 - self._lines_ahead - first
        begin = self._text.begin
        return begin + offset_of(self._text.kept(), at - begin, max(0, lines), column)

    def _unclosed(self, limit: int | None) -> int | None:
        """The position, up to a limit, of a text or an IRI that its line does not close: the parser reads on to find its end."""
        text = self._text
        kept, begin = text.kept(), text.begin
        end = begin + len(kept) if limit is None else limit
        known = advanced(kept, self._known(end).moved(-begin), end - begin)
        found = first_unclosed(kept, known, end - begin)
        return None if found is None else begin + found

    def _line_and_column(self, at: int) -> tuple[int, int]:
        """Counted from the reference on, as a line may be as long as the text."""
        reference, line, column = self._reference()
        kept, begin = self._text.kept(), self._text.begin
        lines = lines_between(kept, min(at, reference) - begin, max(at, reference) - begin)
        if at < reference and lines:
            return line - lines, column_of(kept, at - begin, 0, self._text.begin_column)
        return line + lines, column_of(kept, at - begin, reference - begin, column)

    def _place(self, at: int) -> Place:
        return Place(*self._line_and_column(at), self._source)

    def _resume(self, at: int, wrong: DataError, batch: list[Any]) -> DataError:
        """Go on behind the error at this position."""
        text, known, found = self._text, self._known(at), None
        while found is None:
            kept, begin = text.kept(), text.begin
            known = advanced(kept, known.moved(-begin), at - begin).moved(begin)
            found = resumed(kept, known.moved(-begin), at - begin, text.ended or len(kept) > _KEPT)
            if found is None:
                text.read_further(known.at)
        if found.unclosed is not None:
            wrong = DataError("the graph that begins here is not closed by '}'", self._place(begin + found.unclosed))
            _take_graph_out(batch)
        begins, ends = (known.at if found.unclosed is None else begin + found.unclosed), begin + found.boundary.at
        if not self._begin_at(found.boundary.moved(begin)):
            wrong = DataError(f"{wrong.message}; {_REST}", wrong.place)
        return wrong.about(kept[begins - begin : ends - begin].decode("utf-8", "backslashreplace").strip())

    def _begin_at(self, boundary: Boundary) -> bool:
        """Is the text read from here on? Not if that would take too long."""
        place = self._line_and_column(boundary.at)
        prefixes = b" ".join(
            b"@prefix %b: <%b> ." % (name.encode(), iri.encode()) for name, iri in self.parser.prefixes.items()
        )
        graph = b"" if boundary.label is None else boundary.label + b"{"
        ahead = prefixes + graph + b"\n"
        self._ahead_bytes += len(ahead) if len(ahead) > _SHORT_AHEAD else 0
        if self._ahead_bytes > _MOST_AHEAD:
            self.parser = None
            return False
        self._origin, self._origin_place, self._lines_ahead = boundary, place, lines_between(ahead, 0, len(ahead))
        self._text.go_on(boundary.at, ahead)
        self._text.forget(boundary.at if boundary.label is None else boundary.opened)
        self.parser = self._parse(self.parser.base_iri)
        return True


def _take_graph_out(batch: list[Any]) -> None:
    """Take the statements of the last graph out of a batch."""
    name = batch[-1].graph_name if batch else None
    while batch and batch[-1].graph_name == name:
        batch.pop()
