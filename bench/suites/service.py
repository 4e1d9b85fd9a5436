"""How fast is `cqels serve`?

    python -m bench.suites.service [--seconds N] [--subscribers N] [--queries N] [--quick]

The load comes from this process, on the same machine. Elements as bodies of N-Quads of 5,000 elements, answered when they are on
the disk: triples a second. Then single elements at a fixed rate: the time from the begin of a POST to its result at a subscriber
(SSE), and the CPU time that the server and this process take for each. The same with many subscribers: results a second over all.
Then 10,000 elements a second, in bodies of ten, each with a result at a subscriber: alone, and while queries are registered and
removed, two a second. Last, so many queries of ten kinds over one stream: how long their registration takes, and elements a second
beside ten queries. The disk's own time for a sync is in the figures. Writes bench/results/service.json.
"""

from __future__ import annotations

import asyncio
import itertools
import os
import socket
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import httpx

from bench.suites.durable import sync_seconds
from bench.suites.faults import start, wait_until_ready
from bench.suites.http_load import Posts, Subscriber, request
from bench.suites.outcome import folder_of, parser_of, taken_now

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
SECONDS, SUBSCRIBERS, QUERIES = 8.0, 1_000, 1_000
_WARMING = 1.0
"""Seconds for which elements are posted before latency is measured."""
_IN_A_BODY, _RATE, _CONNECTIONS = 5_000, 1_000, 64
_TOGETHER, _BODIES = 10, 1_000
"""Elements in a small body, and such bodies a second."""
_APART = 0.5
"""Seconds between registrations."""
_ADDED = (
    "SELECT ?k (AVG(?x) AS ?m) { STREAM :s [RANGE 1s] { ?k :a ?x } } GROUP BY ?k",
    "SELECT ?k ?x ?y { STREAM :s [RANGE 1s] { ?k :a ?x } STREAM :b [RANGE 1s] { ?k :b ?y } }",
    "SELECT DISTINCT ?x { STREAM :s [RANGE 2s] { ?k :a ?x } }",
    "SELECT ?k ?x { STREAM :s [RANGE 2s] { ?k :a ?x } } ORDER BY ?x LIMIT 10",
)
_DOUBLE = "<http://www.w3.org/2001/XMLSchema#double>"


@dataclass(frozen=True, slots=True)
class Served:
    """A server. `base`: its address."""

    base: str
    process: int

    def cpu_seconds(self) -> float:
        """CPU time that it has taken."""
        fields = Path(f"/proc/{self.process}/stat").read_text().rpartition(")")[2].split()
        return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


@contextmanager
def served(folder: Path) -> Iterator[Served]:
    """Inside, a server of an empty folder."""
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    folder.mkdir()
    process = start(folder / "data", port)
    base = f"http://127.0.0.1:{port}"
    try:
        wait_until_ready(base)
        httpx.put(f"{base}/streams/s", json={"iri": f"{EX}s"}).raise_for_status()
        yield Served(base, process.pid)
    finally:
        process.terminate()
        try:
            process.wait(60)
        except subprocess.TimeoutExpired:
            process.kill()


def register(client: httpx.Client, name: str, text: str) -> None:
    kind = {"Content-Type": "application/sparql-query"}
    client.put(f"/queries/{name}", content=PREFIX + text, headers=kind, timeout=300).raise_for_status()


def body(first: int, count: int) -> bytes:
    """Observations of 50 sensors, each of two triples in a graph."""
    lines = []
    for number in range(first, first + count):
        graph = f"<{EX}g{number}>"
        lines.append(f"<{EX}o{number}> <{EX}sensor> <{EX}s{number % 50}> {graph} .\n")
        lines.append(f'<{EX}o{number}> <{EX}value> "{number % 1000}.5"^^{_DOUBLE} {graph} .\n')
    return "".join(lines).encode()


def ingest(base: str, seconds: float) -> dict[str, float]:
    """Triples a second, with a query over them."""
    with httpx.Client(base_url=base, timeout=60) as client:
        register(client, "high", "SELECT ?o ?v { STREAM :s [COUNT 1000] { ?o :value ?v } FILTER(?v > 998) }")
        bodies = [body(at * _IN_A_BODY, _IN_A_BODY) for at in range(8)]
        kind = {"Content-Type": "application/n-quads"}
        client.post("/streams/s", content=bodies[0], headers=kind).raise_for_status()
        sent, times = 0, []
        started = time.perf_counter()
        while time.perf_counter() - started < seconds:
            begun = time.perf_counter()
            client.post("/streams/s", content=bodies[sent % len(bodies)], headers=kind).raise_for_status()
            times.append(time.perf_counter() - begun)
            sent += 1
        took = time.perf_counter() - started
    return {
        "triples_per_second": round(2 * sent * _IN_A_BODY / took),
        "post_ms": round(1000 * statistics.median(times), 1),
    }


async def latency(served: Served, seconds: float, subscribers: int) -> dict[str, float]:
    """Milliseconds from a POST to its result at the first subscriber; results a second over all; CPU time for each element."""
    seen: dict[str, float] = {}
    host, path = served.base.partition("://")[2], "/queries/all/results"
    following = [await Subscriber.connected(host, path, seen if not number else None) for number in range(subscribers)]
    posts = await Posts.connected(host, "/streams/s", "application/n-triples", _CONNECTIONS)
    sent: dict[str, float] = {}
    rate = _RATE if subscribers == 1 else 10
    count, cpu, own, started = round(rate * seconds), served.cpu_seconds(), time.process_time(), time.perf_counter()
    for number in range(count):
        if (early := started + number / rate - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        name = f"n{subscribers}-{number}"
        sent[name] = time.perf_counter()
        posts.post(f'<{EX}{name}> <{EX}n> "{name}" .\n'.encode())
    await posts.all_answered()
    cpu, own, took = served.cpu_seconds() - cpu, time.process_time() - own, time.perf_counter() - started
    await asyncio.sleep(1.0)
    posts.close()
    for each in following:
        each.close()
    assert not posts.failures, posts.failures[0]
    times = sorted(1000 * (seen[name] - sent[name]) for name in sent if name in seen)
    return {
        "elements_per_second": rate,
        "p50_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[len(times) * 99 // 100], 1),
        "results_per_second": round(sum(each.count for each in following) / took),
        "lost": count - len(times),
        "server_cpu_ms": round(1000 * cpu / count, 2),
        "load_cpu_ms": round(1000 * own / count, 2),
    }


async def registering(served: Served, seconds: float) -> dict[str, dict[str, float]]:
    """Milliseconds from a POST of a small body to its result: alone, and while queries are registered."""
    host = served.base.partition("://")[2]
    found = {"alone": await _small_bodies(host, "alone", seconds)}
    over, took = asyncio.Event(), list[float]()
    others = asyncio.create_task(_registrations(host, over, took))
    beside = await _small_bodies(host, "beside", seconds)
    over.set()
    await others
    median = {"registered": len(took), "registration_ms": round(1000 * statistics.median(took), 1)}
    return {**found, "beside": beside | median}


async def _small_bodies(host: str, phase: str, seconds: float) -> dict[str, float]:
    """Bodies at a fixed rate: milliseconds from when each was due until its result."""
    seen: dict[str, float] = {}
    subscriber = await Subscriber.connected(host, "/queries/firsts/results", seen)
    posts = await Posts.connected(host, "/streams/s", "application/n-triples", _CONNECTIONS)
    due: dict[str, float] = {}
    started = time.perf_counter()
    for number in range(round(_BODIES * seconds)):
        name = f"{phase}{number}"
        due[name] = started + number / _BODIES
        if (early := due[name] - time.perf_counter()) > 0:
            await asyncio.sleep(early)
        posts.post(_small_body(number, name))
    await posts.all_answered()
    await asyncio.sleep(1.0)
    posts.close()
    subscriber.close()
    assert not posts.failures, posts.failures[0]
    times = sorted(1000 * (seen[name] - due[name]) for name in due if name in seen)
    return {
        "elements_per_second": _BODIES * _TOGETHER,
        "p50_ms": round(times[len(times) // 2], 1),
        "p99_ms": round(times[len(times) * 99 // 100], 1),
        "worst_ms": round(times[-1], 1),
        "lost": len(due) - len(times),
    }


def _small_body(number: int, name: str) -> bytes:
    """Elements of 100 sensors, the first of which has a name."""
    keys = [f"{EX}k{(number * _TOGETHER + at) % 100}" for at in range(_TOGETHER)]
    lines = [f'<{EX}n{name}> <{EX}n> "{name}" .']
    lines += [f'<{key}> <{EX}a> "{number % 50}.5"^^{_DOUBLE} .' for key in keys[1:]]
    return "\n".join(lines).encode()


async def _registrations(host: str, over: asyncio.Event, took: list[float]) -> None:
    """Register queries and remove them until it is `over`; the seconds that each registration took."""
    for number in itertools.count():
        with suppress(TimeoutError):
            await asyncio.wait_for(over.wait(), _APART)
        if over.is_set():
            return
        begun, path = time.perf_counter(), f"/queries/r{number}"
        text = (PREFIX + _ADDED[number % len(_ADDED)]).encode()
        answer = await request(host, "PUT", path, "application/sparql-query", text)
        assert answer.startswith(b"HTTP/1.1 201"), answer
        took.append(time.perf_counter() - begun)
        if number:
            await request(host, "DELETE", f"/queries/r{number - 1}")


def many(base: str, seconds: float, queries: int) -> dict[str, float]:
    """Seconds for registration, and elements a second, beside ten queries and beside so many."""
    found: dict[str, float] = {}
    kind = {"Content-Type": "application/n-quads"}
    with httpx.Client(base_url=base, timeout=60) as client:
        for name, first, last in (("ten", 0, 10), ("many", 10, queries)):
            begun = time.perf_counter()
            for number in range(first, last):
                register(client, f"q{number}", _query(number))
            found[f"registration_s_{name}"] = round(time.perf_counter() - begun, 1)
            sent, started = 0, time.perf_counter()
            while time.perf_counter() - started < seconds:
                client.post("/streams/s", content=body(sent, 200), headers=kind).raise_for_status()
                sent += 200
            found[f"elements_per_second_{name}"] = round(sent / (time.perf_counter() - started))
    return found


def _query(number: int) -> str:
    """Ten kinds, each with constants of its own."""
    sensor = f"<{EX}s{number % 50}>"
    return (
        f"SELECT ?o {{ STREAM :s [COUNT 100] {{ ?o :sensor {sensor} }} }}",
        f"SELECT ?v {{ STREAM :s [COUNT 100] {{ ?o :sensor {sensor} ; :value ?v }} }}",
        f"SELECT (COUNT(*) AS ?n) {{ STREAM :s [RANGE 1m] {{ ?o :sensor {sensor} }} }}",
        f"SELECT (AVG(?v) AS ?a) {{ STREAM :s [RANGE 10s] {{ ?o :sensor {sensor} ; :value ?v }} }}",
        f"SELECT (MAX(?v) AS ?a) {{ STREAM :s [COUNT 50] {{ ?o :sensor {sensor} ; :value ?v }} }}",
        f"SELECT DISTINCT ?v {{ STREAM :s [COUNT 50] {{ ?o :sensor {sensor} ; :value ?v }} }}",
        f"ASK {{ STREAM :s [RANGE 5s] {{ ?o :sensor {sensor} }} }}",
        f"SELECT ?o {{ STREAM :s [RANGE 5s] {{ ?o :value ?v }} FILTER(?v > {900 + number % 90}) }}",
        f"CONSTRUCT {{ ?o a :Seen }} {{ STREAM :s [COUNT 10] {{ ?o :sensor {sensor} }} }}",
        f"SELECT ?o {{ STREAM :s [RANGE 5s STEP 1s] {{ ?o :sensor {sensor} }} }}",
    )[number % 10]


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = parser_of("service", __doc__)
    parser.add_argument("--seconds", type=float, metavar="N", help=f"of each part; default {SECONDS:g}")
    parser.add_argument("--subscribers", type=int, metavar="N", help=f"default {SUBSCRIBERS:,}")
    parser.add_argument("--queries", type=int, metavar="N", help=f"default {QUERIES:,}")
    given = parser.parse_args(arguments)
    seconds = given.seconds or (1.0 if given.quick else SECONDS)
    subscribers = given.subscribers or (5 if given.quick else SUBSCRIBERS)
    figures: dict[str, Any] = {}
    with tempfile.TemporaryDirectory(prefix="cqels-service-") as name:
        folder = Path(name)
        figures["sync_ms"] = round(sync_seconds(folder) * 1000, 3)
        with served(folder / "ingest") as server:
            figures["ingest"] = ingest(server.base, seconds)
        with served(folder / "latency") as server:
            with httpx.Client(base_url=server.base) as client:
                register(client, "all", "SELECT ?n { STREAM :s [COUNT 100] { ?x :n ?n } }")
            # Not of a server's first elements, for which it loads kernels.
            asyncio.run(latency(server, _WARMING, 1))
            figures["latency"] = asyncio.run(latency(server, seconds, 1))
            figures["subscribers"] = {"subscribers": subscribers} | asyncio.run(latency(server, seconds, subscribers))
        with served(folder / "registering") as server:
            with httpx.Client(base_url=server.base) as client:
                register(client, "firsts", "SELECT ?n { STREAM :s [COUNT 100] { ?x :n ?n } }")
                register(client, "means", "SELECT ?k (AVG(?x) AS ?m) { STREAM :s [RANGE 1s] { ?k :a ?x } } GROUP BY ?k")
            asyncio.run(_small_bodies(server.base.partition("://")[2], "first", _WARMING))
            figures["registering"] = asyncio.run(registering(server, seconds))
        with served(folder / "many") as server:
            figures["queries"] = many(server.base, seconds, given.queries or (20 if given.quick else QUERIES))
    path = taken_now("service", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick).write(folder_of(given))
    for part, found in figures.items():
        print(f"{part}: {found}")
    print(f"written to {path}", file=sys.stderr)
    return 1 if figures["latency"]["lost"] else 0


if __name__ == "__main__":
    sys.exit(main())
