"""`--checkpoint`: a run that continues where it was when its process ended."""

from __future__ import annotations

import hashlib
import json
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.cli import failures
from cqels_py.cli.job import Job
from cqels_py.cli.written import Written
from cqels_py.connections.location import Location
from cqels_py.connections.tables import is_table
from cqels_py.engine.durable.companion import OF_FILE, Companion
from cqels_py.errors import UsageError
from cqels_py.formats.compression import local_path
from cqels_py.sinks.urls import SINKS
from cqels_py.sources.stdin import STANDARD_INPUT
from cqels_py.sources.urls import SOURCES, source_of

if TYPE_CHECKING:
    from cqels_py.sinks.protocol import SinkConnector
    from cqels_py.state.named_values import NamedValues

_CUT = ("json", "csv", "tsv", "nquads", "trig", "turtle", "jelly")
"""Formats of output whose files can be cut to a former length and continued."""


class LoggedRun:
    """A run whose engine keeps its state and its inputs, and makes the results since its last snapshot again.

    `companion`: for the engine. A file of output is cut to the length that it had at that snapshot.
    """

    def __init__(self, job: Job) -> None:
        assert job.checkpoint is not None
        self._output = job.output
        self._files = [file for file in (job.output, job.rejects) if file is not None]
        self._results = job.output if job.sink is None else Location.of(job.sink).shown
        self._every = job.every / 1_000_000
        self._due = time.monotonic() + self._every
        self._finished = False
        self._written: Callable[[], Written] = Written
        self.companion = Companion(job.checkpoint, dict(_identity(job)), self._state)

    def restored(self) -> Written | None:
        """How far an output was that goes on; None for a new one. Exit if the run has ended."""
        found = self.companion.restored
        former = Written() if found is None else Written.of(found)
        if self._output is not None and former != Written():
            _check_output(self._output, former.length)
        if found is not None and found["finished"]:
            raise _ended(self.companion.folder, self._results)
        return None if former == Written() else former

    def begin(self, written: Callable[[], Written], save: Callable[[], None]) -> None:
        """The output is open; `written` syncs it. `save` the state before the first result if the writer of a new one has any."""
        self._written = written
        if self.restored() is None and written().writer:
            save()
        for file in self._files:
            durable_files.sync_entries(file.absolute().parent)

    @property
    def due(self) -> bool:
        """Is it time for the next snapshot?"""
        return time.monotonic() >= self._due

    def save(self, checkpoint: Callable[[], None], *, finished: bool = False) -> None:
        """Let the engine save its state."""
        self._finished = finished
        checkpoint()
        self._due = time.monotonic() + self._every

    def _state(self) -> NamedValues:
        return {**self._written().values(), "finished": self._finished}


def tell_repeats(url: str, connector: SinkConnector) -> None:
    """Say it where an output may get results twice."""
    if not getattr(connector, "keeps_number", False):
        failures.say(
            f"note: {Location.of(url).shown} does not keep the number of its last result: if this process is killed, the results "
            "since the last snapshot (--every) are sent again"
        )


def _can_be_read_again(source: str) -> bool:
    return source != STANDARD_INPUT and not SOURCES.is_url(source) and local_path(source).is_file()


def _ended(folder: Path, output: object) -> failures.Exit:
    failures.say(f"the run of {folder} has ended, and its results are in {output}: nothing is left to do")
    return failures.Exit(failures.DONE)


def _check_output(output: Path, length: int) -> None:
    size = output.stat().st_size if output.is_file() else None
    if size is None or size < length:
        found = "is missing" if size is None else f"has {size} bytes"
        raise StorageError(
            f"the output {output} {found}, where the checkpoint has written {length} bytes. To start again, remove the folder "
            "of the checkpoint"
        )


def check(job: Job) -> None:
    """UsageError for a run that would not continue exactly."""
    for refused, reason in _refusals(job):
        if refused:
            raise UsageError(f"--checkpoint {reason}")


def _refusals(job: Job) -> Iterator[tuple[bool, str]]:
    yield job.runner == "spark", "is for the local runner"
    yield (
        job.output is None and job.sink is None,
        "needs --output, a file or a URL: standard output cannot be cut to the length of the last checkpoint",
    )
    yield (
        job.output is not None and job.output.exists() and not job.output.is_file(),
        f"needs an output that can be cut, and {job.output} is no regular file; name a file",
    )
    yield (
        job.sink is None and job.format not in _CUT,
        f"writes {', '.join(_CUT)}, not {job.format}; choose one of these with --format",
    )
    yield from _refusals_of_rejects(job)
    yield job.threads == 2, "reads with one thread; leave --threads 2 out"
    tables = any(map(is_table, [*job.static, *job.static_graphs.values()]))
    yield tables, "cannot tell whether a table of --static has changed; use a program with Engine(checkpoint=)"
    for source in job.streams.values():
        known = SOURCES.is_url(source) or source == STANDARD_INPUT or local_path(source).exists()
        yield not known, f"is for files, pipes, standard input and URLs, and not for {source}"
        anew = SOURCES.is_url(source) and getattr(source_of(source), "begins_anew", False)
        yield anew, f"would read {source} from its beginning after a restart; add position=FILE to it"


def _refusals_of_rejects(job: Job) -> Iterator[tuple[bool, str]]:
    if job.rejects is not None:
        special = job.rejects.exists() and not job.rejects.is_file()
        yield special, f"needs a file for --rejects that can be cut, and {job.rejects} is no regular file; name a file"


def _identity(job: Job) -> Iterator[tuple[str, str]]:
    """Everything that decides about the bytes of the output, by the names under which a difference is told."""
    yield "the query", job.text
    yield "--stream", json.dumps([(iri, _without_secrets(source)) for iri, source in job.streams.items()])
    for source in filter(_can_be_read_again, job.streams.values()):
        status = local_path(source).stat()
        yield f"{OF_FILE}{local_path(source).absolute()}", f"{status.st_size} {status.st_mtime_ns}"
    yield "--static", json.dumps([_digest(Path(str(path))) for path in job.static])
    for option, files in (("--static-graph", job.static_graphs), ("--context", job.contexts), ("--map", job.maps)):
        yield option, json.dumps([(iri, _digest(Path(path))) for iri, path in files.items()])
    yield "--lateness", f"{job.lateness} {sorted(job.lateness_of.items())}"
    yield "--output", _without_secrets(job.sink) if job.output is None else str(job.output.resolve())
    # Checkpoints of earlier versions, which had none of them, have no names of these.
    if job.limit is not None:
        yield "--limit", str(job.limit)
    if job.rejects is not None:
        yield "--rejects", str(job.rejects.resolve())
    if job.on_error == "skip":
        yield "--on-error", job.on_error
    if job.duplicates != "keep":
        yield "--duplicates", job.duplicates
    if job.clock == "wall":
        yield "--clock", f"wall, {job.clock_delay} microseconds behind"
    for option in (
        "format",
        "changelog",
        "entailment",
        "time_predicate",
        "blank_nodes",
        "batch",
        "until",
        "ahead",
    ):
        yield f"--{option.replace('_', '-')}", str(getattr(job, option))


def _without_secrets(source: str | None) -> str:
    """A URL without passwords, as the checkpoint is a file; another password is no other run."""
    assert source is not None
    return Location.of(source).shown if SOURCES.is_url(source) or SINKS.is_url(source) else source


def _digest(path: Path) -> str:
    with path.open("rb") as file:
        return hashlib.file_digest(file, "blake2b").hexdigest()
