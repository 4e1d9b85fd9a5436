"""How soon is silence told under the wall clock, and do memory and disk stay flat over a day with kills?

    python -m bench.suites.live [--seconds S] [--hours H] [--kills N] [--quick]

Two parts. Readings leave a window of 300 ms while nothing else comes: the time from the instant at which each does so until a
subscriber is told, where a program pushes, and where a run reads a pipe, S seconds each (default 60). Then H hours of stream time
(default 24, a reading a second of each of 20 sensors) through an engine with a checkpoint, in a process that is killed N times
(default 20) at random moments: its memory, and the size of the checkpoint, in the second and the last quarter of the day. Writes
bench/results/live.json.
"""

from __future__ import annotations

import os
import random
import signal
import subprocess
import sys
import tempfile
import threading
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import cqels_py as cqels
from bench.suites.outcome import folder_of, parser_of, taken_now

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
STREAM = f"{EX}readings"
SILENCE = PREFIX + "SELECT ?s { STREAM :readings [RANGE 300ms] { ?s :value ?v } }"
DAY = {
    "average": "SELECT ?s (AVG(?v) AS ?a) { STREAM :readings [RANGE 10m STEP 1m] { ?s :value ?v } } GROUP BY ?s",
    "silent": "SELECT ?s { STREAM :readings [RANGE 30s] { ?s :value ?v } }",
    "rising": "SELECT ?s { MATCH WITHIN 5s { EVENT ON :readings { ?s :value ?a } SEQ EVENT ON :readings { ?s :value ?b } } "
    "FILTER(?b > ?a + 95) }",
}
SECONDS, HOURS, KILLS = 60, 24, 20
SENSORS = 20
_MICROSECONDS = 1_000_000
_BEGIN = 1_767_225_600
"""2026, in seconds."""
_AT_ONCE = 60
"""Seconds of stream time in each table."""


class Lags:
    """Milliseconds from the instant at which each reading has left its window until that is told."""

    def __init__(self) -> None:
        self._found: list[float] = []

    def take(self, result: cqels.Result) -> None:
        """A subscriber of changes."""
        if result.sign < 0:
            self._found.append(time.time() * 1000 - result.time / 1000)

    def figures(self) -> dict[str, float]:
        """How many there were, their median, 99th percentile and greatest."""
        found = sorted(self._found)
        at = {"p50_ms": 0.5, "p99_ms": 0.99, "worst_ms": 1.0}
        return {
            "told": len(found),
            **{name: round(found[int(share * (len(found) - 1))], 1) for name, share in at.items()},
        }


def _readings(seconds: float, send: Callable[[int, int], None]) -> None:
    """Send readings, by number and time, with pauses in which those before leave the window."""
    drawn = random.Random(1)
    until, number = time.monotonic() + seconds, 0
    while time.monotonic() < until:
        for _ in range(drawn.randrange(1, 6)):
            number += 1
            send(number, round(time.time() * _MICROSECONDS))
            time.sleep(0.002)
        time.sleep(drawn.uniform(0.3, 0.6))
    time.sleep(0.6)


def pushing(seconds: float) -> dict[str, float]:
    """Lags where a program pushes."""
    lags = Lags()
    with_clock = cqels.Engine(clock="wall", clock_delay=0, report=lambda _: None)
    with_clock.register(SILENCE, changelog=True).subscribe(lags.take)

    def send(number: int, at: int) -> None:
        with_clock.push(STREAM, [(f"<{EX}s{number}>", f"<{EX}value>", '"1"')], time=at)

    _readings(seconds, send)
    with_clock.close()
    return lags.figures()


def piping(folder: Path, seconds: float) -> dict[str, float]:
    """Lags where a run reads a pipe of JSON lines through a map."""
    lags = Lags()
    path, mapping = folder / "readings.ndjson", folder / "map.rq"
    os.mkfifo(path)
    mapping.write_text(f"{PREFIX}CONSTRUCT {{ ?s :value 1 }} {{ BIND(IRI(CONCAT('{EX}s', STR(?number))) AS ?s) }}")
    engine = cqels.Engine(clock="wall", clock_delay=0, report=lambda _: None)
    engine.register(SILENCE, changelog=True).subscribe(lags.take)
    run = threading.Thread(target=engine.run, args=({STREAM: str(path)},), kwargs={"maps": {STREAM: mapping}})
    run.start()
    with path.open("w") as pipe:

        def send(number: int, at: int) -> None:
            pipe.write(f'{{"number": {number}, "time": {at}}}\n')
            pipe.flush()

        _readings(seconds, send)
    run.join()
    engine.close()
    return lags.figures()


def program(folder: Path, hours: float) -> None:
    """The process that is killed: it goes on behind the readings that its engine has."""
    engine = cqels.Engine(checkpoint=folder)
    for name, text in DAY.items():
        engine.register(PREFIX + text, name=name).subscribe_batches(lambda batch: None, ids=True)
    for first in range(engine.statistics.elements, round(hours * 3600) * SENSORS, _AT_ONCE * SENSORS):
        engine.push_batch(STREAM, _readings_from(first))
        print(first // SENSORS, flush=True)
    engine.close()


def _readings_from(first: int) -> Any:
    """The readings of some seconds, the first by its number."""
    import pyarrow as pa

    numbers = range(first, first + _AT_ONCE * SENSORS)
    return pa.table(
        {
            "time": [_BEGIN * _MICROSECONDS + number * _MICROSECONDS // SENSORS for number in numbers],
            "graph": [f"<{EX}r{number}>" for number in numbers],
            "subject": [f"<{EX}s{number % SENSORS}>" for number in numbers],
            "predicate": [f"<{EX}value>"] * len(numbers),
            "object": [f'"{number * 7919 % 101}"^^<http://www.w3.org/2001/XMLSchema#integer>' for number in numbers],
        }
    )


def day(folder: Path, hours: float, kills: int) -> dict[str, Any]:
    """Megabytes of memory and of the checkpoint in the second and the last quarter."""
    checkpoint, drawn = folder / "day", random.Random(2)
    seconds = hours * 3600
    at_kill = sorted(drawn.uniform(0, seconds) for _ in range(kills))
    seen: list[tuple[float, float, float]] = []
    killed, last = 0, -1.0
    while last < seconds - _AT_ONCE:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.suites.live", "--child", str(checkpoint), str(hours)], stdout=subprocess.PIPE
        )
        assert process.stdout is not None
        for line in process.stdout:
            last = float(line)
            if int(last) // _AT_ONCE % 10 == 0:
                seen.append((last, _memory(process.pid), _size(checkpoint)))
            if killed < kills and last >= at_kill[killed]:
                killed += 1
                process.send_signal(signal.SIGKILL)
                break
        if process.wait() not in (0, -signal.SIGKILL):
            raise SystemExit(f"the process has ended with {process.returncode}")
    second = [each for each in seen if seconds / 4 <= each[0] < seconds / 2]
    fourth = [each for each in seen if each[0] >= seconds * 3 / 4]
    return {
        "kills": killed,
        "memory_mb": [round(max(each[1] for each in part), 1) for part in (second, fourth)],
        "checkpoint_mb": [round(max(each[2] for each in part), 1) for part in (second, fourth)],
    }


def _memory(process: int) -> float:
    """Resident megabytes."""
    fields = Path(f"/proc/{process}/statm").read_text().split()
    return int(fields[1]) * os.sysconf("SC_PAGE_SIZE") / 2**20


def _size(folder: Path) -> float:
    """Megabytes of a folder's files, which may be replaced meanwhile."""
    size = 0
    for path in folder.iterdir():
        try:
            size += path.stat().st_size
        except FileNotFoundError:
            continue
    return size / 2**20


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("live", __doc__)
    parser.add_argument("--seconds", type=float, metavar="S", help=f"default {SECONDS}")
    parser.add_argument("--hours", type=float, metavar="H", help=f"default {HOURS}")
    parser.add_argument("--kills", type=int, metavar="N", help=f"default {KILLS}")
    given = parser.parse_args(arguments)
    seconds = given.seconds or (3 if given.quick else SECONDS)
    with tempfile.TemporaryDirectory(prefix="cqels-live-") as name:
        folder = Path(name)
        figures: dict[str, Any] = {
            "pushing": pushing(seconds),
            "piping": piping(folder, seconds),
            "day": day(
                folder, given.hours or (1 if given.quick else HOURS), given.kills or (2 if given.quick else KILLS)
            ),
        }
    path = taken_now("live", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick).write(folder_of(given))
    for name in ("pushing", "piping"):
        lags = figures[name]
        print(
            f"{name}: {lags['told']} told, p50 {lags['p50_ms']} ms, p99 {lags['p99_ms']} ms, worst {lags['worst_ms']} ms"
        )
    memory, disk = figures["day"]["memory_mb"], figures["day"]["checkpoint_mb"]
    print(
        f"{figures['day']['kills']} kills; memory {memory[0]} and {memory[1]} MB, checkpoint {disk[0]} and {disk[1]} MB"
    )
    print(f"written to {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        program(Path(sys.argv[2]), float(sys.argv[3]))
    else:
        sys.exit(main())
