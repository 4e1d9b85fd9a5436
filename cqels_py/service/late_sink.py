"""A sink that is opened by the thread that writes to it, however long its other side is away or says nothing."""

from __future__ import annotations

import threading
from typing import ClassVar

from cqels_py.batches.results import ResultBatch
from cqels_py.engine.backlog import BackloggedSink
from cqels_py.engine.url_sinks import close_sink
from cqels_py.errors import RunError
from cqels_py.sinks.protocol import Sink, SinkConnector, SinkOpening

_LOOK_EVERY = 0.5


class LateConnector:
    """Opens the sinks of another connector with `flush`, which can be called again after RunError. For `BackloggedSink`.

    `former`: the sink that wrote to the same place, which gets no more results, and is closed before this one is opened.
    """

    can_retry: ClassVar[bool] = True

    def __init__(self, connector: SinkConnector, former: BackloggedSink | None = None) -> None:
        self._connector = connector
        self._former = former
        self.changelog = connector.changelog
        self.error: Exception | None = None
        """Of the last attempt."""
        self.tried = threading.Event()
        """Has the first attempt ended?"""
        self.failure: str | None = (
            "a sink has not been opened yet, and its results wait: its other side has not answered"
        )
        """Why it is not open."""

    def open(self, opening: SinkOpening) -> LateSink:
        """Nothing is opened yet."""
        return LateSink(self, opening)

    def open_now(self, opening: SinkOpening) -> Sink:
        """The sink. Exceptions are those of the connector."""
        if self._former is not None:
            if not self._former.has_closed(_LOOK_EVERY):
                self.failure = (
                    "a sink is not open yet, and its results wait: it has not taken those of the query's former text"
                )
                raise RunError("results of a query's former text have not been taken yet")
            self._former = None
        try:
            sink = self._connector.open(opening)
        except Exception as error:
            self.error = error
            self.failure = (
                f"a sink could not be opened yet, and its results wait: {error}"
                if isinstance(error, RunError)
                else f"a sink could not be opened and gets nothing: {error}"
            )
            raise
        else:
            self.error = self.failure = None
        finally:
            self.tried.set()
        return sink


class LateSink:
    """A sink that is opened with its first call, which is `flush`."""

    def __init__(self, to: LateConnector, opening: SinkOpening) -> None:
        self._to = to
        self._opening = opening
        self._sink: Sink | None = None

    def write(self, batch: ResultBatch) -> None:
        self._opened().write(batch)

    def flush(self) -> None:
        self._opened().flush()

    def commit(self) -> object:
        return self._opened().commit()

    def close(self) -> None:
        """Close it, if it was opened."""
        if self._sink is not None:
            close_sink(self._sink)

    def _opened(self) -> Sink:
        if self._sink is None:
            self._sink = self._to.open_now(self._opening)
        return self._sink
