"""Sources that are paused while the results of all queries that read them wait for sinks which fail, see `backlog`."""

from __future__ import annotations

from itertools import chain
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query

GOES_OVER = 2
"""So many times `max_backlog` may wait for the sink of a query whose sources are paused: of elements that were read before."""


def is_paused(engine: Engine, stream: str) -> bool:
    """Is the source of a stream not to be read, since that only makes results which nobody takes?"""
    readers = (query for query in engine.queries if stream in query.streams)
    first = next(readers, None)
    return first is not None and all(
        query.delivery.is_full and can_pause(engine, query) for query in chain((first,), readers)
    )


def can_pause(engine: Engine, query: Query) -> bool:
    """Is it enough for a query whose results cannot wait any longer that its sources are paused?

    They are sources of `feed`, and read by it and by others alone that have to wait, too; and no query reads its results.
    """
    streams = set(query.streams)
    running = engine._queries.get(query)
    if running is None or running.feeds or not streams <= engine._feeding:
        return False
    return all(other.delivery.is_full for other in engine.queries if streams & set(other.streams))
