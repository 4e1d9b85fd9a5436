"""The user's query text, texts derived from it, and the mapping from their offsets back to its lines and columns."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Iterable

from cqels_py.errors import Place, QueryError, QuerySyntaxError, UnsupportedQuery

Edit = tuple[int, int, str]
"""Start and end in a text, and the replacement."""

_ESCAPE = re.compile(r"(?<!\\)((?:\\\\)*)\\(?:u([0-9a-fA-F]{4})|U([0-9a-fA-F]{8}))")
_BAD_ESCAPE = re.compile(r"(?<!\\)(?:\\\\)*\\[uU]")
_LINE_BREAK = re.compile(r"\r\n|\n|\r")


class EditedText:
    """A text after edits that do not overlap.

    >>> edited = EditedText("say hello", [(4, 9, "bye")])
    >>> edited.text, edited.origin(2), edited.origin(5)
    ('say bye', 2, 4)
    """

    def __init__(self, text: str, edits: Iterable[Edit]) -> None:
        self._starts: list[int] = []
        self._origins: list[tuple[int, bool]] = []
        pieces: list[str] = []
        length = done = 0

        def add(piece: str, origin: int, copied: bool) -> None:
            nonlocal length
            if piece:
                self._starts.append(length)
                self._origins.append((origin, copied))
                pieces.append(piece)
                length += len(piece)

        for start, end, replacement in sorted(edits):
            add(text[done:start], done, True)
            add(replacement, start, False)
            done = end
        add(text[done:], done, True)
        self.text = "".join(pieces)
        self._end = len(text)

    def origin(self, offset: int) -> int:
        """Where in the unedited text this offset comes from; inside a replacement, where that begins."""
        if offset >= len(self.text):
            return self._end
        piece = bisect_right(self._starts, offset) - 1
        origin, copied = self._origins[piece]
        return origin + offset - self._starts[piece] if copied else origin


class Unplaced(Exception):
    """Something is wrong, found where offsets are no longer known: `near` is a token of the text that shows it.

    A keyword in any case, a variable, a blank node, or the full IRI of a name; looked for behind the first of the
    keywords `after`, if there is one.
    """

    def __init__(self, kind: type[QueryError], message: str, near: str, after: tuple[str, ...] = ()) -> None:
        super().__init__(message)
        self.kind = kind
        self.message = message
        self.near = near
        self.after = after


def wrong(message: str, near: str, after: tuple[str, ...] = ()) -> Unplaced:
    """Will be a QuerySyntaxError with a place."""
    return Unplaced(QuerySyntaxError, message, near, after)


def unsupported(message: str, near: str) -> Unplaced:
    """Will be an UnsupportedQuery with a place."""
    return Unplaced(UnsupportedQuery, message, near)


class Source:
    r"""A query's text. `text` is without \u escapes; offsets into it become places in the text the user wrote."""

    def __init__(self, text: str, name: str | None) -> None:
        self._original = text
        self._name = name
        self._expanded = EditedText(text, self._escapes(text))
        self.text = self._expanded.text

    def _escapes(self, text: str) -> Iterable[Edit]:
        found = list(_ESCAPE.finditer(text))
        known = {match.start() for match in found}
        for match in _BAD_ESCAPE.finditer(text):
            if match.start() not in known:
                raise QuerySyntaxError(
                    "an escape that is not complete: \\u takes four hexadecimal digits, \\U eight",
                    self._place(match.end() - 2),
                )
        for match in found:
            code = int(match[2] or match[3], 16)
            start = match.end(1)
            if code > 0x10FFFF or 0xD800 <= code <= 0xDFFF:
                raise QuerySyntaxError(f"{text[start : match.end()]} is not a Unicode character", self._place(start))
            yield start, match.end(), chr(code)

    def _place(self, offset: int) -> Place:
        breaks = [match.end() for match in _LINE_BREAK.finditer(self._original, 0, offset)]
        return Place(len(breaks) + 1, offset - (breaks[-1] if breaks else 0) + 1, self._name)

    def place(self, offset: int) -> Place:
        """Line and column of an offset into `text`."""
        return self._place(self._expanded.origin(offset))

    def error(self, message: str, offset: int) -> QuerySyntaxError:
        return QuerySyntaxError(message, self.place(offset))

    def refusal(self, message: str, offset: int) -> UnsupportedQuery:
        return UnsupportedQuery(message, self.place(offset))
