"""The sinks by URL of a query of the service."""

from __future__ import annotations

import logging
from collections.abc import Sequence
from contextlib import ExitStack, suppress
from dataclasses import dataclass

from cqels_py.connections.reach import Reach
from cqels_py.dictionary import Dictionary
from cqels_py.engine.query import Query
from cqels_py.engine.url_sinks import Continued, close_sink, opened_sink
from cqels_py.errors import RunError
from cqels_py.service.late_sink import LateConnector
from cqels_py.sinks.protocol import Sink, SinkConnector
from cqels_py.sinks.urls import sink_of

_LOG = logging.getLogger("cqels_py")


@dataclass(frozen=True, slots=True)
class OpenedSinks:
    """Sinks, those among them that may not be open yet, and why others could not be opened."""

    sinks: Sequence[Sink] = ()
    late: Sequence[LateConnector] = ()
    failure: str | None = None


@dataclass(frozen=True, slots=True)
class QuerySinks:
    """Opens the sinks of queries. So many bytes of results may wait for each whose other side is away.

    `reach`: which addresses they may connect to.
    """

    dictionary: Dictionary
    backlog: int
    reach: Reach | None = None

    def opened(self, query: Query, urls: Sequence[str], undone: ExitStack) -> list[Sink]:
        """All of them, which `undone` closes. The exceptions are those of connectors."""
        found = []
        for url in urls:
            found.append(self._opened(query, sink_of(url), query.continued))
            undone.callback(_close, found[-1])
        return found

    def opened_each(self, query: Query, urls: Sequence[str], continued: Continued) -> OpenedSinks:
        """Those that can be opened, now or, if their results can wait, later."""
        found, late, failures = list[Sink](), list[LateConnector](), list[str]()
        for url in urls:
            try:
                connector = sink_of(url)
                if getattr(connector, "can_retry", False):
                    connector = LateConnector(connector)
                    late.append(connector)
                sink = self._opened(query, connector, continued)
                if isinstance(connector, LateConnector):
                    with suppress(RunError):
                        # Opens it: its first attempt has failed then, and others follow.
                        sink.commit()
                found.append(sink)
            except Exception as error:
                # Whatever its library raises.
                failures.append(f"a sink could not be opened and gets nothing: {error}")
                _LOG.error("the query %s: %s", query.name, failures[-1])
        return OpenedSinks(found, late, "; ".join(failures) or None)

    def _opened(self, query: Query, connector: SinkConnector, continued: Continued) -> Sink:
        return opened_sink(
            connector, query.plan, self.dictionary, query.refused, continued, query.backlog(self.backlog), self.reach
        )


def in_common(urls: Sequence[str], others: Sequence[str]) -> list[str]:
    """Those of `urls` that may write to the same place as one of `others`, whatever their options are.

    >>> in_common(["sqlite:a.db#t?mode=upsert", "mqtt://localhost/a"], ["sqlite:a.db#t", "mqtt://localhost/b"])
    ['sqlite:a.db#t?mode=upsert']
    """
    places = {_place(url) for url in others}
    return [url for url in urls if _place(url) in places]


def _place(url: str) -> str:
    return url.partition("?")[0].partition("#")[0]


def _close(sink: Sink) -> None:
    with suppress(Exception):
        close_sink(sink)
