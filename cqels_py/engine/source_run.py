"""A run of an engine over sources: they are opened, merged by time, and read to their ends."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, closing, contextmanager, nullcontext
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from cqels_py.batches.elements import Ids
from cqels_py.batches.rearrange import slice_elements
from cqels_py.engine.clock_thread import INTERVAL
from cqels_py.engine.rejects import MALFORMED, SPLIT
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import DataError, UsageError
from cqels_py.event_time.frontiers import Frontiers
from cqels_py.formats.python_times import Time
from cqels_py.runners.statistics import Statistics
from cqels_py.runners.stream_views import NOTHING
from cqels_py.sources.opened import StreamSource, all_opened, is_connected, maps_of, predicates_of
from cqels_py.sources.read_ahead import ReadAhead, reader_ahead
from cqels_py.sources.time_merge import LeftOut, Piece, Place, TimeMerge, Timing
from cqels_py.validation import by_iri, check_callable, check_flag, instant

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine


Report = Callable[[DataError], None]


@dataclass(frozen=True, slots=True)
class RunOptions:
    """The arguments of `Engine.run` beside the sources."""

    time_predicates: Mapping[str, str] | None
    maps: Mapping[str, Any] | None
    progress: Callable[[Statistics], None] | None
    threads: int | None
    more: bool
    until: Time | None

    def check(self) -> None:
        """UsageError for options that are wrong, or exclude one another."""
        if self.progress is not None:
            check_callable(self.progress, "progress", "the statistics")
        check_flag(self.more, "more")
        if self.until is not None and self.more:
            raise UsageError(
                "until= goes on to an instant at the end of the sources, and more=True does not: leave one out"
            )


class SourceRun:
    """Reads sources into an engine."""

    def __init__(self, engine: Engine, sources: Mapping[str, StreamSource], options: RunOptions) -> None:
        options.check()
        self._engine = engine
        self._options = options
        self._sources = by_iri(sources, "the argument of run", "source")
        self._predicates = {
            **engine._registry.streams.time_predicates,
            **predicates_of(options.time_predicates, self._sources),
        }
        self._maps = maps_of(options.maps, self._sources)
        self._last = None if options.until is None else instant(options.until)

    def run(self) -> None:
        """Take in all elements, and deliver their results."""
        engine, sources = self._engine, self._sources
        engine._flush()
        # With a second thread, the dictionary would change while it is saved.
        threads = 1 if engine._inputs.keeps else self._options.threads
        second = reader_ahead(list(sources.values()), threads, engine.dictionary, engine._reports.malformed)
        with ExitStack() as cleanup:
            cleanup.enter_context(engine._inputs.reading(sources))
            cleanup.enter_context(engine._clocks.reading())
            merged = self._opened(second, cleanup)
            self._read(merged, second)
            if not self._options.more:
                engine._flush()
                # With a clock time goes on by that.
                if not engine._runner.all_follow or self._last is not None:
                    engine._end_input(self._last)
            merged.mark_processed()
            for query in list(engine._known):
                query.delivery.commit()
            merged.commit()

    def _opened(self, second: ReadAhead | None, cleanup: ExitStack) -> TimeMerge:
        """The sources, opened and merged by time. UsageError for a stream without one."""
        engine, sources, streams = self._engine, self._sources, self._engine._registry.streams
        left_out = [LeftOut() for _ in sources]
        reports = [
            self._reports_of(source, own, second) for source, own in zip(sources.values(), left_out, strict=True)
        ]
        by_stream = dict(zip(sources, reports, strict=True))
        # All sources are asked in turn within one interval.
        interval = INTERVAL / len(sources) if len(sources) > 1 or engine._clocks.followed else None
        readers = all_opened(
            sources,
            lambda iri: replace(
                opening_of(
                    engine,
                    iri,
                    self._predicates.get(iri),
                    by_stream[iri][0],
                    self._maps.get(iri),
                    interval,
                    split=by_stream[iri][1],
                ),
                position=engine._inputs.position_of(iri),
            ),
            cleanup,
        )
        if missing := [iri for iri in streams.numbers if iri not in sources and iri not in streams.constructed]:
            raise UsageError(f"no source was given for <{'>, <'.join(missing)}>, which a query reads")
        numbers = [streams.number(iri) for iri in sources]
        # After a restart there may be elements that wait for those of a source that was behind.
        parted = bool(engine._runner.frontiers)
        ahead = None if engine._guard is None else engine._options.ahead
        orders = [engine._inputs.order_of(iri) for iri in sources]
        timings = self._timings(numbers)
        return TimeMerge(readers, ahead, timings, numbers, parted=parted, orders=orders, left_out=left_out)

    def _reports_of(self, source: StreamSource, left_out: LeftOut, second: ReadAhead | None) -> tuple[Report, Report]:
        """The receiver of malformed input of a source, and triples of elements that were complete before they came.

        With a checkpoint, live sources have it logged together with the position behind it, so that it is told once.
        """
        reports, inputs = self._engine._reports, self._engine._inputs
        if not (inputs.keeps and reports.skips and is_connected(source)):
            return reports.malformed if second is None else second.report, reports.split
        return partial(left_out.add, MALFORMED), partial(left_out.add, SPLIT)

    def _timings(self, numbers: Sequence[int]) -> list[Timing]:
        """How the elements of streams are put in order: as all the queries that read them have it, or else as the stream has."""
        runner, clocks = self._engine._runner, self._engine._clocks
        wanted = [runner.clocks_of(number) for number in numbers]
        both = any(len(each) > 1 for each in wanted)
        found = []
        for number, kinds in zip(numbers, wanted, strict=True):
            by_clock = number not in clocks.by_events if len(kinds) != 1 else True in kinds
            other = clocks.wall if True in kinds and not by_clock else None
            found.append(Timing(clocks.wall if by_clock else None, other, both))
        return found

    def _read(self, merged: TimeMerge, second: ReadAhead | None) -> None:
        """Process the elements of the sources, merged by time."""
        engine, progress = self._engine, self._options.progress
        batch = NOTHING

        def live() -> Iterator[Ids]:
            yield from batch.live_ids()
            yield from merged.live_ids()
            if second is not None:
                yield from second.live_ids()

        reading = nullcontext() if second is None else closing(second)
        with engine.dictionary.holding(live), reading, self._committing(merged if second is None else None):
            merged.parting = engine._runner.can_part
            self._acknowledge(merged)
            for batch in merged if second is None else second.read(merged):
                engine._hold(merged.before)
                self._tell(merged.places_before, merged.told_before)
                batch = engine._inputs.unread(batch)
                if not len(batch):
                    if second is None:
                        merged.mark_processed()
                        self._acknowledge(merged)
                    self._reached(merged)
                    if engine._clocks.followed:
                        engine._follow_clock(merged)
                    engine._look_at_tables()
                    if progress is not None:
                        progress(engine.statistics)
                    continue
                for start in range(0, len(batch), engine._batch or len(batch)):
                    end = min(len(batch), start + (engine._batch or len(batch)))
                    engine._process_part(slice_elements(batch, start, end), read=True)
                    if end == len(batch) and second is None:
                        merged.mark_processed()
                        self._acknowledge(merged)
                    engine._look_at_tables()
                    if progress is not None:
                        progress(engine.statistics)
                self._reached(merged)
                if engine._clocks.followed and merged.parted:
                    engine._follow_clock(merged)
            if second is None:
                self._acknowledge(merged)
            engine._hold(Frontiers())

    def _reached(self, merged: TimeMerge) -> None:
        """All elements that the sources have had so far are taken in."""
        self._engine._hold(merged.frontiers())
        merged.parting = self._engine._runner.can_part

    def _acknowledge(self, merged: TimeMerge) -> None:
        """With a checkpoint the elements are logged: their sources will not be asked for them again."""
        if self._engine._inputs.keeps:
            self._tell(merged.places(), merged.told())
            self._engine._inputs.sync()
            merged.commit()

    def _tell(self, places: Sequence[Place | None], left_out: Sequence[Sequence[Piece]]) -> None:
        """Tell how far the sources are, by the elements that are taken in, and the pieces that they have left out up to there."""
        if places and self._engine._inputs.keeps:
            by_stream = zip(self._sources, places, strict=True)
            pieces = dict(zip(self._sources, left_out, strict=True))
            self._engine._inputs.reached({iri: place for iri, place in by_stream if place is not None}, pieces)

    @contextmanager
    def _committing(self, merged: TimeMerge | None) -> Iterator[None]:
        """Inside, `commit` commits these sources too; a signal that ends the reading loses no element that has been processed."""
        engine = self._engine
        engine._merged = merged
        try:
            yield
        except BaseException as error:
            going_on = engine._steps.ended is None and isinstance(error, KeyboardInterrupt)
            # Sources that can be asked again keep the elements whose results wait for a sink that is away.
            if going_on and all(query.delivery.settle() for query in engine.queries):
                engine.commit()
            # With a checkpoint, those that wait still do so when the sources are read again.
            if engine._steps.ended is None and not engine._inputs.keeps:
                engine._hold(Frontiers())
            raise
        finally:
            engine._merged = None
