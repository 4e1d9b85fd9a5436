"""How often is the state of a part read back, where Spark chooses the executor of each micro-batch anew?

A standalone cluster of two workers runs the mean of each of 50 sensors over the last minute. The executors are on one host; or on
two as far as the package can see, since they have no folder for temporary files in common (but the store, as everywhere).
"""

from __future__ import annotations

import tempfile
from dataclasses import dataclass
from pathlib import Path

from bench.suites.on_spark.driving import start
from bench.suites.on_spark.readings import SMOOTHED, few_readings
from bench.suites.on_spark.standalone import standalone_cluster
from cqels_py.runners.spark.session import use_java
from cqels_py.spark import loads


@dataclass(frozen=True, slots=True)
class Placed:
    """Fractions of the parts' micro-batches after the first. `read_backs`: whose state was read back from the store; `caught_up`: of
    which the host had an older state, and read the inputs since."""

    hosts: int
    partitions: int
    micro_batches: int
    read_backs: float
    caught_up: float


def measure(partitions: int, micro_batches: int, hosts: int) -> Placed:
    """The figures of one run. RuntimeError if it fails."""
    use_java()
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as name:
        folder = Path(name)
        few_readings(folder / "in", micro_batches, seed=1)
        (folder / "query.rq").write_text(SMOOTHED)
        with standalone_cluster(folder, apart=hosts > 1) as cluster:
            driver = start(cluster.master, folder, partitions)
            if driver.wait():
                raise RuntimeError(f"the driver has failed: {(folder / 'driver.log').read_text()[-2000:]}")
        parts = loads(folder / "state")[0]
    turns = len(parts) * (micro_batches - 1)
    again, caught_up = sum(part.rebuilt - 1 for part in parts), sum(part.caught_up for part in parts)
    return Placed(hosts, len(parts), micro_batches, again / turns, caught_up / turns)
