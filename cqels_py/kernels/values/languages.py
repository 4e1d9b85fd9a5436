"""The syntax of language tags, byte by byte: well-formed tags of BCP 47 (RFC 5646, section 2.1), the only judge of them for terms,
queries and functions."""

from __future__ import annotations

import numpy as np

from cqels_py.kernels.compiler.jit import jit_flat, jit_inline
from cqels_py.kernels.values.words import same

_SPACE, _HYPHEN, _NINE, _X = 32, 45, 57, 120
_LONGEST = 8
"""The characters of a subtag."""

# What has been read of a tag. After a language of two or three letters stand at most three extended ones: a state for each.
_BEGIN, _LANGUAGE, _ONE_MORE, _TWO_MORE, _LANGUAGES, _SCRIPT = range(6)
# _REGION: and any variants. _EXTENDS, _HIDES: a subtag has to follow.
_REGION, _EXTENDS, _EXTENSION, _HIDES, _PRIVATE, _WRONG = range(6, 12)

_IRREGULAR = np.frombuffer(
    b" en-gb-oed i-ami i-bnn i-default i-enochian i-hak i-klingon i-lux i-mingo i-navajo i-pwn i-tao i-tay i-tsu"
    b" sgn-be-fr sgn-be-nl sgn-ch-de ",
    np.uint8,
).copy()
"""Tags that were registered before the syntax was."""


@jit_flat
def _is_irregular(data, start, end):
    length = end - start
    for at in range(1, len(_IRREGULAR) - length):
        if (
            _IRREGULAR[at + length] == _SPACE
            and _IRREGULAR[at - 1] == _SPACE
            and same(data, start, _IRREGULAR, at, length)
        ):
            return True
    return False


@jit_inline
def _after_single(state, first):
    """What has been read with a subtag of one character."""
    if state == _EXTENDS:
        return _WRONG
    if first == _X:
        return _HIDES
    return _WRONG if state == _BEGIN else _EXTENDS


@jit_inline
def _after(state, first, length, letters):
    """What has been read with a further subtag: its first character, its length, and how many of its characters are letters."""
    if state >= _HIDES:
        return _PRIVATE
    if length == 1:
        return _after_single(state, first)
    if state >= _EXTENDS:
        return _EXTENSION
    if state == _BEGIN:
        if letters < length:
            return _WRONG
        return _LANGUAGE if length < 4 else _LANGUAGES
    if length == 3 and letters == 3:
        return state + 1 if state < _LANGUAGES else _WRONG
    if length == 4 and letters == 4:
        return _SCRIPT if state < _SCRIPT else _WRONG
    if letters == length == 2 or (letters == 0 and length == 3):
        return _REGION if state < _REGION else _WRONG
    return _REGION if length > 4 or (length == 4 and first <= _NINE) else _WRONG


@jit_flat
def is_tag(data, start, end):
    """Is data[start:end], in small letters, digits and hyphens, a well-formed language tag?"""
    state, part = _BEGIN, start
    while state != _WRONG and part <= end:
        at, letters = part, 0
        while at < end and data[at] != _HYPHEN:
            letters += data[at] > _NINE
            at += 1
        if at == part or at - part > _LONGEST:
            return False
        state = _after(state, data[part], at - part, letters)
        part = at + 1
    if state == _WRONG:
        return _is_irregular(data, start, end)
    return state != _EXTENDS and state != _HIDES
