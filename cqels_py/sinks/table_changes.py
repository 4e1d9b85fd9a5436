"""Results as rows of a table, and the changes that they make in one that equals the answer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from typing import Any, Final, TypeAlias

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.values import columns_of_values
from cqels_py.functions.dates import instant_text

Row: TypeAlias = tuple[Any, ...]
"""A result: its number, time and sign, then its values."""
PROGRESS: Final = "_cqels_progress"
"""The table with the number of the last result that each table has."""
MOST_ROWS: Final = 100_000
"""The number of rows after which a transaction is made although more results of the same step follow."""


def rows_behind(held: int, batch: ResultBatch, number: int, dictionary: Dictionary) -> list[Row]:
    """The rows of results after `number`, without those that a table has already, as it holds results up to the number `held`."""
    have = max(0, min(len(batch), held - number))
    times: dict[int, str] = {}
    shown = [times.get(time) or times.setdefault(time, instant_text(time)) for time in batch.time.tolist()]
    numbers = range(number + 1, number + 1 + len(batch))
    columns = columns_of_values(batch.columns, dictionary)
    return list(zip(numbers, shown, batch.sign.tolist(), *columns, strict=True))[have:]


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
