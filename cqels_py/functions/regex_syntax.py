"""XPath's regular expressions (F&O 5.6), translated for re2 and Python's re, with a bound on the cost of a search."""

from __future__ import annotations

import re
from bisect import bisect_right
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from math import log

from cqels_py.functions import characters
from cqels_py.functions.characters import Ranges, class_text, complement, difference, of_characters, union
from cqels_py.functions.terms import ExpressionError

_NAME_START = characters.ranges(
    [
        *((ord(c), ord(c)) for c in ":_"), (0x41, 0x5A), (0x61, 0x7A), (0xC0, 0xD6), (0xD8, 0xF6), (0xF8, 0x2FF), (0x370, 0x37D),
        (0x37F, 0x1FFF), (0x200C, 0x200D), (0x2070, 0x218F), (0x2C00, 0x2FEF), (0x3001, 0xD7FF), (0xF900, 0xFDCF),
        (0xFDF0, 0xFFFD), (0x10000, 0xEFFFF),
    ]
)  # fmt: skip
_NAME = union(_NAME_START, ((0x30, 0x39), (0x300, 0x36F), (0x203F, 0x2040)), of_characters("-.\u00b7"))
_CLASS_ESCAPES: dict[str, Callable[[], Ranges]] = {
    "s": lambda: of_characters(" \t\n\r"),
    "d": partial(characters.category, "Nd"),
    "w": characters.word,
    "i": lambda: _NAME_START,
    "c": lambda: _NAME,
}
_ANY = complement(())
_NOT_AT_LINE_END = complement(of_characters("\n\r"))
_CONTROL_ESCAPES = {"n": "\n", "r": "\r", "t": "\t"}
_PLAIN_ESCAPES = "\\|.?*+(){}[]^$-"
_QUANTIFIER = re.compile(r"(?:[?*+]|\{([0-9]{1,9})(,([0-9]{0,9}))?\})(\??)")
_GROUP_NUMBER = re.compile(r"[1-9][0-9]{0,8}")
_PROPERTY = re.compile(r"([pP])\{(?:Is([A-Za-z0-9-]+)|(\w+))\}")
# In a class: a hyphen that is neither at its end, nor starts a class subtraction, nor stands before one.
_RANGE = re.compile(r"-(?!\]|-?\[)")
_NOT_CAPTURED = 0

# In groups, because XPath allows quantifiers on anchors. A newline at the very end neither begins a line nor has an end
# of line after it: re2 cannot express this, and `regexes` handles it.
_PYTHON_TEXT = {"^": r"(?:\A)", "$": r"(?:\Z)"}
_PYTHON_LINES = {"^": r"(?:\A|(?<=\n)(?!\Z))", "$": r"(?:(?=\n)|(?<!\n)\Z)"}
_RE2_TEXT = {"^": r"(?:\A)", "$": r"(?:\z)"}
_RE2_LINES = {"^": "(?m:^)", "$": "(?m:$)"}

_FEW = 64
"""Repeats whose counts differ by at most this multiply the number of ways to match; others count as the text's length."""
_UNROLLED = 3
"""Up to this number, repeats of a part are counted as if the part were written that often."""
_MOST_WAYS = 10**12


@dataclass(frozen=True, slots=True)
class Cost:
    """An upper bound of the ways to match a part at one position of a text of n characters: constant · growth^n · (n +
    1)^degree.

    `length`: the steps of one way, in addition to those counted by the degree.
    """

    constant: int = 1
    degree: int = 0
    growth: int = 1
    length: int = 1

    def then(self, other: Cost) -> Cost:
        return Cost(
            min(self.constant * other.constant, _MOST_WAYS),
            self.degree + other.degree,
            max(self.growth, other.growth),
            min(self.length + other.length, _MOST_WAYS),
        )

    def either(self, other: Cost) -> Cost:
        return Cost(
            min(self.constant + other.constant, _MOST_WAYS),
            max(self.degree, other.degree),
            max(self.growth, other.growth),
            min(self.length + other.length, _MOST_WAYS),
        )

    def repeated(self, least: int, most: int | None) -> Cost:
        """The cost of the part repeated `least` to `most` times (None: unlimited)."""
        length = min(self.length * max(least, 1), _MOST_WAYS)
        if self.constant == 1 and not self.degree and self.growth == 1:
            width = None if most is None else most - least + 1
            return Cost(1, 1, 1, length) if width is None or width > _FEW else Cost(max(width, 1), 0, 1, length)
        if most is not None and (most <= 1 or (self.growth == 1 and most <= _UNROLLED)):
            ways = min(self.constant**most * (most - least + 1), _MOST_WAYS)
            return Cost(ways, self.degree * most, self.growth, self.length * max(most, 1))
        # Each character either belongs to the current repeat or begins the next: the ways multiply with each character.
        growth = min(self.growth * self.constant * (2 if self.degree else 1), _MOST_WAYS)
        return Cost(1, 1, max(growth, 2), length)

    def longest(self, steps: int, most: int) -> int:
        """The greatest length, up to `most`, of a text on which the part takes at most this many steps; -1 if there is none."""

        def size(n: int) -> float:
            return log(self.constant * max(self.length, 1)) + n * log(self.growth) + self.degree * log(n + 1)

        return bisect_right(range(most + 1), log(steps), key=size) - 1


@dataclass(frozen=True, slots=True)
class Translation:
    """`re2`: None if there are back-references, which re2 lacks. `line_anchors`: whether ^ or $ match at lines (flag
    m).

    `cost`: of a search by backtracking through a whole text.
    """

    re2: str | None
    python: str
    groups: int
    line_anchors: bool
    cost: Cost


def translate(pattern: str, flags: str) -> Translation:
    """Translates a pattern with flags out of s m i x. ExpressionError if it is not valid in XPath."""
    return _Translator(pattern, flags).translate()


def literally(text: str, flags: str) -> Translation:
    """Flag q: a pattern that matches only the text itself, with flag i regardless of case."""
    each = "".join(class_text(_character(c, "i" in flags)) for c in text)
    return Translation(each, each, 0, False, Cost(degree=1, length=len(text)))


def _character(character: str, ignores_case: bool) -> Ranges:
    found = of_characters(character)
    return characters.with_case_variants(found) if ignores_case else found


def _without_blanks(pattern: str) -> str:
    """The rest of a pattern under flag x: whitespace is kept only in character classes."""
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


class _Group:
    """An open group: its number, the costs of its alternatives so far, and that of the current alternative."""

    def __init__(self, number: int) -> None:
        self.number = number
        self._before: Cost | None = None
        self.cost = Cost(length=0)

    def next_alternative(self) -> None:
        self._before, self.cost = self.whole(), Cost(length=0)

    @property
    def is_alone(self) -> bool:
        """Whether there is no other alternative."""
        return self._before is None

    def whole(self) -> Cost:
        return self.cost if self._before is None else self._before.either(self.cost)


class _Translator:
    """One pass over the pattern; `position` is that of the next character.

    It parses XPath's grammar and writes each part anew, so that no syntax that only one engine knows gets through, and
    nothing depends on an engine's flags.
    """

    def __init__(self, pattern: str, flags: str) -> None:
        self.pattern = _without_blanks(pattern) if "x" in flags else pattern
        self.position = 0
        self.ignores_case = "i" in flags
        self.by_lines = "m" in flags
        self.any = _ANY if "s" in flags else _NOT_AT_LINE_END
        self.groups = 0
        self.open = [_Group(_NOT_CAPTURED)]
        self.closed: set[int] = set()
        self.python: list[str] = []
        self.re2: list[str] = []
        self.anchored = False
        self.back_references = False
        begins = re.match(r"\^(?![?*{])", self.pattern)
        self.begins = begins is not None and not self.by_lines

    def translate(self) -> Translation:
        while self.position < len(self.pattern):
            self._piece()
        if len(self.open) > 1:
            raise self._error("a group is not closed")
        return Translation(
            None if self.back_references else "".join(self.re2),
            "".join(self.python),
            self.groups,
            self.anchored and self.by_lines,
            self._cost(),
        )

    def _cost(self) -> Cost:
        whole = self.open[0]
        # A search starts again at each character, and comparing a group's text takes as long again.
        factors = int(not (self.begins and whole.is_alone)) + int(self.back_references)
        return whole.whole().then(Cost(degree=factors, length=0))

    def _error(self, reason: str) -> ExpressionError:
        return ExpressionError(f"the regular expression {self.pattern!r}: {reason}")

    def _next(self) -> str:
        if self.position >= len(self.pattern):
            raise self._error("ends too early")
        character = self.pattern[self.position]
        self.position += 1
        return character

    def _take(self, text: str) -> bool:
        """Whether the given text comes next; then it is consumed."""
        found = self.pattern.startswith(text, self.position)
        self.position += len(text) if found else 0
        return found

    def _write(self, python: str, re2: str | None = None) -> None:
        self.python.append(python)
        self.re2.append(python if re2 is None else re2)

    def _piece(self) -> None:
        """A bar, the beginning of a group, or an atom with its quantifier."""
        character = self._next()
        if character == "|":
            self._write("|")
            self.open[-1].next_alternative()
        elif character == "(":
            self._open_group()
        else:
            cost = self._quantified(self._atom(character))
            self.open[-1].cost = self.open[-1].cost.then(cost)

    def _atom(self, character: str) -> Cost:
        if character == ")":
            return self._close_group()
        if character == "\\":
            return self._escape()
        if character in "^$":
            self._anchor(character)
        elif character in "?*+{}]":
            raise self._error(f"a {character} as a character must be written \\{character}")
        elif character == "[":
            self._write(class_text(self._class()))
        elif character == ".":
            self._write(class_text(self.any))
        else:
            self._write(class_text(self._one(character)))
        return Cost()

    def _one(self, character: str) -> Ranges:
        return _character(character, self.ignores_case)

    def _anchor(self, character: str) -> None:
        self.anchored = True
        if self.by_lines:
            self._write(_PYTHON_LINES[character], _RE2_LINES[character])
        else:
            self._write(_PYTHON_TEXT[character], _RE2_TEXT[character])

    def _quantified(self, cost: Cost) -> Cost:
        match = _QUANTIFIER.match(self.pattern, self.position)
        if not match:
            return cost
        self.position = match.end()
        self._write(match[0])
        digits, comma, further, _ = match.groups()
        if digits is None:
            return cost.repeated(int(match[0][0] == "+"), 1 if match[0][0] == "?" else None)
        least = int(digits)
        most = least if comma is None else int(further) if further else None
        if most is not None and most < least:
            raise self._error(f"{match[0]} asks for at least {least} and at most {most}")
        return cost.repeated(least, most)

    def _open_group(self) -> None:
        if self._take("?:"):
            self.open.append(_Group(_NOT_CAPTURED))
            self._write("(?:")
            return
        if self.pattern.startswith("?", self.position):
            raise self._error("groups other than (…) and (?:…) are not XPath")
        self.groups += 1
        self.open.append(_Group(self.groups))
        self._write("(")

    def _close_group(self) -> Cost:
        if len(self.open) == 1:
            raise self._error("a ) without a (")
        group = self.open.pop()
        if group.number != _NOT_CAPTURED:
            self.closed.add(group.number)
        self._write(")")
        return group.whole()

    def _escape(self) -> Cost:
        named = self._escaped_class()
        if named is not None:
            self._write(class_text(named))
            return Cost()
        number = _GROUP_NUMBER.match(self.pattern, self.position)
        if number:
            return self._back_reference(number[0])
        self._write(class_text(self._one(self._escaped_character())))
        return Cost()

    def _back_reference(self, digits: str) -> Cost:
        """The number has as many digits as there are groups so far. A group that matched nothing is an empty text."""
        while len(digits) > 1 and int(digits) > self.groups:
            digits = digits[:-1]
        if int(digits) not in self.closed:
            raise self._error(f"\\{digits} must come after the end of group {digits}")
        self.position += len(digits)
        self.back_references = True
        reference = f"(?i:\\{digits})" if self.ignores_case else f"\\{digits}"
        self._write(f"(?({digits}){reference})")
        return Cost()

    def _escaped_class(self) -> Ranges | None:
        r"""After a backslash: the characters of \d \i \p{…} and so on; None for an escape of a single character."""
        letter = self.pattern[self.position : self.position + 1]
        if letter and letter.lower() in _CLASS_ESCAPES:
            self.position += 1
            found = _CLASS_ESCAPES[letter.lower()]()
            return complement(found) if letter.isupper() else found
        if letter not in ("p", "P"):
            return None
        match = _PROPERTY.match(self.pattern, self.position)
        if not match:
            raise self._error(r"\p needs a Unicode category or block, as in \p{L} and \p{IsGreek}")
        self.position = match.end()
        found = characters.block(match[2]) if match[2] else characters.category(match[3])
        return complement(found) if letter == "P" else found

    def _escaped_character(self) -> str:
        letter = self._next()
        if letter in _CONTROL_ESCAPES:
            return _CONTROL_ESCAPES[letter]
        if letter not in _PLAIN_ESCAPES:
            raise self._error(f"\\{letter} is not an escape of XPath")
        return letter

    def _class(self) -> Ranges:
        negated = self._take("^")
        inside: list[Ranges] = []
        excluded: Ranges | None = None
        while not self._take("]"):
            if excluded is not None:
                raise self._error("nothing can follow the subtraction in a character class")
            if self._take("-["):
                excluded = self._class()
            else:
                inside.append(self._class_member())
        if not inside:
            raise self._error("an empty character class")
        found = complement(union(*inside)) if negated else union(*inside)
        return found if excluded is None else difference(found, excluded)

    def _class_member(self) -> Ranges:
        """A range of characters, a single character, or an escape for several characters."""
        start = self.position
        named = self._escaped_class() if self._take("\\") else None
        if named is not None:
            return named
        self.position = start
        first = self._class_character()
        if not _RANGE.match(self.pattern, self.position):
            return self._one(first)
        if self.pattern[start] == "-":
            raise self._error("a - that begins a range must be written \\-")
        self.position += 1
        if self.pattern.startswith("-", self.position):
            raise self._error("a - that ends a range must be written \\-")
        last = self._class_character()
        if last < first:
            raise self._error(f"the range {first}-{last} ends before it begins")
        found = ((ord(first), ord(last)),)
        return characters.with_case_variants(found) if self.ignores_case else found

    def _class_character(self) -> str:
        character = self._next()
        if character == "[":
            raise self._error("a [ in a character class must be written \\[")
        return self._escaped_character() if character == "\\" else character
