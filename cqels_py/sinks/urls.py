"""Sinks by URL: those of this package, and of others under the entry points `cqels_py.sinks`."""

from __future__ import annotations

from typing import Final

from cqels_py.connections.schemes import Schemes
from cqels_py.errors import UsageError
from cqels_py.sinks.protocol import SinkConnector

_BUILT_IN = {
    "duckdb": "cqels_py.sinks.duckdb:duckdb_sink",
    "http": "cqels_py.sinks.webhook:webhook_sink",
    "https": "cqels_py.sinks.webhook:webhook_sink",
    "kafka": "cqels_py.sinks.kafka:kafka_sink",
    "ldes": "cqels_py.sinks.ldes:ldes_sink",
    "mqtt": "cqels_py.sinks.mqtt:mqtt_sink",
    "mqtts": "cqels_py.sinks.mqtt:mqtt_sink",
    "nats": "cqels_py.sinks.nats:nats_sink",
    "parquet": "cqels_py.sinks.parquet:parquet_sink",
    "postgres": "cqels_py.sinks.postgresql:postgresql_sink",
    "postgresql": "cqels_py.sinks.postgresql:postgresql_sink",
    "sqlite": "cqels_py.sinks.sqlite:sqlite_sink",
}

SINKS: Final = Schemes("sink", "cqels_py.sinks", _BUILT_IN)


def sink_of(url: str) -> SinkConnector:
    """The connector of a URL. UsageError for one that is wrong, MissingExtra for a missing package."""
    if not SINKS.is_url(url):
        raise UsageError(f"{url!r} is not the URL of a sink; one is written like postgresql://localhost/weather#alerts")
    connector = SINKS.connector(url)
    if not isinstance(connector, SinkConnector):
        raise UsageError(
            f"{url}: its connector is {connector!r}, which has not the method open and the property changelog"
        )
    return connector
