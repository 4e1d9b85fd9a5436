"""`cqels explain --analyze`: runs a query over its streams, and prints the work of each operator."""

from __future__ import annotations

import json
from contextlib import ExitStack
from typing import TYPE_CHECKING, Any

from cqels_py.cli import arguments, failures
from cqels_py.cli.delivery import LimitedSink, LimitReached
from cqels_py.cli.execution import LocalRun, compiled_of
from cqels_py.cli.job import Job
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.batches.results import ResultBatch
    from cqels_py.dataflow import Profile
    from cqels_py.runners.statistics import Statistics


def check(job: Job, *, analyzed: bool) -> None:
    """UsageError for a source without --analyze, and for --analyze on Spark."""
    if analyzed and job.runner == "spark":
        raise UsageError("--analyze is for the local runner; Spark's own pages show its stages (http://localhost:4040)")
    if not analyzed:
        given = {"--stream": job.streams, "--map": job.maps, "--limit": job.limit}
        for option in (name for name, value in given.items() if value):
            raise UsageError(f"{option} is for --analyze, which runs the query: without it explain reads no stream")


def analyze(job: Job) -> None:
    """Run the query to the end of its streams, to its limit or to Ctrl-C; print its profile."""
    with failures.reported(job.text), ExitStack() as cleanup:
        compiled = compiled_of(job)
        arguments.check_streams(job.streams, compiled.plan.streams)
        arguments.check_named("--map", job.maps, job.streams)
        arguments.check_named("--lateness", job.lateness_of, job.streams)
        run = LocalRun(job, compiled, job.changelog, cleanup)
        sink = LimitedSink(_Nowhere(), job.limit, run.stop)
        run.write_to(sink)

        def look(_: Statistics) -> None:
            if sink.full:
                raise LimitReached

        times = dict.fromkeys(job.streams, job.time_predicate) if job.time_predicate else {}
        more: dict[str, Any] = {"maps": job.maps} if job.maps else {}
        try:
            run.run(job.streams, time_predicates=times, progress=look, **more)
        except LimitReached:
            pass
        finally:
            print(_shown(run.query.profile(), job.format or "text"), end="")


def _shown(profile: Profile, form: str) -> str:
    if form == "json":
        return json.dumps(profile.as_dict(), indent=2) + "\n"
    if form in ("dot", "svg"):
        return profile.dot() if form == "dot" else profile.svg() + "\n"
    return str(profile)


class _Nowhere:
    """Discards results."""

    def write(self, batch: ResultBatch) -> None: ...

    def flush(self) -> None: ...

    def commit(self) -> None: ...
