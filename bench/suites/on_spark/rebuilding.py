"""A partition's state that its worker still has, compared with one that has to be read back from its durable content."""

from __future__ import annotations

import tempfile
import time
from dataclasses import dataclass
from pathlib import Path

import pyarrow as pa

from bench.suites.on_spark.readings import query, rows
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import loads, prepare


@dataclass(frozen=True, slots=True)
class Rebuilding:
    """Seconds of micro-batches of `rows` rows over a window, with the state in memory (`hot`) and without (`cold`).

    `snapshot_mb` and `log_mb`: the data read for each of the cold ones.
    """

    window: int
    rows: int
    hot: list[float]
    cold: list[float]
    snapshot_mb: list[float]
    log_mb: list[float]


def measure(window: int, size: int, rounds: int) -> Rebuilding:
    """Call the functions of Spark's tasks here, for one partition with a full window."""
    found = Rebuilding(window, size, [], [], [], [])
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        state = Path(scratch) / "state"
        job, _ = prepare(query(window), state=state, partitions=1)
        first = batch = 0
        for filling in [window // 10] * 10 + [size] * 3:
            _take(job, batch, first, filling)
            first, batch = first + filling, batch + 1
        for _ in range(rounds):
            found.hot.append(_take(job, batch, first, size))
            stage._HOT.clear()
            for kind, sizes in (("snapshot", found.snapshot_mb), ("input", found.log_mb)):
                sizes.append(_megabytes(state, kind))
            found.cold.append(_take(job, batch + 1, first + size, size))
            first, batch = first + 2 * size, batch + 2
        (only,) = loads(state)[0]
        assert only.rebuilt == rounds + 1, "the first micro-batch of all and each cold one begin without a state"
        stage._HOT.clear()
    return found


def _take(job: Job, batch: int, first: int, size: int) -> float:
    """Seconds of a micro-batch's stage, without routing, which does not depend on the state."""
    table = rows(first, size)
    columns = {"stream": pa.array([0] * size), "time": table.column("time"), "graph": pa.array([""] * size)}
    columns |= {name: table.column(name) for name in ("subject", "predicate", "object")}
    routed = list(stage.route(job, pa.table(columns).combine_chunks().to_batches(), batch, 0))
    started = time.perf_counter()
    for _ in stage.evaluate(job, routed, batch, 0, False):
        pass
    return time.perf_counter() - started


def _megabytes(state: Path, kind: str) -> float:
    """The size of the data that would be read back: the newest snapshot, if there is one, or the inputs after it."""
    (folder,) = (each for each in state.iterdir() if each.is_dir())
    newest = max(folder.glob("*.snapshot"), key=_batch, default=None)
    if kind == "snapshot":
        return 0.0 if newest is None else newest.stat().st_size / 1e6
    after = -1 if newest is None else _batch(newest)
    return sum(each.stat().st_size for each in folder.glob("*.input") if _batch(each) > after) / 1e6


def _batch(path: Path) -> int:
    return int(path.name.partition("-")[0])
