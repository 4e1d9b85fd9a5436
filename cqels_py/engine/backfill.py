"""The elements of before, for a query that is registered later."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import take_elements
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import UsageError
from cqels_py.event_time.ahead import AheadGuard, Guard
from cqels_py.runners.stream_views import NOTHING
from cqels_py.sources.opened import StreamSource, all_opened
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.validation import by_iri

if TYPE_CHECKING:
    from cqels_py.engine.durable.joining import Joining
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query
    from cqels_py.runners import local
    from cqels_py.runners.running import RunningQuery
    from cqels_py.sources.protocol import Opening


LOG = "log"
"""In the place of sources: the elements that the engine's log still has."""


def backfill(engine: Engine, running: RunningQuery, sources: Mapping[str, StreamSource] | str, asked: Joining) -> None:
    """Give a query that is to be added the elements of sources, or of the log."""
    if isinstance(sources, str):
        _check_log(sources, asked.query)
        _give(engine, running, asked, _read_by(running, engine._inputs.logged()))
        return
    sources = by_iri(sources, "backfill", "source")
    engine._registry.check_backfill(asked.query, sources)
    plan = asked.query.plan

    def opening(iri: str) -> Opening:
        at = plan.streams.index(iri)
        known = opening_of(engine, iri, plan.time_predicates[at], engine._reports.malformed, number=running.streams[at])
        return replace(known, graphs=iri in plan.graph_streams)

    with ExitStack() as cleanup:
        merged = TimeMerge(all_opened(sources, opening, cleanup), engine._options.ahead)
        cleanup.enter_context(engine.dictionary.holding(merged.live_ids))
        _give(engine, running, asked, merged)


def _check_log(sources: str, query: Query) -> None:
    if sources != LOG:
        raise UsageError(f'backfill is a mapping of sources by stream, or "{LOG}", not {sources!r}')
    if query.plan.graph_streams:
        raise UsageError(
            f'backfill="{LOG}": the query asks for graphs of elements, which the log has only if another query did; name sources'
        )


def _read_by(running: RunningQuery, batches: Iterable[ElementBatch]) -> Iterator[ElementBatch]:
    """The elements of the query's streams."""
    for batch in batches:
        mine = np.flatnonzero(np.isin(batch.stream, running.streams))
        if len(mine):
            yield take_elements(batch, mine)


def _give(engine: Engine, running: RunningQuery, asked: Joining, batches: Iterable[ElementBatch]) -> None:
    batch = NOTHING

    def live() -> Iterator[Ids]:
        yield from batch.live_ids()
        yield from asked.query.live_ids()

    with engine.dictionary.holding(live):
        joining = begun(engine, running)
        engine._inputs.joining(asked)
        for batch in batches:
            engine._inputs.backfilled(batch)
            late, too_far = engine._counters.late, engine._counters.ahead
            with engine._steps:
                engine._runner.backfill(joining, batch)
            engine._tell_dropped(late, too_far)
        with engine._steps:
            engine._runner.end_backfill(joining)


def begun(engine: Engine, running: RunningQuery) -> local.Joining:
    """The query beside the others, which go on without it."""
    ahead, clocks = engine._options.ahead, engine._clocks
    guard: Guard | None = None if ahead is None else AheadGuard(ahead)
    if guard is None and running.dataflow.by_clock:
        guard = clocks.guard
    return engine._runner.begin_backfill(running, guard)
