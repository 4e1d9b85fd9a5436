"""Results as MQTT messages, against a real broker."""

from __future__ import annotations

import json
import logging
from contextlib import closing
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.support.outages import away, waits_until_back
from tests.support.servers import MqttBroker, wait_until


def shown(term: str | None) -> Any:
    """A term as in SPARQL 1.1 Query Results JSON Format."""
    if term is None:
        return None
    if term.startswith("<"):
        return {"type": "uri", "value": term[1:-1]}
    text, _, mark = term[1:].rpartition('"')
    value = text.replace("\\n", "\n").replace('\\"', '"').replace("\\\\", "\\")
    more = {"xml:lang": mark[1:]} if mark.startswith("@") else {"datatype": mark[3:-1]} if mark else {}
    return {"type": "literal", "value": value, **more}


def test_terms_with_one_text_are_reported_once(broker: MqttBroker, caplog: pytest.LogCaptureFixture) -> None:
    """Two retained messages would be one."""
    dictionary = Dictionary()
    sink = opened(f"{broker.url}/cities/{{room}}", dictionary)
    terms = ['"Paris"@fr', '"Paris"@en', '"Paris"@fr', '"Rome"', None, '"_"', '""', '"Paris"@en']
    with caplog.at_level(logging.WARNING, "cqels_py"):
        for _ in range(2):
            sink.write(batch(dictionary, [(term, '"1"') for term in terms]))
    sink.close()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "have the same topic, cities/Paris;" in said and '"Paris"@fr' in said and '"Paris"@en' in said


def test_it_keeps_the_protocol(broker: MqttBroker) -> None:
    received = broker.received("protocol")
    expected = [20, 20, 48, 48]

    def rows() -> list[Any]:
        bindings = [json.loads(body)["bindings"] for _, body in received.wait_for(expected.pop(0))]
        return [(row.get("a"), row.get("b")) for row in bindings]

    check_sink(lambda: sink_of(f"{broker.url}/protocol"), rows, shown=shown)
    received.close()


def opened(url: str, dictionary: Dictionary) -> Any:
    return sink_of(url).open(SinkOpening(dictionary=dictionary, form="SELECT", variables=("room", "v")))


def batch(dictionary: Dictionary, rows: list[tuple[str | None, str]]) -> ResultBatch:
    columns = tuple(dictionary.encode(list(column)) for column in zip(*rows, strict=True))
    return ResultBatch(("room", "v"), np.arange(len(rows)), np.ones(len(rows), np.int8), columns)


def test_values_in_topics(broker: MqttBroker) -> None:
    """What separates levels, or stands for several of them, is encoded; so is %."""
    received = broker.received("rooms/#")
    dictionary = Dictionary()
    sink = opened(f"{broker.url}/rooms/{{room}}/of/{{v}}?qos=0", dictionary)
    rooms = ["a/b", "+", "#", "5%", "k\u00fcche \u2028", "$SYS", "", "_", "__", "_a"]
    sink.write(batch(dictionary, [(f'"{room}"', "<http://e/x>") for room in rooms] + [(None, '"1"')]))
    sink.commit()
    topics = [topic for topic, _ in received.wait_for(11)]
    where = ["a%2Fb", "%2B", "%23", "5%25", "k%C3%BCche %E2%80%A8", "$SYS", "__", "%5F", "%5F_", "_a"]
    assert topics == [f"rooms/{place}/of/http:%2F%2Fe%2Fx" for place in where] + ["rooms/_/of/1"]
    sink.close()
    received.close()


def test_retained_results(broker: MqttBroker) -> None:
    dictionary = Dictionary()
    sink = opened(f"{broker.url}/latest/{{room}}?retain=yes", dictionary)
    sink.write(batch(dictionary, [('"k"', '"1"'), ('"k"', '"2"'), ('"c"', '"3"')]))
    sink.commit()
    sink.close()
    received = broker.received("latest/#")
    found = {topic: json.loads(body)["bindings"]["v"]["value"] for topic, body in received.wait_for(2)}
    assert found == {"latest/k": "2", "latest/c": "3"}
    received.close()


@pytest.mark.parametrize("qos", [0, 1])
def test_a_broker_that_goes_away_and_comes_back(broker: MqttBroker, qos: int) -> None:
    """Writing waits; nothing is lost."""
    dictionary = Dictionary()
    sink = opened(f"{broker.url}/back/{qos}?qos={qos}", dictionary)
    broker.stop()
    wait_until(lambda: not sink._client.is_connected(), "the client notices")

    def write() -> None:
        sink.write(batch(dictionary, [('"k"', f'"{n}"') for n in range(5)]))
        sink.commit()

    with waits_until_back(broker, write):
        received = broker.received(f"back/{qos}")
    found = [json.loads(body)["bindings"]["v"]["value"] for _, body in received.wait_for(5)]
    assert found == [str(n) for n in range(5)]
    sink.close()
    received.close()


def test_a_broker_that_stays_away(broker: MqttBroker) -> None:
    dictionary = Dictionary()
    sink = opened(f"{broker.url}/away?retry=300ms", dictionary)
    with away(broker), closing(sink):
        sink.write(batch(dictionary, [('"k"', '"1"')]))
        with pytest.raises(RunError, match=r"the broker's confirmation did not come within 0\.3 s"):
            sink.commit()


def test_what_is_wrong_is_said(broker: MqttBroker) -> None:
    for url in (broker.url, f"{broker.url}/a/#", f"{broker.url}/a/+"):
        with pytest.raises(UsageError, match="is no topic: put one behind the host, as in"):
            sink_of(url)
    with pytest.raises(UsageError, match=r"there is no variable 'rom'; there are room, v; did you mean room\?"):
        opened(f"{broker.url}/a/{{rom}}", Dictionary())
    with pytest.raises(UsageError, match="messages hold the results of SELECT and ASK"):
        sink_of(f"{broker.url}/a").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=()))
