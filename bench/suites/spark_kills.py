"""Does a query on Spark survive kill -9 of executors and of the driver at random moments?

    python -m bench.suites.spark_kills [--minutes N] [--every S] [--seed N] [--quick]

from the repository's root, with `pip install -e .[bench,spark]`. A standalone cluster of two workers on this machine runs the mean
of each of 50 sensors over the last minute, with all changes, over so many minutes of readings (default 60, 20 a second), ten
seconds in each micro-batch. Every S seconds on average (default 20) an executor, or the driver, is killed; a driver that has ended
is started again. If one ends by itself, its output is kept beside the figures. In the end the results are compared with
those of the local runner: if any differ, the exit status is 1.
"""

from __future__ import annotations

import os
import random
import re
import signal
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import asdict, dataclass, field
from datetime import UTC, datetime
from functools import partial
from pathlib import Path
from typing import Any, TypeAlias

import pyarrow as pa
import pyarrow.parquet as pq
from rich.console import Console

import cqels_py
from bench.suites.on_spark.driving import start
from bench.suites.on_spark.readings import SECONDS, SMOOTHED, STREAM, few_readings
from bench.suites.on_spark.standalone import Cluster, standalone_cluster
from bench.suites.outcome import folder_of, parser_of, taken_now
from cqels_py.batches.results import ResultBatch
from cqels_py.runners.spark.rows import solution_rows
from cqels_py.runners.spark.session import use_java
from cqels_py.spark import loads

_PARTITIONS = 4
_MOST_STARTS = 1_000
_ERROR = re.compile(r"(?:Caused by: )?[\w.$]*(?:Error|Exception|OtherRows|DamagedFile)\b")
_MOST_REASONS, _LONGEST = 6, 600
_EXECUTORS = 0.7
"""The chance that an executor is killed, and not the driver."""
Rows: TypeAlias = "Counter[tuple[Any, ...]]"
"""How often each row is a result; their order within an instant is free."""


@dataclass(slots=True)
class Kills:
    """How often executors and drivers were killed, and how often the driver was started. `ended`: why drivers have ended that were
    not killed, before the end of the readings."""

    executors: int = 0
    drivers: int = 0
    starts: int = 0
    ended: list[str] = field(default_factory=list)


@dataclass(frozen=True, slots=True)
class Soaked:
    """The outcome. `differing`: results that only one of the two has; `read_backs`: of states of parts."""

    minutes: float
    micro_batches: int
    results: int
    differing: int
    read_backs: int
    seconds: float
    kills: Kills = field(default_factory=Kills)


def expected(tables: Sequence[pa.Table]) -> Rows:
    """The results of the local runner."""
    engine = cqels_py.Engine()
    query = engine.register(SMOOTHED, changelog=True)
    rows: list[pa.RecordBatch] = []

    def take(batch: ResultBatch) -> None:
        rows.extend(solution_rows(batch, engine.dictionary, query.variables))

    query.subscribe_batches(take, ids=True)
    for table in tables:
        engine.push_batch(STREAM, table)
    engine.flush()
    return counted(rows)


def found_in(folder: Path) -> Rows:
    """The results on Spark, of all micro-batches."""
    return counted(batch for path in folder.glob("*.parquet") for batch in pq.read_table(path).to_batches())


def counted(batches: Any) -> Rows:
    """The rows of results (time, sign, columns)."""
    names = ("time", "sign", "sensor", "mean")
    return Counter(tuple(row[name] for name in names) for batch in batches for row in batch.to_pylist())


def run(
    cluster: Cluster, folder: Path, every: float, draw: random.Random, tell: Callable[[str], None], logs: Path
) -> Kills:
    """Start drivers until one comes to the end, and kill one of the processes every so many seconds on average.

    `logs`: a folder that gets the output of each driver that ends by itself before.
    """
    kills = Kills()
    while kills.starts < _MOST_STARTS:
        kills.starts += 1
        log = folder / "driver.log"
        told = log.stat().st_size if log.exists() else 0
        driver, killed = start(cluster.master, folder, _PARTITIONS), kills.drivers
        try:
            if _kill_until_it_ends(driver, cluster, folder / "out", every, draw, kills) == 0:
                return kills
        finally:
            with suppress(ProcessLookupError):
                os.killpg(driver.pid, signal.SIGKILL)
            driver.wait()
        if kills.drivers == killed:
            written = log.read_bytes()[told:]
            kept = keep_log(logs, written)
            kills.ended.append(reason(written.decode(errors="replace")))
            tell(f"a driver has ended by itself: {kills.ended[-1]}; all that it has written is in {kept}")
        tell(f"{_done(folder / 'out')} micro-batches, {kills.executors + kills.drivers} kills")
    raise RuntimeError(f"{_MOST_STARTS} drivers have not come to the end: see {folder / 'driver.log'}")


def keep_log(logs: Path, written: bytes) -> Path:
    """A new file in a folder, with the output of a driver.

    >>> with tempfile.TemporaryDirectory() as name:
    ...     [keep_log(Path(name) / "logs", text).read_bytes() for text in (b"too late", b"no space")]
    [b'too late', b'no space']
    """
    logs.mkdir(parents=True, exist_ok=True)
    file, name = tempfile.mkstemp(prefix=f"spark_kills-{datetime.now(UTC):%Y%m%dT%H%M%S}-", suffix=".log", dir=logs)
    with os.fdopen(file, "wb") as out:
        out.write(written)
    return Path(name)


def reason(log: str) -> str:
    """Why a driver has ended, by its log: the lines that name errors, each once, the last ones of them.

    >>> reason("Traceback\\n  in main\\njava.io.IOException: no space\\nRunError: too late\\njava.io.IOException: no space\\n")
    'java.io.IOException: no space | RunError: too late'
    """
    named = (line.strip() for line in log.splitlines() if _ERROR.match(line.strip()))
    found = [line[:_LONGEST] for line in dict.fromkeys(named)]
    return " | ".join(found[-_MOST_REASONS:]) or f"it has written {log[-_LONGEST:]!r}"


def _kill_until_it_ends(
    driver: subprocess.Popen[bytes], cluster: Cluster, out: Path, every: float, draw: random.Random, kills: Kills
) -> int:
    """The exit status of the driver. Nothing is killed before it has done a micro-batch, or there might be no progress."""
    before = _done(out)
    while True:
        try:
            return driver.wait(draw.uniform(0.5, 1.5) * every)
        except subprocess.TimeoutExpired:
            if _done(out) == before:
                continue
            executors = cluster.executors()
            if executors and draw.random() < _EXECUTORS:
                with suppress(ProcessLookupError):
                    os.kill(draw.choice(executors), signal.SIGKILL)
                kills.executors += 1
            else:
                os.killpg(driver.pid, signal.SIGKILL)
                kills.drivers += 1
                return driver.wait()


def _done(out: Path) -> int:
    """The number of micro-batches that have results."""
    return len(list(out.glob("*.parquet")))


def soak(minutes: float, every: float, seed: int, tell: Callable[[str], None], logs: Path) -> Soaked:
    """The whole run. `logs`: as for `run`."""
    use_java()
    batches = max(2, round(minutes * 60 / SECONDS))
    with tempfile.TemporaryDirectory(prefix="cqels-kills-") as name:
        folder = Path(name)
        tables = few_readings(folder / "in", batches, seed)
        (folder / "query.rq").write_text(SMOOTHED)
        started = time.perf_counter()
        with standalone_cluster(folder) as cluster:
            kills = run(cluster, folder, every, random.Random(seed), tell, logs)
        seconds = time.perf_counter() - started
        found, wanted = found_in(folder / "out"), expected(tables)
        differing = ((found - wanted) + (wanted - found)).total()
        read_backs = sum(part.rebuilt for stage in loads(folder / "state") for part in stage)
    return Soaked(minutes, batches, wanted.total(), differing, read_backs, seconds, kills)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("spark_kills", __doc__)
    parser.add_argument("--minutes", type=float, default=60, metavar="N", help="of stream time (default 60)")
    parser.add_argument("--every", type=float, default=20, metavar="S", help="seconds between kills (default 20)")
    parser.add_argument("--seed", type=int, default=1, metavar="N", help="of readings and kills (default 1)")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    minutes = 4 if given.quick else given.minutes
    soaked = soak(minutes, given.every, given.seed, partial(console.print, markup=False), folder_of(given))
    outcome = taken_now(
        "spark_kills",
        (__doc__ or "").partition("\n")[0],
        asdict(soaked),
        quick=given.quick,
        libraries=["pyspark"],
    )
    path = outcome.write(folder_of(given))
    for each in soaked.kills.ended:
        console.print(f"a driver has ended by itself: {each}", markup=False)
    kills = soaked.kills
    console.print(
        f"{soaked.micro_batches} micro-batches, {kills.executors} executors and {kills.drivers} drivers killed, "
        f"{soaked.results:,} results, {soaked.differing} differ; states were read back {soaked.read_backs} times. Written to {path}"
    )
    return 1 if soaked.differing else 0


if __name__ == "__main__":
    sys.exit(main())
