"""What a language tag is, for all that takes one as a text: the well-formed tags of BCP 47.

>>> is_tag("en"), is_tag("de-Latn-AT"), is_tag("x"), is_tag("en_GB")
(True, True, False, False)
"""

from __future__ import annotations

import re

import numpy as np

from cqels_py.errors import DataError
from cqels_py.kernels.values import languages as kernel

_SYNTAX = re.compile(r"[A-Za-z]{1,8}(?:-[A-Za-z0-9]{1,8})*+", re.ASCII).fullmatch
# Certainly a tag: most are, and need no call of a kernel.
_PLAIN = re.compile(r"[A-Za-z]{2,3}(?:-[A-Za-z]{4})?(?:-[A-Za-z]{2})?", re.ASCII).fullmatch
_SHOWN = 40


def is_tag(text: str) -> bool:
    """Is the text, without "@", a well-formed language tag?"""
    if _PLAIN(text):
        return True
    if not _SYNTAX(text):
        return False
    return bool(kernel.is_tag(np.frombuffer(text.lower().encode(), np.uint8), 0, len(text)))


def check_tag(text: str) -> None:
    """DataError for a text that is no well-formed language tag."""
    if not is_tag(text):
        shown = text if len(text) <= _SHOWN else f"{text[: _SHOWN - 1]}…"
        raise DataError(f'"{shown}" is not a language tag: those of BCP 47 are like "en", "de-AT" or "zh-Hant-TW"')
