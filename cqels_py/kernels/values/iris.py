"""The syntax of IRIs, byte by byte: RFC 3987's rule `IRI`, the only judge of them for terms, queries and functions."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.words import word

_LETTER, _DIGIT, _HEX, _SCHEME, _HOST, _USER, _PATH, _QUERY = 1, 2, 4, 8, 16, 32, 64, 128
_CLASS = np.zeros(256, np.uint8)
_CLASS[65:91] |= _LETTER | _SCHEME | _HOST | _USER | _PATH | _QUERY
_CLASS[97:123] |= _LETTER | _SCHEME | _HOST | _USER | _PATH | _QUERY
_CLASS[48:58] |= _DIGIT | _HEX | _SCHEME | _HOST | _USER | _PATH | _QUERY
_CLASS[65:71] |= _HEX
_CLASS[97:103] |= _HEX
for _c in b"+-.":
    _CLASS[_c] |= _SCHEME
for _c in b"-._~!$&'()*+,;=":
    _CLASS[_c] |= _HOST | _USER | _PATH | _QUERY
_CLASS[58] |= _USER | _PATH | _QUERY
for _c in b"@/":
    _CLASS[_c] |= _PATH | _QUERY
_CLASS[63] |= _QUERY

_HASH, _PERCENT, _POINT, _SLASH, _COLON, _QUESTION, _AT, _OPEN, _CLOSE = 35, 37, 46, 47, 58, 63, 64, 91, 93
_GROUPS = 8

# Eight bytes in one word (SWAR).
_NONE = np.uint64(0)
_ONES = np.uint64(0x0101010101010101)
_SEVENS = np.uint64(0x7F7F7F7F7F7F7F7F)
_EIGHTS = np.uint64(0x8080808080808080)
_HASHES = np.uint64(0x2121212121212121)
_NOT_SIX = np.uint64(0xF9F9F9F9F9F9F9F9)
_COLONS, _ATS, _OPENS, _CLOSES = (np.uint64(each * 0x0101010101010101) for each in (_COLON, _AT, _OPEN, _CLOSE))
_HTTP, _HTTPS = (np.frombuffer(text, np.uint64)[0] for text in (b"<http://", b"<https:/"))


@jit_inline
def _is_character(code, private):
    """Is a code point beyond ASCII allowed in IRIs? `private`: those for private use are, as in a query."""
    if code < 0x10000:
        if code < 0xA0:
            return False
        if code < 0xE000:
            return code < 0xD800
        if code < 0xF900:
            return private
        return code < 0xFDD0 or 0xFDF0 <= code < 0xFFF0
    if code & 0xFFFF >= 0xFFFE:
        return False
    return code < 0xE0000 or 0xE1000 <= code < 0xF0000 or (private and code >= 0xF0000)


@jit_flat
def _escaped(data, at, end, private):
    """The length of the percent-encoded byte, or of the character beyond ASCII, at `at`; 0 if there is none that is allowed."""
    first = np.int64(data[at])
    if first == _PERCENT:
        return 3 if at + 2 < end and _CLASS[data[at + 1]] & _HEX and _CLASS[data[at + 2]] & _HEX else 0
    if first < 0xC0:
        return 0
    length = 2 if first < 0xE0 else 3 if first < 0xF0 else 4
    if at + length > end:
        return 0
    code = first & (0x7F >> length)
    for k in range(1, length):
        code = code << 6 | (np.int64(data[at + k]) & 0x3F)
    return length if _is_character(code, private) else 0


@jit_inline
def _run(data, at, end, allowed, private):
    """The end of the characters from `at` on that are of the class `allowed`, percent-encoded, or beyond ASCII."""
    while at < end:
        if _CLASS[data[at]] & allowed:
            at += 1
        else:
            length = _escaped(data, at, end, private)
            if length == 0:
                break
            at += length
    return at


@jit_inline
def _ends_authority(data, at, end):
    return at >= end or data[at] == _SLASH or data[at] == _QUESTION or data[at] == _HASH


@jit_inline
def _digits(data, at, end):
    while at < end and _CLASS[data[at]] & _DIGIT:
        at += 1
    return at


@jit_flat
def _v4_stop(data, at, end):
    """The end of the IPv4 address at `at`, or the place of its error; (position, ok)."""
    for octet in range(4):
        stop = _digits(data, at, end)
        value = np.int64(0)
        for k in range(at, min(stop, at + 4)):
            value = value * 10 + np.int64(data[k]) - 48
        if stop == at or stop > at + 3 or value > 255 or (stop > at + 1 and data[at] == 48):
            return at, False
        at = stop
        if octet < 3:
            if at >= end or data[at] != _POINT:
                return at, False
            at += 1
    return at, True


@jit_flat
def _v6_stop(data, at, end):
    """The end of the IPv6 address at `at`, or the place of its error; (position, ok)."""
    start, groups, gap, separated = at, 0, False, True
    while at < end and data[at] != _CLOSE:
        if at + 1 < end and data[at] == _COLON and data[at + 1] == _COLON:
            if gap or (separated and at > start):
                return at, False
            gap, separated = True, True
            at += 2
            continue
        if not separated:
            if data[at] != _COLON:
                return at, False
            at += 1
        stop = at
        while stop < end and _CLASS[data[stop]] & _HEX:
            stop += 1
        if stop == at or groups == _GROUPS:
            return at, False
        if stop < end and data[stop] == _POINT:
            at, ok = _v4_stop(data, at, end)
            groups += 2
            if not ok or at >= end or data[at] != _CLOSE:
                return at, False
            break
        if stop > at + 4:
            return at, False
        at, separated = stop, False
        groups += 1
    return at, groups < _GROUPS if gap else groups == _GROUPS


@jit_flat
def _future_stop(data, at, end):
    """The end of the address of a later version, whose "v" is at `at`, or the place of its error; (position, ok)."""
    stop = at + 1
    while stop < end and _CLASS[data[stop]] & _HEX:
        stop += 1
    if stop == at + 1 or stop >= end or data[stop] != _POINT:
        return stop, False
    at = stop + 1
    stop = at
    while stop < end and _CLASS[data[stop]] & _USER:
        stop += 1
    return stop, stop > at


@jit_flat
def _authority_stop(data, start, end):
    """The end of the authority that begins at `start`, or the place of its error; (position, ok)."""
    at = _run(data, start, end, _USER, False)
    if at < end and data[at] == _AT:
        start = at + 1
    if start < end and data[start] == _OPEN:
        later = start + 1 < end and (data[start + 1] | 32) == 118
        at, ok = _future_stop(data, start + 1, end) if later else _v6_stop(data, start + 1, end)
        if not ok or at >= end or data[at] != _CLOSE:
            return at, False
        at += 1
    else:
        at = _run(data, start, end, _HOST, False)
    if at < end and data[at] == _COLON:
        at = _digits(data, at + 1, end)
    return at, _ends_authority(data, at, end)


@jit_flat
def iri_stop(data, start, end):
    """`end` if data[start:end], UTF-8 without angle brackets, is an IRI with a scheme, otherwise the place of the first error.

    Relative references are no IRIs: their error is at `start`, as that of a scheme that begins with no letter.
    """
    at = start
    while at < end and _CLASS[data[at]] & _SCHEME:
        at += 1
    if at >= end or data[at] != _COLON or not _CLASS[data[start]] & _LETTER:
        return start
    at += 1
    if at + 1 < end and data[at] == _SLASH and data[at + 1] == _SLASH:
        begin = at + 2
        at = begin
        while at < end and _CLASS[data[at]] & _HOST:
            at += 1
        if not _ends_authority(data, at, end):
            at, ok = _authority_stop(data, begin, end)
            if not ok:
                # An address may end too early.
                return min(at, end - 1)
    at = _run(data, at, end, _PATH, False)
    if at < end and data[at] == _QUESTION:
        at = _run(data, at + 1, end, _QUERY, True)
    if at < end and data[at] == _HASH:
        at = _run(data, at + 1, end, _QUERY, False)
    return at


@jit_inline
def _odd(x):
    """Nonzero if one of the eight bytes of `x` is "#", "%", ":", "@", a square bracket, or beyond "~". A few others are reported
    too."""
    found = x | ((x & _SEVENS) + _ONES)
    found |= ((x & _NOT_SIX) ^ _HASHES) - _ONES
    found |= (x ^ _COLONS) - _ONES
    found |= (x ^ _ATS) - _ONES
    found |= (x ^ _OPENS) - _ONES
    found |= (x ^ _CLOSES) - _ONES
    return found & _EIGHTS


@jit_inline
def _is_plain(data, start, end):
    """Does data[start:end], in angle brackets, take no second look: the address of a web page, of letters and their like?"""
    at, last = start + 8, end - 9
    if at > last:
        return False
    first = word(data, start)
    if first != _HTTP and (first != _HTTPS or data[at] != _SLASH):
        return False
    while at < last:
        if _odd(word(data, at)) != _NONE:
            return False
        at += 8
    return _odd(word(data, last)) == _NONE


@jit_inline
def is_iri(data, start, end):
    """Is data[start:end] an IRI with a scheme, in angle brackets? Its characters are those that the syntax of terms allows."""
    return _is_plain(data, start, end) or (start + 2 < end and iri_stop(data, start + 1, end - 1) == end - 1)


@jit_inline
def are_letters(data, at, end):
    """Are the bytes from `at` to `end` ASCII letters?"""
    while at < end and _CLASS[data[at]] & _LETTER:
        at += 1
    return at == end
