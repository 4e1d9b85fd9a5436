"""A sink that is opened as soon as its other side is there, which may be away when the server starts."""

from __future__ import annotations

from typing import ClassVar

from cqels_py.batches.results import ResultBatch
from cqels_py.engine.url_sinks import close_sink
from cqels_py.errors import RunError
from cqels_py.sinks.protocol import Sink, SinkConnector, SinkOpening


class LateConnector:
    """Opens the sinks of another connector with `flush`, which can be called again after RunError. For `BackloggedSink`."""

    can_retry: ClassVar[bool] = True

    def __init__(self, connector: SinkConnector) -> None:
        self._connector = connector
        self.changelog = connector.changelog
        self.failure: str | None = None
        """Why it could not be opened yet."""

    def open(self, opening: SinkOpening) -> LateSink:
        """Nothing is opened yet."""
        return LateSink(self, opening)

    def open_now(self, opening: SinkOpening) -> Sink:
        """The sink. Exceptions are those of the connector."""
        try:
            sink = self._connector.open(opening)
        except RunError as error:
            self.failure = f"a sink could not be opened yet, and its results wait: {error}"
            raise
        self.failure = None
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
