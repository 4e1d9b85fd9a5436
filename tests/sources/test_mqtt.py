"""MQTT as a source, against a real broker: formats, acknowledgement, a broker that is killed, a reader that is killed."""

from __future__ import annotations

import json
import signal
import subprocess
import sys
import time
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.support.live_runs import run_committed
from tests.support.servers import MqttBroker, free_port, wait_until

STREAM = "http://example.org/readings"
V = "<http://example.org/v>"
MAP = Mapping.of(
    "PREFIX : <http://example.org/> CONSTRUCT { ?s :v ?value ; :topic ?topic } "
    "WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) }"
)


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test has."""
    return f"t{next(NUMBERS)}/{request.function.__name__}"


def nquads(n: int) -> str:
    graph = f"<http://example.org/g{n}>"
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    time = f'"2024-05-01T12:00:{n:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return f'{graph} {generated} {time} .\n<http://example.org/s{n}> {V} "{n}" {graph} .\n'


NUMBERS = count(1)
NOON = 1_714_564_800_000_000
ELEMENTS = [(NOON + 1_000_000 * n, [(f"<http://example.org/s{n}>", V, f'"{n}"')]) for n in range(1, 6)]


def read(source: Source, wanted: int, dictionary: Dictionary, seconds: float = 20) -> list[tuple[int, list[str]]]:
    """The time and the objects of so many elements."""
    found: list[tuple[int, list[str]]] = []

    def enough() -> bool:
        batch = source.poll()
        assert batch is not None
        objects = [str(text) for text in dictionary.decode(batch.object)]
        bounds = batch.first.tolist()
        found.extend((when, sorted(objects[bounds[e] : bounds[e + 1]])) for e, when in enumerate(batch.time.tolist()))
        return len(found) >= wanted

    wait_until(enough, f"{wanted} elements", seconds)
    return found


def opened(url: str, **more: Any) -> tuple[Source, Dictionary]:
    dictionary = Dictionary()
    return source_of(url).open(Opening(stream=STREAM, number=0, dictionary=dictionary, **more)), dictionary


def test_it_keeps_the_protocol(broker: MqttBroker, topic: str) -> None:
    """Each reading begins where the last commit was, also when it was not connected as the messages came."""
    url = f"{broker.url}/{topic}?client=reader"
    opened(url)[0].close()
    broker.publish(topic, *[nquads(n) for n in range(1, 6)])
    check_source(lambda: source_of(url), ELEMENTS, resumes=True)


def test_malformed_messages(broker: MqttBroker, topic: str) -> None:
    url = f"{broker.url}/{topic}?client=malformed"
    opened(url)[0].close()
    broker.publish(topic, nquads(1), b"nonsense", b"\xff", '{"@id": 5}', *[nquads(n) for n in range(2, 6)])
    errors: list[DataError] = []
    source, dictionary = opened(url, on_error="skip", report=errors.append)
    assert [objects for _, objects in read(source, 5, dictionary)] == [[f'"{n}"'] for n in range(1, 6)]
    source.close()
    assert [error.place.line for error in errors if error.place] == [2, 3, 4]
    assert [error.element for error in errors] == ["nonsense", "\\xff", '{"@id": 5}']
    source, dictionary = opened(url)
    with pytest.raises(DataError, match=rf"^mqtt://127.0.0.1:{broker.port}/.*:2: "):
        read(source, 5, dictionary)
    source.close()


TRIG = (
    "@prefix : <http://example.org/> . @prefix prov: <http://www.w3.org/ns/prov#> . "
    "@prefix xsd: <http://www.w3.org/2001/XMLSchema#> . "
)
TIMED = ':g prov:generatedAtTime "2024-05-01T12:00:07Z"^^xsd:dateTime . '
JSONLD = {
    "@context": {"@vocab": "http://example.org/"},
    "@id": "http://example.org/s7",
    "v": "7",
    "http://www.w3.org/ns/prov#generatedAtTime": {
        "@value": "2024-05-01T12:00:07Z", "@type": "http://www.w3.org/2001/XMLSchema#dateTime",
    },
}  # fmt: skip


@pytest.mark.parametrize(
    ("body", "options", "kind"),
    [
        (nquads(7), "", None),
        (TRIG + TIMED + ':g { :s7 :v "7" }', "?format=trig", None),
        (TRIG + TIMED + ':g { :s7 :v "7" }', "", "application/trig; charset=utf-8"),
        (json.dumps(JSONLD, indent=2), "", None),
    ],
)
def test_formats(broker: MqttBroker, topic: str, body: str, options: str, kind: str | None) -> None:
    source, dictionary = opened(f"{broker.url}/{topic}{options}")
    broker.publish(f"{topic}", body, body, kind=kind)
    found = read(source, 2, dictionary)
    source.close()
    assert [when for when, _ in found] == [NOON + 7_000_000] * 2
    assert all('"7"' in objects for _, objects in found)


def test_the_time_of_arrival(broker: MqttBroker, topic: str) -> None:
    """Elements without a time get that of their arrival; their own goes first."""
    source, dictionary = opened(f"{broker.url}/{topic}?time=arrival")
    before = time.time_ns() // 1000
    broker.publish(topic, f'<http://example.org/s> {V} "1" .', nquads(7), f'<http://example.org/s> {V} "2" .')
    (first, _), (own, _), (last, _) = read(source, 3, dictionary)
    source.close()
    assert own == NOON + 7_000_000
    assert before <= first <= last <= time.time_ns() // 1000


def test_an_element_without_a_time_is_malformed(broker: MqttBroker, topic: str) -> None:
    source, dictionary = opened(f"{broker.url}/{topic}")
    broker.publish(topic, f'<http://example.org/s> {V} "1" .')
    with pytest.raises(DataError, match="has no time"):
        read(source, 1, dictionary)
    source.close()


def test_json_through_a_map(broker: MqttBroker, topic: str) -> None:
    source, dictionary = opened(f"{broker.url}/{topic}/+?time=arrival", map=MAP)
    broker.publish(f"{topic}/k", '{\n"sensor": "s1",\n"value": 1, "time": 5}', '{"sensor": "s2", "value": 2.5}')
    (own, first), (_, second) = read(source, 2, dictionary)
    source.close()
    assert own == 5
    integer, double = (f"^^<http://www.w3.org/2001/XMLSchema#{name}>" for name in ("integer", "double"))
    assert first == [f'"1"{integer}', f'"{topic}/k"']
    assert second[0].endswith(double)


def test_retained_messages(broker: MqttBroker, topic: str) -> None:
    broker.publish(topic, nquads(1), retain=True)
    ignoring, dictionary = opened(f"{broker.url}/{topic}?client=a")
    taking, other = opened(f"{broker.url}/{topic}?client=b&retained=take")
    broker.publish(topic, nquads(2))
    assert [objects for _, objects in read(ignoring, 1, dictionary)] == [['"2"']]
    assert [objects for _, objects in read(taking, 2, other)] == [['"1"'], ['"2"']]
    ignoring.close()
    taking.close()
    broker.publish(topic, b"", retain=True)


def test_filters_with_a_hash(broker: MqttBroker, topic: str) -> None:
    source, dictionary = opened(f"{broker.url}/{topic}/#?client=hash&qos=0")
    broker.publish(f"{topic}/a/b", nquads(1), qos=0)
    assert [objects for _, objects in read(source, 1, dictionary)] == [['"1"']]
    source.close()


def test_messages_of_all_lengths(broker: MqttBroker, topic: str) -> None:
    """They come whole and in order, however the packets lie in the blocks that are read; with properties, too."""
    from cqels_py.sources.live import MessageQueue
    from cqels_py.sources.mqtt import MqttClient, MqttConnector

    connector = source_of(f"{broker.url}/{topic}/\u00fc/#?client=lengths")
    assert isinstance(connector, MqttConnector)
    queue = MessageQueue()
    client = MqttClient(connector, queue, STREAM)
    client.start()
    lengths = [0, 1, 20, 90, 127, 128, 1000, 16_383, 16_384, 262_144, 300_000, 0, 5]
    bodies = [bytes([65 + n]) * length for n, length in enumerate(lengths)]
    broker.publish(f"{topic}/\u00fc/a", *bodies, *[b"x" * 10] * 3000)
    broker.publish(f"{topic}/\u00fc/b", *bodies, kind="text/turtle")
    broker.publish(f"{topic}/\u00fc", b"last", qos=0)
    found: list[Any] = []
    wait_until(lambda: found.extend(queue.take(0.05) or ()) or len(found) >= 2 * len(lengths) + 3001, "all messages")
    client.close()
    assert [message.body for message in found] == [*bodies, *[b"x" * 10] * 3000, *bodies, b"last"]
    places = [(message.origin.removeprefix(topic), message.kind) for message in found]
    assert set(places) == {("/\u00fc/a", None), ("/\u00fc/b", "text/turtle"), ("/\u00fc", None)}
    assert [message.token is None for message in found].index(True) == len(found) - 1


def test_a_broker_that_is_killed_and_comes_back(broker: MqttBroker, topic: str) -> None:
    """Messages that were taken but not acknowledged are known again; nothing is lost, and nothing comes twice."""
    source, dictionary = opened(f"{broker.url}/{topic}?client=survivor")
    broker.publish(topic, nquads(1), nquads(2), nquads(3))
    found = read(source, 3, dictionary)
    source.commit(1)
    time.sleep(0.2)
    broker.stop()
    source.commit(2)
    broker.start()
    broker.publish(topic, nquads(4))
    found += read(source, 1, dictionary, 60)
    assert [objects for _, objects in found] == [[f'"{n}"'] for n in range(1, 5)]
    source.commit(4)
    source.close()
    after, _ = opened(f"{broker.url}/{topic}?client=survivor")
    batch = after.poll()
    after.close()
    assert batch is not None
    assert len(batch) == 0


def test_a_broker_that_has_lost_the_session_is_told(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    broker = MqttBroker(tmp_path)
    source, dictionary = opened(f"{broker.url}/lost?client=forgotten")
    broker.publish("lost", nquads(1))
    read(source, 1, dictionary)
    broker.stop()
    (tmp_path / "mosquitto.db").unlink(missing_ok=True)
    broker.start()
    wait_until(lambda: "the broker has no session of this client any more" in caplog.text, "the loss is told", 60)
    broker.publish("lost", nquads(2))
    read(source, 1, dictionary, 60)
    source.close()
    broker.stop()


READER = """
import sys
from cqels_py.dictionary import Dictionary
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of

source = source_of(sys.argv[1]).open(Opening(stream="http://example.org/readings", number=0, dictionary=Dictionary()))
print("open", flush=True)
taken = 0
while True:
    taken += len(source.poll())
    if taken >= 3:
        source.commit(1)
        print("taken", flush=True)
        taken = -1000
"""


def test_a_reader_that_is_killed_before_it_acknowledges(broker: MqttBroker, topic: str) -> None:
    """What was not committed comes again: QoS 1 may deliver twice, and loses nothing."""
    url = f"{broker.url}/{topic}?client=killed"
    with subprocess.Popen([sys.executable, "-c", READER, url], stdout=subprocess.PIPE, text=True) as reader:
        assert reader.stdout is not None
        assert reader.stdout.readline() == "open\n"
        broker.publish(topic, nquads(1), nquads(2), nquads(3))
        assert reader.stdout.readline() == "taken\n"
        time.sleep(0.5)
        reader.kill()
    broker.publish(topic, nquads(4))
    source, dictionary = opened(url)
    found = [objects for _, objects in read(source, 3, dictionary)]
    source.close()
    assert found == [['"2"'], ['"3"'], ['"4"']]


def test_in_an_engine(broker: MqttBroker, topic: str) -> None:
    """Messages are acknowledged once their results have been committed."""
    url = f"{broker.url}/{topic}?client=engine"
    opened(url)[0].close()
    broker.publish(topic, *[nquads(n) for n in range(1, 6)])
    engine = Engine()
    query = engine.register(
        f"SELECT ?s ?v WHERE {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://example.org/v> ?v }} }}"
    )

    run_committed(engine, {STREAM: url}, 5)
    # The end of a message is that of its element.
    assert len(list(query.results())) == 5
    engine.close()


def test_what_is_wrong_is_said(broker: MqttBroker) -> None:
    def refused(url: str, error: type[CqelsError], message: str) -> None:
        with pytest.raises(error, match=message):
            opened(url)[0].close()

    refused(broker.url, UsageError, "names no topics: put a filter behind the host")
    refused(f"{broker.url}/a/b+c", UsageError, "'a/b\\+c' is not a filter of topics")
    refused(f"{broker.url}/#/c", UsageError, "is not a filter of topics")
    refused(f"{broker.url}/a?qos=2", UsageError, "the option qos is an integer from 0 to 1, not '2'")
    refused(f"{broker.url}/a?qoss=1", UsageError, r"there is no option 'qoss'; there are .*; did you mean qos\?")
    refused(f"{broker.url}/a?ca=x.pem", UsageError, "the option ca is for mqtts://")
    refused(f"mqtts://127.0.0.1:{broker.port}/a?ca=/no/such.pem", UsageError, "the certificates cannot be read")
    refused(f"mqtt://127.0.0.1:{free_port()}/a", RunError, "cannot connect to 127.0.0.1:.*refused")


def test_a_session_that_another_client_takes_over(broker: MqttBroker, topic: str) -> None:
    """Both would take it from each other for ever. Brokers since mosquitto 2.0.15 say so, which is played here."""
    from paho.mqtt.packettypes import PacketTypes
    from paho.mqtt.reasoncodes import ReasonCode

    source, dictionary = opened(f"{broker.url}/{topic}?client=twins")
    client: Any = source._client  # type: ignore[attr-defined]
    client._on_disconnect(None, None, None, ReasonCode(PacketTypes.DISCONNECT, "Session taken over"), None)
    with pytest.raises(
        RunError, match="another client with the same id has taken the session over: give each run another"
    ):
        read(source, 1, dictionary)
    source.close()


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "paho.mqtt.client", None)
    with pytest.raises(CqelsError, match=r"mqtt:// needs the package paho-mqtt: pip install 'cqels_py\[mqtt\]'"):
        source_of("mqtt://localhost/a")


def test_a_run_of_the_command_line(broker: MqttBroker, topic: str, tmp_path: Path) -> None:
    """From a topic to another one. What was taken in is acknowledged within a second, though nothing comes any more."""
    results = broker.received("alerts/+")
    query = f"SELECT ?v WHERE {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://example.org/v> ?v }} }}"
    source = f"{STREAM}={broker.url}/{topic}?client=command"
    command = [
        sys.executable,
        "-m",
        "cqels_py",
        "run",
        "-q",
        query,
        "--stream",
        source,
        "-o",
        f"{broker.url}/alerts/{{v}}",
    ]
    opened(f"{broker.url}/{topic}?client=command")[0].close()
    broker.publish(topic, nquads(1), nquads(2))
    with subprocess.Popen(command, cwd=tmp_path, stderr=subprocess.PIPE, text=True) as run:
        found = results.wait_for(2)
        time.sleep(1.5)
        run.send_signal(signal.SIGTERM)
        assert run.stderr is not None
        said = run.stderr.read()
    assert run.returncode == 143, said
    assert [where for where, _ in found] == ["alerts/1", "alerts/2"]
    assert json.loads(found[0][1])["bindings"]["v"] == {"type": "literal", "value": "1"}
    after, _ = opened(f"{broker.url}/{topic}?client=command")
    assert sum(len(after.poll() or ()) for _ in range(3)) == 0
    after.close()
    results.close()
