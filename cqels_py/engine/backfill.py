"""The elements of before, for a query that is registered later, while the engine goes on for all others.

    a turn: build, open the sources │ turns: a batch of before each │ turns: some elements of meanwhile each │ a turn: the rest,
    join

Between these turns other threads have theirs.
"""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import take_elements
from cqels_py.engine.clock_thread import INTERVAL
from cqels_py.engine.durable.joining import Joining
from cqels_py.engine.registering import built, give_up, static_data_of_new
from cqels_py.engine.stream_opening import opening_of
from cqels_py.engine.turns import in_turn
from cqels_py.errors import UsageError
from cqels_py.event_time.ahead import AheadGuard, Guard
from cqels_py.interrupts import undisturbed
from cqels_py.sources.opened import StreamSource, all_opened
from cqels_py.sources.static import StaticSource
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.validation import by_iri

if TYPE_CHECKING:
    from cqels_py.dataflow.static_data import StaticData
    from cqels_py.engine.compile import CompiledQuery
    from cqels_py.engine.durable.registration import Registration
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query
    from cqels_py.runners import joining


LOG = "log"
"""In the place of sources: the elements that the engine's log still has."""
PAUSE = 0.001
"""Seconds in which threads that wait get their turn."""
MOST_OF_A_TURN = 1 << 14
"""The elements of meanwhile that are taken in within a turn."""
Sources = Mapping[str, StreamSource] | str


class OneAtATime:
    """One query at a time is given elements of before, and no snapshot is taken meanwhile."""

    def __init__(self) -> None:
        self._lock = threading.Lock()

    @contextmanager
    def alone(self, engine: Engine) -> Iterator[None]:
        """Inside, nothing else is. UsageError within a call of the engine, for which the other query waits."""
        if not self._lock.acquire(blocking=not cast(Any, engine._turn)._is_owned()):
            raise UsageError("another query is being given elements of before: wait until that is registered")
        try:
            yield
        finally:
            self._lock.release()


class Beside:
    """A query beside those of an engine, until it is one of them, or is given up."""

    def __init__(self, engine: Engine, compiled: CompiledQuery, data: StaticData, registration: Registration) -> None:
        self._engine = engine
        self._streams = len(engine._registry.all_streams)
        self._kept = ExitStack()
        # Its windows have elements that those of queries registered just before or behind it have not.
        engine._runner.pool.close()
        self.query, self._running = built(engine, compiled, data, registration)
        engine._runner.pool.close()
        self.query._waiting.limit_in(set())
        self._kept.enter_context(engine.dictionary.holding(self.query.live_ids))
        self.asked = Joining(self.query, registration, data)
        self._joining: joining.Joining | None = None

    @property
    def streams(self) -> tuple[int, ...]:
        """The numbers of the streams that it reads."""
        return self._running.streams

    @property
    def is_crowded(self) -> bool:
        """Do so many elements of meanwhile wait that nothing else is to come?"""
        return self._joining is not None and self._joining.is_crowded

    def begin(self) -> None:
        """From now on elements of before come, and the others' elements of meanwhile wait for the query."""
        engine = self._engine
        engine._inputs.joining(self.asked)
        engine._registry.read_also(self.query)
        guard: Guard | None = None if engine._options.ahead is None else AheadGuard(engine._options.ahead)
        if guard is None and self._running.dataflow.by_clock:
            guard = engine._clocks.guard
        self._joining = engine._runner.begin_backfill(self._running, guard)

    @undisturbed
    def take(self, batch: ElementBatch) -> None:
        """Elements of before."""
        assert self._joining is not None
        with self._engine._steps:
            self._engine._runner.backfill(self._joining, batch)

    @undisturbed
    def complete(self) -> None:
        """All elements of before have come."""
        assert self._joining is not None
        with self._engine._steps:
            self._engine._runner.complete_backfill(self._joining)

    @undisturbed
    def catch_up(self, most: int) -> bool:
        """Take in some elements of meanwhile; does none wait any more?"""
        assert self._joining is not None
        with self._engine._steps:
            return self._engine._runner.catch_up(self._joining, most)

    @undisturbed
    def join(self) -> None:
        """Be one of the engine's queries."""
        engine, query = self._engine, self.query
        assert self._joining is not None
        with engine._steps:
            engine._runner.end_backfill(self._joining)
        engine._registry.read_also(None)
        engine._inputs.registered(query, self.asked.registration, self.asked.static)
        engine._add(query, self._running)
        query._waiting.limit_in(engine._overfull)
        self._kept.close()

    def give_up(self) -> None:
        """Be none of them."""
        engine = self._engine
        engine._runner.give_up_backfill()
        engine._registry.read_also(None)
        give_up(engine, self.query, self._streams)
        self._kept.close()


class Backfill:
    """A query that is given elements of sources, or of the log, turn by turn."""

    def __init__(self, engine: Engine, beside: Beside, sources: Sources) -> None:
        self._engine = engine
        self._beside = beside
        self._opened = ExitStack()
        self._sources = sources if isinstance(sources, str) else by_iri(sources, "backfill", "source")
        self._batches: Iterator[ElementBatch] | None = None

    def begin(self) -> None:
        """Open the sources."""
        self._check()
        if isinstance(self._sources, str):
            streams = self._beside.streams
            plan = self._beside.query.plan
            asked = [number for iri, number in zip(plan.streams, streams, strict=True) if iri in plan.graph_streams]
            batches = _read_by(streams, self._engine._inputs.logged(streams))
            self._batches = _with_graphs(asked, batches) if asked else batches
        else:
            self._batches = iter(self._merged(self._sources))
        self._beside.begin()

    def go_on(self) -> bool:
        """Go on by a batch; has the query joined the others?"""
        engine, beside = self._engine, self._beside
        engine._steps.check_open()
        if self._batches is not None:
            batch = next(self._batches, None)
            if batch is not None:
                if len(batch):
                    engine._inputs.backfilled(batch)
                    self._telling_dropped(lambda: beside.take(batch))
                return False
            self._batches = None
            self._telling_dropped(beside.complete)
        engine.flush()
        if not self._telling_dropped(lambda: beside.catch_up(MOST_OF_A_TURN)):
            return False
        # Others may have been registered meanwhile.
        self._check()
        beside.join()
        engine._reports.warn(beside.query.plan)
        self._opened.close()
        return True

    def give_up(self) -> None:
        """Close the sources; the engine is as if nothing had been."""
        try:
            self._opened.close()
        finally:
            try:
                # It raises errors of elements that other threads have pushed.
                if self._engine._steps.ended is None:
                    self._engine._flush()
            finally:
                self._beside.give_up()

    def _check(self) -> None:
        registry, query = self._engine._registry, self._beside.query
        registry.check_chaining(query)
        if not isinstance(self._sources, str):
            registry.check_backfill(query, self._sources)
        elif self._sources != LOG:
            raise UsageError(f'backfill is a mapping of sources by stream, or "{LOG}", not {self._sources!r}')

    def _merged(self, sources: Mapping[str, StreamSource]) -> TimeMerge:
        engine, plan = self._engine, self._beside.query.plan

        def opening(iri: str) -> Any:
            at = plan.streams.index(iri)
            known = opening_of(
                engine,
                iri,
                plan.time_predicates[at],
                engine._reports.malformed,
                interval=INTERVAL,
                number=self._beside.streams[at],
            )
            return replace(known, graphs=iri in plan.graph_streams or engine._options.drops_duplicates(iri))

        merged = TimeMerge(all_opened(sources, opening, self._opened), engine._options.ahead)
        self._opened.enter_context(engine.dictionary.holding(merged.live_ids))
        return merged

    def _telling_dropped(self, step: Any) -> Any:
        counters = self._engine._counters
        late, ahead = counters.late, counters.ahead
        answer = step()
        self._engine._tell_dropped(late, ahead)
        return answer


def register_with_elements_of_before(
    engine: Engine,
    compiled: CompiledQuery,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
    asked: Registration,
    sources: Sources,
) -> Query:
    """Register a query that is given elements of before; see `Engine.register`."""
    with engine._one_at_a_time.alone(engine):
        beside = _built(engine, compiled, static, graphs, asked)
        backfill = Backfill(engine, beside, sources)
        try:
            _begin(engine, backfill)
            while not _go_on(engine, backfill):
                pause()
        except BaseException:
            _give_up(engine, backfill)
            raise
        return beside.query


def pause() -> None:
    """Let others have their turns, who wait for one."""
    time.sleep(PAUSE)


@in_turn
def _built(
    engine: Engine,
    compiled: CompiledQuery,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
    asked: Registration,
) -> Beside:
    data = static_data_of_new(engine, compiled, static, graphs)
    return Beside(engine, compiled, data, replace(asked, documents=engine.dictionary.documents))


@in_turn
def _begin(engine: Engine, backfill: Backfill) -> None:
    # Elements that have been pushed since then are none of meanwhile.
    engine.flush()
    backfill.begin()


@in_turn
def _go_on(engine: Engine, backfill: Backfill) -> bool:
    while not backfill.go_on():
        if not backfill._beside.is_crowded:
            return False
    return True


@in_turn
def _give_up(engine: Engine, backfill: Backfill) -> None:
    backfill.give_up()


def _read_by(streams: tuple[int, ...], batches: Iterable[ElementBatch]) -> Iterator[ElementBatch]:
    """The elements of these streams."""
    for batch in batches:
        mine = np.flatnonzero(np.isin(batch.stream, streams))
        if len(mine):
            yield take_elements(batch, mine)


def _with_graphs(streams: Sequence[int], batches: Iterable[ElementBatch]) -> Iterator[ElementBatch]:
    """The elements, of which those of these streams are in graphs. UsageError for one without the name of its graph: that is in the
    log only if a query asked for it.
    """
    for batch in batches:
        asked = np.repeat(np.isin(batch.stream, streams), np.diff(batch.first))
        if asked.any() and (batch.graph is None or not batch.graph[asked].all()):
            raise UsageError(
                f'backfill="{LOG}": the query asks for the graphs of elements, and the log has some without: those that are in '
                "none, or came when no query asked for graphs; name sources"
            )
        yield batch
