"""Connectors at full speed: JSON through a mapping from a file, MQTT at QoS 1, Kafka, and upserts into PostgreSQL.

    python -m bench.suites.connectors [--quick] [--rounds N] [--output FOLDER]

from the repository's root; it needs mosquitto with mosquitto_pub and PostgreSQL (scripts/install_test_servers), which it starts
itself on 127.0.0.1. The messages are flat JSON objects of three members, made elements of two triples by a CONSTRUCT with one
BIND. From the file and from MQTT a query counts by sensor in a window of 10 s, and each change of its answer is delivered. The
publisher of MQTT is a process of its own; publisher, broker and engine share the machine, so the CPU time of each is printed as
a share of the time that passes. The engine acknowledges what it has processed with a commit each 0.1 s. For PostgreSQL the
answer has 50,000 groups, and each element changes another one, so every element is a row that is inserted or updated; the
server syncs each transaction. bench/results/connectors.json has all rounds. `--quick` tests that everything runs; its figures
are meaningless.
"""

from __future__ import annotations

import json
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.console import Console
from rich.table import Table

import cqels_py as cqels
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from cqels_py.sources.protocol import Opening
from cqels_py.sources.urls import source_of
from tests.support.servers import MqttBroker, PostgresServer, program

STREAM = "http://ex.org/readings"
MAPPING = (
    "PREFIX : <http://ex.org/> CONSTRUCT { ?s :v ?value ; :at ?time } "
    "WHERE { BIND(IRI(CONCAT('http://ex.org/', ?sensor)) AS ?s) }"
)
COUNTS = "PREFIX : <http://ex.org/> SELECT ?s (COUNT(*) AS ?n) WHERE { STREAM :readings [RANGE 10s] { ?s :v ?v } } GROUP BY ?s"
_START = 1_700_000_000_000_000
_SENSORS, _GROUPS = 100, 50_000


@dataclass
class Case:
    """Messages or rows a second, a round each; `shares`: of the time that passed, the CPU time of each process, in medians."""

    name: str
    per_second: list[float]
    shares: dict[str, float]


def messages(count: int, sensors: int) -> Iterator[str]:
    """Lines of JSON, one millisecond apart."""
    for n in range(count):
        yield json.dumps({"time": _START + 1000 * n, "sensor": f"s{n % sensors}", "value": n % 97})


@contextmanager
def written(count: int, sensors: int) -> Iterator[Path]:
    with tempfile.TemporaryDirectory() as folder:
        path = Path(folder, "readings.ndjson")
        path.write_text("".join(f"{line}\n" for line in messages(count, sensors)))
        yield path


def engine_with(changelog: bool) -> tuple[cqels.Engine, cqels.Query]:
    engine = cqels.Engine()
    return engine, engine.register(COUNTS, changelog=changelog)


def from_file(count: int, rounds: int) -> Case:
    rates = []
    with written(count, _SENSORS) as path:
        for _ in range(rounds):
            engine, query = engine_with(changelog=False)
            query.subscribe_batches(lambda batch: None, ids=True)
            started = time.perf_counter()
            engine.run({STREAM: str(path)}, maps={STREAM: cqels.Mapping.of(MAPPING)}, threads=1)
            rates.append(count / (time.perf_counter() - started))
            engine.close()
    return Case("JSON through a mapping, from a file, 1 thread", rates, {})


def to_postgresql(count: int, rounds: int) -> Case:
    rates = []
    with written(count, _GROUPS) as path, tempfile.TemporaryDirectory() as folder:
        server = PostgresServer(Path(folder), fsync=True)
        for _ in range(rounds):
            engine, query = engine_with(changelog=True)
            query.write_to(f"{server.url}#counts?mode=upsert")
            started = time.perf_counter()
            engine.run({STREAM: str(path)}, maps={STREAM: cqels.Mapping.of(MAPPING)}, threads=1)
            rates.append(count / (time.perf_counter() - started))
            engine.close()
        server.stop()
    return Case("JSON from a file, upserts into PostgreSQL", rates, {})


class _Enough(Exception):
    """All messages have come."""


def from_mqtt(count: int, rounds: int) -> Case:
    rates: list[float] = []
    shares: list[dict[str, float]] = []
    with written(count, _SENSORS) as path, tempfile.TemporaryDirectory() as folder:
        broker = MqttBroker(Path(folder), autosave=False)
        for _ in range(rounds):
            broker_before = cpu_of(broker.pid)
            passed, own, publisher = _published_into(broker, path, count)
            of_broker = cpu_of(broker.pid) - broker_before
            rates.append(count / passed)
            shares.append({"publisher": publisher / passed, "broker": of_broker / passed, "engine": own / passed})
        broker.stop()
    return Case(
        "MQTT at QoS 1, from mosquitto", rates, {who: median(each[who] for each in shares) for who in shares[0]}
    )


def from_kafka(count: int, rounds: int) -> Case:
    rates: list[float] = []
    shares: list[dict[str, float]] = []
    chunk = max(1, count // 20)
    with written(count, _SENSORS) as path:
        for _ in range(rounds):
            command = [sys.executable, "-m", "bench.suites.kafka_producer", str(path), "readings", str(chunk)]
            with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE) as producer:
                assert producer.stdin is not None and producer.stdout is not None
                servers = producer.stdout.readline().decode().strip()
                passed, own, other = _consumed(f"kafka://{servers}/readings", count, chunk, producer)
                producer.stdin.close()
            rates.append(count / passed)
            shares.append({"producer and cluster": other / passed, "engine": own / passed})
    return Case(
        "Kafka, produced while consumed", rates, {who: median(each[who] for each in shares) for who in shares[0]}
    )


def _consumed(url: str, count: int, chunk: int, producer: subprocess.Popen[bytes]) -> tuple[float, float, float]:
    """Seconds until all records have been processed, and the CPU time of the engine's process and of the producer's."""
    assert producer.stdin is not None
    engine, query = engine_with(changelog=False)
    query.subscribe_batches(lambda batch: None, ids=True)
    chunks = iter(range(0, count, chunk))
    ahead = 3 * chunk

    def produce_ahead_of(elements: int) -> None:
        nonlocal asked
        while asked < elements + ahead and next(chunks, None) is not None:
            producer.stdin.write(b".")
            producer.stdin.flush()
            asked += chunk

    asked = 0
    due = time.monotonic()

    def look(statistics: Any) -> None:
        nonlocal due
        produce_ahead_of(statistics.elements)
        if time.monotonic() >= due:
            engine.commit()
            due = time.monotonic() + 0.1
        if statistics.elements + statistics.late >= count:
            raise _Enough

    produce_ahead_of(0)
    other_before, own_before, started = cpu_of(producer.pid), time.process_time(), time.perf_counter()
    with suppress(_Enough):
        engine.run({STREAM: f"{url}?idle=200ms"}, maps={STREAM: cqels.Mapping.of(MAPPING)}, progress=look)
    passed, own = time.perf_counter() - started, time.process_time() - own_before
    other = cpu_of(producer.pid) - other_before
    engine.close()
    return passed, own, other


def _published_into(broker: MqttBroker, path: Path, count: int) -> tuple[float, float, float]:
    """Publish the messages into an engine; seconds from then on, and CPU time of the engine's process and of the publisher's."""
    engine, query = engine_with(changelog=False)
    query.subscribe_batches(lambda batch: None, ids=True)
    # The session begins before the first message.
    url = f"{broker.url}/readings?client=bench"
    source_of(url).open(Opening(stream=STREAM, number=0, dictionary=engine.dictionary)).close()
    options = ["-p", str(broker.port), "-t", "readings", "-q", "1", "-V", "5", "-l"]
    own_before, started = time.process_time(), time.perf_counter()
    with path.open("rb") as lines:
        publisher = subprocess.Popen([program("mosquitto_pub", "mosquitto-clients"), *options], stdin=lines)
    due = time.monotonic()
    used = 0.0

    def look(statistics: Any) -> None:
        nonlocal due, used
        used = max(used, cpu_of(publisher.pid))
        if publisher.poll():
            raise RuntimeError("the publisher failed")
        if time.monotonic() >= due:
            engine.commit()
            due = time.monotonic() + 0.1
        if statistics.elements >= count:
            engine.commit()
            raise _Enough

    with suppress(_Enough):
        engine.run({STREAM: url}, maps={STREAM: cqels.Mapping.of(MAPPING)}, progress=look)
    passed, own = time.perf_counter() - started, time.process_time() - own_before
    publisher.wait(60)
    engine.close()
    return passed, own, used


def cpu_of(pid: int) -> float:
    """Seconds of CPU time of a process; 0 once it has ended."""
    try:
        fields = Path(f"/proc/{pid}/stat").read_text().rpartition(")")[2].split()
    except OSError:
        return 0.0
    return (int(fields[11]) + int(fields[12])) / 100


def table(cases: Sequence[Case]) -> Table:
    shown = Table("from, to", "a second", "lowest … highest", "share of a core")
    for case in cases:
        shares = ", ".join(f"{who} {share:.0%}" for who, share in case.shares.items())
        shown.add_row(
            case.name,
            f"{median(case.per_second):,.0f}",
            f"{min(case.per_second):,.0f} … {max(case.per_second):,.0f}",
            shares,
        )
    return shown


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("connectors", __doc__)
    add_rounds(parser, "rounds of each case")
    given = parser.parse_args(arguments)
    rounds, scale = (1, 200) if given.quick else (given.rounds, 1)
    measured: Sequence[tuple[Callable[[int, int], Case], int]] = (
        (from_file, 500_000),
        (from_mqtt, 50_000),
        (from_kafka, 500_000),
        (to_postgresql, 200_000),
    )
    cases = [measure(count // scale, rounds) for measure, count in measured]
    Console().print(table(cases))
    figures = {"mapping": MAPPING, "query": COUNTS, "cases": [asdict(case) for case in cases]}
    libraries = ("psycopg",)
    question = (__doc__ or "").split("\n\n")[0]
    found = taken_now("connectors", question, figures, quick=given.quick, libraries=libraries)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
