"""The answer of a query as a table of a notebook that changes in place."""

from __future__ import annotations

import threading
from collections.abc import Callable
from importlib import import_module
from time import monotonic
from typing import TYPE_CHECKING, Any

from cqels_py.engine.notebooks import html_table
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    import pyarrow as pa

INTERVAL = 0.1
"""Seconds between two drawings; results of meanwhile are drawn together."""
TIME, SIGN = "  time", "  sign"
"""Columns whose names no variable has."""
_NO_NOTEBOOK = (
    "show() draws a table in a notebook, and this is none: results(), subscribe() and current() give a program the results, "
    "and `cqels run --format table` shows a table that changes on a terminal"
)


class LiveTable:
    """Keeps the rows to show, and draws them at most ten times a second, in whichever thread the results come.

    Of a changelog the rows that stand, of RSTREAM those of the last tick; otherwise the last results, with their times.
    """

    def __init__(self, caption: str, variables: tuple[str, ...], output: str, most: int) -> None:
        self._caption, self._variables, self._output, self._most = caption, variables, output, most
        self._rows: pa.Table | None = None
        self._draw: Callable[[str], object] | None = None
        self._drawn = 0.0
        self._timer: threading.Timer | None = None
        self._lock = threading.Lock()

    def add(self, table: pa.Table) -> None:
        """More results, as `Query.subscribe_batches` gives them, all values as texts."""
        with self._lock:
            self._rows = self._kept(table)
            if self._draw is None or self._timer is not None:
                return
            wait = self._drawn + INTERVAL - monotonic()
            if wait > 0:
                self._timer = threading.Timer(wait, self._draw_now)
                self._timer.daemon = True
                self._timer.start()
                return
        self._draw_now()

    def begin(self, draw: Callable[[str], object]) -> None:
        """From now on each change is drawn, as HTML."""
        with self._lock:
            self._draw = draw
        self._draw_now()

    def _draw_now(self) -> None:
        with self._lock:
            self._timer, self._drawn = None, monotonic()
            draw, html = self._draw, self.html()
        if draw is not None:
            draw(html)

    def _kept(self, table: pa.Table) -> pa.Table:
        import pyarrow as pa
        import pyarrow.compute as pc

        both = table if self._rows is None else pa.concat_tables([self._rows, table])
        if self._output == "CHANGELOG":
            names = list(self._variables)
            sums = both.group_by(names, use_threads=False).aggregate([(SIGN, "sum"), (TIME, "max")])
            stand = sums.filter(pc.not_equal(sums[f"{SIGN}_sum"], 0))
            columns = [stand[f"{TIME}_max"], pc.cast(stand[f"{SIGN}_sum"], both.schema.field(SIGN).type)]
            return pa.table([*columns, *(stand[name] for name in names)], schema=both.schema)
        if self._output == "RSTREAM":
            return both.filter(pc.equal(both[TIME], pc.max(both[TIME])))
        return both.slice(max(len(both) - self._most, 0))

    def html(self) -> str:
        """The table as it is now."""
        rows = [] if self._rows is None else self._rows.to_pylist()
        shown = rows[: self._most] if self._keeps_answer else rows[::-1]
        names = self._variables if self._keeps_answer else ("time", *self._variables)
        more = len(rows) - len(shown)
        caption = self._caption + (f" (… {more:,} more)" if more else "")
        return html_table(names, [self._cells(row) for row in shown], caption)

    @property
    def _keeps_answer(self) -> bool:
        return self._output in ("CHANGELOG", "RSTREAM")

    def _cells(self, row: dict[str, Any]) -> list[str]:
        values = ["" if row[name] is None else str(row[name]) for name in self._variables]
        return values if self._keeps_answer else [f"{row[TIME]:%Y-%m-%d %H:%M:%S}", *values]


def notebook_display() -> Callable[[str], object]:
    """Shows HTML at this place of a notebook; each further call replaces it. UsageError where there is no notebook."""
    try:
        shell, shown = import_module("IPython.core.getipython"), import_module("IPython.display")
    except ImportError:
        raise UsageError(_NO_NOTEBOOK) from None
    if getattr(shell.get_ipython(), "kernel", None) is None:
        raise UsageError(_NO_NOTEBOOK)
    handle = shown.display(shown.HTML(""), display_id=True)
    return lambda html: handle.update(shown.HTML(html))
