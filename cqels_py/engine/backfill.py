"""The elements of before, for a query that is registered later."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

from cqels_py.batches.elements import Ids
from cqels_py.engine.stream_opening import opening_of
from cqels_py.event_time.ahead import AheadGuard
from cqels_py.runners.stream_views import NOTHING
from cqels_py.sources.opened import StreamSource, all_opened
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.validation import by_iri

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query
    from cqels_py.runners.running import RunningQuery
    from cqels_py.sources.protocol import Opening


def backfill(engine: Engine, query: Query, running: RunningQuery, sources: Mapping[str, StreamSource]) -> None:
    """Give a query that is to be added the elements of sources."""
    sources = by_iri(sources, "backfill", "source")
    engine._registry.check_backfill(query, sources)
    plan, batch = query.plan, NOTHING
    merged: TimeMerge | None = None

    def live() -> Iterator[Ids]:
        yield from batch.live_ids()
        yield from query.live_ids()
        if merged is not None:
            yield from merged.live_ids()

    def opening(iri: str) -> Opening:
        at = plan.streams.index(iri)
        known = opening_of(engine, iri, plan.time_predicates[at], engine._reports.malformed, number=running.streams[at])
        return replace(known, graphs=iri in plan.graph_streams)

    with ExitStack() as cleanup, engine.dictionary.holding(live):
        merged = TimeMerge(all_opened(sources, opening, cleanup), engine._options.ahead)
        ahead = engine._options.ahead
        joining = engine._runner.begin_backfill(running, None if ahead is None else AheadGuard(ahead))
        for batch in merged:
            late, too_far = engine._counters.late, engine._counters.ahead
            with engine._steps:
                engine._runner.backfill(joining, batch)
            engine._tell_dropped(late, too_far)
        with engine._steps:
            engine._runner.end_backfill(joining)
