"""Sizes in bytes as texts."""

from __future__ import annotations

import re

_UNITS = {"": 1, "b": 1, **{f"{u}{i}b": (1024 if i else 1000) ** n for n, u in enumerate("kmgt", 1) for i in ("", "i")}}
_SIZE = re.compile(r"(\d{1,15})\s*((?i:[kmgt]i?b|b)?)", re.ASCII)


def bytes_of(text: str) -> int | None:
    """A size above zero; None for a text that is none.

    >>> bytes_of("500MB"), bytes_of("2GiB"), bytes_of("10 apples")
    (500000000, 2147483648, None)
    """
    match = _SIZE.fullmatch(text.strip())
    return None if match is None else int(match[1]) * _UNITS[match[2].lower()] or None
