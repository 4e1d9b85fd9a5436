"""A job of the command line: a query, sources and an output."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from cqels_py.errors import UsageError


@dataclass(frozen=True, slots=True)
class Job:
    """The options of a run. `lateness`, `service_timeout`: microseconds; `speed`: seconds of event time a second,
    None: unbounded. `lateness_of`: that of streams by IRI.

    `streams`: by IRI files, URLs, "-" or iterables of record batches. `output`: a file; `sink`: the URL of another output. `static`
    are files, URLs of tables, or N-Triples text. `announce`: report the compilation of kernels also without a terminal.
    `max_memory` "constant" or "window": a query that keeps more is refused. `checkpoint`: the folder of snapshots, one `every` so
    many microseconds. `until`: the instant to which time goes on at the end. `ahead`: microseconds that an element may be later
    than the one before it. `flush_after`: microseconds without input after which one is complete. `clock` "wall": time follows the
    clock, `clock_delay` microseconds behind. `idle`: microseconds after which others do not wait for a live input. `heavy`:
    N-Triples texts by variable. `master`: Spark's URL of a cluster, whose workers keep the `state` in that folder, with the Python
    environment of `archives`. `remote`: instead, the URL of a Spark Connect server.
    """

    text: str = ""
    source: str | None = None
    title: str = ""
    streams: Mapping[str, Any] = field(default_factory=dict)
    unread_streams: bool = False
    static: Sequence[Path | str | bytes] = ()
    static_graphs: Mapping[str, str] = field(default_factory=dict)
    format: str | None = None
    output: Path | None = None
    sink: str | None = None
    changelog: bool = False
    time_predicate: str | None = None
    lateness: int = 0
    lateness_of: Mapping[str, int] = field(default_factory=dict)
    duplicates: str = "keep"
    limit: int | None = None
    stats: bool = False
    batch: int | None = None
    threads: int | None = None
    on_error: str = "stop"
    speed: float | None = None
    announce: bool = False
    runner: str = "local"
    partitions: int | None = None
    heavy: Mapping[str, Sequence[str]] = field(default_factory=dict)
    entailment: str | None = None
    service_timeout: int = 30_000_000
    blank_nodes: str = "source"
    contexts: Mapping[str, str] = field(default_factory=dict)
    maps: Mapping[str, str] = field(default_factory=dict)
    max_memory: str | None = None
    rejects: Path | None = None
    metrics: int | None = None
    checkpoint: Path | None = None
    every: int = 10_000_000
    until: int | None = None
    ahead: int | None = None
    flush_after: int = 200_000
    clock: str = "events"
    clock_delay: int = 200_000
    idle: int = 30_000_000
    max_state: int | None = None
    max_backlog: int | None = None
    master: str | None = None
    remote: str | None = None
    state: str | None = None
    archives: Path | None = None


ONLY_LOCAL = {
    "threads": "--threads is for the local runner; Spark divides its work by --partitions",
    "rejects": "--rejects is for the local runner; Spark counts elements that are left out (--stats)",
    "metrics": "--metrics is for the local runner; Spark has metrics of its own (spark.metrics.conf)",
    "until": "--until is for the local runner; on Spark time moves with the elements only",
    "ahead": "--ahead is for the local runner; on Spark filter the rows of wrong clocks before the query",
    "duplicates": "--duplicates is for the local runner; on Spark drop the rows that come again before the query",
    "max_state": "--max-state is for the local runner; on Spark limit the memory of the executors",
    "clock": "--clock wall is for the local runner; on Spark time moves with the elements only",
    "maps": "--map is for the local runner; for Spark write the elements first, with cqels map",
}
"""Members of `Job` that Spark has no use for, with the message: no option is silently ignored."""


def check_only_local(job: Job) -> None:
    """UsageError where an option has a value that the runner has no use for."""
    plain = Job()
    for member, message in ONLY_LOCAL.items():
        if job.runner == "spark" and getattr(job, member) != getattr(plain, member):
            raise UsageError(message)


def check_partitions(job: Job) -> None:
    """UsageError where the runner has no use for partitions: no option is silently ignored."""
    if job.runner != "local":
        return
    for option, value in (("--partitions", job.partitions), ("--heavy", job.heavy)):
        if value:
            raise UsageError(f"{option} divides the state on Spark (--runner spark); the local runner has one part")


def check_cluster(
    runner: str, master: str | None, remote: str | None, state: str | None, archives: Path | None
) -> None:
    """UsageError for a cluster without Spark, or without a folder that its workers reach."""
    if archives is not None and remote is None and (master is None or master.startswith("local")):
        raise UsageError("--archives is the environment of a cluster's workers: add --runner spark --master URL")
    if archives is not None and not archives.name.endswith((".tar.gz", ".tgz")):
        raise UsageError(
            f"--archives {archives} is not a .tar.gz: Spark unpacks other archives without the right to execute Python"
        )
    if runner != "spark" and (master is not None or remote is not None or state is not None):
        raise UsageError("--master, --remote and --state are for Spark: add --runner spark")
    if remote is not None and master is not None:
        raise UsageError("--master starts a driver here, --remote is one that is there already: give one of them")
    if remote is not None and not remote.startswith("sc://"):
        raise UsageError(f"--remote {remote!r} is no Spark Connect server; write it as sc://host:15002")
    where = f"--remote {remote}" if remote is not None else f"--master {master}"
    if (remote is not None or (master is not None and not master.startswith("local"))) and state is None:
        raise UsageError(
            f"{where} needs --state: a folder that all workers reach by the same path, or by its URI (s3a://bucket/folder)"
        )


_OF_STORES = re.compile(r"(s3|s3a|s3n|gs|abfs|abfss|hdfs|viewfs)://", re.IGNORECASE)


def read_in_tasks(job: Job) -> bool:
    """Do Spark's tasks read the streams, as these are folders, or in stores that all hosts of a cluster reach? Files are read by the
    command itself. UsageError if only some are shared, and for options that only the command has a use for."""
    if job.runner != "spark":
        return False
    shared = {iri: _is_shared(source) for iri, source in job.streams.items()}
    if not any(shared.values()):
        return False
    for iri, is_shared in shared.items():
        if not is_shared:
            raise UsageError(
                f"--stream <{iri}>: Spark's tasks read the folders of other streams, and the command itself reads files: give a "
                "folder that all workers reach, or its URI (s3a://bucket/folder)"
            )
    if job.batch is not None:
        raise UsageError("--batch counts elements that the command reads; Spark's tasks read whole files: leave it out")
    return True


def _is_shared(source: Any) -> bool:
    if not isinstance(source, str) or source == "-":
        return False
    folder = Path(source.removeprefix("file://"))
    return _OF_STORES.match(source) is not None or source.endswith("/") or folder.is_dir()


def check_urls(runner: str, job: Job) -> None:
    """UsageError where the runner has no connectors, and for a format of an output that has its own."""
    from cqels_py.connections.tables import is_table
    from cqels_py.sources.static_tables import StaticTable
    from cqels_py.sources.urls import SOURCES

    if job.sink is not None and job.format is not None:
        raise UsageError(f"--format is for files; the options of {job.sink.partition(':')[0]}: are part of its URL")
    sources = [] if read_in_tasks(job) else job.streams.values()
    urls = [source for source in sources if isinstance(source, str) and SOURCES.is_url(source)]
    for url in [*urls, *([] if job.sink is None else [job.sink])]:
        if runner == "spark":
            raise UsageError(
                f"{url.partition(':')[0]}: is for the local runner; on Spark sources are files and folders, and outputs files"
            )
    for table in [*job.static, *job.static_graphs.values()]:
        if is_table(table) and StaticTable.of(table).refresh is not None and runner == "spark":
            raise UsageError("refresh= is for the local runner; on Spark a table is read once: leave it out")


def check_backlog(runner: str, sink: str | None, most: str | None) -> None:
    """UsageError where no results can wait for a sink."""
    if most is not None and (runner == "spark" or sink is None):
        raise UsageError("--max-backlog is for an output by URL, and the local runner: leave it out")
