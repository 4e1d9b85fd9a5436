"""Servers that accept a connection and say nothing: who asks them waits, and nobody else does.

The silent server never answers while a test runs: whatever waited for it would not return before the test is over.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cqels_py.engine import backlog
from cqels_py.engine.durable import logged
from cqels_py.errors import CqelsError, RunError
from cqels_py.service import query_sinks
from cqels_py.service import service as service_module
from cqels_py.service.allowed import Allowed
from cqels_py.service.definitions import QueryDefinition, StreamDefinition
from cqels_py.service.service import Pushed, Service
from tests.service.support import EX, HOT, READINGS, reading
from tests.support.servers import needed_module
from tests.support.silent_server import SilentServer, silent_server

SINKS = {
    "http": "http://127.0.0.1:{port}/results#retry=30s",
    "kafka": "kafka://127.0.0.1:{port}/results?retry=30s",
    "mqtt": "mqtt://127.0.0.1:{port}/results?retry=30s",
    "nats": "nats://127.0.0.1:{port}/results?retry=30s",
    "postgresql": "postgresql://127.0.0.1:{port}/results?retry=30s#results",
}
SOURCES = {
    "http": "http://127.0.0.1:{port}/readings",
    "kafka": "kafka://127.0.0.1:{port}/readings",
    "ldes": "ldes+http://127.0.0.1:{port}/readings",
    "mqtt": "mqtt://127.0.0.1:{port}/readings",
    "nats": "nats://127.0.0.1:{port}/readings",
    "websocket": "ws://127.0.0.1:{port}/readings",
}
MODULES = {"kafka": "confluent_kafka", "mqtt": "paho.mqtt.client", "nats": "nats", "postgresql": "psycopg"}
OTHER = f"{EX}other"
BOTH = HOT.replace(" FILTER", f" STREAM <{OTHER}> [RANGE 1h] {{ ?s ?p ?o }} FILTER")
SERVICE = HOT.replace(" FILTER", " SERVICE <http://127.0.0.1:%d/sparql> { ?s ?p ?o } FILTER")


@pytest.fixture(autouse=True)
def impatient(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those who wait for silent servers do so for a short time where they may give up, and each push looks for a snapshot."""
    monkeypatch.setattr(backlog, "_MOMENT", 0.05)
    monkeypatch.setattr(service_module, "CLOSED_WITHIN", 0.05)
    monkeypatch.setattr(logged, "LEAST", 1)
    monkeypatch.setattr(logged, "APART", 0.0)


@pytest.fixture
def server() -> Iterator[SilentServer]:
    with silent_server() as silent:
        yield silent


def _service(folder: Path, server: SilentServer) -> Service:
    schemes = ("http", "ws", "mqtt", "nats", "kafka", "postgresql", "ldes+http")
    urls = tuple(f"{scheme}://127.0.0.1:{server.port}/" for scheme in schemes)
    service = Service(folder, allowed=Allowed(urls=urls))
    service.put_stream("readings", StreamDefinition.of({"iri": READINGS}))
    return service


def _others_go_on(service: Service) -> None:
    """Elements are taken in, and other queries come and go, are asked, and have results."""
    _, running = service.put_query("second", QueryDefinition(HOT))
    before = running.store.last
    (taken,) = service.push([Pushed.of(service.stream("readings"), reading("a", 50), "nt", None)])
    assert not isinstance(taken, CqelsError)
    assert running.store.last == before + 1
    assert service.query_figures(running)["state"] == "running" and service.stream_figures("readings")["queries"]
    service.put_query("second", QueryDefinition(HOT.replace("30", "31")))
    service.delete_query("second")


class Call:
    """A call in a thread of its own. `error`: the program's, with which it has ended."""

    def __init__(self, call: Callable[[], object]) -> None:
        self._call = call
        self.error: CqelsError | None = None
        self.thread = threading.Thread(target=self._run, daemon=True)
        self.thread.start()

    def _run(self) -> None:
        try:
            self._call()
        except CqelsError as error:
            self.error = error

    def ended(self) -> CqelsError | None:
        """Wait for its end."""
        self.thread.join(60)
        assert not self.thread.is_alive()
        return self.error


def _url(pattern: str, name: str, server: SilentServer) -> str:
    if name in MODULES:
        needed_module(MODULES[name], name)
    return pattern.format(port=server.port)


@pytest.mark.parametrize("name", [name for name in SINKS if name != "http"])
def test_a_query_whose_sink_has_no_answer_is_refused_and_holds_nobody_up(
    name: str, server: SilentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    sink = _url(SINKS[name], name, server)
    monkeypatch.setattr(query_sinks, "OPENED_WITHIN", 600.0)
    service = _service(tmp_path, server)
    put = Call(lambda: service.put_query("first", QueryDefinition(HOT, sinks=(sink,))))
    assert server.asked.wait(60)
    _others_go_on(service)
    monkeypatch.setattr(query_sinks, "OPENED_WITHIN", 0.0)
    # Some clients wait for an answer for a time of their own.
    assert isinstance(put.ended(), RunError)
    assert not service.queries and not service.engine.queries
    service.close()


@pytest.mark.parametrize("name", SINKS)
def test_results_wait_for_a_sink_that_says_nothing(
    name: str, server: SilentServer, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Of a query with another text, after a restart, and until the query is removed."""
    sink = _url(SINKS[name], name, server)
    monkeypatch.setattr(query_sinks, "OPENED_WITHIN", 0.0)
    service = _service(tmp_path, server)
    service.put_query("first", QueryDefinition(HOT))
    service.put_query("first", QueryDefinition(HOT, sinks=(sink,)))
    _others_go_on(service)
    assert server.asked.wait(60)
    service.put_query("first", QueryDefinition(HOT.replace("30", "31"), sinks=(sink,)))
    _others_go_on(service)
    service.close()
    service = Service(tmp_path, allowed=service._allowed)
    _others_go_on(service)
    assert service.queries["first"].store.last == 3
    if name != "http":
        assert "its results wait" in service.query_figures(service.queries["first"])["failure"]
    service.delete_query("first")
    service.close()


@pytest.mark.parametrize("name", SOURCES)
def test_a_source_that_says_nothing_holds_nobody_up(name: str, server: SilentServer, tmp_path: Path) -> None:
    source = _url(SOURCES[name], name, server)
    service = _service(tmp_path, server)
    service.put_stream("other", StreamDefinition.of({"iri": OTHER, "source": source, "clock": "events"}))
    service.put_query("first", QueryDefinition(BOTH))
    assert server.asked.wait(60)
    _others_go_on(service)
    service.delete_query("first")
    service.delete_stream("other")
    service.put_stream("other", StreamDefinition.of({"iri": OTHER}))
    _others_go_on(service)
    service.close()


def test_an_endpoint_that_says_nothing_holds_nobody_up(server: SilentServer, tmp_path: Path) -> None:
    service = _service(tmp_path, server)
    put = Call(lambda: service.put_query("first", QueryDefinition(SERVICE % server.port)))
    assert server.asked.wait(60)
    _others_go_on(service)
    assert put.thread.is_alive()
    server.close()
    assert "SERVICE" in str(put.ended())
    assert not service.queries
    service.close()
