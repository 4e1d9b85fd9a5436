"""Sets of characters as ranges of code points: Unicode categories and blocks, case variants, and character classes."""

from __future__ import annotations

import re
import sys
import unicodedata
from collections.abc import Iterable
from functools import lru_cache, reduce
from itertools import groupby
from typing import TypeAlias

from cqels_py.functions.terms import ExpressionError
from cqels_py.functions.unicode_blocks import BLOCKS

Ranges: TypeAlias = tuple[tuple[int, int], ...]
"""First and last code points, in order, with a gap between any two ranges."""

_LAST = sys.maxunicode
_SURROGATES = (0xD800, 0xDFFF)
_ASSIGNED = (range(0x40000), range(0xE0000, 0xF0000))
"""All planes with characters except the two private-use planes; the other planes are empty."""
_PRIVATE = ((0xF0000, 0xFFFFD), (0x100000, 0x10FFFD))
_CASED = 0x20000
"""No letter above this code point has another case."""
_CATEGORY = re.compile(r"L[ultmo]?|M[nce]?|N[dlo]?|P[cdseifo]?|Z[slp]?|S[mcko]?|C[cfon]?")
_PUNCTUATION = frozenset("!\"#$%&'()*+,-./:;<=>?@[\\]^`{|}~")


def ranges(pairs: Iterable[tuple[int, int]]) -> Ranges:
    """Sorts ranges, and joins those that overlap or touch."""
    joined: list[tuple[int, int]] = []
    for first, last in sorted(pairs):
        if joined and first <= joined[-1][1] + 1:
            joined[-1] = (joined[-1][0], max(last, joined[-1][1]))
        else:
            joined.append((first, last))
    return tuple(joined)


def union(*sets: Ranges) -> Ranges:
    return ranges(pair for each in sets for pair in each)


def complement(those: Ranges) -> Ranges:
    found, start = [], 0
    for first, last in those:
        if first > start:
            found.append((start, first - 1))
        start = last + 1
    return (*found, (start, _LAST)) if start <= _LAST else tuple(found)


def difference(those: Ranges, others: Ranges) -> Ranges:
    return complement(union(complement(those), others))


def of_characters(text: str) -> Ranges:
    return ranges((ord(character), ord(character)) for character in text)


@lru_cache(maxsize=1)
def _runs() -> tuple[tuple[str, int, int], ...]:
    """(category, first, last) of all runs of assigned characters."""
    found = [("Co", *bounds) for bounds in _PRIVATE]
    for plane in _ASSIGNED:
        at = plane.start
        for name, run in groupby(map(unicodedata.category, map(chr, plane))):
            length = sum(1 for _ in run)
            found.append((name, at, at + length - 1))
            at += length
    return tuple(found)


@lru_cache(maxsize=64)
def category(name: str) -> Ranges:
    """The characters of a Unicode category, such as L or Lu. Unassigned characters are Cn."""
    if not _CATEGORY.fullmatch(name):
        raise ExpressionError(f"unknown Unicode category {name!r} in a regular expression")
    unassigned = complement(ranges((first, last) for kind, first, last in _runs() if kind != "Cn"))
    if name == "Cn":
        return unassigned
    found = ranges((first, last) for kind, first, last in _runs() if kind.startswith(name))
    return union(found, unassigned) if name == "C" else found


def block(name: str) -> Ranges:
    """The code points of a Unicode block, by its name in XML Schema without "Is"."""
    if name not in BLOCKS:
        raise ExpressionError(f"unknown Unicode block 'Is{name}' in a regular expression")
    return ranges(BLOCKS[name])


@lru_cache(maxsize=1)
def word() -> Ranges:
    r"""\w of XML Schema: all characters except punctuation, separators and others."""
    return complement(union(category("P"), category("Z"), category("C")))


@lru_cache(maxsize=1)
def _variants() -> dict[int, frozenset[int]]:
    """For each code point, the characters with the same upper or lower case, if there are any."""
    by_case: dict[str, set[int]] = {}
    cased = [code for code in range(_CASED) if not chr(code).lower() == chr(code) == chr(code).upper()]
    for code in cased:
        for text in ("<" + chr(code).lower(), ">" + chr(code).upper()):
            by_case.setdefault(text, set()).add(code)
    found: dict[int, frozenset[int]] = {}
    for code in cased:
        both = by_case["<" + chr(code).lower()] | by_case[">" + chr(code).upper()]
        if len(both) > 1:
            found[code] = frozenset(both)
    return found


def with_case_variants(those: Ranges) -> Ranges:
    """The ranges with all characters that differ only by case (F&O 5.6.1.1, flag i)."""
    known = _variants()
    if those == complement(()):
        return those
    size = sum(last - first + 1 for first, last in those)
    if size < len(known):
        codes: Iterable[int] = (code for first, last in those for code in range(first, last + 1))
    else:
        codes = (code for code in known if any(first <= code <= last for first, last in those))
    more = reduce(frozenset.union, (known[code] for code in codes if code in known), frozenset[int]())
    return union(those, ranges((code, code) for code in more))


def class_text(those: Ranges) -> str:
    """A character class in the syntax of re2 and Python's re. A single character stands for itself."""
    if len(those) == 1 and those[0][0] == those[0][1]:
        return _plain(those[0][0])
    parts = [_range_text(first, last) for first, last in _without_surrogates(those)]
    return f"[{''.join(parts)}]" if parts else f"[^\0-{chr(_LAST)}]"


def _without_surrogates(those: Ranges) -> Iterable[tuple[int, int]]:
    """The ranges without surrogates: texts do not contain them, and patterns cannot name them."""
    low, high = _SURROGATES
    for first, last in those:
        if low <= first <= high:
            first = high + 1
        if low <= last <= high:
            last = low - 1
        if first <= last:
            yield first, last


def _range_text(first: int, last: int) -> str:
    if first == last:
        return _plain(first)
    return f"{_plain(first)}-{_plain(last)}"


def _plain(code: int) -> str:
    character = chr(code)
    return "\\" + character if character in _PUNCTUATION else character
