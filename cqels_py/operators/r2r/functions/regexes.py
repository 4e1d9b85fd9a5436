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
_PLAIN_ESCAPES = "dDsSwWnrt\\|.?*+(){}[]^$-"


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


class _Translator:
    """One pass over the pattern, with `position` as the reader's place."""

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = pattern
        self.position = 0
        self.multiline = "m" in flags
        self.skip_blanks = "x" in flags

    def translate(self) -> str:
        parts: list[str] = []
        while self.position < len(self.pattern):
            character = self.pattern[self.position]
            if character == "[":
                parts.append(self._class())
                continue
            if character == "\\":
                parts.append(self._escape())
                continue
            self.position += 1
            if self.skip_blanks and character in "\t\n\r ":
                continue
            if character == "$" and not self.multiline:
                character = r"\Z"
            elif character == "(" and self.pattern.startswith("?", self.position):
                if not self.pattern.startswith("?:", self.position):
                    raise _error(self.pattern, "groups other than (…) and (?:…) are not XPath")
            elif character == "#":
                character = r"\#"
            parts.append(character)
        return "".join(parts)

    def _next(self) -> str:
        if self.position >= len(self.pattern):
            raise _error(self.pattern, "ends too early")
        character = self.pattern[self.position]
        self.position += 1
        return character

    def _escaped_class(self) -> tuple[str, bool] | None:
        r"""After a backslash: the inside of the class meant by \\i \\c \\p{…}, and whether its complement is meant."""
        letter = self.pattern[self.position : self.position + 1]
        if letter.lower() in _CLASS_ESCAPES and letter:
            self.position += 1
            return _CLASS_ESCAPES[letter.lower()], letter.isupper()
        if letter in ("p", "P"):
            match = re.compile(r"[pP]\{(\w+)\}").match(self.pattern, self.position)
            if not match:
                raise _error(self.pattern, r"\p needs a Unicode category, as in \p{L}")
            self.position = match.end()
            return _category(match[1], letter == "P"), False
        return None

    def _escape(self) -> str:
        self.position += 1
        named = self._escaped_class()
        if named:
            return f"[{'^' if named[1] else ''}{named[0]}]"
        letter = self._next()
        if letter not in _PLAIN_ESCAPES and not letter.isdigit():
            raise _error(self.pattern, f"\\{letter} is not an escape of XPath")
        return "\\" + letter

    def _class(self) -> str:
        self.position += 1
        negated = self.pattern.startswith("^", self.position)
        self.position += negated
        inside: list[str] = []
        excluded = ""
        while (character := self._next()) != "]":
            if character == "\\":
                named = self._escaped_class()
                if named and named[1]:
                    raise _error(self.pattern, "a complement inside a character class is not supported")
                inside.append(named[0] if named else "\\" + self._next())
            elif character == "-" and self.pattern.startswith("[", self.position):
                excluded = f"(?!{self._class()})"
            else:
                inside.append("\\" + character if character in "[&~|" else character)
        if not inside:
            raise _error(self.pattern, "an empty character class")
        return f"(?:{excluded}[{'^' if negated else ''}{''.join(inside)}])"


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
    if "m" in flags:
        python_flags |= re.MULTILINE
    try:
        return re.compile(_Translator(pattern, flags).translate(), python_flags)
    except (re.error, OverflowError) as error:
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

    return re.sub(r"\$([0-9]+)|\\([\\$])|[\\$]", part, template)
