"""Does `cqels serve` live through days of stream time with restarts, with right results, and flat memory and disk?

    python -m bench.suites.service_day [--hours H] [--restarts N] [--seed N]

H hours of stream time (default 72) are posted, 20 observations a second, always of new IRIs, with sensors that are new every hour.
In their first half the server ends N times (default 10) at random moments, by SIGKILL and SIGTERM in turn, and is started
again; the sender repeats a body, with its key, until it is answered, and readers go on behind the number of their last result.
Each query's results have to be those of an engine in one process that nothing disturbs, and in the last quarter the
server's memory and its folder at most a tenth larger than in the quarter before: otherwise the exit status is 1. Fewer hours say
less: memory grows for the first ten hours of a process, and the log until the next snapshot. Writes
bench/results/service_day.json.

The server has MALLOC_ARENA_MAX=1, as in deploy: with more arenas it takes some 100 MB more.
"""

from __future__ import annotations

import io
import json
import random
import signal
import socket
import sys
import tempfile
import threading
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any

import httpx
import pyarrow as pa

import cqels_py as cqels
from bench.suites.faults import Reader, post_until_answered, start, wait_until_ready
from bench.suites.outcome import folder_of, parser_of, taken_now
from cqels_py.sinks.files import open_sink
from cqels_py.suites import memory

HOURS, RESTARTS, SEED = 72.0, 10, 1
MOST_GROWTH = 0.1
EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
QUERIES = {
    "averages": "SELECT ?s (AVG(?v) AS ?a) { STREAM :s [RANGE 10m STEP 1m] { ?o :sensor ?s ; :value ?v } } GROUP BY ?s",
    "again": "SELECT ?s ?o { STREAM :s [RANGE 1m] { ?o :sensor ?s ; :value 100 } "
    "STREAM :s [RANGE 5m] { ?p :sensor ?s ; :value 0 } }",
    "sensors": "SELECT DISTINCT ?s { STREAM :s [RANGE 1h] { ?o :sensor ?s } }",
    "unconfirmed": "SELECT ?o { STREAM :s [NOW] { ?o :value 50 ; :sensor ?s } "
    "OPTIONAL { STREAM :s [RANGE 1m] { ?p :sensor ?s ; :value 51 } } FILTER(!BOUND(?p)) }",
    "rising": "SELECT ?s ?o { MATCH WITHIN 5s { EVENT ON :s { ?p :sensor ?s ; :value 0 } "
    "SEQ EVENT ON :s { ?o :sensor ?s ; :value ?b } } FILTER(?b > 40) }",
    "silent": "SELECT ?s (COUNT(*) AS ?n) { STREAM :s [SESSION 20s PARTITION BY ?s] { ?o :sensor ?s ; :value 7 } } GROUP BY ?s",
}
_KEPT = 4_000
"""Results that are kept of each query: half of the time has more of them, so that the folder does not grow any more."""
_PER_SECOND, _SENSORS = 20, 20
_AT_ONCE = 60
"""Seconds of stream time in each body."""
_BEGIN = 1_767_225_600
"""2026, in seconds."""
_INTEGER = "<http://www.w3.org/2001/XMLSchema#integer>"
_KIND = "application/vnd.apache.arrow.stream"
_PATIENCE = 300.0


def observations(minute: int) -> pa.Table:
    """The elements of a body: two triples each, in a graph of its own."""
    numbers = range(minute * _AT_ONCE * _PER_SECOND, (minute + 1) * _AT_ONCE * _PER_SECOND)
    subjects = [f"<{EX}o{number}>" for number in numbers]
    times = [(_BEGIN * 1_000 + number * 1_000 // _PER_SECOND) * 1_000 for number in numbers]
    hour = minute // 60
    sensors = [f"<{EX}s{hour}-{number * 7 % _SENSORS}>" for number in numbers]
    values = [f'"{number * 7919 % 101}"^^{_INTEGER}' for number in numbers]
    return pa.table(
        {
            "time": _twice(times, times),
            "graph": _twice(subjects, subjects),
            "subject": _twice(subjects, subjects),
            "predicate": [f"<{EX}sensor>", f"<{EX}value>"] * len(numbers),
            "object": _twice(sensors, values),
        }
    )


def _twice(firsts: Sequence[Any], seconds: Sequence[Any]) -> list[Any]:
    return [each for pair in zip(firsts, seconds, strict=True) for each in pair]


def arrow_stream(table: pa.Table) -> bytes:
    """The body of a request."""
    sink = pa.BufferOutputStream()
    with pa.ipc.new_stream(sink, table.schema) as writer:
        writer.write_table(table)
    return bytes(sink.getvalue())


@dataclass(frozen=True, slots=True)
class Sample:
    """After a minute of stream time, in megabytes."""

    minute: int
    memory_mb: float
    folder_mb: float


class Server:
    """`cqels serve` of a folder, which may end and is started again at its port."""

    def __init__(self, data: Path) -> None:
        self._data = data
        with socket.socket() as free:
            free.bind(("127.0.0.1", 0))
            self._port = free.getsockname()[1]
        self.base = f"http://127.0.0.1:{self._port}"
        self._start()

    def _start(self) -> None:
        self._process = start(self._data, self._port, {"MALLOC_ARENA_MAX": "1"})
        wait_until_ready(self.base)

    def restart(self, by: signal.Signals) -> None:
        """End it by a signal. AssertionError if it does not end as it should, or is not ready again."""
        self.end(by)
        self._start()

    def end(self, by: signal.Signals = signal.SIGTERM) -> None:
        self._process.send_signal(by)
        status = self._process.wait(_PATIENCE)
        assert status == (0 if by == signal.SIGTERM else -by), f"{by.name}: status {status}"

    def kill(self) -> None:
        """End it whatever it does."""
        self._process.kill()
        self._process.wait()

    def sample(self, minute: int) -> Sample:
        files = [path.stat().st_size for path in self._data.rglob("*") if path.is_file()]
        return Sample(minute, round(memory.now(self._process.pid), 1), round(sum(files) / 2**20, 1))


def register_all(base: str) -> None:
    """Stream s, and the queries over it."""
    with httpx.Client(base_url=base, timeout=_PATIENCE) as client:
        client.put("/streams/s", json={"iri": f"{EX}s", "clock": "events"}).raise_for_status()
        for name, text in QUERIES.items():
            given = {"text": PREFIX + text, "keep": _KEPT}
            client.put(f"/queries/{name}", json=given).raise_for_status()


@contextmanager
def reading(base: str, readers: Sequence[Reader]) -> Iterator[None]:
    """Inside, the readers follow their queries."""
    over = threading.Event()
    threads = [threading.Thread(target=reader.read, args=(base, over), daemon=True) for reader in readers]
    for thread in threads:
        thread.start()
    try:
        yield
    finally:
        over.set()
        for thread in threads:
            thread.join(_PATIENCE)


def restarts_at(minutes: int, count: int, drawn: random.Random) -> list[float]:
    """Moments in the first half of the day, in minutes of stream time."""
    return sorted(drawn.uniform(0, minutes / 2) for _ in range(count))


def send_day(server: Server, minutes: int, restarts: Sequence[float]) -> Iterator[Sample]:
    """Post the day, while the server is restarted in the middle of bodies; a sample every ten minutes of stream time."""
    signals = (signal.SIGKILL, signal.SIGTERM)
    done, never = 0, threading.Event()
    with httpx.Client(base_url=server.base, timeout=30) as client:
        for minute in range(minutes):
            body = arrow_stream(observations(minute))
            sending = threading.Thread(
                target=post_until_answered, args=(client, body, _KIND, f"minute {minute}", never)
            )
            sending.start()
            while done < len(restarts) and restarts[done] < minute + 1:
                # So that it may be before, in the middle of, or behind the body.
                time.sleep(restarts[done] % 1 / 20)
                server.restart(signals[done % 2])
                done += 1
            sending.join()
            if minute % 10 == 9:
                yield server.sample(minute + 1)


def expected(minutes: int) -> dict[str, list[str]]:
    """Each query's results from an engine that nothing disturbs, as lines."""
    files = {name: io.StringIO() for name in QUERIES}
    with cqels.Engine() as engine:
        for name, text in QUERIES.items():
            query = engine.register(PREFIX + text, name=name)
            sink = open_sink(
                "json", files[name], dictionary=engine.dictionary, form="SELECT", variables=query.variables
            )
            query.write_to(sink)
        for minute in range(minutes):
            engine.push_batch(f"{EX}s", observations(minute))
        return {name: file.getvalue().splitlines() for name, file in files.items()}


def differences(reader: Reader, lines: Sequence[str]) -> list[str]:
    """Results of the server that are not those expected, at most the first of them."""
    found = [json.loads(line) for _, line in sorted(reader.lines.items())]
    for each in found:
        del each["number"]
    wanted = [json.loads(line) for line in lines]
    wrong = [
        f"{reader.name}: result {at + 1} is {result}, not {other}"
        for at, (result, other) in enumerate(zip(found, wanted, strict=False))
        if result != other
    ][:1]
    if len(found) != len(wanted):
        wrong.append(f"{reader.name}: {len(found):,} results instead of {len(wanted):,}")
    return reader.wrong + wrong


def live_through(folder: Path, minutes: int, restarts: int, seed: int) -> dict[str, Any]:
    """The figures of a day, with all that was wrong."""
    server, readers = Server(folder / "data"), [Reader(name) for name in QUERIES]
    started = time.monotonic()
    try:
        register_all(server.base)
        with reading(server.base, readers):
            moments = restarts_at(minutes, restarts, random.Random(seed))
            samples = []
            for sample in send_day(server, minutes, moments):
                samples.append(sample)
                if sample.minute % 60 == 0:
                    print(f"{sample.minute // 60} hours: {sample}", file=sys.stderr, flush=True)
            took = time.monotonic() - started
            lines = expected(minutes)
            _wait_for_all(readers, lines)
        server.end()
    finally:
        server.kill()
    wrong = [each for reader in readers for each in differences(reader, lines[reader.name])]
    return {
        "hours": minutes / 60,
        "restarts": restarts,
        "elements": minutes * _AT_ONCE * _PER_SECOND,
        "results": {reader.name: len(reader.lines) for reader in readers},
        "seconds": round(took),
        "third_quarter": _quarter(samples, 2),
        "last_quarter": _quarter(samples, 3),
        "samples": [[sample.minute, sample.memory_mb, sample.folder_mb] for sample in samples],
        "wrong": wrong,
    }


def _wait_for_all(readers: Sequence[Reader], lines: dict[str, list[str]]) -> None:
    until = time.monotonic() + 60
    while any(reader.last < len(lines[reader.name]) for reader in readers) and time.monotonic() < until:
        time.sleep(0.1)


def _quarter(samples: Sequence[Sample], number: int) -> dict[str, float]:
    """The median of memory in a quarter of the day, and the folder when it was largest: it shrinks at each snapshot."""
    part = samples[number * len(samples) // 4 : (number + 1) * len(samples) // 4]
    return {
        "memory_mb": round(median(sample.memory_mb for sample in part), 1),
        "folder_mb": max(sample.folder_mb for sample in part),
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Run it; returns the exit status."""
    parser = parser_of("service_day", __doc__)
    parser.add_argument("--hours", type=float, metavar="H", help=f"of stream time; default {HOURS:g}")
    parser.add_argument("--restarts", type=int, metavar="N", help=f"default {RESTARTS}")
    parser.add_argument("--seed", type=int, default=SEED, metavar="N", help=f"default {SEED}")
    given = parser.parse_args(arguments)
    minutes = round(60 * (given.hours or (1 if given.quick else HOURS)))
    restarts = given.restarts if given.restarts is not None else 2 if given.quick else RESTARTS
    with tempfile.TemporaryDirectory(prefix="cqels-service-") as folder:
        figures = live_through(Path(folder), minutes, restarts, given.seed)
    path = taken_now("service_day", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick).write(
        folder_of(given)
    )
    before, last = figures["third_quarter"], figures["last_quarter"]
    grown = [each for each in before if last[each] > (1 + MOST_GROWTH) * before[each]]
    print(
        f"{figures['hours']:g} hours of stream time in {figures['seconds']} s, {restarts} restarts, "
        f"{figures['elements']:,} elements, {sum(figures['results'].values()):,} results; memory {before['memory_mb']} and "
        f"{last['memory_mb']} MB, folder {before['folder_mb']} and {last['folder_mb']} MB; wrong:"
    )
    print("\n".join(figures["wrong"]) or "nothing")
    print(f"written to {path}", file=sys.stderr)
    return 1 if figures["wrong"] or (grown and not given.quick) else 0


if __name__ == "__main__":
    sys.exit(main())
