"""`cqels run --runner spark`: a job's streams through Spark, micro-batch by micro-batch."""

from __future__ import annotations

import os
import tempfile
from collections.abc import Callable, Iterator
from contextlib import ExitStack

from cqels_py.batches.elements import ElementBatch
from cqels_py.cli import arguments, failures, output
from cqels_py.cli.execution import Enough, Job, Taker
from cqels_py.cli.progress import Progress, omissions, reports
from cqels_py.dictionary import Dictionary
from cqels_py.engine.compile import compile_query
from cqels_py.errors import DataError
from cqels_py.formats.contexts import read_contexts
from cqels_py.formats.times import doubt
from cqels_py.plan.nodes import Plan
from cqels_py.runners.spark.describe import describe, loads_in_words
from cqels_py.runners.spark.session import require_pyspark, session_for_a_run
from cqels_py.sources.files import open_source
from cqels_py.sources.time_merge import TimeMerge
from cqels_py.spark import loads, prepare

ELEMENTS_AT_ONCE = 100_000


def explain(plan: Plan, partitions: int | None) -> str:
    """How a plan runs there; without a number of partitions a run has one for each core."""
    return describe(plan, partitions or os.cpu_count() or 1)


def run(job: Job, cleanup: ExitStack) -> None:
    """Run the job to the end of its streams, or to its limit."""
    require_pyspark()
    from cqels_py.runners.spark.driver import SparkRun

    timeout = job.service_timeout / 1_000_000
    compiled = compile_query(job.text, source=job.source, service_timeout=timeout)
    plan = compiled.plan
    output.check_signs(plan.form, plan.output, job.changelog)
    format_ = output.choose(job.format, job.output, plan.form, plan.variables)
    arguments.check_streams(job.streams, plan.streams)
    state = cleanup.enter_context(tempfile.TemporaryDirectory(prefix="cqels-state-"))
    session = cleanup.enter_context(session_for_a_run())
    work, plan = prepare(
        compiled,
        state=f"{state}/query",
        partitions=job.partitions or session.sparkContext.defaultParallelism,
        static=list(job.static),
        static_graphs=job.static_graphs,
        changelog=job.changelog or format_ == "table",
        lateness=job.lateness,
        entailment=job.entailment,
        solutions=True,
        in_order=True,
        contexts=job.contexts,
    )
    for warning in plan.warnings:
        failures.say(f"warning: {warning}")
    dictionary = Dictionary(strict=True)
    writer = output.open_writer(format_, job.output, job.title, dictionary, plan, cleanup)
    progress = Progress(writer.show)
    # A table shows results long after they came.
    spark_run = SparkRun(session, work, plan.variables, dictionary, release=format_ != "table")
    counters, report, take = spark_run.counters, reports(), Taker(writer.write, job.limit)

    def malformed(error: DataError) -> None:
        counters.malformed += 1
        report(error)

    merged = TimeMerge([_open(job, plan, number, dictionary, malformed, report) for number in _order(job, plan)])
    try:
        with dictionary.holding(merged.live_ids):
            late = 0
            for batch in spark_run.run(merged, job.batch or ELEMENTS_AT_ONCE):
                if counters.late > late:
                    report(
                        f"late elements were dropped, {counters.late - late:,} more: a greater --lateness waits longer"
                    )
                    late = counters.late
                take(batch)
                progress.update(spark_run.statistics)
    except Enough:
        pass
    finally:
        statistics = spark_run.statistics
        writer.close(progress.line(statistics))
        if job.stats:
            failures.say(progress.summary(statistics))
            failures.say(loads_in_words(loads(work.folder)))
        elif left_out := omissions(statistics):
            failures.say(f"warning: in all, {', '.join(left_out)}")


def _order(job: Job, plan: Plan) -> list[int]:
    """The streams' numbers in the order in which the user gave them: that of elements of the same time."""
    return [plan.streams.index(iri) for iri in job.streams]


def _open(
    job: Job,
    plan: Plan,
    number: int,
    dictionary: Dictionary,
    malformed: Callable[[DataError], None],
    report: Callable[[object], None],
) -> Iterator[ElementBatch]:
    stream = plan.streams[number]
    return open_source(
        str(job.streams[stream]),
        dictionary=dictionary,
        stream=number,
        time_predicate=job.time_predicate or plan.time_predicates[number],
        on_error=job.on_error,
        report=malformed,
        blank_nodes=job.blank_nodes,
        graphs=plan.graphs[number],
        contexts=read_contexts(job.contexts),
        doubt=lambda time: report(f"<{stream}>: {doubt(time)}"),
    )
