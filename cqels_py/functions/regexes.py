"""Matching of XPath's regular expressions (F&O 5.6) by re2, whose searches take time linear in the text.

re2 has neither back-references nor repeats above 1,000. Patterns with these are matched by Python's engine, in texts
short enough to bound the number of ways to try the pattern (`STEPS`). A longer text is an error value whatever its
content, and so is a pattern that is too large: an answer must never depend on how long it takes. Python's engine also
matches short texts if it is certain to be fast, because calling it costs less.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from functools import cached_property, lru_cache
from typing import Protocol

import re2

from cqels_py.functions.limits import too_long
from cqels_py.functions.regex_syntax import Translation, literally, translate
from cqels_py.functions.terms import ExpressionError, LimitExceeded

STEPS = 10**9
"""The maximum number of steps of a search by Python's engine, for the worst text of a length."""
LONGEST_TEXT = 100_000
"""The maximum length of a text for Python's engine, however few steps it takes."""
LONGEST_PATTERN = 10_000
MEMORY = 8 << 20
"""The maximum size of a compiled pattern in bytes."""

_FEW_STEPS = 50_000
_LONGEST_TRANSLATION = 1 << 20
_SHOWN = 60


class Match(Protocol):
    """The common interface of matches of re and re2."""

    def __getitem__(self, group: int, /) -> str | None: ...

    def start(self) -> int: ...

    def end(self) -> int: ...


def shown(text: str) -> str:
    """A text for a message: only its beginning if it is long."""
    return repr(text) if len(text) <= _SHOWN else f"{text[:_SHOWN]!r}…"


def _options(*, captures: bool) -> re2.Options:
    options = re2.Options()
    options.max_mem = MEMORY
    options.log_errors = False
    options.never_capture = not captures
    return options


class Pattern:
    """A pattern with its flags, compiled for each engine when first needed."""

    def __init__(self, pattern: str, flags: str) -> None:
        if len(pattern) > LONGEST_PATTERN:
            raise LimitExceeded(
                f"the regular expression {shown(pattern)} has {len(pattern):,} characters; the maximum is {LONGEST_PATTERN:,}"
            )
        self._name = shown(pattern)
        self._of = _translated(pattern, flags)
        if max(len(self._of.python), len(self._of.re2 or "")) > _LONGEST_TRANSLATION:
            raise self._too_large()
        self.groups = self._of.groups
        self._test = self._by_re2(captures=False)
        self._short = self._of.cost.longest(_FEW_STEPS, LONGEST_TEXT)
        if self._test is None:
            self._short = self._of.cost.longest(STEPS, LONGEST_TEXT)
            # A pattern that it cannot express is an error now, not at the first text.
            assert self._by_python

    def _too_large(self) -> LimitExceeded:
        return LimitExceeded(
            f"the regular expression {self._name} is too large: it would take more than {MEMORY >> 20} MiB"
        )

    def _by_re2(self, *, captures: bool) -> re2._Regexp | None:
        """None if the pattern needs back-references or repeats above 1,000."""
        if self._of.re2 is None:
            return None
        try:
            return re2.compile(self._of.re2, _options(captures=captures))
        except re2.error as error:
            reason = error.args[0].decode() if isinstance(error.args[0], bytes) else str(error)
        if "repetition size" in reason:
            return None
        if "too large" in reason:
            raise self._too_large()
        raise ExpressionError(f"the regular expression {self._name}: {reason}")

    @cached_property
    def _by_python(self) -> re.Pattern[str]:
        try:
            return re.compile(self._of.python)
        except (re.error, OverflowError, ValueError, RecursionError) as error:
            raise ExpressionError(f"the regular expression {self._name}: {error}") from error

    @cached_property
    def _search(self) -> re2._Regexp | None:
        return self._by_re2(captures=True)

    def found_in(self, text: str) -> bool:
        if len(text) <= self._short:
            return self._by_python.search(text) is not None
        if self._test is None:
            raise self._too_long(text)
        data = text.encode()
        found = self._test.search(data) is not None
        if not (found and self._ends_a_line(text)):
            return found
        # re2 treats the end of such a text as the beginning and end of a line, which XPath does not. For both engines,
        # the end of the text without its last newline is both.
        if self._test.search(data[:-1]) is not None:
            return True
        return self._slowly(text).search(text) is not None

    def matches(self, text: str) -> Iterator[Match]:
        """All matches from left to right, without overlaps."""
        if self._search is None or self._ends_a_line(text):
            yield from self._slowly(text).finditer(text)
        else:
            yield from self._search.finditer(text)

    def _ends_a_line(self, text: str) -> bool:
        return self._of.line_anchors and text.endswith("\n")

    def _slowly(self, text: str) -> re.Pattern[str]:
        """Python's engine, if the text is not too long for it."""
        if len(text) > self._of.cost.longest(STEPS, LONGEST_TEXT):
            raise self._too_long(text)
        return self._by_python

    def _too_long(self, text: str) -> LimitExceeded:
        longest = self._of.cost.longest(STEPS, LONGEST_TEXT)
        reason = "anchors of lines in a text that ends with a newline" if self._of.line_anchors else "such repeats"
        if self._of.re2 is None:
            reason = "back-references"
        return LimitExceeded(
            f"because of its {reason}, the regular expression {self._name} is only matched in texts of up to "
            f"{max(longest, 0):,} characters; {shown(text)} has {len(text):,}"
        )


def _translated(pattern: str, flags: str) -> Translation:
    if "q" in flags:
        return literally(pattern, flags)
    return translate(pattern, flags)


@lru_cache(maxsize=128)
def compile_pattern(pattern: str, flags: str) -> Pattern:
    """A pattern with the flags s m i x q of XPath. ExpressionError if they are not valid."""
    if set(flags) - set("smixq"):
        raise ExpressionError(f"unknown flags {flags!r} of a regular expression: they can be s, m, i, x and q")
    return Pattern(pattern, flags)


def replaced(text: str, pattern: Pattern, part: Callable[[Match], str], most: int) -> str:
    """The text with each match replaced by `part`. An error if it has more than `most` characters."""
    parts: list[str] = []
    size, at = 0, 0
    for match in pattern.matches(text):
        start = match.start()
        parts += (text[at:start], part(match))
        size += len(parts[-2]) + len(parts[-1])
        if size > most:
            break
        at = match.end()
    parts.append(text[at:])
    if size + len(parts[-1]) > most:
        raise too_long("REPLACE", most)
    return "".join(parts)


@lru_cache(maxsize=128)
def parse_template(template: str) -> tuple[tuple[str, str], ...]:
    r"""XPath's replacement text: $N is a group, \\$ and \\\\ are characters -> (text, digits of the group after it)."""
    parts: list[tuple[str, str]] = []
    text, at = "", 0
    for match in re.finditer(r"\$([0-9]{1,9})|\\([\\$])|[\\$]", template):
        text += template[at : match.start()]
        at = match.end()
        if match[2]:
            text += match[2]
        elif match[1]:
            parts.append((text, match[1]))
            text = ""
        else:
            raise ExpressionError(f"the replacement {shown(template)}: a lone $ or \\ must be written \\$ or \\\\")
    return (*parts, (text + template[at:], ""))


def expander(template: str, groups: int) -> Callable[[Match], str]:
    """The function from a match to its replacement, for a pattern with this number of groups."""
    parts = [part for text, digits in parse_template(template) for part in (text, _reference(digits, groups))]

    def expanded(match: Match) -> str:
        return "".join(part if isinstance(part, str) else _group(match, *part) for part in parts)

    return expanded


def _reference(digits: str, groups: int) -> str | tuple[int, str]:
    """The group of the digits (as many digits as form the number of an existing group), and the remaining digits, a text."""
    if not digits:
        return ""
    kept = digits
    while int(kept) > groups and len(kept) > 1:
        kept = kept[:-1]
    rest = digits[len(kept) :]
    return (int(kept), rest) if int(kept) <= groups else rest


def _group(match: Match, number: int, rest: str) -> str:
    return (match[number] or "") + rest
