"""The figures of the service for Prometheus."""

from __future__ import annotations

import time
from collections.abc import Iterator
from typing import Any

from cqels_py.engine.metrics import EngineCollector
from cqels_py.errors import MissingExtra
from cqels_py.service.following import Hub
from cqels_py.service.service import Service


class ServiceCollector:
    """Those of the engine, and by stream and query those of the service; queries have their names here."""

    def __init__(self, service: Service, hub: Hub, core: Any) -> None:
        self._service = service
        self._hub = hub
        self._core = core

    def collect(self) -> Iterator[Any]:
        """The figures as they are now."""
        for family in EngineCollector(self._service.engine).collect():
            # The engine knows queries by other names.
            if not family.name.startswith("cqels_query_"):
                yield family
        yield from self._streams()
        yield from self._queries()
        yield self._core.GaugeMetricFamily("cqels_subscribers", "Subscribers of results.", value=self._hub.count)
        up = time.time() - self._service.started
        yield self._core.GaugeMetricFamily("cqels_up_seconds", "Seconds since the start.", value=up)

    def _streams(self) -> Iterator[Any]:
        counter = self._core.CounterMetricFamily
        elements = counter("cqels_stream_elements", "Elements that were accepted.", labels=("stream",))
        refused = counter("cqels_stream_refused", "Bodies that could not be read.", labels=("stream",))
        for stream in list(self._service.streams.values()):
            elements.add_metric((stream.name,), stream.elements)
            refused.add_metric((stream.name,), stream.refused)
        yield elements
        yield refused

    def _queries(self) -> Iterator[Any]:
        gauge = self._core.GaugeMetricFamily
        results = self._core.CounterMetricFamily("cqels_query_results", "Results of a query.", labels=("query",))
        state = gauge("cqels_query_state_bytes", "Bytes of the state of a query.", labels=("query",))
        subscribers = gauge("cqels_query_subscribers", "Subscribers of a query.", labels=("query",))
        runs = gauge("cqels_query_runs", "1 if the query runs, 0 if it has failed.", labels=("query",))
        for each in list(self._service.queries.values()):
            results.add_metric((each.name,), each.store.last)
            subscribers.add_metric((each.name,), each.subscribers)
            runs.add_metric((each.name,), float(each.failure is None))
            if each.query is not None:
                state.add_metric((each.name,), each.query.nbytes)
        yield from (results, state, subscribers, runs)


def metrics_text(service: Service, hub: Hub) -> bytes:
    """All figures as text. MissingExtra without the package prometheus_client."""
    try:
        import prometheus_client
        import prometheus_client.metrics_core as core
    except ImportError:
        raise MissingExtra("metrics need the package prometheus_client: pip install 'cqels_py[service]'") from None
    registry = prometheus_client.CollectorRegistry()
    registry.register(ServiceCollector(service, hub, core))
    return prometheus_client.generate_latest(registry)
