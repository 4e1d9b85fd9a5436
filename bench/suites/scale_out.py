"""What do more parts of a state cost on Spark, and how much of the work is left to the busiest?

    python -m bench.suites.scale_out [--quick] [--rounds N] [--output FOLDER]

from the repository's root. A star of three patterns, whose subject divides the state, in 1 part and in 16: CPU seconds of the
functions of Spark's tasks, which are called here one after another (so other processes hardly matter), and bytes between routing and
evaluation. Then the same with half of the triples about one subject, in a window of 12 elements (or results would be as many as the
cube of the window), with and without parts of its own. `--quick` tests that everything runs; its figures are meaningless.
"""

from __future__ import annotations

import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from pathlib import Path

import numpy as np
import pyarrow as pa
from rich.console import Console
from rich.table import Table

from bench.suites.on_spark.replication import links, query
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from cqels_py.runners.spark import stage
from cqels_py.runners.spark.stage import Job
from cqels_py.spark import prepare

PARTS = 16
BUSY = "<http://ex.org/busy>"
BATCHES = 2
FULL, QUICK = 960_000, 600


@dataclass(frozen=True, slots=True)
class Cost:
    """CPU microseconds a triple, `whole` of all tasks and of the `busiest`; bytes a triple that are sent to tasks."""

    case: str
    parts: int
    whole: float
    busiest: float
    bytes: float


def measure(triples: int, rounds: int) -> list[Cost]:
    """The least of each over the rounds."""
    even, half = links(triples, seed=3), _with_half(links(triples, seed=4))
    star = query("star")
    short = star.replace("RANGE 1h", "RANGE 12us")
    cases = [
        ("even", star, even, 1, None),
        ("even", star, even, PARTS, None),
        ("half with one value", short, half, 1, None),
        ("half with one value", short, half, PARTS, None),
        ("half with one value, heavy", short, half, PARTS, {"a": BUSY}),
    ]
    found = [[_cost(*case) for case in cases] for _ in range(rounds)]
    return [
        Cost(
            each[0].case,
            each[0].parts,
            *(min(getattr(one, name) for one in each) for name in ("whole", "busiest", "bytes")),
        )
        for each in zip(*found, strict=True)
    ]


def _with_half(table: pa.Table) -> pa.Table:
    chosen = np.random.default_rng(5).random(table.num_rows) < 0.5
    subjects = np.where(chosen, BUSY, table["subject"].to_numpy(zero_copy_only=False))
    return table.set_column(table.schema.get_field_index("subject"), "subject", pa.array(subjects, pa.string()))


def _cost(case: str, text: str, table: pa.Table, parts: int, heavy: dict[str, str] | None) -> Cost:
    stage._HOT.clear()
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        job, _ = prepare(text, state=Path(scratch) / "state", partitions=parts, heavy=heavy)
        tasks, size, measured = np.zeros(parts), table.num_rows // (BATCHES + 1), 0
        for batch in range(BATCHES + 1):
            rows = table.slice(batch * size, size).combine_chunks().to_batches()
            (routed,) = stage.route(job, rows, batch, 0)
            used = _evaluate(job, routed, batch)
            if batch:
                # The first one makes the states.
                tasks += used
                measured += routed.column("data").nbytes
    count = BATCHES * size
    stage._HOT.clear()
    return Cost(case, parts, tasks.sum() / count * 1e6, tasks.max() / count * 1e6, measured / count)


def _evaluate(job: Job, routed: pa.RecordBatch, batch: int) -> np.ndarray:
    """CPU seconds of each task; as many tasks as parts without those of heavy values."""
    cells = PARTS if job.parts[0] >= PARTS else job.parts[0]
    used = np.zeros(cells)
    for part in range(job.parts[0]):
        began = time.process_time()
        for _ in stage.evaluate(job, [routed.slice(part, 1)], batch, part, False):
            pass
        used[part % cells] += time.process_time() - began
    return used


def table_of(costs: Sequence[Cost]) -> Table:
    """The costs beside those of one part."""
    table = Table("triples", "parts", "CPU µs a triple", "the busiest", "of one part", "bytes a triple")
    whole = 0.0
    for each in costs:
        whole = each.whole if each.parts == 1 else whole
        table.add_row(
            each.case,
            str(each.parts),
            f"{each.whole:.2f} ({each.whole / whole:.1f} times)",
            f"{each.busiest:.2f}",
            f"{each.busiest / whole:.2f}",
            f"{each.bytes:.0f}",
        )
    return table


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("scale_out", __doc__)
    add_rounds(parser, "rounds of which the least is taken")
    given = parser.parse_args(arguments)
    costs = measure(QUICK if given.quick else FULL, given.rounds)
    outcome = taken_now(
        "scale_out", (__doc__ or "").partition("\n")[0], {"costs": [asdict(each) for each in costs]}, quick=given.quick
    )
    outcome.write(folder_of(given))
    Console().print(table_of(costs))
    return 0


if __name__ == "__main__":
    sys.exit(main())
