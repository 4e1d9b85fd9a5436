"""Elements of streams that no query reads."""

from __future__ import annotations

from collections.abc import Container
from typing import Any

from cqels_py.errors import UsageError

RAISE, IGNORE, COUNT = "raise", "ignore", "count"


class Unread:
    """Says whether elements of a stream are passed over because no query reads it. `counts`: how many, by stream."""

    def __init__(self, policy: str) -> None:
        if policy not in (RAISE, IGNORE, COUNT):
            raise UsageError(f"on_unread is {RAISE!r}, {IGNORE!r} or {COUNT!r}, not {policy!r}")
        self._policy = policy
        self.counts: dict[str, int] = {}

    def passes_over(self, stream: str, read: Container[str], table: Any = None) -> bool:
        """Pass over one element, or all rows of an Arrow table, of a stream that is not among those that are read."""
        if self._policy == RAISE or stream in read:
            return False
        if self._policy == COUNT:
            self.counts[stream] = self.counts.get(stream, 0) + (1 if table is None else _rows(table))
        return True


def _rows(table: Any) -> int:
    if hasattr(table, "num_rows"):
        return int(table.num_rows)
    from cqels_py.formats.tabular import batches_of

    return sum(batch.num_rows for batch in batches_of(table))
