"""What results change in a table that equals the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, TypeAlias

Row: TypeAlias = tuple[Any, ...]
"""A result: its number, time and sign, then its values."""


def net_counts(rows: Sequence[Row]) -> Counter[Row]:
    """By how much results change the number of rows with the same values; those that do not change are left out."""
    net: Counter[Row] = Counter()
    for row in rows:
        net[row[3:]] += row[2]
    return Counter({values: count for values, count in net.items() if count})


def last_by_key(rows: Sequence[Row], places: Sequence[int]) -> dict[Row, Row | None]:
    """The row that each key has after results, by the values at the key's places; None: it has none any more."""
    found: dict[Row, Row | None] = {}
    for values, count in net_counts(rows).items():
        key = tuple(values[place] for place in places)
        if count > 0:
            found[key] = values
        else:
            found.setdefault(key, None)
    return found
