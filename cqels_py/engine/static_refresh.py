"""Tables that are static data are read again from time to time, and their changes are applied."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cqels_py.connections.tables import is_table
from cqels_py.dataflow.static_data import StaticData
from cqels_py.engine.static_updates import check_replaceable
from cqels_py.errors import DataError, RunError, UsageError
from cqels_py.sources.static import StaticSource
from cqels_py.sources.static_tables import StaticTable

if TYPE_CHECKING:
    from cqels_py.engine.query import Query

_LOG = logging.getLogger("cqels_py")


@dataclass(slots=True)
class _Given:
    """The static data of a query, as it was given. `every`: seconds between two readings; `due`: the next one, by the clock."""

    static: Iterable[StaticSource] | StaticSource
    graphs: Mapping[str, StaticSource] | None
    every: float
    due: float
    last: StaticData | None = None
    away: bool = False


class StaticRefresh:
    """The queries of an engine whose tables have `refresh=`. `load` reads the data of a query, `replace` gives it to the query, and
    is False for one that is no longer registered.
    """

    def __init__(
        self,
        load: Callable[[Query, Iterable[StaticSource] | StaticSource, Mapping[str, StaticSource] | None], StaticData],
        replace: Callable[[Query, StaticData], bool],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._load = load
        self._replace = replace
        self._clock = clock
        self._queries: dict[Query, _Given] = {}

    def keep(
        self,
        query: Query,
        static: Iterable[StaticSource] | StaticSource,
        graphs: Mapping[str, StaticSource] | None,
    ) -> None:
        """From now on this is the query's data. UsageError for a query whose data cannot be replaced."""
        self.forget(query)
        single = isinstance(static, str | bytes) or not isinstance(static, list | tuple)
        sources = [static] if single else list(static)  # type: ignore[arg-type]
        tables = [StaticTable.of(each) for each in (*sources, *(graphs or {}).values()) if is_table(each)]
        times = [table.refresh for table in tables if table.refresh is not None]
        if not times:
            return
        check_replaceable(query, "leave refresh= of its tables out")
        every = min(times) / 1_000_000
        # A query that a checkpoint knows has the data of then.
        self._queries[query] = _Given(static, graphs, every, self._clock() + (0 if query.restored else every))

    def forget(self, query: Query) -> None:
        """The query has no such data any more."""
        self._queries.pop(query, None)

    def look(self, *, all_: bool = False) -> None:
        """Read the tables that are due, or all. A table that cannot be read stays as it was, with a warning, and is tried again."""
        if not self._queries:
            return
        now = self._clock()
        for query, given in list(self._queries.items()):
            if all_ or now >= given.due:
                self._refresh(query, given)
                given.due = self._clock() + given.every

    def _refresh(self, query: Query, given: _Given) -> None:
        try:
            data = self._load(query, given.static, given.graphs)
        except (RunError, DataError, UsageError) as error:
            if not given.away:
                _LOG.warning("static data is not refreshed, the former is kept: %s", error)
            given.away = True
            return
        if given.away:
            _LOG.warning("static data is refreshed again")
        given.away = False
        if given.last is None or not np.array_equal(given.last.quads, data.quads):
            if self._replace(query, data):
                given.last = data
            else:
                self.forget(query)
