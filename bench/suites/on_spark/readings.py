"""Sensor readings for the Spark benchmark: one query over a full window, and micro-batches of rows in Parquet files."""

from __future__ import annotations

import os
import random
from dataclasses import dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

STREAM = "http://ex.org/readings"
COLUMNS = "time long, subject string, predicate string, object string"
SENSORS = 10_000
PIECES = 2
"""Files per micro-batch, so that as many tasks can read it."""
SMOOTHED = """PREFIX : <http://ex.org/>
SELECT ?sensor (AVG(?t) AS ?mean) WHERE { STREAM :readings [RANGE 1m] { ?sensor :temperature ?t } } GROUP BY ?sensor"""
FEW_SENSORS, A_SECOND, SECONDS = 50, 20, 10
"""`SECONDS`: of stream time in a micro-batch."""
_SECOND = 1_000_000
_VALUES = 400
_OLD = 1_600_000_000


def query(window: int) -> str:
    """The mean of each sensor over the window: every reading changes one."""
    return f"""PREFIX : <http://ex.org/>
SELECT ?sensor (AVG(?t) AS ?mean)
WHERE {{ STREAM :readings [COUNT {window}] {{ ?sensor :temperature ?t }} }}
GROUP BY ?sensor"""


@dataclass(frozen=True, slots=True)
class Course:
    """The data of a round: `fill` rows in two micro-batches, then for each size `settling` unmeasured and `measured`
    measured micro-batches.
    """

    fill: int
    settling: int
    measured: dict[int, int]

    def sizes(self) -> list[tuple[int, bool]]:
        """Rows of each micro-batch, and whether it is measured."""
        found = [(self.fill // 2, False)] * 2
        for size, count in self.measured.items():
            found += [(size, False)] * self.settling + [(size, True)] * count
        return found


def rows(first: int, count: int, seed: int = 1) -> pa.Table:
    """Readings from number `first` on, a microsecond apart, each an element of one triple."""
    draw = np.random.default_rng((seed, first))
    return pa.table(
        {
            "time": np.arange(first, first + count),
            "subject": _chosen(draw, count, [f"<http://ex.org/sensor/{n}>" for n in range(SENSORS)]),
            "predicate": _chosen(draw, count, ["<http://ex.org/temperature>"]),
            "object": _chosen(
                draw, count, [f'"{n / 10}"^^<http://www.w3.org/2001/XMLSchema#decimal>' for n in range(_VALUES)]
            ),
        }
    )


def _chosen(draw: np.random.Generator, count: int, texts: list[str]) -> pa.Array:
    places = pa.array(draw.integers(0, len(texts), count), pa.int32())
    return pa.DictionaryArray.from_arrays(places, pa.array(texts)).cast(pa.string())


def write(folder: Path, course: Course) -> list[list[Path]]:
    """The files of each micro-batch. Their modification times are a millisecond apart, because Spark orders files by time."""
    folder.mkdir()
    first = 0
    found: list[list[Path]] = []
    for size, _ in course.sizes():
        table = rows(first, size)
        pieces = []
        for piece in range(PIECES):
            start, end = size * piece // PIECES, size * (piece + 1) // PIECES
            path = folder / f"{len(found):04}-{piece}.parquet"
            pq.write_table(table.slice(start, end - start), path)
            os.utime(path, (_OLD + len(found) * PIECES + piece,) * 2)
            pieces.append(path)
        found.append(pieces)
        first += size
    return found


def few_readings(folder: Path, batches: int, seed: int) -> list[pa.Table]:
    """Readings for `SMOOTHED`, a file for each micro-batch."""
    draw = random.Random(seed)
    decimal = "<http://www.w3.org/2001/XMLSchema#decimal>"
    folder.mkdir()
    tables = []
    for batch in range(batches):
        made = [
            {
                "time": (batch * SECONDS * A_SECOND + n) * _SECOND // A_SECOND,
                "subject": f"<http://ex.org/sensor/{draw.randrange(FEW_SENSORS)}>",
                "predicate": "<http://ex.org/temperature>",
                "object": f'"{draw.randrange(_VALUES) / 10}"^^{decimal}',
            }
            for n in range(SECONDS * A_SECOND)
        ]
        tables.append(pa.Table.from_pylist(made))
        path = folder / f"{batch:05}.parquet"
        pq.write_table(tables[-1], path)
        os.utime(path, (_OLD + batch,) * 2)
    return tables
