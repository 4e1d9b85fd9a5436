"""Regular expressions of XPath (F&O 5.6), translated to Python's."""

from __future__ import annotations

import re
import sys
import unicodedata
from functools import lru_cache

from cqels_py.operators.r2r.functions.terms import ExpressionError

_NAME_START = ":A-Z_a-z\u00c0-\u00d6\u00d8-\u00f6\u00f8-\u02ff\u0370-\u037d\u037f-\u1fff\u200c\u200d\u2070-\u218f"
_NAME_START += "\u2c00-\u2fef\u3001-\ud7ff\uf900-\ufdcf\ufdf0-\ufffd\U00010000-\U000effff"
_NAME = _NAME_START + "\\-.0-9\u00b7\u0300-\u036f\u203f\u2040"
_CLASS_ESCAPES = {"i": _NAME_START, "c": _NAME}
_CONTROL_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN_ESCAPES = "\\|.?*+(){}[]^$-"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{[0-9]+(?:,[0-9]*)?\})\??")
_GROUP_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
# In a class: neither the hyphen at its end, nor that of a class to be taken from it, nor one before that.
_RANGE = re.compile(r"-(?!\]|-?\[)")
_NOT_CAPTURED = 0
# In groups, since XPath lets anchors have quantifiers. A newline at the very end begins no line, and has none after it.
_TEXT_ANCHORS = {"^": r"(?:\A)", "$": r"(?:\Z)"}
_LINE_ANCHORS = {"^": r"(?:\A|(?<=\n)(?!\Z))", "$": r"(?:(?=\n)|(?<!\n)\Z)"}


def _error(pattern: str, reason: str) -> ExpressionError:
    return ExpressionError(f"the regular expression {pattern!r}: {reason}")


@lru_cache(maxsize=64)
def _category(name: str, complement: bool) -> str:
    """The characters of a Unicode category (L, Lu, …) as the inside of a character class."""
    if not re.fullmatch(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?", name):
        raise ExpressionError(f"unknown Unicode category {name!r} in a regular expression")
    ranges: list[str] = []
    start = -1
    for code in range(sys.maxunicode + 2):
        inside = code <= sys.maxunicode and unicodedata.category(chr(code)).startswith(name) != complement
        if inside and start < 0:
            start = code
        elif not inside and start >= 0:
            ranges.append(f"\\U{start:08x}-\\U{code - 1:08x}")
            start = -1
    return "".join(ranges)


def _without_blanks(pattern: str) -> str:
    """What the flag x leaves of a pattern: blanks stay in character classes alone."""
    kept: list[str] = []
    depth, escaped = 0, False
    for character in pattern:
        if depth == 0 and character in "\t\n\r ":
            continue
        kept.append(character)
        if escaped or character == "\\":
            escaped = not escaped
        elif character in "[]":
            depth = max(0, depth + (1 if character == "[" else -1))
    return "".join(kept)


class _Translator:
    """One pass over the pattern, with `position` as the reader's place.

    It reads XPath's grammar and writes every part of it anew, so that nothing gets through that Python alone knows.
    """

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = _without_blanks(pattern) if "x" in flags else pattern
        self.position = 0
        self.anchors = _LINE_ANCHORS if "m" in flags else _TEXT_ANCHORS
        self.groups = 0
        self.open: list[int] = []
        self.closed: set[int] = set()

    def translate(self) -> str:
        parts: list[str] = []
        while self.position < len(self.pattern):
            parts.append(self._piece())
        if self.open:
            raise self._error("a group is not closed")
        return "".join(parts)

    def _error(self, reason: str) -> ExpressionError:
        return _error(self.pattern, reason)

    def _next(self) -> str:
        if self.position >= len(self.pattern):
            raise self._error("ends too early")
        character = self.pattern[self.position]
        self.position += 1
        return character

    def _take(self, text: str) -> bool:
        """Does the text come next? Then it is read."""
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _piece(self) -> str:
        """A bar, the beginning of a group, or an atom and its quantifier."""
        character = self._next()
        if character == "|":
            return "|"
        if character == "(":
            return self._open_group()
        return self._atom(character) + self._quantifier()

    def _atom(self, character: str) -> str:
        if character == ")":
            return self._close_group()
        if character == "[":
            return self._class()
        if character == "\\":
            return self._escape()
        if character in self.anchors:
            return self.anchors[character]
        if character in "?*+{}]":
            raise self._error(f"a {character} that stands for itself must be written \\{character}")
        return "." if character == "." else re.escape(character)

    def _quantifier(self) -> str:
        match = _QUANTIFIER.match(self.pattern, self.position)
        if not match:
            return ""
        self.position = match.end()
        return match[0]

    def _open_group(self) -> str:
        if self._take("?:"):
            self.open.append(_NOT_CAPTURED)
            return "(?:"
        if self.pattern.startswith("?", self.position):
            raise self._error("groups other than (…) and (?:…) are not XPath")
        self.groups += 1
        self.open.append(self.groups)
        return "("

    def _close_group(self) -> str:
        if not self.open:
            raise self._error("a ) without a (")
        self.closed.add(self.open.pop())
        return ")"

    def _escape(self) -> str:
        named = self._escaped_class()
        if named:
            return f"[{'^' if named[1] else ''}{named[0]}]"
        number = _GROUP_NUMBER.match(self.pattern, self.position)
        return self._back_reference(number[0]) if number else re.escape(self._escaped_character())

    def _back_reference(self, digits: str) -> str:
        """As many digits as there are groups so far are the number; a group that matched nothing is an empty text."""
        while len(digits) > 1 and int(digits) > self.groups:
            digits = digits[:-1]
        if int(digits) not in self.closed:
            raise self._error(f"\\{digits} must come after the end of group {digits}")
        self.position += len(digits)
        return f"(?({digits})\\{digits})"

    def _escaped_class(self) -> tuple[str, bool] | None:
        r"""After a backslash: the inside of the class meant by \d \i \p{…} …, and whether its complement is meant."""
        letter = self.pattern[self.position : self.position + 1]
        if letter and letter in "dDsSwW":
            self.position += 1
            return "\\" + letter, False
        if letter.lower() in _CLASS_ESCAPES and letter:
            self.position += 1
            return _CLASS_ESCAPES[letter.lower()], letter.isupper()
        if letter in ("p", "P"):
            match = re.compile(r"[pP]\{(\w+)\}").match(self.pattern, self.position)
            if not match:
                raise self._error(r"\p needs a Unicode category, as in \p{L}")
            self.position = match.end()
            return _category(match[1], letter == "P"), False
        return None

    def _escaped_character(self) -> str:
        letter = self._next()
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter not in _PLAIN_ESCAPES:
            raise self._error(f"\\{letter} is not an escape of XPath")
        return letter

    def _class(self) -> str:
        negated = self._take("^")
        inside: list[str] = []
        excluded = ""
        while not self._take("]"):
            if excluded:
                raise self._error("nothing can follow the class that is taken from a character class")
            if self._take("-["):
                excluded = f"(?!{self._class()})"
            else:
                inside.append(self._class_member())
        if not inside:
            raise self._error("an empty character class")
        return f"(?:{excluded}[{'^' if negated else ''}{''.join(inside)}])"

    def _class_member(self) -> str:
        """A range of characters, one character, or an escape for several."""
        start = self.position
        named = self._escaped_class() if self._take("\\") else None
        if named:
            if named[1]:
                raise self._error("a complement inside a character class is not supported")
            return named[0]
        self.position = start
        first = self._class_character()
        if not _RANGE.match(self.pattern, self.position):
            return re.escape(first)
        if self.pattern[start] == "-":
            raise self._error("a - that begins a range must be written \\-")
        self.position += 1
        if self.pattern.startswith("-", self.position):
            raise self._error("a - that ends a range must be written \\-")
        return f"{re.escape(first)}-{re.escape(self._class_character())}"

    def _class_character(self) -> str:
        character = self._next()
        if character == "[":
            raise self._error("a [ in a character class must be written \\[")
        return self._escaped_character() if character == "\\" else character


@lru_cache(maxsize=512)
def compile_pattern(pattern: str, flags: str) -> re.Pattern[str]:
    """A pattern and the flags s m i x q of XPath; an ExpressionError if they are not valid."""
    if set(flags) - set("smixq"):
        raise ExpressionError(f"unknown flags {flags!r} of a regular expression: they can be s, m, i, x and q")
    python_flags = re.IGNORECASE if "i" in flags else re.NOFLAG
    if "q" in flags:
        return re.compile(re.escape(pattern), python_flags)
    if "s" in flags:
        python_flags |= re.DOTALL
    try:
        return re.compile(_Translator(pattern, flags).translate(), python_flags)
    except (re.error, OverflowError, ValueError, RecursionError) as error:
        raise _error(pattern, str(error)) from error


def expand(template: str, match: re.Match[str]) -> str:
    r"""A replacement text of XPath: $N is a group, \\$ and \\\\ are characters."""

    def part(reference: re.Match[str]) -> str:
        if reference[2]:
            return reference[2]
        digits = reference[1]
        if not digits:
            raise ExpressionError(f"the replacement {template!r}: a lone $ or \\ must be written \\$ or \\\\")
        kept = digits
        while int(kept) > match.re.groups and len(kept) > 1:
            kept = kept[:-1]
        group = (match[int(kept)] or "") if int(kept) <= match.re.groups else ""
        return group + digits[len(kept) :]

    return re.sub(r"\$([0-9]{1,9})|\\([\\$])|[\\$]", part, template)
