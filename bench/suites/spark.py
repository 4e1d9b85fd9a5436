"""What does Spark cost compared with the local runner, and how do cores, lost state and shares of variables change that?

    python -m bench.suites.spark [--quick] [--rounds N] [--output FOLDER]

from the repository's root, with `pip install -e .[bench,spark]`. One query, the mean of each of 10,000 sensors over the last
million readings, processes micro-batches of 10,000, 100,000 and 1,000,000 rows from Parquet files: in a Structured Streaming job on
one core (one partition) and on two (two partitions), by tasks that do nothing with the same files, bytes and rows of results, and
in the local runner; and on two cores with files that the tasks read and net changes. Further tables show the cost of a micro-batch
whose state has to be read back, and how often triples are copied between partitions when three patterns share no variable, by the
planner's formula and counted in runs; how often a standalone cluster of two workers reads states back, with both executors on one
host and on two; the cost of a star in 16 parts; and the CPU time of the package's part of the tasks. `--quick` tests that
everything runs; its figures are meaningless.
"""

from __future__ import annotations

import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

import pyarrow as pa
from rich.console import Console

from bench.suites import scale_out
from bench.suites.on_spark import placing, rebuilding, replication, taking, tasks
from bench.suites.on_spark.figures import IDLE, LOCAL, NET, Case, Figures
from bench.suites.on_spark.floor import Idle, bytes_of_row
from bench.suites.on_spark.picture import draw
from bench.suites.on_spark.readings import Course, query, write
from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now
from cqels_py.runners.spark.stage import Job

if TYPE_CHECKING:
    from cqels_py.runners.spark.session import Session

CORES = (1, 2)


@dataclass(frozen=True, slots=True)
class Scale:
    """The size of the measurement. `paper`: partitions up to which the formula is evaluated; `parts`: numbers of
    partitions for which copies are counted in runs over so many `triples`. On a cluster of two workers so many `partitions` run for
    `micro_batches` (0: there is no cluster). `star`: triples of the star in one part and in 16.
    """

    course: Course
    paper: int
    parts: tuple[int, ...]
    triples: int
    micro_batches: int
    partitions: int
    star: int


FULL = Scale(
    Course(1_000_000, 2, {10_000: 20, 100_000: 10, 1_000_000: 3}), 1_000, (2, 4, 8), 9_000, 60, 4, scale_out.FULL
)
QUICK = Scale(Course(2_000, 1, {100: 2, 500: 1}), 30, (4,), 90, 3, 2, scale_out.QUICK)

Tell = Callable[[str], None]
Sessions = Callable[[int], AbstractContextManager["Session"]]
"""A Spark session on so many cores."""


def measure(scale: Scale, rounds: int, tell: Tell, sessions: Sessions = taking.spark_session) -> Figures:
    """All measurements, in this process and in Spark. The competitors take turns, round by round."""
    course = scale.course
    text = query(course.fill)
    on_cores = {f"spark, {cores} core{'s' * (cores > 1)}": cores for cores in CORES}
    cases = {(size, name): Case(size, name) for size in course.measured for name in (*on_cores, NET, IDLE, LOCAL)}
    read_back = dict.fromkeys(on_cores, 0.0)
    results = set()
    with tempfile.TemporaryDirectory(prefix="cqels-bench-") as scratch:
        batches = write(Path(scratch) / "readings", course)
        for number in range(rounds):
            tell(f"round {number + 1} of {rounds}")
            for name, cores in on_cores.items():
                with sessions(cores) as session:
                    taken = taking.on_spark(session, Path(scratch) / "readings", text, cores)
                    if cores == max(CORES):
                        idle, net = _beside(session, Path(scratch) / "readings", course, taken)
                        _add(cases, IDLE, course, idle)
                        _add(cases, NET, course, net)
                _add(cases, name, course, taken.seconds)
                # The very first micro-batch starts without a state.
                again = sum(part.rebuilt - 1 for part in taken.parts)
                read_back[name] += again / len(taken.parts) / (len(batches) - 1) / rounds
                results.add(taken.results)
            taken = taking.locally(batches, text)
            _add(cases, LOCAL, course, taken.seconds)
            results.add(taken.results)
    assert len(results) == 1, f"all do the same, but they have {results} results"
    tell("a state that is read back")
    rebuilt = rebuilding.measure(course.fill, min(course.measured), rounds)
    tell("copies of triples")
    paper = [replication.on_paper(s, n) for s in replication.SHAPES for n in replication.numbers_of_parts(scale.paper)]
    with sessions(max(CORES)) as session:
        counted = list(_counted(scale, session))
    placed = []
    if scale.micro_batches:
        tell("a cluster of two workers")
        placed = [placing.measure(scale.partitions, scale.micro_batches, hosts) for hosts in (1, 2)]
    tell("more parts")
    costs = scale_out.measure(scale.star, rounds)
    tell("CPU time of tasks")
    return Figures(list(cases.values()), read_back, rebuilt, paper, counted, placed, costs, tasks.measure(course))


def _beside(
    session: Session, readings: Path, course: Course, taken: taking.Taken
) -> tuple[Sequence[float], Sequence[float]]:
    """The seconds of micro-batches of tasks that do nothing with as many results, and with net changes; on all cores."""
    text, cores = query(course.fill), max(CORES)
    idle = Idle(cores, bytes_of_row(text, cores), taken.results / sum(size for size, _ in course.sizes()))
    seconds = taking.idly(session, readings, idle).seconds
    net = taking.on_spark(session, readings, text, cores, net=True)
    # Each result is an addition, and at most as many are taken back.
    assert 0 < net.results <= 2 * taken.results, f"{net.results} net changes of {taken.results} results"
    return seconds, net.seconds


def _add(cases: dict[tuple[int, str], Case], name: str, course: Course, seconds: Sequence[float]) -> None:
    for size in course.measured:
        told = zip(course.sizes(), seconds, strict=True)
        cases[size, name].add([each for (rows, measured), each in told if measured and rows == size])


def _counted(scale: Scale, session: Session) -> Iterator[replication.Copies]:
    from cqels_py.runners.spark.pipeline import transform

    def run(job: Job, rows: pa.Table) -> None:
        frame = session.createDataFrame(rows.drop_columns(["stream"]))
        transform(job, {0: frame}, 0, final=True).write.format("noop").mode("overwrite").save()

    for shape in replication.SHAPES:
        for parts in scale.parts:
            yield replication.counted(shape, parts, scale.triples, run)


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("spark", __doc__)
    add_rounds(parser, "rounds that rates are medians of")
    given = parser.parse_args(arguments)
    console = Console(stderr=True)
    quick: bool = given.quick
    figures = measure(QUICK if quick else FULL, given.rounds, console.print)
    outcome = taken_now(
        "spark", (__doc__ or "").partition("\n")[0], figures.as_plain(), quick=quick, libraries=["pyspark"]
    )
    folder = folder_of(given)
    outcome.write(folder)
    for table in figures.tables():
        Console().print(table)
    try:
        draw(figures, f"{outcome.question}\n{outcome.origin}", folder / "spark.png")
    except ImportError:
        console.print("no plots: matplotlib is not installed (pip install -e .[bench])")
    console.print(f"written to {folder}")
    return 0


if __name__ == "__main__":
    sys.exit(main())
