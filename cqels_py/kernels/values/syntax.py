"""The grammar of single N-Triples terms, byte by byte: where a term ends."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.primitives.bits import first_byte
from cqels_py.kernels.values.words import same, word
from cqels_py.terms.labels import INSIDE_LABELS, LABEL_RANGES

CANONICAL, NOT_CANONICAL, MALFORMED = 0, 1, 2
"""How a term is written: in canonical form, in another valid form (escapes, a language tag with capitals), or invalid."""

NO_QUOTE = -1

TAB, NEWLINE, RETURN, SPACE, QUOTE, HASH = 9, 10, 13, 32, 34, 35
_HYPHEN, POINT, _COLON, LESS, _GREATER, _AT, _BACKSLASH, _CARET, UNDERSCORE = 45, 46, 58, 60, 62, 64, 92, 94, 95

_NOT_IN_IRI, _NOT_IN_TEXT, _LETTER, _CAPITAL, _DIGIT, _LABEL = 1, 2, 4, 8, 16, 32
_LONGEST_SUBTAG = 8
"""Of language tags, as of BCP 47."""
_CLASS = np.zeros(256, np.uint8)
_CLASS[:33] |= _NOT_IN_IRI
for _c in b'<>"{}|^`\\':
    _CLASS[_c] |= _NOT_IN_IRI
for _c in b'"\\\n\r':
    _CLASS[_c] |= _NOT_IN_TEXT
_CLASS[65:91] |= _LETTER | _CAPITAL | _LABEL
_CLASS[97:123] |= _LETTER | _LABEL
_CLASS[48:58] |= _DIGIT | _LABEL
for _c in b"_-.":
    _CLASS[_c] |= _LABEL
_LABEL_RANGES = np.array(LABEL_RANGES, np.int64)
_WITHOUT_TAG = tuple(
    np.frombuffer(b"<http://www.w3.org/1999/02/22-rdf-syntax-ns#%b>" % name, np.uint8).copy()
    for name in (b"langString", b"dirLangString")
)
_LANG_STRING, _DIR_LANG_STRING = _WITHOUT_TAG

# Eight bytes in one word (SWAR).
_NONE = np.uint64(0)
_ONES = np.uint64(0x0101010101010101)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_EIGHTS = np.uint64(0x8080808080808080)
_PAIRS = np.uint64(0xFDFDFDFDFDFDFDFD)
_ANGLES = np.uint64(0x3C3C3C3C3C3C3C3C)
_SLOPES = np.uint64(0x5C5C5C5C5C5C5C5C)
_BACKQUOTES = np.uint64(0x6060606060606060)
_FIRSTS = np.uint64(0x2323232323232323)
_LASTS = np.uint64(0x0505050505050505)
_QUOTES = np.uint64(0x2222222222222222)
_NEWLINES = np.uint64(0x0A0A0A0A0A0A0A0A)
_RETURNS = np.uint64(0x0D0D0D0D0D0D0D0D)


@jit_inline
def _suspicious(x):
    """Nonzero if one of the eight bytes of `x` may not be part of an IRI: below "#", "<", ">", a backslash, "^", a
    backquote, or "{" and above. A few valid bytes are reported too."""
    pairs = x & _PAIRS
    angle = pairs ^ _ANGLES
    slope = pairs ^ _SLOPES
    backquote = x ^ _BACKQUOTES
    found = (x - _FIRSTS) & ~x
    found |= (x & _SEVENS) + _LASTS
    found |= (angle - _ONES) & ~angle
    found |= (slope - _ONES) & ~slope
    found |= (backquote - _ONES) & ~backquote
    return found & _EIGHTS


@jit_inline
def _iri(data, at, end):
    """The IRI whose "<" is at `at` -> (position after ">" or of the error, how it is written)."""
    written = CANONICAL
    at += 1
    while at < end:
        if at + 8 <= end:
            suspicious = _suspicious(word(data, at))
            if suspicious == _NONE:
                at += 8
                continue
            at += first_byte(suspicious)
        c = data[at]
        if _CLASS[c] & _NOT_IN_IRI:
            if c == _GREATER:
                return at + 1, written
            if c != _BACKSLASH:
                return at, MALFORMED
            written = NOT_CANONICAL
        at += 1
    return at, MALFORMED


@jit_inline
def _language(data, at, end):
    """The language tag after "@": letters, then parts of letters and digits after hyphens."""
    written = CANONICAL
    part = at
    first = True
    while at < end:
        kind = _CLASS[data[at]]
        if kind & _LETTER or (kind & _DIGIT and not first):
            if kind & _CAPITAL:
                written = NOT_CANONICAL
            if at - part == _LONGEST_SUBTAG:
                return at, MALFORMED
        elif data[at] == _HYPHEN and at > part:
            part = at + 1
            first = False
        else:
            break
        at += 1
    return at, MALFORMED if at == part else written


@jit_flat
def _behind_blanks(data, at, end):
    """The language tag or datatype behind blanks, if one follows; otherwise `at`."""
    behind = at
    while behind < end and (data[behind] == SPACE or data[behind] == TAB):
        behind += 1
    if behind < end and data[behind] == _AT:
        return behind
    return behind if behind + 1 < end and data[behind] == _CARET and data[behind + 1] == _CARET else at


@jit_flat
def _needs_tag(data, at, end):
    """Is the datatype, in angle brackets, one of literals with a language tag?"""
    if end - at == len(_LANG_STRING):
        return same(data, at, _LANG_STRING, 0, end - at)
    return end - at == len(_DIR_LANG_STRING) and same(data, at, _DIR_LANG_STRING, 0, end - at)


@jit_inline
def _has_end(x):
    """Nonzero if one of the eight bytes of `x` ends or escapes a text: a quote, a backslash, a newline or a carriage
    return."""
    quote, slope, newline, back = x ^ _QUOTES, x ^ _SLOPES, x ^ _NEWLINES, x ^ _RETURNS
    found = (quote - _ONES) & ~quote
    found |= (slope - _ONES) & ~slope
    found |= (newline - _ONES) & ~newline
    found |= (back - _ONES) & ~back
    return found & _EIGHTS


@jit_flat
def _literal(data, at, end):
    """The literal whose opening quote is at `at` -> (position after it or of the error, closing quote, how it is
    written)."""
    written = CANONICAL
    at += 1
    while at < end:
        if at + 8 <= end:
            ends = _has_end(word(data, at))
            if ends == _NONE:
                at += 8
                continue
            at += first_byte(ends)
        c = data[at]
        if _CLASS[c] & _NOT_IN_TEXT:
            if c == QUOTE:
                break
            if c != _BACKSLASH or at + 1 >= end:
                return at, np.int64(NO_QUOTE), MALFORMED
            at += 1
            c = data[at]
            if c != _BACKSLASH and c != QUOTE and c != 110 and c != 114:
                written = NOT_CANONICAL
        at += 1
    if at >= end:
        return at, np.int64(NO_QUOTE), MALFORMED
    quote = np.int64(at)
    at += 1
    if at < end and (data[at] == SPACE or data[at] == TAB):
        behind = _behind_blanks(data, at, end)
        if behind > at:
            at, written = behind, NOT_CANONICAL
    if at < end and data[at] == _AT:
        at, tag = _language(data, at + 1, end)
        return at, quote, max(tag, written)
    if at + 2 < end and data[at] == _CARET and data[at + 1] == _CARET:
        at += 2
        while at < end and (data[at] == SPACE or data[at] == TAB):
            at, written = at + 1, NOT_CANONICAL
        if at >= end or data[at] != LESS:
            return at, quote, MALFORMED
        start = at
        at, datatype = _iri(data, at, end)
        if datatype == CANONICAL and _needs_tag(data, start, at):
            return start, quote, MALFORMED
        return at, quote, max(datatype, written)
    return at, quote, written


@jit_flat
def _label_character(data, at, end, first):
    """The length of the character beyond ASCII at `at` if a label may have it, or begin with it; otherwise 0."""
    lead = np.int64(data[at])
    length = 2 if lead < 0xE0 else 3 if lead < 0xF0 else 4
    if lead < 0xC0 or at + length > end:
        return 0
    code = lead & (0x7F >> length)
    for k in range(1, length):
        code = code << 6 | (np.int64(data[at + k]) & 0x3F)
    for k in range(len(_LABEL_RANGES)):
        if _LABEL_RANGES[k, 0] <= code <= _LABEL_RANGES[k, 1]:
            return length if k >= INSIDE_LABELS or not first else 0
    return 0


@jit_flat
def _blank(data, at, end):
    """The blank node whose "_" is at `at`; a label does not end with a point."""
    if at + 2 >= end or data[at + 1] != _COLON or data[at + 2] == _HYPHEN or data[at + 2] == POINT:
        return at, MALFORMED
    at += 2
    start = at
    while at < end:
        if _CLASS[data[at]] & _LABEL:
            at += 1
        elif data[at] >= 0x80:
            length = _label_character(data, at, end, at == start)
            if length == 0:
                return at, MALFORMED
            at += length
        else:
            break
    while at > start and data[at - 1] == POINT:
        at -= 1
    return at, MALFORMED if at == start or (at < end and data[at] == _COLON) else CANONICAL


@jit_inline
def term_end(data, at, end):
    """The term that starts at data[at] -> (position after it or of the error, closing quote or NO_QUOTE, how it is
    written)."""
    at = np.int64(at)
    quote = np.int64(NO_QUOTE)
    first = data[at]
    if first == LESS:
        at, written = _iri(data, at, end)
    elif first == QUOTE:
        at, quote, written = _literal(data, at, end)
    elif first == UNDERSCORE:
        at, written = _blank(data, at, end)
    else:
        written = MALFORMED
    return at, quote, written
