"""NATS JetStream as a source, against a real server: positions, a server that is killed, consumers that are lost."""

from __future__ import annotations

import json
import sys
from collections.abc import Iterator
from itertools import count
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.sources.test_kafka import MAP, STREAM, Reader, element, nquads
from tests.support.live_runs import run_committed
from tests.support.servers import NatsServer, free_port, wait_until

NUMBERS = count(1)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    running = NatsServer(tmp_path_factory.mktemp("nats"))
    yield running
    running.stop()


@pytest.fixture
def subject(server: NatsServer) -> str:
    """A subject, with those below it, that no other test has; its stream has its name in capital letters."""
    name = f"s{next(NUMBERS)}"
    server.make(name.upper(), name, f"{name}.>")
    return name


def test_it_keeps_the_protocol(server: NatsServer, subject: str) -> None:
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    check_source(lambda: source_of(f"{server.url}/{subject}"), [element(n) for n in range(1, 6)])


def test_the_server_keeps_its_position(server: NatsServer, subject: str) -> None:
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    url = f"{server.url}/{subject}?position={subject}"
    check_source(lambda: source_of(url), [element(n) for n in range(1, 6)], resumes=True)


def test_malformed_messages(server: NatsServer, subject: str) -> None:
    server.publish(subject, nquads(1), b"nonsense", b"\xff", nquads(2))
    errors: list[DataError] = []
    reader = Reader(f"{server.url}/{subject}", on_error="skip", report=errors.append)
    assert reader.read(2) == [1, 2]
    reader.source.close()
    assert [error.element for error in errors] == ["nonsense", "\\xff"]


def test_json_through_a_map(server: NatsServer, subject: str) -> None:
    """With the time at which the server got it, and its subject; the content type counts for others."""
    server.publish(f"{subject}.kitchen", json.dumps({"sensor": "s1", "value": "x"}))
    dictionary = Dictionary()
    source = source_of(f"{server.url}/{subject}.*?time=arrival").open(
        Opening(stream=STREAM, number=0, dictionary=dictionary, map=MAP)
    )
    batches: list[Any] = []
    wait_until(lambda: len(batches.append(source.poll()) or batches[-1]) > 0, "an element")  # type: ignore[func-returns-value]
    source.close()
    (message,) = server.messages(subject.upper())
    assert abs(batches[-1].time.item(0) - message.time.timestamp() * 1e6) < 2
    assert set(dictionary.decode(batches[-1].object)) == {'"x"', f'"{subject}.kitchen"'}


def test_the_content_type(server: NatsServer, subject: str) -> None:
    body = (
        "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> . "
        ':g prov:generatedAtTime 1714564807000000 . :g { :s7 :v "7" }'
    )
    server.publish(subject, body, headers={"Content-Type": "application/trig"})
    reader = Reader(f"{server.url}/{subject}")
    assert reader.read(1) == [7]
    reader.source.close()


def test_where_it_begins(server: NatsServer, subject: str) -> None:
    server.publish(subject, nquads(1), nquads(2))
    second = server.messages(subject.upper())[1].time.isoformat()
    latest = Reader(f"{server.url}/{subject}?start=latest")
    since = Reader(f"{server.url}/{subject}?start={second.replace('+', '%2B')}")
    later = Reader(f"{server.url}/{subject}?start=2131-01-01T00:00:00Z")
    # Years that Python's dates do not have.
    latest_of_all = Reader(f"{server.url}/{subject}?start=20000-01-01T00:00:00Z")
    first_of_all = Reader(f"{server.url}/{subject}?start=-0044-03-15")
    server.publish(subject, nquads(3))
    assert latest.read(1) == [3]
    assert since.read(2) == [2, 3]
    assert later.read(1) == [3]
    assert latest_of_all.read(1) == [3]
    assert first_of_all.read(3) == [1, 2, 3]
    for reader in (latest, since, later, latest_of_all, first_of_all):
        reader.source.close()


def test_it_goes_on_at_a_position(server: NatsServer, subject: str) -> None:
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    reader = Reader(f"{server.url}/{subject}", position=2)
    assert reader.source.position()[0] == 2
    assert reader.read(3) == [3, 4, 5]
    assert reader.source.position()[0] == 5
    wait_until(lambda: not reader.source.behind, "the end of the stream")
    reader.source.close()


def _made_anew(server: NatsServer, subject: str, *bodies: str) -> None:
    server.do(lambda jetstream: jetstream.delete_stream(subject.upper()))
    server.make(subject.upper(), subject, f"{subject}.>")
    server.publish(subject, *bodies)


@pytest.mark.parametrize("later", [2, 4], ids=["fewer messages than before", "more"])
def test_a_stream_that_is_made_anew_while_it_is_read(
    later: int, server: NatsServer, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    """All of its messages come, wherever the former one was, and the loss is told."""
    server.publish(subject, nquads(1), nquads(2), nquads(3))
    reader = Reader(f"{server.url}/{subject}")
    assert reader.read(3) == [1, 2, 3]
    new = [*range(4, 4 + later)]
    _made_anew(server, subject, *map(nquads, new))
    assert reader.read(3 + later, seconds=60) == [1, 2, 3, *new]
    assert reader.source.position()[0] == later
    reader.source.close()
    assert any("was made anew, and is read from its beginning" in each.getMessage() for each in caplog.records)


@pytest.mark.parametrize("later", [2, 4], ids=["fewer messages than before", "more"])
def test_a_stream_that_is_made_anew_before_a_run_goes_on(
    later: int, server: NatsServer, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.publish(subject, nquads(1), nquads(2), nquads(3))
    url = f"{server.url}/{subject}?position={subject}"
    reader = Reader(url)
    assert reader.read(3) == [1, 2, 3]
    position = reader.source.position()
    reader.source.commit(position)
    reader.source.close()
    new = [*range(4, 4 + later)]
    _made_anew(server, subject, *map(nquads, new))
    for where in ({}, {"position": list(position)}):
        caplog.clear()
        reader = Reader(url, **where)
        assert reader.read(later) == new
        reader.source.close()
        assert "behind number 3 are lost" in caplog.text


def test_messages_that_are_no_longer_kept_are_counted(
    server: NatsServer, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    server.do(lambda jetstream: jetstream.purge_stream(subject.upper(), seq=4))
    reader = Reader(f"{server.url}/{subject}", position=1)
    assert reader.read(2) == [4, 5]
    reader.source.close()
    assert "up to 2 messages behind number 1 are lost" in caplog.text


def test_a_server_that_is_killed_and_comes_back(
    server: NatsServer, subject: str, caplog: pytest.LogCaptureFixture
) -> None:
    """The server has forgotten the consumer: another one goes on behind the last message."""
    reader = Reader(f"{server.url}/{subject}")
    server.publish(subject, nquads(1), nquads(2))
    assert reader.read(2) == [1, 2]
    server.stop()
    wait_until(lambda: reader.poll() == 0 and reader.source.behind, "the loss is noticed")
    server.start()
    server.publish(subject, nquads(3))
    assert reader.read(3, seconds=60) == [1, 2, 3]
    reader.source.close()
    said = [record.getMessage().rpartition(": ")[2] for record in caplog.records]
    assert said == ["disconnected; connecting again until the server is there", "connected again"]


def test_messages_that_the_consumer_left_out(server: NatsServer, subject: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As when an answer was lost with a connection: they are read again."""
    import nats.js.client

    fetch = nats.js.client.JetStreamContext.PullSubscription.fetch
    lost: list[int] = []

    async def losing(self: Any, *given: Any, **more: Any) -> list[Any]:
        messages = await fetch(self, *given, **more)
        if len(messages) > 2 and not lost:
            lost.append(messages[1].metadata.sequence.stream)
            del messages[1]
        return list(messages)

    monkeypatch.setattr(nats.js.client.JetStreamContext.PullSubscription, "fetch", losing)
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    reader = Reader(f"{server.url}/{subject}")
    assert reader.read(5) == [1, 2, 3, 4, 5]
    assert lost == [2]
    reader.source.close()


def test_in_an_engine(server: NatsServer, subject: str) -> None:
    server.publish(subject, *[nquads(n) for n in range(1, 6)])
    url = f"{server.url}/{subject}?position=engine"
    engine = Engine()
    query = engine.register(f"SELECT ?v WHERE {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://example.org/v> ?v }} }}")

    run_committed(engine, {STREAM: url}, 5)
    assert [str(result.bindings["v"]) for result in query.results()] == ["1", "2", "3", "4", "5"]
    engine.close()
    reader = Reader(url)
    assert reader.source.position()[0] == 5
    reader.source.close()


def test_what_is_wrong_is_said(server: NatsServer, subject: str) -> None:
    def refused(url: str, error: type[CqelsError], message: str) -> None:
        with pytest.raises(error, match=message):
            Reader(url).source.close()

    refused(server.url, UsageError, "names no subject: put one behind the host")
    refused(f"{server.url}/{subject}?start=noon", UsageError, "the option start is earliest, latest or a time")
    refused(f"{server.url}/{subject}?strat=noon", UsageError, "there is no option 'strat'; .*did you mean start")
    refused(
        f"{server.url}/nothing", RunError, "JetStream has no stream for 'nothing': make one, or name it with stream="
    )
    refused(f"{server.url}/{subject}?stream=none", RunError, "JetStream has no stream for")
    refused(f"{server.url}/{subject}?ca=/no/such.pem", UsageError, "the certificates cannot be read")


def test_a_server_that_is_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from cqels_py.connections import nats

    monkeypatch.setattr(nats, "CONNECTED_WITHIN", 1.0)
    port = free_port()
    with pytest.raises(RunError, match=rf"cannot connect to nats://127.0.0.1:{port}: .*[Cc]onnect"):
        Reader(f"nats://127.0.0.1:{port}/readings")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "nats", None)
    with pytest.raises(CqelsError, match=r"nats:// needs the package nats-py: pip install 'cqels_py\[nats\]'"):
        source_of("nats://localhost/a")
