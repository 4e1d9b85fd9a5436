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
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.time_merge import Piece
from cqels_py.sources.urls import source_of

if TYPE_CHECKING:
    from cqels_py.batches.elements import ElementBatch
    from cqels_py.engine.engine import Engine

_NO_WAITING = 0.001
"""Seconds for which a poll may wait: other calls wait for it."""


class Feed:
    """The source of a stream, by its URL. `step` takes the elements that it has; nothing is read while no query reads the stream.

    The source is opened and closed by the thread that calls `step` or `close`, while others have the engine: a server that does
    not answer holds nobody else up.

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
        self._stopped = False
        # That of the present poll.
        self._left_out: list[Piece] = []
        self.elements = 0
        """Taken in by this process."""
        self.paused = False
        """Is nothing read since the results of all queries that read the stream wait for their sinks?"""

    def step(self) -> int | None:
        """Take in the elements that are there; their number, None after the end. Errors are those of the source and the engine."""
        if self._source is None and not self._open():
            return 0
        if self._number is None:
            self.close()
            return 0
        return self._take()

    def stop(self) -> None:
        """Take in nothing more, also if the source is just being opened."""
        self._stopped = True

    @property
    def _number(self) -> int | None:
        """That of the stream, while it is to be read."""
        return None if self._stopped else self._engine._registry.streams.numbers.get(self._stream)

    def _open(self) -> bool:
        """Open the source, without the engine's turn; False: it is not to be read."""
        engine = self._engine
        with engine._turn:
            engine._check_room()
            number = self._number
            if number is None:
                self._let_go()
                return False
            engine._behind.add(number)
            engine._feeding.add(self._stream)
            opening = self._opening()
        self._source = self._connector.open(opening)
        return True

    @undisturbed
    def _take(self) -> int | None:
        engine = self._engine
        with engine._turn:
            engine._check_room()
            number = self._number
            if number is None or self._source is None:
                return 0
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
        """Read nothing more until the next step."""
        with self._engine._turn:
            source = self._let_go()
        if source is not None:
            with suppress(OSError):
                source.close()

    def _let_go(self) -> Source | None:
        """The source, if there is one, which is to be closed."""
        engine, numbers = self._engine, self._engine._registry.streams.numbers
        engine._behind.discard(numbers.get(self._stream, -1))
        engine._feeding.discard(self._stream)
        self.paused = False
        source, self._source = self._source, None
        if source is not None:
            told, self._left_out = self._left_out, []
            if source.position() is None:
                # Of a poll that failed, and comes not again.
                for piece in told:
                    engine._inputs.left_out(engine._rejects.left_out(*piece))
        return source

    def _opening(self) -> Opening:
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
        position = engine._fed.get((self._stream, self._url))
        return replace(opening, on_error="skip", position=position)

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
