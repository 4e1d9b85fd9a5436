"""The files of a command: found, readable and none of them the output, before anything runs."""

from __future__ import annotations

import os
import stat
import sys
from collections.abc import Iterable, Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any

from cqels_py.cli.job import read_in_tasks
from cqels_py.connections.tables import is_table
from cqels_py.errors import UsageError
from cqels_py.formats.compression import local_path
from cqels_py.formats.endings import RDF, STREAMS, format_of, missing, nearby
from cqels_py.sinks.urls import SINKS, sink_of
from cqels_py.sources.stdin import STANDARD_INPUT
from cqels_py.sources.urls import SOURCES, source_of

if TYPE_CHECKING:
    from cqels_py.cli.job import Job

Named = tuple[str, Path]
"""The origin of a file's name (an option, or "the query"), and the file."""


def query_text(file: Path | None, text: str | None) -> str:
    """The query, from a file or from the command line."""
    if (file is None) == (text is None):
        raise UsageError("name a file with the query, or give the query with -q (not both)")
    if text is not None:
        return text
    assert file is not None
    # Not `file.exists()`, which raises an error for a name that is too long.
    if "{" in str(file) and not os.path.exists(file):
        raise UsageError("a file with the query is expected here: to give the query itself, put -q before it")
    return text_of("query", file)


def text_of(subject: str, file: Path) -> str:
    """The text of a file that the command names, as its `subject`."""
    try:
        # As in data, a byte order mark may stand before the text.
        return file.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise UsageError(f"cannot read the {subject} {file}: {error.strerror}{nearby(file)}") from None
    except UnicodeDecodeError as error:
        raise UsageError(f"the {subject} {file} is not UTF-8: {error.reason} at byte {error.start}") from None


def output_of(given: str | None) -> dict[str, Any]:
    """The fields of a job for `--output`: a file, or the URL of a sink."""
    if given is None:
        return {}
    return {"sink": given} if SINKS.is_url(given) else {"output": Path(given)}


def check(job: Job) -> None:
    """UsageError for an input that cannot be read, for a wrong URL, and for an output that is also an input."""
    in_tasks = read_in_tasks(job)
    for source in [] if in_tasks else job.streams.values():
        if SOURCES.is_url(source):
            source_of(source)
    if job.sink is not None:
        sink_of(job.sink)
    read = [*_static(job), *([] if in_tasks else _streams(job.streams))]
    for option, path in read:
        _check_readable(option, path)
    _check_standard_input(job.streams)
    query = [] if job.source is None else [("the query", Path(job.source))]
    contexts = [("--context", Path(path)) for path in job.contexts.values()]
    contexts += [("--map", Path(path)) for path in job.maps.values()]
    for option, written in (("--output", job.output), ("--rejects", job.rejects)):
        if written is not None:
            _check_output(option, written, [*query, *read, *contexts], STANDARD_INPUT in job.streams.values())
    if job.output is not None and job.rejects is not None and job.output.resolve() == job.rejects.resolve():
        raise UsageError(f"--rejects: {job.rejects} is also the file of --output; name another file")


def _static(job: Job) -> Iterator[Named]:
    yield from (("--static", each) for each in job.static if isinstance(each, Path))
    yield from (("--static-graph", Path(path)) for path in job.static_graphs.values() if not is_table(path))


def _streams(streams: Mapping[str, Any]) -> Iterator[Named]:
    for source in streams.values():
        if source != STANDARD_INPUT and not SOURCES.is_url(source):
            yield "--stream", local_path(source) if "://" in source else Path(source)


def _check_readable(option: str, path: Path) -> None:
    if path.is_dir():
        raise UsageError(f"{option}: {path} is a folder, not a file")
    if path.is_char_device():
        instead = ", or - for standard input" if option == "--stream" else ""
        raise UsageError(f"{option}: {path} is a device; give a file (one without lines has no data){instead}")
    if not path.is_file() and not (option == "--stream" and path.is_fifo()):
        raise UsageError(f"{option}: {missing(path)}")
    if not os.access(path, os.R_OK):
        raise UsageError(f"{option}: {path} may not be read by this user")
    format_of(str(path), STREAMS if option == "--stream" else RDF)


def _check_standard_input(streams: Mapping[str, Any]) -> None:
    """UsageError if several streams read standard input: the first one would get all of it."""
    reading = [iri for iri, source in streams.items() if source == STANDARD_INPUT]
    if len(reading) > 1:
        raise UsageError(f"--stream: standard input can feed one stream, not {' and '.join(f'<{i}>' for i in reading)}")


def _check_output(option: str, output: Path, read: Iterable[Named], reads_standard_input: bool) -> None:
    """UsageError for an output that is an input too: opening it for writing would empty it."""
    # Devices hold nothing that could be lost.
    if not output.exists() or output.is_char_device():
        return
    for origin, path in read:
        if path.exists() and output.samefile(path):
            raise _overwritten(option, output, f"the file of {origin}")
    if reads_standard_input and _is_standard_input(output):
        raise _overwritten(option, output, "standard input")


def _is_standard_input(path: Path) -> bool:
    # A file without a number is none.
    with suppress(OSError, ValueError):
        given = os.fstat(sys.stdin.fileno())
        return stat.S_ISREG(given.st_mode) and os.path.samestat(given, path.stat())
    return False


def _overwritten(option: str, output: Path, origin: str) -> UsageError:
    return UsageError(f"{option}: {output} is also {origin}, which would be overwritten; name another file")
