"""Limits on the texts that expressions make, and callbacks for error values that are due to a limit."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from cqels_py.functions.terms import LimitExceeded

MAX_TEXT = 64 << 20
"""The default limit in bytes of UTF-8."""


def _ignore(_: object) -> None:
    """The default callback: ignores its argument."""


@dataclass(frozen=True, slots=True)
class Limits:
    """`max_text`: bytes of a text in UTF-8. `report` gets a message for each error value that is due to a limit.

    It also gets one for the first value that SUM and AVG cannot add; `count` gets the number of such values. `report_iri` gets
    one for each text that IRI() makes no IRI of.
    """

    max_text: int = MAX_TEXT
    report: Callable[[str], None] = _ignore
    count: Callable[[int], None] = _ignore
    report_iri: Callable[[str], None] = _ignore


NO_REPORTS = Limits()


def too_long(name: str, most: int) -> LimitExceeded:
    return LimitExceeded(f"{name} would make a text of more than {most:,} bytes (max_text)")


def is_longer(text: str, most: int) -> bool:
    """Whether the text takes more bytes in UTF-8 than `most`."""
    # A character has at most four bytes.
    if 4 * len(text) <= most or (text.isascii() and len(text) <= most):
        return False
    return len(text) > most or len(text.encode()) > most
