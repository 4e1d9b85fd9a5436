"""The inputs of an engine, each told before it is taken in."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple

from cqels_py.batches.elements import ElementBatch
from cqels_py.dataflow.static_data import StaticData
from cqels_py.errors import RunError, UsageError
from cqels_py.event_time.frontiers import Frontiers

if TYPE_CHECKING:
    from cqels_py.engine.documents import Once
    from cqels_py.engine.durable.joining import Joining
    from cqels_py.engine.durable.registration import Registration
    from cqels_py.engine.query import Query
    from cqels_py.engine.rejects import Record
    from cqels_py.sources.time_merge import Piece, Place


class Fed(NamedTuple):
    """The stream of a feed, the URL of its source, and a position behind elements, before which these pieces were left out."""

    stream: str
    url: str
    position: object
    left_out: Sequence[Record] = ()


class Inputs:
    """The inputs of an engine, each told before it is taken in. This class keeps nothing: that of an engine without a checkpoint."""

    keeps = False
    folder: Path | None = None
    """Where they are kept."""
    expects_run = False
    """Is a run to be called, such as that which an earlier process was in? Until then time does not follow the clock."""
    makes_again = False
    """Are results to come again, when files are read again, which an earlier process has delivered?"""

    def begin(self) -> None:
        """Called once, when the engine is complete."""

    def restored(self, registration: Registration) -> Query | None:
        """The query that goes on from an earlier process under this name. UsageError if it is another one."""
        return None

    @contextmanager
    def reading(self, sources: Mapping[str, object]) -> Iterator[None]:
        """Inside, these sources are opened and read. UsageError for a file that is not the one that was begun."""
        yield

    def unread(self, batch: ElementBatch) -> ElementBatch:
        """The elements that the engine does not have yet, of those that its sources have next."""
        return batch

    def position_of(self, stream: str) -> object:
        """Where the source of a stream is to begin; None: by itself."""
        return None

    def order_of(self, stream: str) -> Sequence[int] | None:
        """The `Place.order` where the source of a stream is to begin."""
        return None

    def reached(self, places: Mapping[str, Place], left_out: Mapping[str, Sequence[Piece]]) -> None:
        """The sources of streams have got to these positions, and so many elements behind them. They have left out these pieces
        before the positions.
        """

    def elements(self, batch: ElementBatch, *, read: bool, once: Sequence[Once] = (), fed: Fed | None = None) -> None:
        """The elements of a step. `read`: from a source of a run. `once`: the keys under which they are taken in. `fed`: where the
        source of a feed is behind them.
        """

    @property
    def takes_singles(self) -> bool:
        """May the next input be that of `single`? Not where something has to be done before it."""
        return True

    def single(self, stream: int, time: int, lines: bytes) -> None:
        """The element of a step, of the stream of this number: `lines` as of `formats.triples.term_lines`, without blank nodes."""

    def passed(self, fed: Fed) -> None:
        """The source of a feed has got to a position, without elements before it."""

    def declared(self, stream: str, lateness: int, clock: str, duplicates: str) -> None:
        """A stream has these options from now on."""

    def waiting_processed(self) -> None:
        """The elements that wait for a boundary are processed now."""

    def advanced(self, time: int) -> None:
        """No element before this time will come."""

    def followed(self, time: int, behind: frozenset[int]) -> None:
        """Time goes on with the clock; see `LocalRunner.follow`."""

    def held(self, frontiers: Frontiers) -> None:
        """Elements of sources are no longer in one order of time; see `LocalRunner.hold`."""

    def finished(self, until: int | None, *, ended: bool) -> None:
        """The sources have ended; see `LocalRunner.finish`. `ended`: nothing can follow."""

    def left_out(self, record: Record) -> None:
        """Input that is left out, because it is malformed or came too late for its element."""

    def refused(self, query: Query, record: Record) -> bool:
        """The other side of a sink refuses a result of the query. False: it has been told before. Called by any thread."""
        return True

    def registered(self, query: Query, registration: Registration, data: StaticData) -> None:
        """A query with its static data. UnsupportedQuery for answers of SERVICE with blank nodes."""

    def joining(self, asked: Joining) -> None:
        """A query that is to be registered gets elements of before: `backfilled`, until it is `registered` or `given_up`."""

    def backfilled(self, batch: ElementBatch) -> None:
        """Elements of before for the query that is joining."""

    def logged(self, streams: Sequence[int]) -> Iterator[ElementBatch]:
        """The elements that the log still has, as they were taken in, for a reader of the streams with these numbers.

        UsageError for an engine without a log, and if some of these streams are not in the log, as they come from files.
        """
        raise UsageError(
            'backfill="log" needs an engine with a log: make it with checkpoint=, a folder, or name sources'
        )

    def given_up(self, query: Query) -> None:
        """A query is not registered after all."""

    def unregistered(self, query: Query, failure: RunError | None = None) -> None:
        """A query is removed. `failure`: as it failed, for this reason."""

    def connected(self, query: Query, stream: str) -> None:
        """The results of a query are elements of the stream."""

    def static_replaced(self, query: Query, data: StaticData) -> None:
        """A query gets other static data."""

    def run_of(self, query: Query) -> str | None:
        """An id of the query's results that is the same after a restart; None: they end with the process."""
        return None

    def sync(self) -> None:
        """Return when all inputs so far are durable."""

    def snapshot(self) -> None:
        """Save the state. UsageError for an engine without a checkpoint."""
        raise UsageError("the engine has no checkpoint: make it with checkpoint=, a folder")

    def close(self) -> None:
        """No input follows."""
