"""Results as rows of a table that is shown: every cell is a text."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

from cqels_py.engine.explained import with_prefixes

_MOST_CHARACTERS, _MOST_NAMES = 200, 4096


class Names:
    """IRIs as people read them, by the prefixes that the text of a query declares.

    >>> names = Names("PREFIX : <http://ex.org/> SELECT …")
    >>> names.of("http://ex.org/s1"), names.of("http://other.org/s1"), names.shortest("http://other.org/s1")
    (':s1', 'http://other.org/s1', '…/s1')
    """

    def __init__(self, text: str) -> None:
        self._text = text
        self._known: dict[str, str] = {}

    def of(self, iri: str) -> str:
        """With a prefix, or as it is."""
        if iri not in self._known:
            if len(self._known) >= _MOST_NAMES:
                self._known.clear()
            self._known[iri] = with_prefixes(f"<{iri}>", self._text).strip("<>")
        return self._known[iri]

    def shortest(self, iri: str) -> str:
        """With a prefix, or its last part."""
        found = self.of(iri)
        end = max(iri.rfind("/", 0, -1), iri.rfind("#", 0, -1))
        return found if found != iri or end < 0 else f"…{iri[end:]}"


def row_of(line: bytes, variables: Sequence[str], names: Names) -> dict[str, str]:
    """The cells of a result as the service keeps it, by column; a variable's column has its number, c0, c1 ….

    >>> line = b'{"number": 7, "time": "2026-05-01T12:00:00Z", "sign": "+", "bindings": {"t": {"type": "literal", "value": "35"}}}'
    >>> row_of(line, ["s", "t"], Names("SELECT …"))
    {'number': '7', 'time': '2026-05-01T12:00:00Z', 'sign': '+', 'c0': '', 'c1': '35'}
    """
    found = json.loads(line)
    row = {name: str(found.get(name, "")) for name in ("number", "time", "sign")}
    return row | {f"c{number}": cell for number, cell in enumerate(_cells(found, variables, names))}


def columns_of(variables: Sequence[str], form: str) -> list[tuple[str, str]]:
    """Names and headings of the columns of `row_of`."""
    named = [f"?{name}" for name in variables] if form not in ("ASK", "CONSTRUCT", "DESCRIBE") else [form.lower()]
    return [
        ("number", "number"),
        ("time", "time"),
        ("sign", "sign"),
        *((f"c{n}", name) for n, name in enumerate(named)),
    ]


def _cells(found: dict[str, Any], variables: Sequence[str], names: Names) -> list[str]:
    if "boolean" in found:
        return [str(found["boolean"]).lower()]
    if "triples" in found:
        return [_short(str(found["triples"]))]
    bindings = found.get("bindings", {})
    return [_short(_cell(bindings[name], names)) if name in bindings else "" for name in variables]


def _cell(term: dict[str, Any], names: Names) -> str:
    return names.of(str(term["value"])) if term["type"] == "uri" else str(term["value"])


def _short(text: str) -> str:
    return text if len(text) <= _MOST_CHARACTERS else text[:_MOST_CHARACTERS] + "…"
