"""Sources by URL: those of this package, and of others under the entry points `cqels_py.sources`."""

from __future__ import annotations

from typing import Final

from cqels_py.connections.schemes import Schemes
from cqels_py.errors import UsageError
from cqels_py.sources.protocol import Connector

_BUILT_IN = {
    "dir": "cqels_py.sources.folder:folder_source",
    "http": "cqels_py.sources.http:http_source",
    "https": "cqels_py.sources.http:http_source",
    "kafka": "cqels_py.sources.kafka:kafka_source",
    "ldes+http": "cqels_py.sources.ldes.connector:ldes_source",
    "ldes+https": "cqels_py.sources.ldes.connector:ldes_source",
    "mqtt": "cqels_py.sources.mqtt:mqtt_source",
    "mqtts": "cqels_py.sources.mqtt:mqtt_source",
    "tail": "cqels_py.sources.tail:tail_source",
    "nats": "cqels_py.sources.nats:nats_source",
    "ws": "cqels_py.sources.websocket:websocket_source",
    "wss": "cqels_py.sources.websocket:websocket_source",
}

_TABLE = "a table is static data (--static, static=), read again with refresh=, or an output"
_TABLES = dict.fromkeys(("sqlite", "duckdb", "postgresql", "postgres"), _TABLE)
SOURCES: Final = Schemes("source", "cqels_py.sources", _BUILT_IN, _TABLES)


def source_of(url: str) -> Connector:
    """The connector of a URL. UsageError for one that is wrong, MissingExtra for a missing package."""
    connector = SOURCES.connector(url)
    if not isinstance(connector, Connector):
        raise UsageError(f"{url}: its connector is {connector!r}, which has no method open")
    return connector
