"""The commands and their options. Everything heavy is imported by the command that needs it."""

from __future__ import annotations

import atexit
import gc
import os
import sys
from collections.abc import Sequence
from contextlib import suppress
from enum import StrEnum
from pathlib import Path
from typing import Annotated, NoReturn

import typer

_NEW_OBJECTS = 200_000
"""When so many Python objects have come and stayed, those that only lead to each other are looked for."""

app = typer.Typer(
    add_completion=False,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
)


class Format(StrEnum):
    """How results are written."""

    table = "table"
    json = "json"
    csv = "csv"
    tsv = "tsv"
    nquads = "nquads"
    turtle = "turtle"
    trig = "trig"


class Entailment(StrEnum):
    """What follows from data that is not said in it."""

    rdfs = "rdfs"


class Runner(StrEnum):
    """What drives the query."""

    local = "local"
    spark = "spark"


class Runners(StrEnum):
    """What drives the queries of a suite."""

    local = "local"
    spark = "spark"
    both = "both"


class OnError(StrEnum):
    """What happens at a line that cannot be read."""

    stop = "stop"
    skip = "skip"


QueryFile = Annotated[Path | None, typer.Argument(metavar="QUERY", help="A file with the query.", show_default=False)]
QueryText = Annotated[str | None, typer.Option("-q", metavar="TEXT", help="The query itself, instead of a file.")]
Streams = Annotated[
    list[str] | None,
    typer.Option("--stream", metavar="IRI=SOURCE", help="A stream's source: a file, or - for standard input."),
]
Static = Annotated[
    list[Path] | None, typer.Option("--static", metavar="FILE", help="Static data for the default graph.")
]
StaticGraphs = Annotated[
    list[str] | None, typer.Option("--static-graph", metavar="IRI=FILE", help="Static data for a named graph.")
]
Formats = Annotated[
    Format | None,
    typer.Option("--format", help="Default: table on a terminal, else json; nquads for CONSTRUCT.", show_default=False),
]
Output = Annotated[
    Path | None, typer.Option("--output", "-o", metavar="PATH", help="Where results go instead of standard output.")
]
Changelog = Annotated[bool, typer.Option("--changelog", help="Both what becomes true and what ceases to be.")]
Limit = Annotated[int | None, typer.Option("--limit", min=1, metavar="N", help="Stop after N results.")]
Stats = Annotated[bool, typer.Option("--stats", help="Statistics on standard error at the end.")]
RunnerName = Annotated[Runner, typer.Option(help="What drives the query.")]
Partitions = Annotated[int | None, typer.Option(min=1, metavar="N", help="Parts of the state, for --runner spark.")]
Entailments = Annotated[
    Entailment | None,
    typer.Option("--entailment", help="See also what follows by the classes and properties of the static data."),
]
ServiceTimeout = Annotated[
    str, typer.Option("--service-timeout", metavar="DURATION", help="How long an endpoint of SERVICE may be silent.")
]
Batch = Annotated[
    int | None,
    typer.Option("--batch", min=1, metavar="N", help="Elements taken at once; results do not depend on it."),
]

Threads = Annotated[
    int | None,
    typer.Option(
        "--threads",
        min=1,
        max=2,
        metavar="N",
        help="2: a second thread parses files ahead; 1: none. Results are the same. Default: 2 for large files.",
        show_default=False,
    ),
]


def _show_version(asked: bool) -> None:
    if asked:
        from cqels_py import __version__

        print(f"cqels_py {__version__}")
        raise typer.Exit


@app.callback()
def cqels(
    version: Annotated[
        bool, typer.Option("--version", callback=_show_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Continuous SPARQL over RDF streams."""


@app.command("run")
def run_command(
    query: QueryFile = None,
    text: QueryText = None,
    stream: Streams = None,
    static: Static = None,
    static_graph: StaticGraphs = None,
    format_: Formats = None,
    output: Output = None,
    changelog: Changelog = False,
    runner: RunnerName = Runner.local,
    partitions: Partitions = None,
    entailment: Entailments = None,
    service_timeout: ServiceTimeout = "30s",
    time_predicate: Annotated[
        str | None,
        typer.Option(metavar="IRI", help="The property with the event time, for .nt and .ttl streams."),
    ] = None,
    lateness: Annotated[str, typer.Option(metavar="DURATION", help="How long late elements are waited for.")] = "0s",
    limit: Limit = None,
    stats: Stats = False,
    batch: Batch = None,
    threads: Threads = None,
    on_error: Annotated[OnError, typer.Option(help="At a line that cannot be read.")] = OnError.stop,
) -> None:
    """Run a query over streams until they end."""
    from cqels_py.cli import arguments, execution, failures

    with failures.reported():
        execution.check_partitions(runner.value, partitions)
        execution.check_threads(runner.value, threads)
        job = execution.Job(
            text=execution.query_text(query, text),
            source=None if query is None else str(query),
            streams=dict(arguments.pairs("--stream", stream or ())),
            static=list(static or ()),
            static_graphs=arguments.pairs("--static-graph", static_graph or ()),
            format=None if format_ is None else format_.value,
            output=output,
            changelog=changelog,
            time_predicate=time_predicate,
            lateness=arguments.duration(lateness),
            limit=limit,
            stats=stats,
            batch=batch,
            threads=threads,
            on_error=on_error.value,
            runner=runner.value,
            partitions=partitions,
            entailment=None if entailment is None else entailment.value,
            service_timeout=arguments.duration(service_timeout),
        )
        execution.check_files(job)
    execution.execute(job)


@app.command("explain")
def explain_command(
    query: QueryFile = None,
    text: QueryText = None,
    static: Static = None,
    static_graph: StaticGraphs = None,
    runner: RunnerName = Runner.local,
    partitions: Partitions = None,
    entailment: Entailments = None,
    service_timeout: ServiceTimeout = "30s",
) -> None:
    """Show a query's plan: windows, probing, indexes, partition keys, estimated state."""
    from cqels_py.cli import arguments, execution, failures

    with failures.reported():
        execution.check_partitions(runner.value, partitions)
        job = execution.Job(
            text=execution.query_text(query, text),
            source=None if query is None else str(query),
            streams={},
            static=list(static or ()),
            static_graphs=arguments.pairs("--static-graph", static_graph or ()),
            runner=runner.value,
            partitions=partitions,
            entailment=None if entailment is None else entailment.value,
            service_timeout=arguments.duration(service_timeout),
        )
        execution.check_files(job)
    execution.explain(job)


@app.command("demo")
def demo_command(
    name: Annotated[str, typer.Argument(help="flights or taxi.")] = "flights",
    query: Annotated[
        str | None, typer.Option("--query", metavar="NAME", help="Which of the scenario's queries.", show_default=False)
    ] = None,
    days: Annotated[int, typer.Option(min=1, metavar="N", help="How many days of the data.")] = 3,
    speed: Annotated[
        float | None,
        typer.Option(
            min=0,
            metavar="FACTOR",
            help="Seconds of the data's time a second; 0: as fast as it goes. Default: 7200 on a terminal, else 0.",
            show_default=False,
        ),
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="The scenarios and their queries.")] = False,
    format_: Formats = None,
    output: Output = None,
    changelog: Changelog = False,
    limit: Limit = None,
    stats: Stats = False,
    batch: Batch = None,
) -> None:
    """Run a continuous query over real data, live in the terminal."""
    from cqels_py.cli import demo, execution, failures

    with failures.reported():
        if list_:
            demo.show_list()
            return
        job = demo.job(
            name,
            query,
            days,
            speed,
            execution.Job(
                format=None if format_ is None else format_.value,
                output=output,
                changelog=changelog,
                limit=limit,
                stats=stats,
                batch=batch,
            ),
        )
    execution.execute(job)


@app.command("bench")
def bench_command(
    suite: Annotated[
        str | None, typer.Argument(metavar="SUITE", help="srbench or lsbench.", show_default=False)
    ] = None,
    queries: Annotated[
        str | None, typer.Option(metavar="IDS", help="Which of its queries, like 1,4,5; default: all.")
    ] = None,
    triples: Annotated[int, typer.Option(min=1, metavar="N", help="Triples in all streams together.")] = 1_000_000,
    data: Annotated[
        Path | None,
        typer.Option(
            metavar="DIR", help="Where the streams' files are kept; default: among temporary files.", show_default=False
        ),
    ] = None,
    runner: Annotated[
        Runners, typer.Option(help="What drives the queries; both: one after the other, side by side in one table.")
    ] = Runners.local,
    partitions: Partitions = None,
    threads: Threads = None,
    check: Annotated[
        bool, typer.Option("--check", help="Compare answers and rates with re-evaluation by pyoxigraph.")
    ] = False,
    seed: Annotated[int, typer.Option(min=0, metavar="N", help="Another seed, other data.")] = 1,
    window: Annotated[
        str | None,
        typer.Option(metavar="N", help="Windows of the last N elements instead; several sizes like 1000,10000."),
    ] = None,
    json_: Annotated[Path | None, typer.Option("--json", metavar="FILE", help="Write everything measured.")] = None,
    csv: Annotated[Path | None, typer.Option(metavar="FILE", help="Write a row for each query.")] = None,
    plots: Annotated[Path | None, typer.Option(metavar="DIR", help="Draw throughput, latency and memory.")] = None,
    compare: Annotated[
        list[Path] | None, typer.Option(metavar="FILE", help="An earlier run's --json, to show ratios to it.")
    ] = None,
    list_: Annotated[bool, typer.Option("--list", help="The suites and their queries.")] = False,
) -> None:
    """Measure a suite's queries: throughput, latency, memory, and whether answers are right."""
    from cqels_py.cli import bench, execution, failures
    from cqels_py.suites import report
    from cqels_py.suites.data import folder_for

    with failures.reported():
        if list_:
            bench.show_list()
            return
        execution.check_partitions(runner.value, partitions)
        execution.check_threads(runner.value, threads)
        chosen = bench.suite_of(suite)
        asked = bench.Asked(
            suite=chosen,
            queries=bench.chosen_queries(chosen, queries),
            windows=bench.sizes(window),
            triples=triples,
            data=folder_for(data),
            runners=("local", "spark") if runner is Runners.both else (runner.value,),
            partitions=partitions,
            threads=threads,
            check=check,
            seed=seed,
            json=json_,
            csv=csv,
            plots=plots,
            earlier=tuple(map(report.read_report, compare or ())),
        )
        bench.check_outputs(asked)
        bench.run(asked)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's own); returns its exit status."""
    from cqels_py.cli import rehearsal
    from cqels_py.cli.failures import Exit

    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with rehearsal.of(given):
            app(args=given)
    except Exit as over:
        return over.status
    except SystemExit as over:
        return over.code if isinstance(over.code, int) else 0
    return 0


def run() -> None:
    """The console script `cqels`."""
    # What is imported stays; looking through it for garbage, again and again, takes a fifth of the time of a small job.
    gc.set_threshold(_NEW_OBJECTS)
    _leave(main())


def _leave(status: int) -> NoReturn:
    """End the process at once: taking all modules apart first would take a third of the time of a small job."""
    atexit._run_exitfuncs()
    for stream in (sys.stdout, sys.stderr):
        # What nobody reads any more has been reported already.
        with suppress(BrokenPipeError):
            stream.flush()
    os._exit(status)
