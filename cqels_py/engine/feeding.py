"""A source that does not end, polled between the calls of other threads: its elements are logged with the position behind them.

A run (`source_run`) has the engine for itself; feeds leave it to pushes and to each other.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import suppress
from dataclasses import replace
from functools import partial
from typing import TYPE_CHECKING

from cqels_py.engine.durable.inputs import Fed
from cqels_py.engine.pausing import is_paused
from cqels_py.engine.rejects import MALFORMED, SPLIT, line_of
from cqels_py.engine.stream_opening import opening_of
from cqels_py.errors import DataError
from cqels_py.interrupts import undisturbed
from cqels_py.mappings.context import RowMap
from cqels_py.sources.protocol import Source
from cqels_py.sources.time_merge import Piece
from cqels_py.sources.urls import source_of

if TYPE_CHECKING:
    from cqels_py.batches.elements import ElementBatch
    from cqels_py.engine.engine import Engine

_NO_WAITING = 0.001
"""Seconds for which a poll may wait: other calls wait for it."""


class Feed:
    """The source of a stream, by its URL. `step` takes the elements that it has; nothing is read while no query reads the stream.

    `report` gets malformed input, which is left out. While elements are behind, time does not follow the clock for queries that
    read the stream: they are not late. Nothing is read, and time stands still for these queries too, while as many results of all
    of them as may wait for sinks that fail (`paused`, see `pausing`). With a checkpoint a source that can begin at a position goes
    on behind the elements that were logged, and tells malformed input before it no more: that is in the same record.
    """

    def __init__(
        self, engine: Engine, stream: str, url: str, map: RowMap | None, report: Callable[[DataError], None]
    ) -> None:
        self._engine = engine
        self._stream = stream
        self._url = url
        self._connector = source_of(url)
        self._map = map
        self._report = report
        self._source: Source | None = None
        # That of the present poll.
        self._left_out: list[Piece] = []
        self.elements = 0
        """Taken in by this process."""
        self.paused = False
        """Is nothing read since the results of all queries that read the stream wait for their sinks?"""

    @undisturbed
    def step(self) -> int | None:
        """Take in the elements that are there; their number, None after the end. Errors are those of the source and the engine."""
        engine = self._engine
        with engine._turn:
            engine._check_room()
            streams = engine._registry.streams
            if self._stream not in streams.numbers:
                self._close()
                return 0
            number = streams.numbers[self._stream]
            if self._source is None:
                engine._behind.add(number)
                self._source = self._opened()
            self.paused = is_paused(engine, self._stream)
            if self.paused:
                engine._behind.add(number)
                return 0
            wrong = engine._evaluate()
            failure: Exception | None = None
            try:
                batch, position = self._source.poll(), self._source.position()
            except Exception as raised:
                failure = raised
            else:
                told = self._take_in(number, batch, position)
            deliveries = engine._pending.take()
        if failure is not None:
            # Raises it, once the elements that were pushed before have their results and reports.
            engine._delivered([failure, *engine._pending.deliver(deliveries)], wrong, some=False)
        engine._deliver(deliveries, wrong)
        for _, error in told:
            self._report(error)
        # They are logged, and durable.
        self._source.commit(position)
        if batch is None:
            return None
        self.elements += len(batch)
        return len(batch)

    def _take_in(self, number: int, batch: ElementBatch | None, position: object) -> list[Piece]:
        """Process the elements of a poll; returns the malformed input of it."""
        engine = self._engine
        told, self._left_out = self._left_out, []
        fed = Fed(self._stream, self._url, position, [line_of(*piece) for piece in told])
        if batch is not None and len(batch):
            engine._behind.add(number)
            with engine.dictionary.holding(batch.live_ids):
                if engine.watched is not None:
                    engine.watched.take(self._stream, batch)
                engine._process(batch, fed=fed)
        else:
            self._pass(fed)
            if batch is None or not getattr(self._source, "behind", False):
                engine._behind.discard(number)
        for record in fed.left_out:
            engine._rejects.add(record)
        return told

    def _pass(self, fed: Fed) -> None:
        """A poll had no elements: where it has got to is worth a record if anything is behind it."""
        engine, key = self._engine, (fed.stream, fed.url)
        if fed.left_out or fed.position != engine._fed.get(key):
            engine._inputs.passed(fed)
            engine._fed[key] = fed.position

    def close(self) -> None:
        """Read nothing more."""
        with self._engine._turn:
            self._close()

    def _close(self) -> None:
        engine, numbers = self._engine, self._engine._registry.streams.numbers
        engine._behind.discard(numbers.get(self._stream, -1))
        engine._feeding.discard(self._stream)
        self.paused = False
        if self._source is not None:
            source, self._source = self._source, None
            told, self._left_out = self._left_out, []
            if source.position() is None:
                # Of a poll that failed, and comes not again.
                for piece in told:
                    engine._inputs.left_out(engine._rejects.left_out(*piece))
            with suppress(OSError):
                source.close()

    def _opened(self) -> Source:
        engine = self._engine
        opening = opening_of(
            engine,
            self._stream,
            engine._registry.streams.time_predicates.get(self._stream),
            partial(self._leave_out, MALFORMED),
            self._map,
            _NO_WAITING,
            split=partial(self._leave_out, SPLIT),
        )
        engine._feeding.add(self._stream)
        position = engine._fed.get((self._stream, self._url))
        return self._connector.open(replace(opening, on_error="skip", position=position))

    def _leave_out(self, reason: str, error: DataError) -> None:
        self._left_out.append((reason, error))


def plain(fed: dict[tuple[str, str], object]) -> list[list[object]]:
    """The positions of feeds as plain data."""
    return [[stream, url, position] for (stream, url), position in fed.items()]


def behind_feeds(engine: Engine) -> Iterator[int]:
    """After a restart, the streams whose sources have not been asked yet."""
    numbers = engine._registry.streams.numbers
    for stream, _ in engine._fed:
        if stream in numbers:
            yield numbers[stream]
