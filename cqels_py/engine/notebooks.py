"""Engines, queries and results as texts and as HTML, for consoles and notebooks."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from html import escape
from typing import Any

_TEXT = 60
"""The most characters of a query's text in one line."""


def shortened(text: str) -> str:
    """A text on one line, cut off where it is long.

    >>> shortened("SELECT *\\n  WHERE")
    'SELECT * WHERE'
    """
    words = " ".join(line for line in text.split() if line)
    start = min(
        (at for form in ("REGISTER", "SELECT", "ASK", "CONSTRUCT", "DESCRIBE") if (at := words.find(form)) >= 0),
        default=0,
    )
    words = words[start:]
    return words if len(words) <= _TEXT else words[: _TEXT - 1] + "…"


def html_table(names: Sequence[str], rows: Iterable[Sequence[Any]], caption: str = "") -> str:
    """A table; everything is escaped."""
    head = "".join(f"<th>{escape(name)}</th>" for name in names)
    body = "".join(f"<tr>{''.join(f'<td>{escape(str(each))}</td>' for each in row)}</tr>" for row in rows)
    title = f"<caption>{escape(caption)}</caption>" if caption else ""
    return f"<table>{title}<thead><tr>{head}</tr></thead><tbody>{body}</tbody></table>"
