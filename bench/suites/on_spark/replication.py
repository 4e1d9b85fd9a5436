"""How often triples are copied when several variables have shares: by the planner's formula, and counted in runs."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa

from cqels_py.distribution.hypercube import HypercubeShares, shares_for
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import loads, prepare, statistics

STREAM = "http://ex.org/links"
SHAPES = {"chain": "abbccd", "triangle": "abbcca", "star": "abacad"}
"""The variables of three patterns, subject and object of each in turn."""
_PREDICATES = "pqr"

RunBatch = Callable[[Job, pa.Table], None]
"""Runs a job over one micro-batch of rows (stream, time, graph, subject, predicate, object)."""


@dataclass(frozen=True, slots=True)
class Copies:
    """A shape on so many partitions. `axes`: the variables with their shares; `replication`: copies of a triple, and
    `load`: a partition's fraction of the triples, both by the planner; `counted`: copies in a run, `busiest`: the
    fraction of the partition with most triples.
    """

    shape: str
    partitions: int
    axes: str
    replication: float
    load: float
    counted: float | None = None
    busiest: float | None = None


def query(shape: str) -> str:
    ends = SHAPES[shape]
    patterns = [f"?{ends[2 * n]} :{name} ?{ends[2 * n + 1]}" for n, name in enumerate(_PREDICATES)]
    variables = " ".join(f"?{name}" for name in sorted(set(ends)))
    return f"""PREFIX : <http://ex.org/>
SELECT {variables} WHERE {{ STREAM :links [RANGE 1h] {{ {" . ".join(patterns)} }} }}"""


def on_paper(shape: str, partitions: int) -> Copies:
    """The planner's figures, if as many triples match each pattern."""
    ends = SHAPES[shape]
    patterns = [frozenset(ends[2 * n : 2 * n + 2]) for n in range(len(_PREDICATES))]
    return _copies(shape, partitions, shares_for(patterns, partitions))


def _copies(shape: str, partitions: int, shares: HypercubeShares) -> Copies:
    axes = " x ".join(f"{name} {share}" for name, share in shares.axes)
    return Copies(shape, partitions, axes, float(shares.replication), float(shares.load))


def counted(shape: str, partitions: int, triples: int, run: RunBatch) -> Copies:
    """The counted figures of a run over random triples, as many of each pattern."""
    paper = on_paper(shape, partitions)
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        state = Path(scratch) / "state"
        job, _ = prepare(query(shape), state=state, partitions=partitions)
        run(job, links(triples))
        needed = statistics(state).triples
        parts = [part.rows for part in loads(state)[0]]
    return Copies(
        shape, partitions, paper.axes, paper.replication, paper.load, sum(parts) / needed, max(parts) / needed
    )


def links(triples: int, seed: int = 1) -> pa.Table:
    """Random links between as many nodes as there are triples of a pattern; each triple is an element."""
    draw = np.random.default_rng(seed)
    each = triples // len(_PREDICATES)
    nodes = draw.integers(0, each, (2, each * len(_PREDICATES)))
    count = nodes.shape[1]
    return pa.table(
        {
            "stream": pa.array(np.zeros(count, np.int64)),
            "time": pa.array(np.arange(count)),
            "graph": pa.array([""] * count),
            "subject": [f"<http://ex.org/{node}>" for node in nodes[0]],
            "predicate": [f"<http://ex.org/{_PREDICATES[n % len(_PREDICATES)]}>" for n in range(count)],
            "object": [f"<http://ex.org/{node}>" for node in nodes[1]],
        }
    )


def numbers_of_parts(most: int) -> Sequence[int]:
    """Every number at first, then about thirty for each power of ten."""
    steps = np.unique(np.rint(np.geomspace(1, most, 100)).astype(int))
    found: list[int] = np.union1d(np.arange(1, min(most, 32) + 1), steps).tolist()
    return found
