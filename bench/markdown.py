"""Markdown tables of figures, and the machine and date that the figures come from."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

Found = Mapping[str, Any]
"""The content of a result file."""


def table(headings: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """A Markdown table: the first column is text, the others are right-aligned figures."""
    lines = [headings, ["---", *["---:"] * (len(headings) - 1)], *rows]
    return "".join("| " + " | ".join(line) + " |\n" for line in lines)


def origin(found: Found) -> str:
    """The machine, the date, and a note if the machine was busy (where its load is known)."""
    machine = found["machine"]
    busy = f", busy: load {machine['load']}" if machine.get("load", 0) > machine["cores"] + 1 else ""
    return f"{machine['cpu']}, {machine['cores']} cores, {found['date'][:10]}{busy}"


def times(rate: float, other: float) -> str:
    """The ratio of two rates with two significant digits, or as an integer from 99.5 on.

    >>> times(1.0, 3.0), times(25.0, 1.0), times(2345.0, 1.0)
    ('0.33', '25', '2,345')
    """
    ratio = rate / other
    return f"{ratio:.2g}" if ratio < 99.5 else f"{ratio:,.0f}"
