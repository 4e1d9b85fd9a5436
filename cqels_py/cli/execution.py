"""Runs a job on its runner."""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Callable, Mapping, Sequence
from contextlib import AbstractContextManager, ExitStack, suppress
from dataclasses import replace
from typing import TYPE_CHECKING, Any

from cqels_py.cli import arguments, failures
from cqels_py.cli.commits import Commits
from cqels_py.cli.delivery import LimitedSink, LimitReached
from cqels_py.cli.job import Job
from cqels_py.cli.progress import Pace, Progress, omissions, reports
from cqels_py.errors import CqelsError, DataError, UnsupportedQuery, UsageError

if TYPE_CHECKING:
    from cqels_py.cli.checkpointing import LoggedRun
    from cqels_py.cli.written import Written
    from cqels_py.engine.compile import CompiledQuery
    from cqels_py.engine.durable.companion import Companion
    from cqels_py.engine.engine import Engine, Query
    from cqels_py.runners.protocol import QueryRun
    from cqels_py.runners.statistics import Statistics

_ABSENT = "absent: static data of {}, taken for empty here; cqels run needs it: --static-graph {}=FILE"


def explain(job: Job) -> None:
    """Print the plan."""
    with failures.reported(job.text):
        from cqels_py.engine.explained import with_prefixes
        from cqels_py.kernels.compiler.prepare import only_when_called
        from cqels_py.sources.static import absent_graphs

        compiled = compiled_of(job)
        absent = absent_graphs(compiled.static_graphs, job.static_graphs)
        # The plan has its warnings in it.
        with only_when_called():
            _, query = _register(job, replace(compiled, explained=True), changelog=False, empty=absent)
        if job.format in ("dot", "svg"):
            dot = query.explain("dot")
            automata = dot.startswith("digraph automata")
            print(dot if job.format == "dot" else drawn(dot) if automata else query.explain("svg"))
            return
        if job.format == "json":
            print(query.explain("json"))
            return
        print(with_prefixes(query.explain(), job.text))
        if absent:
            print(_ABSENT.format(" ".join(f"<{iri}>" for iri in absent), absent[0]))
        if job.runner == "spark":
            from cqels_py.dictionary import Dictionary
            from cqels_py.runners.spark.describe import describe
            from cqels_py.runners.spark.heavy import Noted

            # Without a number of partitions a run has one for each core.
            partitions = job.partitions or os.cpu_count() or 1
            values = Noted().values(job.heavy, partitions, Dictionary(strict=True))
            print(describe(query.plan, partitions, values))


def drawn(dot: str) -> str:
    """A picture by graphviz. UsageError where it is not installed."""
    program = shutil.which("dot")
    if program is None:
        raise UsageError("--format svg of MATCH needs graphviz's program dot: install graphviz, or write --format dot")
    return subprocess.run([program, "-Tsvg"], input=dot, capture_output=True, text=True, check=True).stdout


def execute(job: Job) -> None:
    """Run the job to its end; raises `failures.Exit` when that is not a good one."""
    with failures.reported(job.text), ExitStack() as cleanup:
        from cqels_py.kernels.compiler.progress import announced

        # Without a message, a long compilation would look like a command that hangs.
        on_terminal = sys.stderr.isatty()
        bar = _kernels_bar if on_terminal else None
        cleanup.enter_context(announced(failures.say, summary=job.announce or on_terminal, bar=bar))
        Execution(job, cleanup).run()


def _kernels_bar(kernels: int) -> AbstractContextManager[Callable[[], None]]:
    from cqels_py.cli.compile import kernels_bar

    return kernels_bar(kernels)


class Execution:
    """A job from its query to its last result."""

    def __init__(self, job: Job, cleanup: ExitStack) -> None:
        from cqels_py.cli import output
        from cqels_py.sinks.urls import sink_of

        compiled = compiled_of(job)
        compiled.check_memory(job.source)
        plan, form = compiled.plan, compiled.asked.form
        output.check_signs(form, plan.output, job.changelog)
        _check_memory(job, compiled)
        connector = None if job.sink is None else sink_of(job.sink)
        format_ = None if connector is not None else output.choose(job.format, job.output, form, plan.variables)
        self._job = job = replace(job, format=format_)
        if not job.unread_streams:
            arguments.check_streams(job.streams, plan.streams)
            arguments.check_named("--map", job.maps, job.streams)
            arguments.check_named("--lateness", job.lateness_of, job.streams)
        # The table shows the answer, which takes both signs to rebuild.
        wanted = job.changelog or format_ == "table" or (connector is not None and connector.changelog)
        self._logged: LoggedRun | None = None
        self._run: QueryRun
        self._writer: output.Writer
        if job.checkpoint is not None:
            self._logged, self._run = _with_checkpoint(job, compiled, wanted, cleanup)
        else:
            open_run = _on_spark if job.runner == "spark" else LocalRun
            self._run = open_run(job, compiled, wanted, cleanup)
        plan = self._run.plan
        for warning in plan.warnings:
            failures.say(f"warning: {warning}")
        former = self._former
        if connector is not None:
            assert isinstance(self._run, LocalRun)
            self._writer = output.open_url(connector, self._run.query, self._run.dictionary, cleanup, job.max_backlog)
        else:
            assert format_ is not None
            self._writer = output.open_writer(
                format_, job.output, job.title, self._run.dictionary, plan, cleanup, former
            )
        self._sink = LimitedSink(self._writer, job.limit if former is None else former.left, self._run.stop)
        if self._logged is not None:
            self._logged.begin(self._written, self._save)
            if connector is not None and job.sink is not None:
                from cqels_py.cli.checkpointing import tell_repeats

                tell_repeats(job.sink, connector)
        self._commits = Commits(job)
        self._progress = Progress(self._writer.show, held_back=job.speed is not None)
        self._pace = Pace(job.speed) if job.speed else None

    def run(self) -> None:
        """Run the job to the end of its streams, or to its limit."""
        job, plan = self._job, self._run.plan
        self._run.write_to(self._sink)
        sources = {iri: _source(job, source) for iri, source in job.streams.items() if iri in plan.streams}
        times = dict.fromkeys(sources, job.time_predicate) if job.time_predicate else {}
        more: dict[str, Any] = (
            {"maps": {iri: file for iri, file in job.maps.items() if iri in sources}} if job.maps else {}
        )
        if job.until is not None:
            more["until"] = job.until
        try:
            self._check_limit()
            self._run.run(sources, time_predicates=times, progress=self._look, threads=job.threads, **more)
            self._save_end()
        except KeyboardInterrupt:
            # Results that wait for a sink are made again from the log.
            if self._logged is not None and self._settled():
                # If the engine is in the middle of a step, the last snapshot counts.
                with suppress(UsageError):
                    self._save()
            raise
        except LimitReached:
            self._save_end()
        except DataError:
            # The rest of a file, behind malformed input, may be mended.
            if self._logged is not None and self._settled():
                with suppress(CqelsError):
                    self._save()
            raise
        finally:
            self._finish(self._run.statistics)

    def _save_end(self) -> None:
        """Save that the run has ended."""
        if self._logged is not None:
            self._save(finished=True)

    def _check_limit(self) -> None:
        if self._sink.full:
            raise LimitReached

    @property
    def _former(self) -> Written | None:
        """How far the output was from which the run continues, if it does."""
        return None if self._logged is None else self._logged.restored()

    def _written(self) -> Written:
        """Sync the output; how far it is."""
        from cqels_py.cli import output

        return replace(output.written(self._writer), left=self._sink.left)

    def _save(self, *, finished: bool = False) -> None:
        """Save a snapshot, with the length of the output to which it belongs."""
        assert isinstance(self._run, LocalRun)
        assert self._logged is not None
        self._logged.save(self._run.checkpoint, finished=finished)

    def _commit(self) -> None:
        """Commit the sinks, then the sources."""
        assert isinstance(self._run, LocalRun)
        self._run.commit()

    def _look(self, statistics: Statistics) -> None:
        self._check_limit()
        self._progress.update(statistics)
        if self._pace is not None:
            self._pace.wait(statistics.event_time)
        if self._logged is not None and self._logged.due and self._settled():
            self._save()
        if self._commits.due() and self._settled():
            self._commit()

    def _settled(self) -> bool:
        """Has the sink all results? While they wait for one that fails, streams are read on, and nothing is committed."""
        settle = getattr(self._writer, "settle", None)
        return settle is None or bool(settle())

    def _finish(self, statistics: Statistics) -> None:
        self._writer.close(self._progress.line(statistics))
        if self._job.stats:
            failures.say(self._progress.summary(statistics), statistics=self._progress.figures(statistics))
            if details := self._run.details():
                failures.say(details)
        elif left_out := omissions(statistics):
            failures.say(f"warning: in all, {', '.join(left_out)}")


class LocalRun:
    """In an engine, in this process."""

    def __init__(
        self,
        job: Job,
        compiled: CompiledQuery,
        changelog: bool,
        cleanup: ExitStack,
        logged: Companion | None = None,
    ) -> None:
        from cqels_py.kernels.compiler.prepare import only_when_called

        _prepare(job, compiled)
        # Registered in a program, a query would also need the kernels of pushes.
        with only_when_called():
            self._engine, self.query = _register(job, compiled, changelog, logged=logged)
        cleanup.callback(self._engine.close)
        if job.metrics is not None:
            from cqels_py.engine.metrics import metrics_served

            address = cleanup.enter_context(metrics_served(self._engine, job.metrics))
            failures.say(f"metrics: {address}")
        self.plan = self.query.plan
        self.dictionary = self._engine.dictionary
        self.write_to = self.query.write_to
        self.commit = self._engine.commit
        self._clock = job.clock
        self._logged = logged
        self.checkpoint = self._engine.checkpoint

    @property
    def statistics(self) -> Statistics:
        return self._engine.statistics

    def run(self, sources: Mapping[str, Any], **how: Any) -> Statistics:
        """Read the sources to their ends. Results that are due then are told now: the command ends."""
        from cqels_py.engine.command_run import end_of_input

        self._engine.run(sources, **how)
        if self._clock == "wall" and self._logged is None:
            self._engine.finish()
        elif self._clock == "wall":
            end_of_input(self._engine)
        return self.statistics

    def stop(self) -> None:
        # The log would say that the query is no more, also for results that are made again.
        if self._logged is None:
            self._engine.unregister(self.query)

    def details(self) -> str:
        return ""


def _prepare(job: Job, compiled: CompiledQuery) -> None:
    """Compile all kernels of the run at once: those of its query, its sources and its results."""
    from cqels_py.dataflow.kernel_calls import calls_of
    from cqels_py.formats.endings import STREAMS, format_of
    from cqels_py.formats.kernel_calls import calls_to_read, calls_to_write
    from cqels_py.kernels.compiler.prepare import prepare
    from cqels_py.sources.stdin import STANDARD_INPUT
    from cqels_py.sources.urls import SOURCES

    forms = {"nq"} if job.static or job.static_graphs else set()
    for iri, source in job.streams.items():
        if not isinstance(source, str):
            forms.add("arrow")
        elif SOURCES.is_url(source):
            # Its connector compiles its kernels when it is opened.
            continue
        elif source == STANDARD_INPUT:
            forms.add("ndjson" if iri in job.maps else "nq")
        else:
            forms.add(format_of(source, STREAMS))
    reading = [call for form in forms for call in calls_to_read(form)]
    own = calls_of(compiled.plan, pushed=False, rewritten=job.entailment is not None)
    writing = [] if job.sink is not None else calls_to_write(job.format or "table")
    prepare([*own, *reading, *writing])


def _on_spark(job: Job, compiled: CompiledQuery, changelog: bool, cleanup: ExitStack) -> QueryRun:
    """In Spark, micro-batch by micro-batch."""
    from cqels_py.runners.spark.session import connected_session, cores_of, require_pyspark, session_for_a_run

    require_pyspark()
    from cqels_py.cli.job import read_in_tasks
    from cqels_py.distribution.stages import stages_of
    from cqels_py.formats.scopes import SOURCE
    from cqels_py.runners.spark.driver import SparkRun
    from cqels_py.runners.spark.files_run import FOR_ALL, FilesRun
    from cqels_py.runners.spark.warming import calls_of_tasks, warm_hosts
    from cqels_py.spark import check_new, prepare

    state = job.state or cleanup.enter_context(tempfile.TemporaryDirectory(prefix="cqels-state-")) + "/query"
    if job.remote is None:
        # Before Spark is started.
        check_new(state)
        session = cleanup.enter_context(session_for_a_run(job.master, job.archives))
    else:
        session = cleanup.enter_context(connected_session(job.remote, job.archives))
        check_new(state, session=session)
    in_tasks = read_in_tasks(job)
    latest = max([job.lateness_of.get(stream, job.lateness) for stream in compiled.plan.streams], default=job.lateness)
    reading: dict[str, Any] = {"in_order": True, "lateness": latest}
    if in_tasks:
        reading = {
            "lateness": job.lateness,
            "lateness_of": job.lateness_of,
            "idle": FOR_ALL if len(compiled.plan.streams) > 1 else None,
            "on_error": job.on_error,
            "by_file": job.blank_nodes == SOURCE,
        }
    work, plan = prepare(
        compiled,
        state=state,
        session=session,
        partitions=job.partitions or cores_of(session),
        heavy=job.heavy or None,
        static=list(job.static),
        static_graphs=job.static_graphs,
        changelog=changelog,
        entailment=job.entailment,
        solutions=True,
        contexts=job.contexts,
        **reading,
    )
    if job.remote is not None or (job.master is not None and not job.master.startswith("local")):
        warm_hosts(session, calls_of_tasks(plan, stages_of(plan, max(work.parts))), cores_of(session))
    if in_tasks:
        return FilesRun(session, work, plan, report=reports(), keep_terms=job.format == "table")
    return SparkRun(
        session, work, plan, batch=job.batch, on_error=job.on_error, report=reports(), blank_nodes=job.blank_nodes,
        contexts=job.contexts, keep_terms=job.format == "table",
    )  # fmt: skip


def _source(job: Job, source: Any) -> Any:
    """A file as it is; the record batches of a scenario in pieces."""
    if isinstance(source, str):
        return source
    from cqels_py.cli.record_batches import RecordBatches

    return RecordBatches(source, job.batch)


def compiled_of(job: Job) -> CompiledQuery:
    """The query of a job, before it has its static data."""
    from cqels_py.engine.compile import compile_query

    return compile_query(job.text, source=job.source, service_timeout=job.service_timeout / 1_000_000)


def _check_memory(job: Job, compiled: CompiledQuery) -> None:
    """UnsupportedQuery for a query that may keep more than `--max-memory` allows."""
    if job.max_memory is None:
        return
    if job.entailment is not None:
        raise UsageError(
            "--max-memory judges a query as it is written; with --entailment others may be kept: leave one out"
        )
    memory = compiled.memory
    if not memory.within(job.max_memory):
        raise UnsupportedQuery(f"--max-memory {job.max_memory} refuses the query. memory: {memory}")


def _with_checkpoint(
    job: Job, compiled: CompiledQuery, changelog: bool, cleanup: ExitStack
) -> tuple[LoggedRun, LocalRun]:
    """The checkpoint of the job, and its run, which goes on from there if there was one."""
    from cqels_py.cli import checkpointing

    checkpointing.check(job)
    logged = checkpointing.LoggedRun(job)
    return logged, LocalRun(job, compiled, changelog, cleanup, logged.companion)


def _register(
    job: Job,
    compiled: CompiledQuery,
    changelog: bool,
    empty: Sequence[str] = (),
    logged: Companion | None = None,
) -> tuple[Engine, Query]:
    """An engine with the job's query. `empty`: graphs that are to have no data. `logged`: the engine keeps its state in that
    folder.
    """
    from cqels_py.engine.command_run import expect_run
    from cqels_py.engine.engine import Engine

    engine = Engine(
        lateness=job.lateness,
        lateness_of=job.lateness_of,
        duplicates=job.duplicates,
        on_error=job.on_error,
        report=reports(),
        batch=job.batch,
        blank_nodes=job.blank_nodes,
        contexts=job.contexts,
        rejects=job.rejects,
        ahead=job.ahead,
        flush_after=job.flush_after,
        clock=job.clock,
        clock_delay=job.clock_delay,
        idle=job.idle,
        max_state=job.max_state,
        service_timeout=job.service_timeout / 1_000_000,
        checkpoint=logged,
    )
    # Elements that its sources have kept so far are not late.
    expect_run(engine)
    query = engine.register(
        # The answers of SERVICE are kept with the text.
        compiled if logged is None else job.text,
        source=job.source,
        static=list(job.static),
        static_graphs={**job.static_graphs, **dict.fromkeys(empty, b"")},
        changelog=changelog,
        entailment=job.entailment,
    )
    return engine, query
