"""Does a durable engine survive kill -9, what does it cost, and how soon is it back?

    python -m bench.suites.durable [--kills N] [--mappings N] [--quick]

Three parts. A process with ten queries of all kinds, some of which come and go, is killed at random moments and started again,
until it has been killed N times (default 40); a receiver keeps the results of each query by number, and in the end has to have
exactly those of a process that was never killed: otherwise the exit status is 1. Then the throughput of tables of 10,000
observations without a checkpoint, and with one that waits for the disk or does not. Last, a window of so many mappings (default
1,000,000): the time of its snapshot, and of a new engine that goes on from there. Writes bench/results/durable.json.
"""

from __future__ import annotations

import json
import os
import random
import signal
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import cqels_py as cqels
from bench.suites.observations import PREFIX as OBSERVATIONS
from bench.suites.observations import STREAM, table
from bench.suites.outcome import folder_of, parser_of, taken_now
from bench.suites.soak import PROPERTIES
from bench.suites.soak import QUERY as SOAK

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}> "
KILLS, MAPPINGS = 40, 1_000_000
_MODES = ("none", "off", "sync")
_ELEMENTS_BETWEEN = 400
"""Elements for each kill, about."""
_TABLE = 10_000
QUERIES = {
    "join": "SELECT * { STREAM :s [RANGE 6s] { ?x :v ?v } STREAM :t [COUNT 9] { ?x :v ?w } }",
    "groups": "SELECT ?x (SUM(?v) AS ?n) (MIN(?v) AS ?m) (AVG(?v) AS ?a) { STREAM :s [RANGE 9s] { ?x :v ?v } } GROUP BY ?x",
    "steps": "SELECT ?x (COUNT(*) AS ?n) { STREAM :t [RANGE 6s STEP 3s] { ?x :v ?v } } GROUP BY ?x",
    "path": "SELECT ?a ?b { STREAM :s [COUNT 8] { ?a :to+ ?b } }",
    "top": "SELECT ?x ?v { STREAM :s [COUNT 9] { ?x :v ?v } } ORDER BY DESC(?v) ?x LIMIT 3",
    "match": "SELECT ?x ?a ?b { MATCH WITHIN 4s { EVENT ON :s { ?x :v ?a } SEQ EVENT ON :t { ?x :v ?b } } }",
    "rules": "RULES ON :s { RULE { ?x a :High } FOR [0s, 3s) WHERE { ?x :v ?v FILTER(?v > 6) } } SELECT ?x { STATE { ?x a :High } }",
    "events": "SELECT ?x (COUNT(*) AS ?n) { EVENT ON :s [ALL] AT ?i { ?x a :Rare } EVENT ON :t [ALL] AT ?j { ?x a :Rare } "
    "FILTER(?i < ?j) } GROUP BY ?x",
    "feeds": "REGISTER ISTREAM :fed AS CONSTRUCT { ?x :seen _:n } WHERE { STREAM :s [COUNT 2] { ?x :v ?v } }",
    "fed": "SELECT ?x ?n { STREAM :fed [RANGE 5s] { ?x :seen ?n } }",
}
_COMES_AND_GOES = "top"
_PERIOD = 150
"""It is there for so many elements, and then away for as many."""


class Receiver:
    """A file for each query, to which results are appended. What it has when its process is killed is what it goes on from."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir(parents=True, exist_ok=True)
        self._folder = folder

    def subscribe(self, name: str, query: cqels.Query) -> None:
        """Append the results of the query that are not there yet."""
        path = self._folder / name
        known = path.read_bytes() if path.exists() else b""
        whole = known.rfind(b"\n") + 1
        file = path.open("ab")
        file.truncate(whole)

        def take(result: cqels.Result) -> None:
            shown = sorted((variable, term.n3()) for variable, term in result.bindings.items())
            file.write(f"{json.dumps([result.number, result.time, result.sign, shown])}\n".encode())
            file.flush()

        last = json.loads(known[:whole].splitlines()[-1])[0] if whole else 0
        query.subscribe(take, from_number=last + 1)


def program(folder: Path, out: Path, elements: int) -> None:
    """The process that is killed: it goes on behind the elements that its engine has."""
    from cqels_py.engine.durable import logged

    logged.LEAST, logged.APART = 20_000, 0.0
    engine = cqels.Engine(checkpoint=folder)
    receiver = Receiver(out)
    for name, text in QUERIES.items():
        if name != _COMES_AND_GOES:
            receiver.subscribe(name, engine.register(PREFIX + text, name=name, changelog="REGISTER" not in text))
    kept = next((query for query in engine.queries if query.name == _COMES_AND_GOES), None)
    if kept is not None:
        receiver.subscribe(_round_of(engine.statistics.elements), kept)
    for number in range(engine.statistics.elements, elements):
        if number % _PERIOD == 0:
            _come_or_go(engine, receiver, number)
        stream, triples, at = element(number)
        engine.push(EX + stream, triples, time=at)
    engine.close()


def _round_of(number: int) -> str:
    return f"{_COMES_AND_GOES}.{(number - 1) // (2 * _PERIOD) if number else 0}"


def _come_or_go(engine: cqels.Engine, receiver: Receiver, number: int) -> None:
    """Register the query, or remove it; nothing to do if the process before has."""
    there = next((query for query in engine.queries if query.name == _COMES_AND_GOES), None)
    if number // _PERIOD % 2 == 0 and there is None:
        query = engine.register(PREFIX + QUERIES[_COMES_AND_GOES], name=_COMES_AND_GOES, changelog=True)
        receiver.subscribe(f"{_COMES_AND_GOES}.{number // (2 * _PERIOD)}", query)
    elif number // _PERIOD % 2 and there is not None:
        engine.unregister(there)


def element(number: int) -> tuple[str, list[tuple[str, str, str]], int]:
    """An element by its number: its stream, triples and time."""
    drawn = random.Random(number)
    x, y = (f"<{EX}{drawn.choice('abcdefgh')}>" for _ in range(2))
    value = f'"{drawn.randrange(10)}"^^<http://www.w3.org/2001/XMLSchema#integer>'
    triples = [(x, f"<{EX}v>", value), (x, f"<{EX}to>", y)]
    if drawn.random() < 0.01:
        triples.append((x, "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>", f"<{EX}Rare>"))
    return "st"[drawn.randrange(2)], triples, number // 2 * 300_000


def soak(folder: Path, kills: int, seed: int = 1) -> dict[str, Any]:
    """Kill and start again, and compare: the number of kills, of results, and the queries whose results differ."""
    elements = max(600, kills * _ELEMENTS_BETWEEN)
    drawn = random.Random(seed)
    _command(folder, "whole", elements).wait()
    killed = 0
    while True:
        process = _command(folder, "killed", elements)
        wanted = _written(folder) + drawn.randrange(1, 60_000)
        begun = time.monotonic() + drawn.random() * 0.2
        while process.poll() is None and (killed >= kills or time.monotonic() < begun or _written(folder) < wanted):
            time.sleep(0.001)
        if process.poll() is not None:
            break
        process.send_signal(signal.SIGKILL)
        process.wait()
        killed += 1
    if process.returncode:
        raise SystemExit(f"the process has ended with {process.returncode}")
    names = sorted(path.name for path in (folder / "whole.out").iterdir())
    differing = [name for name in names if _read(folder / "whole.out" / name) != _read(folder / "killed.out" / name)]
    results = sum(_read(folder / "whole.out" / name).count(b"\n") for name in names)
    return {"kills": killed, "elements": elements, "results": results, "differing": differing}


def _command(folder: Path, name: str, elements: int) -> subprocess.Popen[bytes]:
    arguments = ["--child", str(folder / name), str(folder / f"{name}.out"), str(elements)]
    return subprocess.Popen([sys.executable, "-m", "bench.suites.durable", *arguments])


def _written(folder: Path) -> int:
    out = folder / "killed.out"
    return sum(path.stat().st_size for path in out.iterdir()) if out.exists() else 0


def _read(path: Path) -> bytes:
    return path.read_bytes() if path.exists() else b""


def throughput(folder: Path, observations: int, rounds: int) -> dict[str, int]:
    """Triples a second, without a checkpoint and with one: medians of rounds, in each of which another mode is the first."""
    tables = [table(first, _TABLE, PROPERTIES) for first in range(0, observations, _TABLE)]
    found: dict[str, list[float]] = {mode: [] for mode in _MODES}
    for number in range(rounds):
        for mode in _MODES[number % len(_MODES) :] + _MODES[: number % len(_MODES)]:
            options: dict[str, Any] = (
                {} if mode == "none" else {"checkpoint": folder / f"{mode}{number}", "durable": mode}
            )
            found[mode].append(_rate(tables, options))
    return {mode: round(statistics.median(rates)) for mode, rates in found.items()}


def _rate(tables: Sequence[Any], options: dict[str, Any]) -> float:
    """Triples a second of all tables but the first."""
    engine = cqels.Engine(report=lambda _: None, **options)
    engine.register(SOAK % "100s", name="q").subscribe_batches(lambda batch: None, ids=True)
    engine.push_batch(STREAM, tables[0])
    started = time.perf_counter()
    for each in tables[1:]:
        engine.push_batch(STREAM, each)
    seconds = time.perf_counter() - started
    engine.close()
    return len(PROPERTIES) * _TABLE * (len(tables) - 1) / seconds


def recovery(folder: Path, mappings: int) -> dict[str, float]:
    """Seconds of a snapshot of a window of so many mappings, its megabytes, and seconds until a new engine goes on from there."""
    text = f"PREFIX : <{OBSERVATIONS}> SELECT * {{ STREAM <{STREAM}> [RANGE 100000s] {{ ?o :sensor ?s . ?o :result ?r }} }}"
    engine = cqels.Engine(checkpoint=folder, durable="off")
    engine.register(text, name="q").subscribe_batches(lambda batch: None, ids=True)
    block = min(mappings, 5 * _TABLE)
    for first in range(0, mappings, block):
        engine.push_batch(STREAM, table(first, block, PROPERTIES))
    started = time.perf_counter()
    engine.checkpoint()
    saved = time.perf_counter() - started
    engine.close()
    size = max(path.stat().st_size for path in folder.glob("*.snapshot"))
    started = time.perf_counter()
    cqels.Engine(checkpoint=folder).close()
    back = time.perf_counter() - started
    return {"snapshot_s": round(saved, 3), "snapshot_mb": round(size / 2**20, 1), "back_s": round(back, 3)}


def sync_seconds(folder: Path) -> float:
    """The median time of a sync of a few bytes on this disk."""
    times = []
    with (folder / "probe").open("wb") as file:
        for _ in range(30):
            file.write(b"x" * 200)
            file.flush()
            started = time.perf_counter()
            os.fsync(file.fileno())
            times.append(time.perf_counter() - started)
    return sorted(times)[len(times) // 2]


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("durable", __doc__)
    parser.add_argument("--kills", type=int, metavar="N", help=f"default {KILLS}")
    parser.add_argument("--mappings", type=int, default=MAPPINGS, metavar="N", help=f"default {MAPPINGS:,}")
    given = parser.parse_args(arguments)
    with tempfile.TemporaryDirectory(prefix="cqels-durable-") as name:
        folder = Path(name)
        figures: dict[str, Any] = {
            "sync_ms": round(sync_seconds(folder) * 1000, 3),
            "soak": soak(folder, given.kills or (3 if given.quick else KILLS)),
            "triples_per_second": throughput(folder, 30_000 if given.quick else 500_000, 1 if given.quick else 6),
            "recovery": recovery(folder / "large", 20_000 if given.quick else given.mappings),
        }
    path = taken_now("durable", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick).write(folder_of(given))
    soaked, rates, back = figures["soak"], figures["triples_per_second"], figures["recovery"]
    print(
        f"{soaked['kills']} kills, {soaked['results']:,} results, differing: {', '.join(soaked['differing']) or 'none'}"
    )
    print(", ".join(f"{mode}: {rate / 1e6:.2f} M triples/s" for mode, rate in rates.items()))
    print(
        f"{back['snapshot_mb']} MB: saved in {back['snapshot_s']} s, back in {back['back_s']} s; a sync {figures['sync_ms']} ms"
    )
    print(f"written to {path}", file=sys.stderr)
    return 1 if soaked["differing"] else 0


if __name__ == "__main__":
    if sys.argv[1:2] == ["--child"]:
        program(Path(sys.argv[2]), Path(sys.argv[3]), int(sys.argv[4]))
    else:
        sys.exit(main())
