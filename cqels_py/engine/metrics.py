"""The counts of an engine in the form that Prometheus collects.

prometheus_client asks for them whenever they are collected. Counts never wait for the engine; the size of a query's state waits for
the step that is running.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from typing import Any

from cqels_py.engine.engine import Engine
from cqels_py.errors import MissingExtra, UsageError
from cqels_py.runners.statistics import Statistics

HOST = "127.0.0.1"
_COUNTS = {
    "elements": "Elements that were taken in.",
    "triples": "Triples that were taken in.",
    "results": "Results that were made.",
    "no_numbers": "Values that came to a SUM or AVG and are no numbers.",
    "subscriber_errors": "Exceptions of subscribers that were reported.",
}


class EngineCollector:
    """Collects the counts of an engine: `prometheus_client.REGISTRY.register(EngineCollector(engine))`.

    cqels_elements_total, cqels_triples_total, cqels_results_total, cqels_no_numbers_total and cqels_subscriber_errors_total count;
    cqels_rejected_total counts by the labels stream and reason. cqels_event_time_seconds is the time of the last element, and
    cqels_event_time_lag_seconds how far the computer's clock is ahead of it. By the label query (its name, or its number from 1 in
    order of registration): cqels_query_state_bytes and cqels_query_waiting_results. cqels_terms and cqels_terms_bytes are the terms
    in the dictionary. MissingExtra without the package prometheus_client.
    """

    def __init__(self, engine: Engine, clock: Callable[[], float] = time.time) -> None:
        _client()
        self._engine = engine
        self._clock = clock

    def collect(self) -> Iterator[Any]:
        """The metrics, as they are now."""
        statistics = self._engine.statistics
        yield from self._counts(statistics)
        yield from self._times(statistics)
        yield from self._sizes()

    def _counts(self, statistics: Statistics) -> Iterator[Any]:
        core = _client().metrics_core
        for name, help_ in _COUNTS.items():
            yield core.CounterMetricFamily(f"cqels_{name}", help_, value=getattr(statistics, name))
        rejected = core.CounterMetricFamily(
            "cqels_rejected", "Elements that were left out.", labels=("stream", "reason")
        )
        for labels, count in statistics.rejected.items():
            rejected.add_metric(labels, count)
        yield rejected

    def _times(self, statistics: Statistics) -> Iterator[Any]:
        if statistics.event_time is None:
            return
        gauge = _client().metrics_core.GaugeMetricFamily
        seconds = statistics.event_time / 1e6
        yield gauge("cqels_event_time_seconds", "The event time of the last element.", value=seconds)
        lag = self._clock() - seconds
        yield gauge("cqels_event_time_lag_seconds", "The computer's clock minus the event time.", value=lag)

    def _sizes(self) -> Iterator[Any]:
        gauge = _client().metrics_core.GaugeMetricFamily
        state = gauge("cqels_query_state_bytes", "Bytes of the state of a query.", labels=("query",))
        waiting = gauge("cqels_query_waiting_results", "Results that nobody has taken yet.", labels=("query",))
        for number, query in enumerate(self._engine.queries, 1):
            name = query.name or str(number)
            state.add_metric((name,), query.nbytes)
            waiting.add_metric((name,), query.waiting)
        yield state
        yield waiting
        dictionary = self._engine.dictionary
        yield gauge("cqels_terms", "Terms in the dictionary.", value=len(dictionary))
        yield gauge("cqels_terms_bytes", "Bytes of the dictionary.", value=dictionary.nbytes)


@contextmanager
def metrics_served(engine: Engine, port: int, host: str = HOST) -> Iterator[str]:
    """Inside, the metrics of the engine are served over HTTP; gives their address. Port 0: one that is free.

    UsageError where the port cannot be opened.
    """
    client = _client()
    registry = client.CollectorRegistry()
    registry.register(EngineCollector(engine))
    client.ProcessCollector(registry=registry)
    try:
        server, thread = client.start_http_server(port, host, registry)
    except OSError as error:
        raise UsageError(f"the metrics cannot be served at port {port}: {error.strerror}") from None
    try:
        yield f"http://{host}:{server.server_port}/metrics"
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


def _client() -> Any:
    try:
        import prometheus_client
        import prometheus_client.metrics_core
    except ImportError:
        raise MissingExtra("metrics need the package prometheus_client: pip install 'cqels_py[metrics]'") from None
    return prometheus_client
