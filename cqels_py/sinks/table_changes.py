"""Results as rows of a table of a database, and the changes that they make in one that equals the answer."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections import Counter
from collections.abc import Sequence
from hashlib import blake2b
from typing import Any, Final, TypeAlias

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.formats.values import columns_of_terms, columns_of_values
from cqels_py.functions.dates import instant_text
from cqels_py.sinks.protocol import SinkOpening

Row: TypeAlias = tuple[Any, ...]
"""A result: its number, time and sign, then its values; behind them its group, where rows are found by a key."""
PROGRESS: Final = "_cqels_progress"
"""The table with the number of the last result that each table has."""
_LONGEST, _CUT = 48, 30
"""Bytes of the name of a table to which more can be added: PostgreSQL takes 63 in all."""
MOST_ROWS: Final = 100_000
"""The number of rows after which a transaction is made although more results of the same step follow."""


def check_results(opening: SinkOpening, shown: str) -> None:
    """UsageError for results that are no rows of a table, or have names of columns that are the sink's own. `shown`: its URL."""
    if opening.form == "CONSTRUCT":
        raise UsageError(f"{shown}: a table holds the results of SELECT and ASK, not of CONSTRUCT")
    if any(name.startswith("_") for name in opening.variables):
        raise UsageError(f"{shown}: columns with _ at their beginning are this sink's own; rename the variable")


class RowSink(ABC):
    """Base of sinks that collect rows, and write them in a transaction when the step is complete.

    `_number`: that of the last result; `_held`: the table has results up to this number. `_key`: the variables by which rows are
    found in a table that equals the answer; none where no key tells rows apart.
    """

    def __init__(self, opening: SinkOpening, *, is_answer: bool) -> None:
        self._opening = opening
        self._variables = list(opening.variables)
        self._key = list(opening.key or ()) if is_answer else []
        self._rows: list[Row] = []
        self._number = opening.written or 0
        self._held = 0
        self._connection: Any = None

    def write(self, batch: ResultBatch) -> None:
        """Results that the table has already, of a run that continues, are left out."""
        self._rows += rows_behind(self._held, batch, self._number, self._opening.dictionary, self._key)
        self._number += len(batch)
        if len(self._rows) > MOST_ROWS:
            # A batch has all results of its ticks.
            self.flush()

    @abstractmethod
    def flush(self) -> None:
        """Write the rows that were collected. RunError when the patience of `retry` is at its end."""

    def commit(self) -> int:
        """The number of the last result, which the table has now."""
        self.flush()
        return self._number

    def close(self) -> None:
        """End the connection; rows that were not flushed are dropped."""
        if self._connection is not None:
            self._connection.close()


def rows_behind(
    held: int, batch: ResultBatch, number: int, dictionary: Dictionary, key: Sequence[str] = ()
) -> list[Row]:
    """The rows of results after `number`, without those that a table has already, as it holds results up to the number `held`.

    `key`: variables; with some, each row has the terms of the key as its group.
    """
    have = max(0, min(len(batch), held - number))
    times: dict[int, str] = {}
    shown = [times.get(time) or times.setdefault(time, instant_text(time)) for time in batch.time.tolist()]
    numbers = range(number + 1, number + 1 + len(batch))
    columns: list[Any] = columns_of_values(batch.columns, dictionary)
    if key:
        # Two terms that differ may have one value. In this syntax there are no line breaks.
        terms = columns_of_terms([batch.columns[batch.variables.index(name)] for name in key], dictionary)
        columns.append(
            terms[0] if len(key) == 1 else ["\n".join(term or "" for term in each) for each in zip(*terms, strict=True)]
        )
    return list(zip(numbers, shown, batch.sign.tolist(), *columns, strict=True))[have:]


def net_counts(rows: Sequence[Row]) -> Counter[Row]:
    """By how much results change the number of rows with the same values; those that do not change are left out."""
    net: Counter[Row] = Counter()
    for row in rows:
        net[row[3:]] += row[2]
    return Counter({values: count for values, count in net.items() if count})


def side_name(table: str, of: str) -> str:
    """The name of an index or a table that belongs to a table. A database may cut off names that are too long."""
    if len(table.encode()) > _LONGEST:
        table = f"{table.encode()[:_CUT].decode(errors='ignore')}_{blake2b(table.encode(), digest_size=6).hexdigest()}"
    return f"{table}_cqels_{of}"


def in_one_line(error: Exception) -> str:
    """The message of a database."""
    return " ".join(str(error).split()) or type(error).__name__
