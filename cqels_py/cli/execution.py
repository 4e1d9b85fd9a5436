"""A job (query, sources, output) through the engine."""

from __future__ import annotations

import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cqels_py.cli import arguments, failures, rehearsal
from cqels_py.cli.progress import Pace, Progress, omissions, reports
from cqels_py.errors import UsageError
from cqels_py.kernels.compiler import parallel_build as ahead

if TYPE_CHECKING:
    from cqels_py.batches.results import ResultBatch
    from cqels_py.engine.compile import CompiledQuery
    from cqels_py.engine.engine import Engine, Query
    from cqels_py.runners.statistics import Statistics


@dataclass(frozen=True, slots=True)
class Job:
    """What the user asked for. `lateness`, `service_timeout`: microseconds; `speed`: seconds of event time
    a second, None: unbounded.

    `static` are files, or N-Triples text. `announce`: say how long kernels were compiled, even where nobody watches.
    """

    text: str = ""
    source: str | None = None
    title: str = ""
    streams: Mapping[str, Any] = field(default_factory=dict)
    unread_streams: bool = False
    static: Sequence[Path | bytes] = ()
    static_graphs: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    output: Path | None = None
    changelog: bool = False
    time_predicate: str | None = None
    lateness: int = 0
    limit: int | None = None
    stats: bool = False
    batch: int | None = None
    threads: int | None = None
    on_error: str = "stop"
    speed: float | None = None
    announce: bool = False
    runner: str = "local"
    partitions: int | None = None
    entailment: str | None = None
    service_timeout: int = 30_000_000
    blank_nodes: str = "source"
    contexts: Mapping[str, str] = field(default_factory=dict)


_ABSENT = "absent: static data of {}, taken for empty here; cqels run needs it: --static-graph {}=FILE"


class Enough(Exception):
    """`--limit` is reached."""


class Taker:
    """Hands results on; raises Enough after `limit` of them."""

    def __init__(self, write: Callable[[ResultBatch], None], limit: int | None) -> None:
        self._write = write
        self._left = limit

    def __call__(self, batch: ResultBatch) -> None:
        if self._left is None:
            self._write(batch)
            return
        self._write(_first(batch, self._left))
        self._left -= len(batch)
        if self.full:
            raise Enough

    @property
    def full(self) -> bool:
        """Has it handed on as many as it may?"""
        return self._left is not None and self._left <= 0


def check_partitions(runner: str, partitions: int | None) -> None:
    """Nothing that was asked for is silently left out."""
    if runner == "local" and partitions is not None:
        raise UsageError("--partitions divides the state on Spark (--runner spark); the local runner has one part")


def check_threads(runner: str, threads: int | None) -> None:
    """The same for threads."""
    if runner == "spark" and threads is not None:
        raise UsageError("--threads is for the local runner; Spark divides its work by --partitions")


def explain(job: Job) -> None:
    """Print the plan."""
    with failures.reported(job.text):
        from cqels_py.sources.static import absent_graphs

        compiled = _compiled(job)
        absent = absent_graphs(compiled.static_graphs, job.static_graphs)
        # The plan has its warnings in it.
        _, query = _register(job, compiled, changelog=False, empty=absent)
        print(query.explain())
        if absent:
            print(_ABSENT.format(" ".join(f"<{iri}>" for iri in absent), absent[0]))
        if job.runner == "spark":
            from cqels_py.cli import on_spark

            print(on_spark.explain(query.plan, job.partitions))


def execute(job: Job) -> None:
    """Run the job to its end; raises `failures.Exit` when that is not a good one."""
    with failures.reported(job.text), ExitStack() as cleanup:
        job = cleanup.enter_context(rehearsal.shortened(job))
        cleanup.enter_context(ahead.rehearsing(rehearsal.command(job), lambda: rehearsal.first_input(job)))
        from cqels_py.kernels.compiler.progress import announced

        # Without a word, a log that stands still for so long would look like a command that hangs.
        cleanup.enter_context(announced(failures.say, summary=job.announce or sys.stderr.isatty()))
        if job.runner == "spark":
            from cqels_py.cli import on_spark

            on_spark.run(job, cleanup)
        else:
            _Run(job, cleanup).run()


class _Run:
    def __init__(self, job: Job, cleanup: ExitStack) -> None:
        from cqels_py.cli import output

        self._job = job
        compiled = _compiled(job)
        asked = compiled.asked
        output.check_signs(asked.form, asked.output.value, job.changelog)
        format_ = output.choose(job.format, job.output, asked.form, [str(name) for name in asked.variables])
        # The table shows the answer, which takes both signs to rebuild.
        self._engine, self._query = _register(job, compiled, job.changelog or format_ == "table")
        for warning in self._query.plan.warnings:
            failures.say(f"warning: {warning}")
        if not job.unread_streams:
            arguments.check_streams(job.streams, self._query.streams)
        self._writer = output.open_writer(
            format_, job.output, job.title, self._engine.dictionary, self._query.plan, cleanup
        )
        self._progress = Progress(self._writer.show, held_back=job.speed is not None)
        self._pace = Pace(job.speed) if job.speed else None
        self._take = Taker(self._writer.write, job.limit)

    def run(self) -> None:
        self._query.subscribe_batches(self._take_or_leave)
        streams = {iri: self._source(iri) for iri in self._job.streams if iri in self._query.streams}
        predicate = self._job.time_predicate
        times = dict.fromkeys(streams, predicate) if predicate else {}
        try:
            self._engine.run(streams, time_predicates=times, progress=self._look, threads=self._job.threads)
        except Enough:
            pass
        finally:
            self._finish(self._engine.statistics)

    def _source(self, iri: str) -> Any:
        source = self._job.streams[iri]
        if isinstance(source, str):
            return source
        from cqels_py.cli.record_batches import element_batches

        number = self._query.streams.index(iri)
        return element_batches(source, self._engine.dictionary, number, self._job.batch)

    def _take_or_leave(self, batch: ResultBatch) -> None:
        """With the last result that is asked for the query leaves: the rest of its results, however many, is not even made."""
        try:
            self._take(batch)
        except Enough:
            self._engine.unregister(self._query)

    def _look(self, statistics: Statistics) -> None:
        if self._take.full:
            raise Enough
        self._progress.update(statistics)
        if self._pace is not None:
            self._pace.wait(statistics.event_time)

    def _finish(self, statistics: Statistics) -> None:
        self._writer.close(self._progress.line(statistics))
        if self._job.stats:
            failures.say(self._progress.summary(statistics))
        elif left_out := omissions(statistics):
            failures.say(f"warning: in all, {', '.join(left_out)}")


def _compiled(job: Job) -> CompiledQuery:
    from cqels_py.engine.compile import compile_query

    return compile_query(job.text, source=job.source, service_timeout=job.service_timeout / 1_000_000)


def _register(job: Job, compiled: CompiledQuery, changelog: bool, empty: Sequence[str] = ()) -> tuple[Engine, Query]:
    """An engine with the job's query. `empty`: graphs that are to have no data."""
    from cqels_py.engine.engine import Engine

    engine = Engine(
        lateness=job.lateness,
        on_error=job.on_error,
        report=reports(),
        batch=job.batch,
        blank_nodes=job.blank_nodes,
        contexts=job.contexts,
    )
    query = engine.register(
        compiled,
        static=list(job.static),
        static_graphs={**job.static_graphs, **dict.fromkeys(empty, b"")},
        changelog=changelog,
        entailment=job.entailment,
    )
    return engine, query


def _first(batch: ResultBatch, count: int) -> ResultBatch:
    if len(batch) <= count:
        return batch
    columns = tuple(column[:count] for column in batch.columns)
    tick = None if batch.tick is None else batch.tick[:count]
    return replace(batch, time=batch.time[:count], sign=batch.sign[:count], columns=columns, tick=tick)
