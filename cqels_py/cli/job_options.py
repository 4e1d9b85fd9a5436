"""The options of a command, as click gives them, become a job."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import partial
from typing import Any

from cqels_py.cli import arguments, files
from cqels_py.cli.job import Job, check_backlog, check_cluster, check_only_local, check_partitions, check_urls

_READ: Mapping[str, Callable[[Any], Any]] = {
    "streams": partial(arguments.pairs, "--stream"),
    "maps": partial(arguments.pairs, "--map"),
    "static": arguments.static_of,
    "static_graphs": partial(arguments.pairs, "--static-graph"),
    "contexts": partial(arguments.pairs, "--context"),
    "time_predicate": partial(arguments.iri, "--time-predicate"),
    "service_timeout": partial(arguments.duration, "--service-timeout"),
    "heavy": arguments.heavy_values,
    "ahead": partial(arguments.duration, "--ahead"),
    "until": partial(arguments.time, "--until"),
    "flush_after": partial(arguments.duration, "--flush-after"),
    "clock_delay": partial(arguments.duration, "--clock-delay"),
    "idle": partial(arguments.duration, "--idle"),
    "max_state": partial(arguments.size, "--max-state"),
}
"""How texts of options are read, by the members of `Job` that have them."""


def job_of(given: Mapping[str, Any]) -> Job:
    """The job of `run` and `explain`. `given`: options by the names of their parameters. UsageError for a wrong value."""
    options = dict(given)
    query = options.pop("query")
    options["text"] = files.query_text(query, options["text"])
    options["source"] = None if query is None else str(query)
    options["format"] = options.pop("format_")
    options["lateness"], options["lateness_of"] = arguments.durations("--lateness", options["lateness"])
    for name in options.keys() & _READ.keys():
        if options[name] is not None:
            options[name] = _READ[name](options[name])
    return Job(**options)


def run_of(given: Mapping[str, Any]) -> Job:
    """The job of `run`: as `job_of`, and its options fit its output and its runner."""
    options = dict(given)
    to = files.output_of(options.pop("output"))
    check_backlog(options["runner"], to.get("sink"), options["max_backlog"])
    options["max_backlog"] = arguments.size("--max-backlog", options["max_backlog"] or "1GiB")
    every = options["every"] or ("1s" if options["checkpoint"] is None else "10s")
    job = job_of({**options, **to, "every": arguments.duration("--every", every)})
    check_partitions(job)
    check_cluster(job.runner, job.master, job.remote, job.state, job.archives)
    check_only_local(job)
    check_urls(job.runner, job)
    return job
