"""Results as messages of NATS JetStream, against a real server."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import closing
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.sinks.test_mqtt import batch, opened, shown
from tests.support.outages import away, waits_until_back
from tests.support.servers import NatsServer


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[NatsServer]:
    running = NatsServer(tmp_path_factory.mktemp("nats"))
    yield running
    running.stop()


def values(server: NatsServer, stream: str) -> list[tuple[str, str]]:
    """The subject of each message, and the value of ?v."""
    return [
        (message.subject, json.loads(message.data)["bindings"]["v"]["value"]) for message in server.messages(stream)
    ]


def test_it_keeps_the_protocol(server: NatsServer) -> None:
    server.make("PROTOCOL", "protocol")

    def rows() -> list[Any]:
        messages = server.messages("PROTOCOL")
        assert [int(each.headers["Cqels-Number"]) for each in messages] == list(range(1, len(messages) + 1))
        bindings = [json.loads(each.data)["bindings"] for each in messages]
        return [(row.get("a"), row.get("b")) for row in bindings]

    check_sink(lambda: sink_of(f"{server.url}/protocol"), rows, shown=shown)


def test_values_in_subjects(server: NatsServer) -> None:
    """What separates tokens, or stands for several of them, is encoded; so are spaces and %."""
    server.make("ROOMS", "rooms.>")
    dictionary = Dictionary()
    sink = opened(f"{server.url}/rooms.{{room}}.of", dictionary)
    rooms = ["a.b", "*", ">", "5%", "a b", "küche", "a/b", "", "_"]
    sink.write(batch(dictionary, [(f'"{room}"', f'"{n}"') for n, room in enumerate(rooms)] + [(None, '"x"')]))
    sink.commit()
    sink.close()
    places = ["a%2Eb", "%2A", "%3E", "5%25", "a%20b", "k%C3%BCche", "a/b", "__", "%5F", "_"]
    assert [subject for subject, _ in values(server, "ROOMS")] == [f"rooms.{place}.of" for place in places]


def test_a_message_that_the_server_has_already(server: NatsServer) -> None:
    """As when its confirmation was lost: it is sent again, and is there once."""
    server.make("TWICE", "twice")
    dictionary = Dictionary()
    sink = opened(f"{server.url}/twice", dictionary)
    sink.write(batch(dictionary, [('"k"', f'"{n}"') for n in range(3)]))
    messages = list(sink._messages)
    sink.commit()
    sink._messages = messages
    sink.commit()
    sink.close()
    again = opened(f"{server.url}/twice", dictionary)
    again.write(batch(dictionary, [('"k"', '"other run"')]))
    again.commit()
    again.close()
    assert [value for _, value in values(server, "TWICE")] == ["0", "1", "2", "other run"]


def test_a_server_that_goes_away_and_comes_back(server: NatsServer) -> None:
    """Writing waits; nothing is lost."""
    server.make("BACK", "back")
    dictionary = Dictionary()
    sink = opened(f"{server.url}/back", dictionary)
    server.stop()

    def write() -> None:
        sink.write(batch(dictionary, [('"k"', f'"{n}"') for n in range(5)]))
        sink.commit()

    with waits_until_back(server, write):
        pass
    sink.close()
    assert sorted(value for _, value in values(server, "BACK")) == [str(n) for n in range(5)]


def test_a_server_that_stays_away(server: NatsServer, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("cqels_py.sinks.nats._CONFIRMED_WITHIN", 0.1)
    server.make("AWAY", "away")
    dictionary = Dictionary()
    sink = opened(f"{server.url}/away?retry=300ms", dictionary)
    with away(server), closing(sink):
        sink.write(batch(dictionary, [('"k"', '"1"')]))
        with pytest.raises(RunError, match=r"no success within 0\.3 s \(retry=\)"):
            sink.commit()


def test_what_is_wrong_is_said(server: NatsServer) -> None:
    for url in (f"{server.url}/a.*", f"{server.url}/a.>", f"{server.url}/a..b"):
        with pytest.raises(UsageError, match="is no subject: put one behind the host, as in"):
            sink_of(url)
    with pytest.raises(UsageError, match=r"there is no variable 'rom'; there are room, v; did you mean room\?"):
        opened(f"{server.url}/a.{{rom}}", Dictionary())
    with pytest.raises(UsageError, match="messages hold the results of SELECT and ASK"):
        sink_of(f"{server.url}/a").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=()))
    dictionary = Dictionary()
    sink = opened(f"{server.url}/nobody", dictionary)
    sink.write(batch(dictionary, [('"k"', '"1"')]))
    with pytest.raises(RunError, match="no stream of JetStream takes these subjects"):
        sink.flush()
    sink.close()
