"""Kafka as a source, against librdkafka's mock cluster: partitions, positions, offsets of groups, a cluster that goes away."""

from __future__ import annotations

import json
import random
import sys
import time
from collections.abc import Iterator
from itertools import count
from pathlib import Path
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.support.live_runs import run_committed, run_until
from tests.support.servers import KafkaCluster, free_port, wait_until

STREAM = "http://example.org/readings"
V = "<http://example.org/v>"
MAP = Mapping.of(
    "PREFIX : <http://example.org/> CONSTRUCT { ?s :v ?value ; :topic ?topic } "
    "WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) }"
)
NUMBERS = count(1)
NOON = 1_714_564_800_000_000
ALONE = "partitions=0"


@pytest.fixture(scope="module")
def cluster() -> Iterator[KafkaCluster]:
    yield KafkaCluster()


@pytest.fixture
def topic(request: pytest.FixtureRequest) -> str:
    """A topic that no other test has."""
    return f"t{next(NUMBERS)}-{request.function.__name__}"


def nquads(n: int) -> str:
    graph = f"<http://example.org/g{n}>"
    generated = "<http://www.w3.org/ns/prov#generatedAtTime>"
    return (
        f'{graph} {generated} "{NOON + 1_000_000 * n}"^^<http://www.w3.org/2001/XMLSchema#integer> .\n'
        f'<http://example.org/s{n}> {V} "{n}" {graph} .\n'
    )


def element(n: int) -> tuple[int, list[tuple[str, str, str]]]:
    return NOON + 1_000_000 * n, [(f"<http://example.org/s{n}>", V, f'"{n}"')]


class Reader:
    """A source that is read until it has given so many elements, of each of which the number is kept."""

    def __init__(self, url: str, **more: Any) -> None:
        self.dictionary = Dictionary()
        self.source: Any = source_of(url).open(Opening(stream=STREAM, number=0, dictionary=self.dictionary, **more))
        self.found: list[int] = []

    def poll(self) -> int:
        batch = self.source.poll()
        self.found += [int(str(text)[1:].partition('"')[0]) for text in self.dictionary.decode(batch.object)]
        return len(batch)

    def read(self, wanted: int, seconds: float = 20) -> list[int]:
        wait_until(lambda: self.poll() < 0 or len(self.found) >= wanted, f"{wanted} elements", seconds)
        return self.found

    def quiet(self, seconds: float = 0.3) -> None:
        """Nothing comes."""
        until = time.monotonic() + seconds
        while time.monotonic() < until:
            assert self.poll() == 0


def looks(reader: Reader) -> None:
    """A poll in which the cluster is asked, or its answer is taken."""
    reader.source._look_at = 0.0
    reader.poll()


def test_it_keeps_the_protocol(cluster: KafkaCluster, topic: str) -> None:
    """A topic that somebody has to begin with: without a group it begins with its first record each time."""
    cluster.put(topic, *[nquads(n) for n in range(1, 6)])
    check_source(lambda: source_of(f"{cluster.url}/{topic}?{ALONE}"), [element(n) for n in range(1, 6)])


def test_it_goes_on_where_a_group_is(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, *[nquads(n) for n in range(1, 6)])
    url = f"{cluster.url}/{topic}?{ALONE}&group=readers&start=group"
    check_source(lambda: source_of(url), [element(n) for n in range(1, 6)], resumes=True)


def test_malformed_records(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, nquads(1), b"nonsense", b"\xff", None, nquads(2))
    errors: list[DataError] = []
    url = f"{cluster.url}/{topic}?{ALONE}"
    reader = Reader(url, on_error="skip", report=errors.append)
    assert reader.read(2) == [1, 2]
    reader.source.close()
    assert [(error.place.source, error.place.line) for error in errors if error.place] == [
        (f"{url} partition 0", 1),
        (f"{url} partition 0", 2),
    ]
    reader = Reader(url)
    with pytest.raises(DataError, match=r"partition 0:1: "):
        reader.read(2)
    reader.source.close()


def test_json_through_a_map_with_the_records_time(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, json.dumps({"sensor": "s1", "value": "x"}), time=1_714_564_800_123)
    dictionary = Dictionary()
    source = source_of(f"{cluster.url}/{topic}?{ALONE}&time=arrival").open(
        Opening(stream=STREAM, number=0, dictionary=dictionary, map=MAP)
    )
    batch = source.poll()
    while batch is not None and not len(batch):
        batch = source.poll()
    source.close()
    assert batch is not None
    assert batch.time.tolist() == [1_714_564_800_123_000]
    assert set(dictionary.decode(batch.object)) == {'"x"', f'"{topic}"'}


@pytest.mark.parametrize("seed", range(5))
def test_partitions_are_merged_by_time(cluster: KafkaCluster, topic: str, seed: int) -> None:
    """However records are divided, and however many come at once, elements come in order of time; a reading that begins at any
    position has exactly those that follow there.
    """
    drawn = random.Random(seed)
    numbers = sorted(drawn.sample(range(1000), 60))
    parts: list[list[int]] = [[], [], []]
    for n in numbers:
        drawn.choice(parts).append(n)
    for partition, held in enumerate(parts):
        cluster.put(topic, *map(nquads, held), partition=partition)
    url = f"{cluster.url}/{topic}?partitions=0-2&idle=1s"
    reader = Reader(url)
    positions = {}
    until = time.monotonic() + 20
    while len(reader.found) < 60 and time.monotonic() < until:
        reader.poll()
        positions[len(reader.found)] = reader.source.position()
    reader.source.close()
    assert reader.found == numbers
    lowest = min(held[-1] for held in parts)
    # What is behind the lowest end has to wait until that partition is silent.
    assert numbers.index(lowest) + 1 in positions


def test_a_partition_that_is_behind_is_waited_for(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, nquads(1), nquads(3), partition=0)
    cluster.put(topic, nquads(2), partition=1)
    reader = Reader(f"{cluster.url}/{topic}?partitions=0,1&idle=1h")
    assert reader.read(2) == [1, 2]
    reader.quiet()
    assert not reader.source.idle
    assert reader.source.holds_before(NOON + 4_000_000)
    assert not reader.source.holds_before(NOON + 3_000_000)
    assert [len(ids) for ids in reader.source.live_ids()][:3].count(1) == 3
    cluster.put(topic, nquads(4), partition=1)
    assert reader.read(3) == [1, 2, 3]
    # With a clock, the clock is enough.
    reader.source.advance(NOON + 4_000_000)
    assert reader.read(4) == [1, 2, 3, 4]
    reader.source.close()


def test_a_partition_without_records_is_not_waited_for(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, nquads(1), nquads(2), partition=1)
    reader = Reader(f"{cluster.url}/{topic}?idle=1h")
    assert reader.read(2) == [1, 2]
    wait_until(lambda: reader.poll() < 0 or reader.source.caught_up, "the ends of all partitions")
    assert reader.source.position() == ((0, 0, 0), (1, 2, 0), (2, 0, 0), (3, 0, 0))
    reader.source.close()


def test_where_it_begins(cluster: KafkaCluster, topic: str) -> None:
    cluster.put(topic, nquads(1), nquads(2))
    latest = Reader(f"{cluster.url}/{topic}?{ALONE}&start=latest")
    unknown = Reader(f"{cluster.url}/{topic}?{ALONE}&start=group&group=nobody")
    # The mock cluster finds no offset for any time, as if all records were older.
    later = Reader(f"{cluster.url}/{topic}?{ALONE}&start=2031-01-01T00:00:00Z")
    cluster.put(topic, nquads(3))
    assert latest.read(1) == [3]
    assert unknown.read(3) == [1, 2, 3]
    assert later.read(1) == [3]
    for reader in (latest, unknown, later):
        reader.source.close()


def test_a_time_is_looked_up_by_partition(cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """As a cluster answers that knows times: the mock one does not."""
    import confluent_kafka

    asked: list[tuple[int, int]] = []

    class Knowing(confluent_kafka.Consumer):  # type: ignore[misc]
        def offsets_for_times(self, places: list[Any], timeout: float) -> list[Any]:
            asked.extend((place.partition, place.offset) for place in places)
            return [confluent_kafka.TopicPartition(topic, place.partition, 1) for place in places]

    monkeypatch.setattr(confluent_kafka, "Consumer", Knowing)
    cluster.put(topic, nquads(1), nquads(2))
    reader = Reader(f"{cluster.url}/{topic}?{ALONE}&start=2024-05-01T12:00:00Z")
    assert reader.read(1) == [2]
    assert asked == [(0, NOON // 1000)]
    reader.source.close()


def test_it_goes_on_at_a_position(cluster: KafkaCluster, topic: str) -> None:
    """In the midst of the records that came at once."""
    cluster.put(topic, *map(nquads, (1, 2, 3, 5)))
    cluster.put(topic, nquads(2), partition=1)
    url = f"{cluster.url}/{topic}?partitions=0,1&idle=1h"
    reader = Reader(url)
    assert reader.read(3) == [1, 2, 2]
    position = reader.source.position()
    assert position[1] == (1, 1, 0)
    reader.source.close()
    cluster.put(topic, nquads(7), partition=1)
    reader = Reader(url, position=position)
    assert reader.read(2) == [3, 5]
    reader.source.close()
    with pytest.raises(
        RunError, match=r"partition 0 has not the records from offset 9 on, .* there are those from 0 to 4"
    ):
        Reader(url, position=((0, 9, 0), (1, 0, 0)))


def test_brokers_that_go_away_and_come_back(
    cluster: KafkaCluster, topic: str, caplog: pytest.LogCaptureFixture
) -> None:
    """Meanwhile the source has not caught up; then it goes on behind what it has."""
    from confluent_kafka import KafkaError

    cluster.put(topic, nquads(1), nquads(2))
    reader = Reader(f"{cluster.url}/{topic}?{ALONE}")
    assert reader.read(2) == [1, 2]
    wait_until(lambda: reader.poll() < 0 or reader.source.caught_up, "the end")
    reader.source._on_error(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    assert not reader.source.caught_up
    wait_until(lambda: looks(reader) or not reader.source._away, "the brokers")
    assert not reader.source.caught_up
    cluster.put(topic, nquads(3))
    assert reader.read(3) == [1, 2, 3]
    wait_until(lambda: reader.poll() < 0 or reader.source.caught_up, "the end")
    reader.source.close()
    assert [record.getMessage().rpartition(": ")[2] for record in caplog.records] == [
        "no broker is there; connecting again until one is",
        "connected again",
    ]


def test_a_cluster_that_goes_away() -> None:
    """It is waited for: the reader keeps what it has, and says that it has not caught up."""
    short = KafkaCluster()
    short.put("short", nquads(1))
    reader = Reader(f"{short.url}/short?{ALONE}")
    assert reader.read(1) == [1]
    short.stop()
    wait_until(lambda: reader.poll() == 0 and not reader.source.caught_up, "the loss is noticed")
    reader.source.close()


def test_partitions_that_are_new(cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch) -> None:
    from cqels_py.connections.kafka import Cluster

    cluster.put(topic, nquads(1))
    cluster.put(topic, nquads(2), partition=2)
    with monkeypatch.context() as fewer:
        fewer.setattr(Cluster, "partitions", lambda self, client: [0, 1])
        reader = Reader(f"{cluster.url}/{topic}?idle=1h")
    assert reader.read(1) == [1]
    reader.quiet()
    wait_until(lambda: looks(reader) or len(reader.source._merge.partitions) == 4, "new partitions")
    cluster.put(topic, nquads(3))
    assert reader.read(2) == [1, 2]
    reader.source.close()


def test_partitions_that_are_ahead_are_paused(
    cluster: KafkaCluster, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """While partition 1 has nothing later, only so many records of partition 0 are taken in; nothing is lost."""
    from cqels_py.sources import kafka

    monkeypatch.setattr(kafka, "MOST_MESSAGES", 20)
    monkeypatch.setattr(kafka, "_AT_ONCE", 7)
    cluster.put(topic, *map(nquads, range(2, 102)))
    cluster.put(topic, nquads(1), partition=1)
    reader = Reader(f"{cluster.url}/{topic}?partitions=0,1&idle=1h")
    assert reader.read(1) == [1]
    reader.quiet(1)
    assert reader.source._paused == {0}
    assert reader.source._merge.partitions[0].messages < 40
    cluster.put(topic, nquads(200), partition=1)
    assert reader.read(101) == list(range(1, 102))
    reader.source.close()


def test_in_an_engine(cluster: KafkaCluster, topic: str) -> None:
    """A group is told what has been committed."""
    cluster.put(topic, *[nquads(n) for n in range(1, 6)])
    url = f"{cluster.url}/{topic}?{ALONE}&group=engine"
    engine = Engine()
    query = engine.register(f"SELECT ?v WHERE {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://example.org/v> ?v }} }}")

    run_committed(engine, {STREAM: url}, 5)
    assert [str(result.bindings["v"]) for result in query.results()] == ["1", "2", "3", "4", "5"]
    engine.close()
    reader = Reader(f"{url}&start=group")
    reader.quiet(1)
    reader.source.close()


def test_an_engine_with_a_checkpoint(cluster: KafkaCluster, topic: str, tmp_path: Path) -> None:
    """It goes on behind what its log has: each record has one result, and a window has those of before the restart."""
    url = f"{cluster.url}/{topic}?{ALONE}"
    text = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 1h] {{ ?s <http://example.org/v> ?v }} }}"
    found: list[str] = []

    def run(until: str) -> None:
        engine = Engine(checkpoint=tmp_path)
        engine.register(text, name="count").subscribe(lambda result: found.append(str(result.bindings["n"])))

        def is_enough(_: object) -> bool:
            engine.commit()
            return until in found

        run_until(engine, {STREAM: url}, is_enough)
        engine.close()

    cluster.put(topic, *[nquads(n) for n in range(1, 4)])
    run("3")
    cluster.put(topic, *[nquads(n) for n in range(4, 6)])
    run("5")
    assert sorted(set(found), key=int) == ["1", "2", "3", "4", "5"]


def test_what_is_wrong_is_said(cluster: KafkaCluster, topic: str) -> None:
    def refused(url: str, error: type[CqelsError], message: str) -> None:
        with pytest.raises(error, match=message):
            Reader(url).source.close()

    cluster.put(topic, nquads(1))
    refused(cluster.url, UsageError, "names no topic: put one behind the host")
    refused(f"{cluster.url}/{topic}?start=noon", UsageError, "the option start is earliest, latest, group or a time")
    refused(f"{cluster.url}/{topic}?start=group", UsageError, "name it with group=NAME")
    refused(f"{cluster.url}/{topic}?partitions=a", UsageError, "a list of numbers or ranges, such as 0-3,7")
    refused(f"{cluster.url}/{topic}?partitions=2-9", RunError, "has no partition 4; there are 4")
    refused(f"{cluster.url}/{topic}?group.id=x", UsageError, "the option group.id is set by cqels itself")
    refused(f"{cluster.url}/{topic}?partitons=1", UsageError, 'No such configuration property: "partitons"')
    refused(
        f"{cluster.url}/no-such-topic", RunError, "there is no topic 'no-such-topic' that can be used: .*Unknown topic"
    )


def test_brokers_that_are_not_there(monkeypatch: pytest.MonkeyPatch) -> None:
    from cqels_py.connections import kafka

    monkeypatch.setattr(kafka, "_ANSWER_WITHIN", 0.5)
    servers = f"127.0.0.1:{free_port()},127.0.0.1:{free_port()}"
    with pytest.raises(RunError, match=rf"cannot connect to {servers}: .*\(.*refused.*\)"):
        Reader(f"kafka://{servers}/readings")


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "confluent_kafka", None)
    with pytest.raises(
        CqelsError, match=r"kafka:// needs the package confluent-kafka: pip install 'cqels_py\[kafka\]'"
    ):
        source_of("kafka://localhost/a")
