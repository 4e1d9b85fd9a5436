"""Results as rows of a table that is shown: every cell is a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

_MOST_CHARACTERS = 200


def row_of(line: bytes, variables: Sequence[str]) -> dict[str, str]:
    """The cells of a result as the service keeps it, by column; a variable's column has its number, c0, c1 ….

    >>> row_of(b'{"number": 7, "time": "2026-05-01T12:00:00Z", "sign": "+", "bindings": {"t": {"value": "35"}}}', ["s", "t"])
    {'number': '7', 'time': '2026-05-01T12:00:00Z', 'sign': '+', 'c0': '', 'c1': '35'}
    """
    found = json.loads(line)
    row = {name: str(found.get(name, "")) for name in ("number", "time", "sign")}
    return row | {f"c{number}": cell for number, cell in enumerate(_cells(found, variables))}


def columns_of(variables: Sequence[str], form: str) -> list[tuple[str, str]]:
    """Names and headings of the columns of `row_of`."""
    named = [f"?{name}" for name in variables] if form not in ("ASK", "CONSTRUCT", "DESCRIBE") else [form.lower()]
    return [
        ("number", "number"),
        ("time", "time"),
        ("sign", "sign"),
        *((f"c{n}", name) for n, name in enumerate(named)),
    ]


def _cells(found: dict[str, Any], variables: Sequence[str]) -> list[str]:
    if "boolean" in found:
        return [str(found["boolean"]).lower()]
    if "triples" in found:
        return [_short(str(found["triples"]))]
    bindings = found.get("bindings", {})
    return [_short(str(bindings[name]["value"])) if name in bindings else "" for name in variables]


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
