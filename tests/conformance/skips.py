"""What of W3C's tests is not run, or refused, and why."""

from __future__ import annotations

SKIPPED: dict[str, str] = {
    "entailment/": "about entailment regimes, which the engine has none of",
    "service/": "about other endpoints",
}
"""Names of tests, or their beginnings."""

REFUSED: dict[str, str] = {}
"""Tests of queries that the engine refuses to register."""


def reason(name: str, table: dict[str, str]) -> str | None:
    return next(
        (why for start, why in table.items() if name == start or (start[-1] in "/*" and name.startswith(start))), None
    )
