"""A Linked Data Event Stream as a stream: its history in order of time, as far as its pages promise it, and later members."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any, Final

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, empty_elements
from cqels_py.connections.http import Endpoint, endpoint_of, httpx_for
from cqels_py.connections.location import Location
from cqels_py.connections.positions import PositionFile
from cqels_py.connections.schemes import needed
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.times import NO_TIME, time_of_text
from cqels_py.sources.files import handling
from cqels_py.sources.ldes.bounds import FIRST
from cqels_py.sources.ldes.fetching import Hosts, PageFetcher, Request, Response
from cqels_py.sources.ldes.pages import read_page
from cqels_py.sources.ldes.traversal import KnownPage, Traversal
from cqels_py.sources.ldes.waiting import Waiting
from cqels_py.sources.malformed import CountedReports
from cqels_py.sources.partitions import Returned
from cqels_py.sources.protocol import Opening

_LOG = logging.getLogger("cqels_py")
_AT_ONCE: Final = 4096
_EARLIEST: Final = "earliest"


def ldes_source(location: Location) -> LdesConnector:
    """`ldes+http(s)://host/stream?for=server#refresh=10s`; the options stand behind "#"."""
    httpx_for(location)
    endpoint, options = endpoint_of(location)
    start = options.text("start", _EARLIEST) or _EARLIEST
    since = FIRST if start == _EARLIEST else time_of_text(start)
    if since == NO_TIME:
        raise UsageError(
            f"{location.shown}: the option start is earliest or a time like 2024-05-01T12:00:00Z, not {start!r}"
        )
    kept = options.text("position")
    connector = LdesConnector(
        replace(endpoint, url=endpoint.url.removeprefix("ldes+")),
        since,
        follow=options.choice("follow", ("yes", "no"), "yes") == "yes",
        refresh=options.seconds("refresh", "10s"),
        hosts=tuple(each.strip().lower() for each in (options.text("hosts") or "").split(",") if each.strip()),
        most=options.size("page", "64MB"),
        most_waiting=options.size("waiting", "10GB"),
        idle=options.seconds("idle", "30s"),
        memory=None if kept is None else PositionFile(Path(kept), endpoint.url),
    )
    options.done()
    return connector


@dataclass(frozen=True, slots=True)
class LdesConnector:
    """A stream by the URL of its description, or of a view. `start`: members of before are left out, in microseconds.

    `follow`: pages that may change are read again after `refresh` seconds, or as long as they are fresh. `hosts`: other servers
    that may have pages. `most`: bytes of the largest page; `most_waiting`: of the members that wait for pages. `memory`: where
    commits are kept, if anywhere.
    """

    endpoint: Endpoint
    start: int
    follow: bool
    refresh: float
    hosts: tuple[str, ...]
    most: int
    most_waiting: int
    idle: float
    memory: PositionFile | None

    def open(self, opening: Opening) -> LdesSource:
        """Begin to read, in a thread of its own. UsageError for a stream with a map, which is for rows."""
        if opening.map is not None:
            raise UsageError(f"{self.endpoint.shown}: the members are RDF: leave the map out")
        return LdesSource(self, opening)


class LdesSource:
    """The members as elements. A position is a mapping: of `Traversal`, and the members `taken` behind it."""

    resumes = True

    def __init__(self, of: LdesConnector, opening: Opening, clock: Callable[[], float] = time.monotonic) -> None:
        self._of = of
        self._left_out = CountedReports()
        self._opening = opening = replace(opening, report=self._left_out.through(opening.report))
        self._clock = clock
        self._malformed = handling(opening.on_error, opening.report)
        path = None if opening.time_predicate is None else (opening.time_predicate.strip("<>"),)
        self._traversal = Traversal(of.endpoint.url, of.endpoint.shown, path, of.start, of.most_waiting)
        kept = None if of.memory is None else of.memory.load()
        if (position := opening.position or kept) is not None:
            assert isinstance(position, Mapping)
            self._traversal.begin_at(position)
        self._keeps = opening.continues or of.memory is not None
        self._position = self._traversal.position() if self._keeps else None
        self._last = clock()
        self._asked: KnownPage | None = None
        self.returned: Returned | None = None
        hosts = Hosts(of.endpoint.url, of.hosts)
        httpx = needed("httpx", "httpx", "http", "ldes+http://")
        self._fetcher = PageFetcher(httpx, of.endpoint.shown, hosts, of.endpoint.headers, of.most, opening.reach)

    @property
    def idle(self) -> bool:
        return self._clock() - self._last >= self._of.idle

    @property
    def caught_up(self) -> bool:
        return not self._traversal.is_behind

    @property
    def behind(self) -> bool:
        """Are there pages that have not been read?"""
        return not self.caught_up

    def poll(self) -> ElementBatch | None:
        """The next members. DataError for a page or a member that cannot be read, RunError for a server that refuses."""
        found = self._traversal.release(_AT_ONCE)
        self._ask()
        if not found:
            if self._asked is None and self._has_ended:
                return None
            if self._asked is None:
                time.sleep(self._opening.pause)
            elif (response := self._fetcher.take(self._opening.pause)) is not None:
                self._take(self._asked, response)
                self._asked = None
                self._ask()
                found = self._traversal.release(_AT_ONCE)
        return self._elements(found)

    def position(self) -> dict[str, Any] | None:
        return self._position

    def commit(self, position: object) -> None:
        """Keep the position in its file, if there is one."""
        if self._of.memory is not None:
            self._of.memory.save(position)

    def close(self) -> None:
        self._fetcher.close()
        self._traversal.close()

    def advance(self, time: int) -> None:
        """Nothing: only pages with earlier members hold up others."""

    def holds_before(self, time: int) -> bool:
        return self._traversal.first_waiting < time

    def live_ids(self) -> Iterable[Ids]:
        """None: members that wait are texts."""
        return ()

    @property
    def _has_ended(self) -> bool:
        return self._traversal.has_ended or not (self._of.follow or self._traversal.is_behind)

    def _ask(self) -> None:
        """Have the next page fetched, unless one is."""
        if self._asked is not None or not (self._of.follow or self._traversal.is_behind):
            return
        page = self._asked = self._traversal.next(self._clock())
        if page is not None:
            self._fetcher.ask(Request(page.url, page.etag, page.modified))

    def _take(self, known: KnownPage, response: Response) -> None:
        if not known.fetched:
            # Members may wait for many pages: a server that sends them is not silent.
            self._last = self._clock()
        known.due = self._clock() + max(self._of.refresh, response.fresh)
        known.etag, known.modified = response.etag, response.modified
        if response.gone:
            _LOG.warning("%s is gone; its members are left out", known.url)
            self._traversal.gone(known)
            return
        known.immutable = known.immutable or response.immutable
        if response.body is None:
            self._traversal.same(known)
        else:
            try:
                page = read_page(
                    response.body, response.kind, response.url, self._opening.json_ld, self._traversal.path
                )
            except DataError as error:
                self._malformed(error)
                self._traversal.same(known)
            else:
                self._traversal.take(known, response.url, page, self._malformed)

    def _elements(self, found: list[Waiting]) -> ElementBatch:
        self.returned = None
        if not found:
            if self._keeps and self._left_out.count:
                # Malformed members are passed over like those that were returned.
                self._position = self._traversal.position()
                self._left_out.begin()
            return empty_elements()
        self._last = self._clock()
        try:
            batch = replace(self._opening, on_error="stop").elements((member.time, member.triples) for member in found)
        except DataError:
            # One of them is wrong: each by itself tells which.
            parts = [self._opening.elements([(member.time, member.triples)]) for member in found]
            found = [member for member, part in zip(found, parts, strict=True) if len(part)]
            batch = concatenate_elements([part for part in parts if len(part)])
        if self._keeps:
            assert self._position is not None
            self.returned = Returned(self._position, [member.key for member in found])
            self._position = self._traversal.position()
            self._left_out.begin()
        return batch
