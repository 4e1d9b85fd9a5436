"""The greatest size of the texts that expressions make, and who is told where a value is an error."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cqels_py.functions.terms import LimitExceeded

MAX_TEXT = 64 << 20
"""Bytes of a text in UTF-8, unless an engine is told otherwise."""


def _nobody(_: object) -> None:
    """Is told of nothing."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_text`: bytes of a text in UTF-8. `tell` is told, in words, of each error value that is due to a limit.

    And of the first value that SUM and AVG cannot add; `count` is told how many of these come.
    """

    max_text: int = MAX_TEXT
    tell: Callable[[str], None] = _nobody
    count: Callable[[int], None] = _nobody


NO_WORD = Limits()


def too_long(name: str, most: int) -> LimitExceeded:
    return LimitExceeded(f"{name} would make a text of more than {most:,} bytes (max_text)")


def is_longer(text: str, most: int) -> bool:
    """Does the text take more bytes in UTF-8?"""
    # A character has four at most.
    if 4 * len(text) <= most or (text.isascii() and len(text) <= most):
        return False
    return len(text) > most or len(text.encode()) > most
