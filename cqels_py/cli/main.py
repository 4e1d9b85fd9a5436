"""The commands and their options. Each command imports the modules that it needs, so that `--help` is quick."""

from __future__ import annotations

import atexit
import gc
import os
import signal
import sys
from collections.abc import Callable, Sequence
from contextlib import suppress
from pathlib import Path
from typing import Any, NoReturn, TypeVar

import click

from cqels_py.cli import remote
from cqels_py.cli.examples import WithExamples
from cqels_py.cli.standard_streams import open_missing

_NEW_OBJECTS = 200_000
"""The number of new Python objects after which the garbage collector looks for cycles."""

Command = TypeVar("Command", bound=Callable[..., Any])

_FILE = click.Path(path_type=Path)
_COUNT = click.IntRange(min=1)
_FORMATS = ("table", "json", "csv", "tsv", "nquads", "turtle", "trig", "jelly")

query_file = click.argument("query", required=False, type=_FILE)
query_text = click.option("-q", "text", metavar="TEXT", help="The query itself, instead of a file.")
streams = click.option(
    "--stream",
    "streams",
    metavar="IRI=SOURCE",
    multiple=True,
    help="A stream's source: a file, the URL of a connector, - for standard input, or on Spark a folder.",
)
static = click.option(
    "--static", metavar="FILE", multiple=True, help="Static data for the default graph: a file, or the URL of a table."
)
static_graph = click.option(
    "--static-graph", "static_graphs", metavar="IRI=FILE", multiple=True, help="Static data for a named graph."
)
format_ = click.option(
    "--format",
    "format_",
    type=click.Choice(_FORMATS),
    help="Default: by the ending of --output (.json .jsonl .ndjson .csv .tsv .nq .ttl .trig .jelly); without an ending, "
    "table on a terminal, otherwise json; for CONSTRUCT, nquads.",
)
output = click.option(
    "-o",
    "--output",
    metavar="PATH",
    help="Write results to a file, or to the URL of a sink, instead of standard output.",
)
changelog = click.option(
    "--changelog", is_flag=True, help="Deliver retractions too: sign + for new results, - for retracted ones."
)
limit = click.option("--limit", metavar="N", type=_COUNT, help="Stop after N results.")
stats = click.option("--stats", is_flag=True, help="Print statistics to standard error at the end.")
runner = click.option(
    "--runner", type=click.Choice(("local", "spark")), default="local", help="Run in this process, or on Spark."
)
partitions = click.option(
    "--partitions", metavar="N", type=_COUNT, help="Number of partitions of the state, for --runner spark."
)
heavy = click.option(
    "--heavy",
    metavar="VARIABLE=TERM",
    multiple=True,
    help="With --partitions: a value in very many triples, such as 'sensor=<http://ex.org/s1>', gets partitions of its own.",
)
entailment = click.option(
    "--entailment",
    type=click.Choice(("rdfs",)),
    help="Infer triples from the classes and properties of the static data.",
)
service_timeout = click.option(
    "--service-timeout", metavar="DURATION", default="30s", help="Timeout of a SERVICE endpoint."
)
contexts = click.option(
    "--context",
    "contexts",
    metavar="IRI=FILE",
    multiple=True,
    help="A JSON-LD context and the IRI that names it; contexts are never fetched.",
)
blank_nodes = click.option(
    "--blank-nodes",
    type=click.Choice(("source", "element")),
    default="source",
    help="Scope of blank node labels: the source (a file, or a line of .ndjson), or the element.",
)
batch = click.option(
    "--batch", metavar="N", type=_COUNT, help="Number of elements processed together; results are the same."
)
threads = click.option(
    "--threads",
    metavar="N",
    type=click.IntRange(1, 2),
    help="With 2, a second thread parses files ahead; results are the same. Default: 2 for large files, otherwise 1.",
)


def options(*them: Callable[[Command], Command]) -> Callable[[Command], Command]:
    """Several options, shown in the order given."""

    def decorate(command: Command) -> Command:
        for each in reversed(them):
            command = each(command)
        return command

    return decorate


def _show_version(context: click.Context, _: click.Parameter, asked: bool) -> None:
    if asked:
        from cqels_py import __version__

        click.echo(f"cqels_py {__version__}")
        context.exit()


class Commands(click.Group):
    """Lists its commands in the order of this file, and reports the signal that ended one."""

    command_class = WithExamples
    group_class = type

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self.commands)

    def invoke(self, ctx: click.Context) -> Any:
        from cqels_py.cli.failures import interrupted

        try:
            return super().invoke(ctx)
        except KeyboardInterrupt as error:
            # Before a command has come to its own reports.
            raise interrupted(error) from None


@click.group(cls=Commands, context_settings={"show_default": True, "help_option_names": ["-h", "--help"]})
@click.option(
    "--version",
    is_flag=True,
    callback=_show_version,
    is_eager=True,
    expose_value=False,
    help="Show the version and exit.",
)
def app() -> None:
    """Continuous SPARQL over RDF streams."""


maps = click.option(
    "--map",
    "maps",
    metavar="IRI=FILE",
    multiple=True,
    help="How rows (CSV, TSV, Parquet) or plain JSON become elements of a stream: a CONSTRUCT whose variables are the columns, "
    "or a JSON-LD context (.jsonld, .json).",
)


@app.command("run")
@options(
    query_file, query_text, streams, maps, static, static_graph, format_, output, changelog, runner, partitions, heavy,
    entailment, service_timeout, blank_nodes, contexts,
)  # fmt: skip
@click.option(
    "--time-predicate", metavar="IRI", help="The property that gives the event time, for .nt and .ttl streams."
)
@click.option(
    "--lateness",
    metavar="[IRI=]DURATION",
    multiple=True,
    help="Allowed lateness, of all streams or of one; elements that are later are dropped.",
)
@click.option(
    "--duplicates",
    type=click.Choice(("keep", "drop")),
    default="keep",
    help="drop: of elements with one graph, time and triples the first is taken in. Default: keep, each counts.",
)
@click.option(
    "--ahead",
    metavar="DURATION",
    help="Drop elements that are so much later than the one before them in their stream: wrong clocks. Default: none are.",
)
@click.option(
    "--until",
    metavar="TIME",
    help="At the end of the streams, let event time go on to this instant, and deliver all that is due by then.",
)
@click.option(
    "--flush-after",
    metavar="DURATION",
    default="200ms",
    help="On standard input and pipes, an element is complete when nothing has come for so long. 0s: only when another begins.",
)
@click.option(
    "--clock",
    type=click.Choice(("events", "wall")),
    default="events",
    help="Time moves with the elements alone, or follows the computer's clock: then silence is told, too.",
)
@click.option(
    "--clock-delay",
    metavar="DURATION",
    default="200ms",
    help="With --clock wall: how long elements take to arrive.",
)
@click.option(
    "--idle",
    metavar="DURATION",
    default="30s",
    help="With several streams: after so long without input, others do not wait for standard input or a pipe.",
)
@options(limit, stats, batch, threads)
@click.option(
    "--max-state",
    metavar="SIZE",
    help="Stop the query when its state is larger (500MB, 2GiB).",
)
@click.option(
    "--max-backlog",
    metavar="SIZE",
    help="With an output by URL: results that wait on the disk while it is away; with more, streams wait too. Default: 1GiB.",
)
@click.option(
    "--max-memory",
    type=click.Choice(("constant", "window")),
    help="Refuse a query whose state may grow beyond a constant, or beyond its windows (see cqels explain).",
)
@click.option(
    "--on-error",
    type=click.Choice(("stop", "skip")),
    default="stop",
    help="On malformed input, stop or skip it.",
)
@click.option(
    "--rejects",
    metavar="PATH",
    type=click.Path(path_type=Path),
    help="Write each element that is left out (late, or skipped as malformed) to this file, as a line of JSON.",
)
@click.option(
    "--metrics",
    metavar="PORT",
    type=click.IntRange(0, 65535),
    help="Serve metrics for Prometheus at this port of 127.0.0.1 (0: one that is free) while the run lasts.",
)
@click.option(
    "--checkpoint",
    metavar="DIR",
    type=_FILE,
    help="Keep the state in this folder: the same command continues there after the process has ended, however it ended.",
)
@click.option(
    "--every",
    metavar="DURATION",
    help="The time between two snapshots of the state (--checkpoint, default 10s), or two commits of sources and outputs by URL "
    "(default 1s).",
)
@click.option(
    "--master",
    metavar="URL",
    help="The cluster for --runner spark, such as spark://host:7077. Default: this machine.",
)
@click.option(
    "--remote",
    metavar="URL",
    help="A Spark Connect server for --runner spark, such as sc://host:15002, instead of --master.",
)
@click.option(
    "--state",
    metavar="FOLDER",
    help="An empty folder for the state on a cluster (--master, --remote), which all workers reach by the same path or by its URI.",
)
@click.option(
    "--archives",
    metavar="FILE",
    type=click.Path(exists=True, dir_okay=False, path_type=Path),
    help="The environment of the cluster's workers, as venv-pack or conda-pack makes it, with cqels_py. Default: they have it.",
)
@click.option(
    "--log-format",
    type=click.Choice(("text", "json")),
    default="text",
    help="Messages on standard error: text, or a line of JSON each.",
)
def run_command(*, log_format: str, **given: Any) -> None:
    """Run a query over streams until they end.

    QUERY is a file with the query.
    """
    from cqels_py.cli import execution, failures, files
    from cqels_py.cli.job_options import run_of

    with failures.logged_as(log_format), failures.reported():
        job = run_of(given)
        files.check(job)
    with failures.logged_as(log_format):
        execution.execute(job)


@app.command("explain")
@options(
    query_file,
    query_text,
    static,
    static_graph,
    runner,
    partitions,
    heavy,
    entailment,
    service_timeout,
    blank_nodes,
    contexts,
)
@click.option("--analyze", is_flag=True, help="Run the query over the streams, and show the work of each operator.")
@options(streams, maps)
@click.option("--lateness", metavar="[IRI=]DURATION", multiple=True, help="With --analyze: allowed lateness.")
@click.option("--time-predicate", metavar="IRI", help="With --analyze: the event time of .nt and .ttl streams.")
@click.option("--limit", metavar="N", type=_COUNT, help="With --analyze: stop after N results.")
@changelog
@click.option(
    "--format",
    "format_",
    type=click.Choice(("text", "json", "dot", "svg")),
    default="text",
    help="The plan as text or JSON, or a picture of its operators, or of the automata of MATCH (whose svg needs graphviz).",
)
def explain_command(*, analyze: bool, **given: Any) -> None:
    """Show the plan of a query.

    The plan has the windows, the operators with their indexes and estimated state, the partition keys, and whether memory is
    bounded. With --analyze it has the measurements: rows in and out of each operator, its share of the time, bytes and probes.
    QUERY is a file with the query.
    """
    from cqels_py.cli import analysing, execution, failures, files
    from cqels_py.cli.job import check_partitions
    from cqels_py.cli.job_options import job_of

    with failures.reported():
        job = job_of(given)
        check_partitions(job)
        analysing.check(job, analyzed=analyze)
        files.check(job)
    if analyze:
        analysing.analyze(job)
    else:
        execution.explain(job)


@app.command("demo")
@click.argument("name", default="flights")
@click.option("--query", metavar="NAME", help="Name of one of the scenario's queries.")
@click.option("--days", metavar="N", type=_COUNT, default=3, help="Days of data.")
@click.option(
    "--speed",
    metavar="FACTOR",
    type=click.FloatRange(min=0),
    help="Seconds of event time per second; 0: as fast as possible. Default: 7200 on a terminal, otherwise 0.",
)
@click.option("--list", "list_", is_flag=True, help="List the scenarios and their queries.")
@options(format_, output, changelog, limit, stats, batch)
def demo_command(
    *,
    name: str,
    query: str | None,
    days: int,
    speed: float | None,
    list_: bool,
    format_: str | None,
    output: str | None,
    changelog: bool,
    limit: int | None,
    stats: bool,
    batch: int | None,
) -> None:
    """Run a continuous query over real data, live in the terminal.

    NAME is flights, taxi, patterns or rules; without one it is flights.
    """
    from cqels_py.cli import demo, execution, failures, files
    from cqels_py.cli.job import Job

    with failures.reported():
        if list_:
            demo.show_list()
            return
        job = demo.job(
            name,
            query,
            days,
            speed,
            Job(
                format=format_,
                **files.output_of(output),
                changelog=changelog,
                limit=limit,
                stats=stats,
                batch=batch,
            ),
        )
    execution.execute(job)


@app.command("bench")
@click.argument("suite", required=False)
@click.option("--queries", metavar="IDS", help="Queries of the suite, such as 1,4,5. Default: all.")
@click.option("--triples", metavar="N", type=_COUNT, default=1_000_000, help="Triples in all streams together.")
@click.option("--data", metavar="DIR", type=_FILE, help="Folder for the streams' files. Default: a temporary one.")
@click.option(
    "--suite-dir",
    metavar="DIR",
    type=_FILE,
    help="A suite of one's own instead: DIR has queries (*.rq), streams.json with a file for each stream's IRI, and static.nt.",
)
@click.option(
    "--runner",
    type=click.Choice(("local", "spark", "both")),
    default="local",
    help="Run in this process, on Spark, or both, side by side in one table.",
)
@options(partitions, threads)
@click.option("--check", is_flag=True, help="Compare answers and rates with re-evaluation by pyoxigraph.")
@click.option("--seed", metavar="N", type=click.IntRange(min=0), default=1, help="Seed of the generated data.")
@click.option("--window", metavar="N", help="Replace all windows by the last N elements; several sizes as 1000,10000.")
@click.option("--json", metavar="FILE", type=_FILE, help="Write all measurements to a file.")
@click.option("--csv", metavar="FILE", type=_FILE, help="Write a row for each query to a file.")
@click.option("--plots", metavar="DIR", type=_FILE, help="Draw throughput, latency and memory into a folder.")
@click.option(
    "--compare",
    metavar="FILE",
    type=_FILE,
    multiple=True,
    help="Show ratios to an earlier run, by the file of its --json.",
)
@click.option("--suite", "rules_suite", metavar="NAME", help="Suite rules: network, traffic or lubm. Default: all.")
@click.option("--core", metavar="PYTHON", help="Suite patterns: compare with CORE, by a Python 3.13 that has pycer.")
@click.option("--list", "list_", is_flag=True, help="List the suites and their queries.")
def bench_command(
    *,
    suite: str | None,
    queries: str | None,
    triples: int,
    data: Path | None,
    suite_dir: Path | None,
    runner: str,
    partitions: int | None,
    threads: int | None,
    check: bool,
    seed: int,
    window: str | None,
    json: Path | None,
    csv: Path | None,
    plots: Path | None,
    compare: Sequence[Path],
    core: str | None,
    rules_suite: str | None,
    list_: bool,
) -> None:
    """Measure the queries of a benchmark suite.

    Measured are throughput, latency and memory; --check compares the answers too. SUITE is srbench or lsbench; or patterns: event
    patterns (MATCH), which takes --triples, --window, --seed, --json and --core; bounded: a join without windows by counters,
    which takes --triples, --seed, --json and --plots; or rules: temporal rules beside reelay, which takes --suite, --triples,
    --seed and --json.
    """
    from cqels_py.cli import bench, bench_bounded, bench_patterns, bench_rules, failures
    from cqels_py.cli.job import Job, check_only_local, check_partitions
    from cqels_py.suites import report
    from cqels_py.suites.data import folder_for

    with failures.reported():
        if list_:
            bench.show_list()
            return
        if suite == bench_patterns.NAME:
            bench_patterns.run(windows=bench.sizes(window), triples=triples, seed=seed, json_file=json, core=core)
            return
        if suite == bench_bounded.NAME:
            bench_bounded.run(events=triples, seed=seed, json_file=json, plots=plots)
            return
        if suite == bench_rules.NAME:
            bench_rules.run(suite=rules_suite, triples=triples, seed=seed, json_file=json)
            return
        check_partitions(Job(runner=runner, partitions=partitions))
        check_only_local(Job(runner=runner, threads=threads))
        chosen = bench.suite_of(suite, suite_dir)
        asked = bench.Asked(
            suite=chosen,
            queries=bench.chosen_queries(chosen, queries),
            windows=bench.sizes(window),
            triples=triples,
            data=folder_for(data),
            runners=("local", "spark") if runner == "both" else (runner,),
            partitions=partitions,
            threads=threads,
            check=check,
            seed=seed,
            json=json,
            csv=csv,
            plots=plots,
            earlier=tuple(map(report.read_report, compare)),
        )
        bench.check_outputs(asked)
        bench.run(asked)


@app.command("map")
@click.argument("sample", metavar="SAMPLE", type=_FILE)
@click.option("--map", "map_", metavar="FILE", type=_FILE, required=True, help="The CONSTRUCT, or the JSON-LD context.")
@click.option(
    "--format",
    "format_",
    type=click.Choice(("trig", "nquads", "turtle")),
    default="trig",
    help="The form of the elements.",
)
@click.option("--time-predicate", metavar="IRI", help="With a JSON-LD context: the property that gives the event time.")
@click.option("--limit", metavar="N", type=_COUNT, help="Stop after N elements.")
@click.option(
    "--on-error", type=click.Choice(("stop", "skip")), default="stop", help="On malformed input, stop or skip it."
)
def map_command(
    *, sample: Path, map_: Path, format_: str, time_predicate: str | None, limit: int | None, on_error: str
) -> None:
    """Show the elements that a map makes of a file.

    SAMPLE is a file of rows (.csv, .tsv, .parquet) or of JSON, one object a line (.ndjson, .jsonl, .json).
    """
    from cqels_py.cli import arguments, failures
    from cqels_py.cli.mapping import show_elements

    with failures.reported():
        predicate = None if time_predicate is None else arguments.iri("--time-predicate", time_predicate)
        show_elements(sample, map_, format_, predicate, limit, on_error)


@app.command("rules")
@click.argument("program", type=_FILE)
@click.argument("facts", type=_FILE)
@click.option(
    "--syntax",
    type=click.Choice(("meteor",)),
    default="meteor",
    help="That of PROGRAM and FACTS: MeTeoR's, of DatalogMTL.",
)
@click.option(
    "--until", metavar="T", help="Look so far: a time in the unit of the facts, seconds. Default: their last endpoint."
)
def rules_command(*, program: Path, facts: Path, syntax: str, until: str | None) -> None:
    """Derive facts by temporal rules, and print all that holds as maximal intervals.

    PROGRAM is a file of DatalogMTL rules, one a line, FACTS one of facts with intervals: P(a)@[0,2.5).
    """
    from cqels_py.cli import failures
    from cqels_py.cli.rules import print_derived

    with failures.reported():
        print_derived(program, facts, until)


@app.group("checkpoint")
def checkpoint_group() -> None:
    """Look at the folder of a checkpoint, or copy it, also while it is in use."""


@checkpoint_group.command("show")
@click.argument("folder", metavar="DIR", type=_FILE)
def checkpoint_show_command(folder: Path) -> None:
    """Print the content of DIR: elements taken in, queries, snapshots and logs."""
    from cqels_py.cli import failures
    from cqels_py.cli.checkpoints import show

    with failures.reported():
        show(folder)


@checkpoint_group.command("copy")
@click.argument("folder", metavar="DIR", type=_FILE)
@click.argument("to", metavar="TO", type=_FILE)
@click.option("--intact", is_flag=True, help="If files are missing or damaged, copy what comes before them.")
def checkpoint_copy_command(folder: Path, to: Path, intact: bool) -> None:
    """Copy the last snapshot of DIR, and the inputs since then, to TO: a savepoint to go on from."""
    from cqels_py.cli import failures
    from cqels_py.cli.checkpoints import copy

    with failures.reported():
        copy(folder, to, intact=intact)


class _Mebibytes(click.IntRange):
    """A number of MiB, at least one, as bytes."""

    def convert(self, value: Any, param: click.Parameter | None, ctx: click.Context | None) -> int:
        return (1 << 20) * int(super().convert(value, param, ctx))


_BYTES, _SIZE = _Mebibytes(min=1), click.IntRange(min=1)


@app.command("serve")
@click.option("--data", metavar="DIR", type=_FILE, help="Where everything is kept. Default: ~/.local/state/cqels.")
@click.option("--host", metavar="ADDRESS", default="127.0.0.1", help="The address to listen at.")
@click.option("--port", metavar="N", type=click.IntRange(0, 65535), default=8737, help="The port; 0: one that is free.")
@click.option("--allow-host", metavar="NAME", multiple=True, help="Another name by which clients call this host.")
@click.option(
    "--token-file",
    metavar="FILE",
    type=_FILE,
    help="The token that every request has to have. Default: CQELS_TOKEN. Needed where --host is not this machine alone.",
)
@click.option("--tls-certificate", metavar="FILE", type=_FILE, help="Serve HTTPS with this certificate.")
@click.option("--tls-key", metavar="FILE", type=_FILE, help="The key of the certificate.")
@click.option("--allow-path", metavar="DIR", type=_FILE, multiple=True, help="Requests may name files below DIR.")
@click.option("--allow-url", metavar="PREFIX", multiple=True, help="Requests may name addresses that begin so.")
@click.option("--allow-private", is_flag=True, help="Names in these addresses may lead into private networks.")
@click.option("--max-body", "body", metavar="MIB", type=_BYTES, help="The size of a request's body. [default: 32]")
@click.option(
    "--max-decompressed",
    "decompressed",
    metavar="MIB",
    type=_BYTES,
    help="The size of a decompressed body. [default: 128]",
)
@click.option("--max-query", "query", metavar="N", type=_SIZE, help="The characters of a query. [default: 1048576]")
@click.option("--max-streams", "streams", metavar="N", type=_SIZE, help="The number of streams. [default: 1000]")
@click.option("--max-queries", "queries", metavar="N", type=_SIZE, help="The number of queries. [default: 10000]")
@click.option(
    "--max-subscribers", "subscribers", metavar="N", type=_SIZE, help="The readers of results. [default: 10000]"
)
@click.option(
    "--max-state", "state", metavar="MIB", type=_BYTES, help="The state of a query: one with more is stopped."
)
@click.option(
    "--max-backlog", "backlog", metavar="MIB", type=_BYTES, help="The results that wait for a sink. [default: 1024]"
)
@click.option(
    "--keep", "results", metavar="N", type=_SIZE, help="The results that are kept of each query. [default: 100000]"
)
@click.option(
    "--max-sparql-seconds",
    "sparql_seconds",
    metavar="N",
    type=_SIZE,
    help="The time of a one-shot query. [default: 30]",
)
@click.option(
    "--without", metavar="NAME", multiple=True, help="Start without the state of this query, which is stopped."
)
@click.option("--demo", is_flag=True, help="With the flights of 2013 as live streams, and three queries.")
def serve_command(
    *,
    data: Path | None,
    host: str,
    port: int,
    allow_host: Sequence[str],
    token_file: Path | None,
    tls_certificate: Path | None,
    tls_key: Path | None,
    allow_path: Sequence[Path],
    allow_url: Sequence[str],
    allow_private: bool,
    without: Sequence[str],
    demo: bool,
    **limits: int | None,
) -> None:
    """Serve streams, queries and results over HTTP, in one process.

    All that clients declare and send is kept in DIR, and is back after a restart.
    """
    from cqels_py.cli import failures, serve

    with failures.reported():
        serve.run(
            serve.Asked(
                data,
                host,
                port,
                allow_host,
                token_file,
                tls_certificate,
                tls_key,
                allow_path,
                allow_url,
                limits,
                demo,
                allow_private,
                without,
            )
        )


for each in remote.COMMANDS:
    app.add_command(each)


@app.command("compile")
@click.option("--target", metavar="CPU", help="Compile for other machines: x86-64-v3, x86-64-v2 or generic.")
@click.option("--into", metavar="DIR", type=_FILE, help="The folder for kernels of other machines, with --target.")
def compile_command(target: str | None, into: Path | None) -> None:
    """Compile all kernels ahead of time, on all cores.

    For container images and installers. The kernels are kept in the folder that CQELS_CACHE_DIR names, or else beside
    the package's files. With --target and --into they are compiled for other machines, to be put into a wheel.
    """
    from cqels_py.cli import failures
    from cqels_py.cli.compile import compile_all, compile_for_others
    from cqels_py.errors import UsageError

    with failures.reported():
        if target is None and into is None:
            compile_all()
        elif target is None or into is None:
            raise UsageError("--target and --into belong together, as in --target x86-64-v3 --into kernels")
        else:
            compile_for_others(target, into)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command line (default: this process's own); returns its exit status."""
    from cqels_py.cli.failures import Exit, reported
    from cqels_py.interrupts import raised

    given = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with reported(), raised(signal.SIGTERM, signal.SIGHUP):
            app(args=given, prog_name="cqels")
    except Exit as over:
        return over.status
    except SystemExit as over:
        return over.code if isinstance(over.code, int) else 0
    return 0


def run() -> None:
    """The console script `cqels`."""
    open_missing()
    # Imported modules stay; searching them for garbage, again and again, takes a fifth of the time of a small job.
    gc.set_threshold(_NEW_OBJECTS)
    try:
        status = main()
    except KeyboardInterrupt as error:
        # While modules are still being imported: a command that has begun says so itself.
        from cqels_py.cli.failures import interrupted

        status = interrupted(error).status
    _leave(status)


def _leave(status: int) -> NoReturn:
    """End the process at once: taking all modules apart first would take a third of the time of a small job."""
    atexit._run_exitfuncs()
    try:
        sys.stdout.flush()
    except BrokenPipeError:
        pass
    except OSError as error:
        # A command that failed has reported it.
        if status == 0:
            status = _unwritten(error)
    with suppress(OSError):
        sys.stderr.flush()
    os._exit(status)


def _unwritten(error: OSError) -> int:
    from cqels_py.cli.failures import FAILED, say

    say(f"error: cannot write standard output: {error.strerror}")
    return FAILED
