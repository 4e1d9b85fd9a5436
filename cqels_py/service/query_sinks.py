"""The sinks by URL of a query of the service."""

from __future__ import annotations

import logging
import time
from collections.abc import Callable, Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field

from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.engine.backlog import BackloggedSink, close_together
from cqels_py.engine.query import Query
from cqels_py.engine.url_sinks import Continued, close_sink, opened_sink
from cqels_py.errors import RunError
from cqels_py.service.late_sink import LateConnector
from cqels_py.sinks.protocol import Sink
from cqels_py.sinks.urls import sink_of

_LOG = logging.getLogger("cqels_py")
OPENED_WITHIN, _LOOK_EVERY = 10.0, 0.05
"""Seconds for which a PUT waits for a sink to be opened."""


@dataclass(eq=False, slots=True)
class ServedSink:
    """A sink by URL. `late`: it is opened by its own thread; otherwise it is open. `leaving`: sinks that get no more, by place."""

    sink: Sink
    place: str
    late: LateConnector | None
    leaving: dict[str, BackloggedSink]

    def commit(self) -> None:
        """Have the results so far made durable. One that does not take them just now is not waited for."""
        if not isinstance(self.sink, BackloggedSink) or self.sink.settle():
            self.sink.commit()

    def close(self) -> None:
        """It gets nothing more. One with a thread of its own gets those that wait, unless it fails, and is not waited for."""
        if isinstance(self.sink, BackloggedSink):
            for place in [place for place, sink in list(self.leaving.items()) if sink.has_closed(0)]:
                self.leaving.pop(place, None)
            self.leaving[self.place] = self.sink
            self.sink.leave()
        else:
            close_sink(self.sink)


@dataclass(frozen=True, slots=True)
class OpenedSinks:
    """Sinks, and why others could not be opened."""

    sinks: Sequence[ServedSink] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class QuerySinks:
    """Opens the sinks of queries. So many bytes of results may wait for each whose other side is away.

    Those that can be tried again, which are those with a connection, are opened, written to and closed by threads of their own.
    `reach`: which addresses they may connect to.
    """

    dictionary: Dictionary
    backlog: int
    reach: Reach | None = None
    _leaving: dict[str, BackloggedSink] = field(default_factory=dict)

    def opened(self, query: Query, urls: Sequence[str], undone: ExitStack) -> list[ServedSink]:
        """All of them, which `undone` closes; those with a connection begin to be opened. The exceptions are those of connectors."""
        found = []
        for url in urls:
            found.append(self._opened(query, url, query.continued))
            undone.callback(_close, found[-1])
        return found

    def opened_each(self, query: Query, urls: Sequence[str], continued: Continued) -> OpenedSinks:
        """Those that can be opened, or may be later."""
        found, failures = list[ServedSink](), list[str]()
        for url in urls:
            try:
                found.append(self._opened(query, url, continued))
            except Exception as error:
                # Whatever its library raises.
                failures.append(f"a sink could not be opened and gets nothing: {error}")
                _LOG.error("the query %s: %s", query.name, failures[-1])
        return OpenedSinks(found, "; ".join(failures) or None)

    def wait(self, sinks: Sequence[ServedSink], enough: Callable[[], bool] = lambda: False) -> Exception | None:
        """Wait a moment for the first attempts to open sinks; returns the error of one that has failed, or that has no answer.

        `enough`: nothing is waited for any longer.
        """
        begun = time.monotonic()
        for late in [each.late for each in sinks if each.late is not None]:
            while not late.tried.wait(_LOOK_EVERY):
                if time.monotonic() - begun > OPENED_WITHIN or enough():
                    return RunError(
                        f"a sink could not be opened: its other side has not answered in {OPENED_WITHIN:g} s"
                    )
            if late.error is not None:
                return late.error
        return None

    def close(self) -> None:
        """At the end of the process: those that get nothing more get the results that wait, as long as they take them."""
        close_together(list(self._leaving.values()))

    def _opened(self, query: Query, url: str, continued: Continued) -> ServedSink:
        connector, place, late = sink_of(url), _place(url), None
        if getattr(connector, "can_retry", False):
            former = self._leaving.pop(place, None)
            connector = late = LateConnector(connector, former)
        sink = opened_sink(
            connector, query.plan, self.dictionary, query.refused, continued, query.backlog(self.backlog), self.reach
        )
        if isinstance(sink, BackloggedSink):
            sink.begin()
        return ServedSink(sink, place, late, self._leaving)


def in_common(urls: Sequence[str], others: Sequence[str]) -> list[str]:
    """Those of `urls` that may write to the same place as one of `others`, whatever their options are.

    >>> in_common(["sqlite:a.db#t?mode=upsert", "mqtt://localhost/a"], ["sqlite:a.db#t", "mqtt://localhost/b"])
    ['sqlite:a.db#t?mode=upsert']
    """
    places = {_place(url) for url in others}
    return [url for url in urls if _place(url) in places]


def _place(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]


def _close(sink: ServedSink) -> None:
    with suppress(Exception):
        sink.close()
