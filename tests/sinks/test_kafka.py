"""Results as records of Kafka, against librdkafka's mock cluster, which ignores transactions; a producer plays their order."""

from __future__ import annotations

import json
import logging
from collections.abc import Iterator
from typing import Any

import numpy as np
import pytest

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.sinks.test_mqtt import shown
from tests.support.servers import KafkaCluster, needed_module


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    yield KafkaCluster()


def test_it_keeps_the_protocol(cluster: KafkaCluster) -> None:
    """Without doubles by number. What the topic has already is not written again."""
    cluster.put("protocol", partition=0)

    def rows() -> list[Any]:
        records = {int(dict(record.headers())["cqels-number"]): record for record in cluster.records("protocol")}
        bindings = [json.loads(records[number].value())["bindings"] for number in sorted(records)]
        assert sorted(records) == list(range(1, len(records) + 1))
        return [(row.get("a"), row.get("b")) for row in bindings]

    check_sink(lambda: sink_of(f"{cluster.url}/protocol"), rows, shown=shown, exactly_once=True)


def opened(url: str, dictionary: Dictionary, **more: Any) -> Any:
    return sink_of(url).open(SinkOpening(dictionary=dictionary, form="SELECT", variables=("room", "v"), **more))


def batch(dictionary: Dictionary, rows: list[tuple[str | None, str]]) -> ResultBatch:
    columns = tuple(dictionary.encode(list(column)) for column in zip(*rows, strict=True))
    return ResultBatch(("room", "v"), np.arange(len(rows)), np.ones(len(rows), np.int8), columns)


def test_keys(cluster: KafkaCluster, caplog: pytest.LogCaptureFixture) -> None:
    """Records without a key and with an empty one differ; one key of several terms is reported, as compaction would keep one."""
    cluster.put("keys", partition=0)
    dictionary = Dictionary()
    sink = opened(f"{cluster.url}/keys?key=room", dictionary)
    with caplog.at_level(logging.WARNING, "cqels_py"):
        sink.write(
            batch(
                dictionary,
                [('"urn:k"', '"1"'), (None, '"2"'), ("<http://e/x>", '"3"'), ('""', '"4"'), ("<urn:k>", '"5"')],
            )
        )
    sink.commit()
    sink.close()
    (said,) = [record.getMessage() for record in caplog.records]
    assert "have the same key, urn:k;" in said and "<urn:k>" in said and '"urn:k"' in said
    found = {json.loads(record.value())["bindings"]["v"]["value"]: record.key() for record in cluster.records("keys")}
    assert found == {"1": b"urn:k", "2": None, "3": b"http://e/x", "4": b"", "5": b"urn:k"}


def test_a_new_run_begins_anew(cluster: KafkaCluster) -> None:
    """And one that continues before its first transaction has nothing that could be left out."""
    cluster.put("anew", partition=0)
    for written, expected in ((None, 3), (3, 5), (None, 8), (0, 8)):
        dictionary = Dictionary()
        sink = opened(f"{cluster.url}/anew", dictionary, written=written)
        if expected != 8 or written is None:
            count = 2 if written == 3 else 3
            sink.write(batch(dictionary, [('"k"', f'"{n}"') for n in range(count)]))
        sink.commit()
        sink.close()
        assert len(cluster.records("anew")) == expected
        assert sink._held == (3 if written != 3 else 5)


class Playing:
    """A producer that notes what it is asked for, and fails where it is told to; aborted records do not count."""

    def __init__(self, failures: dict[str, list[Any]]) -> None:
        self.calls: list[str] = []
        self.committed: list[tuple[str, str]] = []
        self._failures = failures
        self._open: list[tuple[str, str]] = []

    def __call__(self, settings: dict[str, Any]) -> Playing:
        self.settings = settings
        return self

    def list_topics(self, topic: str, timeout: float) -> Any:
        from types import SimpleNamespace

        return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=[0])})

    def init_transactions(self, timeout: float) -> None:
        self._call("init")

    def begin_transaction(self) -> None:
        self._call("begin")
        self._open = []

    def produce(self, topic: str, body: bytes, **more: Any) -> None:
        self._call("produce")
        number = more["headers"]["cqels-number"] if "headers" in more else str(json.loads(body)["number"])
        self._open.append((topic, number))

    def commit_transaction(self, timeout: float) -> None:
        self._call("commit")
        self.committed += self._open

    def abort_transaction(self, timeout: float) -> None:
        self._call("abort")

    def poll(self, timeout: float) -> None: ...

    def _call(self, name: str) -> None:
        if not self.calls or self.calls[-1] != name:
            self.calls.append(name)
        waiting = self._failures.get(name, [])
        failure = waiting.pop(0) if waiting else None
        if failure is not None:
            raise failure


def failed(**how: bool) -> Any:
    import confluent_kafka

    return confluent_kafka.KafkaException(
        confluent_kafka.KafkaError(confluent_kafka.KafkaError._TIMED_OUT, "away", **how)
    )


NEW = [("alerts-progress", "0")]
ONE = [*NEW, ("alerts", "1"), ("alerts", "2"), ("alerts-progress", "2")]
CASES = {
    "nothing fails": ({}, "init begin produce commit begin produce commit", ONE),
    "a commit whose outcome is not known is asked for again": (
        {"commit": [None, {"retriable": True}, {"retriable": True}]},
        "init begin produce commit begin produce commit",
        ONE,
    ),
    "a transaction that has to be aborted is made again": (
        {"commit": [None, {"txn_requires_abort": True}]},
        "init begin produce commit begin produce commit abort begin produce commit",
        ONE,
    ),
    "a full queue is waited for": (
        {"produce": [None, BufferError(), BufferError()]},
        "init begin produce commit begin produce commit",
        ONE,
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_order_of_a_transaction(case: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Records and their last number are committed together, once, however often the cluster fails."""
    kafka = needed_module("confluent_kafka", "kafka")
    failures, calls, committed = CASES[case]
    made = {
        name: [failed(**each) if isinstance(each, dict) else each for each in waiting]
        for name, waiting in failures.items()  # type: ignore[attr-defined]
    }
    producer = Playing(made)
    monkeypatch.setattr(kafka, "Producer", producer)
    monkeypatch.setattr("cqels_py.connections.retry.FIRST", 0.001)
    dictionary = Dictionary()
    sink = opened("kafka://nowhere/alerts?id=me", dictionary)
    sink.write(batch(dictionary, [('"k"', '"1"'), ('"k"', '"2"')]))
    sink.flush()
    sink.flush()
    assert sink.commit() == 2
    assert " ".join(producer.calls) == calls
    assert producer.committed == committed
    assert producer.settings["transactional.id"] == "me"


def test_a_cluster_that_stays_away(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = needed_module("confluent_kafka", "kafka")
    producer = Playing({"commit": [None, *[failed(retriable=True) for _ in range(1000)]]})
    monkeypatch.setattr(kafka, "Producer", producer)
    dictionary = Dictionary()
    sink = opened("kafka://nowhere/alerts?retry=300ms", dictionary)
    sink.write(batch(dictionary, [('"k"', '"1"')]))
    with pytest.raises(RunError, match=r"no success within 0\.3 s \(retry=\): away"):
        sink.commit()
    assert producer.committed == NEW


def test_another_run_with_the_same_id(monkeypatch: pytest.MonkeyPatch) -> None:
    kafka = needed_module("confluent_kafka", "kafka")
    fenced = kafka.KafkaException(kafka.KafkaError(kafka.KafkaError._FENCED, "fenced", fatal=True))
    monkeypatch.setattr(kafka, "Producer", Playing({"commit": [None, fenced]}))
    dictionary = Dictionary()
    sink = opened("kafka://nowhere/alerts?id=me", dictionary)
    sink.write(batch(dictionary, [('"k"', '"1"')]))
    with pytest.raises(RunError, match=r"another run writes with the id me, .*: give each run another id=NAME"):
        sink.commit()


def test_what_is_wrong_is_said(cluster: KafkaCluster) -> None:
    def refused(url: str, error: type[CqelsError], message: str) -> None:
        with pytest.raises(error, match=message):
            opened(url, Dictionary())

    cluster.put("wrong", partition=0)
    refused(cluster.url, UsageError, "names no topic")
    refused(f"{cluster.url}/wrong?key=rom", UsageError, r"there is no variable 'rom'; .*did you mean room\?")
    refused(f"{cluster.url}/wrong?enable.idempotence=false", UsageError, "is set by cqels itself")
    with pytest.raises(UsageError, match="records hold the results of SELECT and ASK"):
        sink_of(f"{cluster.url}/wrong").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=()))
