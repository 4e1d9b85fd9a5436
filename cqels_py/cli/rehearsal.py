"""A command, run over the first of its data and without any output: `python -m cqels_py.cli.rehearsal FORMAT ARGUMENT…`.

`kernels.ahead` starts it to learn which kernels the command will call. FORMAT is that of the results, or - where the command or
its query says.
"""

from __future__ import annotations

import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from tempfile import TemporaryDirectory, gettempdir
from typing import TYPE_CHECKING, Any

from cqels_py.cli.output import by_ending
from cqels_py.kernels.compiler.parallel_build import FOLDER, INPUT
from cqels_py.rehearsal import first_lines, hide, lines_about, terms
from cqels_py.script import FIRST_ROWS

if TYPE_CHECKING:
    from cqels_py.cli.job import Job

_ARGUMENTS: ContextVar[Sequence[str] | None] = ContextVar("arguments", default=None)
_FORMAT: ContextVar[str | None] = ContextVar("format", default=None)


@contextmanager
def of(arguments: Sequence[str]) -> Iterator[None]:
    """While this lasts, these are the arguments of the command."""
    token = _ARGUMENTS.set(arguments)
    try:
        yield
    finally:
        _ARGUMENTS.reset(token)


def command(job: Job) -> list[str] | None:
    """The module and its arguments that rehearse the command, unless it must not run twice: endpoints would be asked twice."""
    arguments = _ARGUMENTS.get()
    if arguments is None or job.runner != "local" or "service" in job.text.lower():
        return None
    on_terminal = job.format is None and job.output is None and sys.stdout.isatty()
    return [__name__, "table" if on_terminal else "-", *arguments]


def first_input(job: Job) -> bytes | None:
    """The first bytes of standard input, for a rehearsal to read them too; None while there are none."""
    from cqels_py.sources.stdin import STANDARD_INPUT, standard_input

    read = any(isinstance(source, str) and source == STANDARD_INPUT for source in job.streams.values())
    return standard_input().first() if read else b""


@contextmanager
def shortened(job: Job) -> Iterator[Job]:
    """The job; in a rehearsal, over pieces of its data, and without outputs."""
    format_ = _FORMAT.get()
    if format_ is None:
        yield job
        return
    with TemporaryDirectory(prefix=FOLDER) as folder:
        streams = {iri: _piece(source, folder, f"stream{i}") for i, (iri, source) in enumerate(job.streams.items())}
        known = terms(streams.values())
        yield replace(
            job,
            format=job.format or by_ending(job.output) if format_ == "-" else format_,
            streams=streams,
            static=[lines_about(known, source, folder, f"static{i}") for i, source in enumerate(job.static)],
            static_graphs={
                iri: str(lines_about(known, Path(path), folder, f"graph{i}"))
                for i, (iri, path) in enumerate(job.static_graphs.items())
            },
            output=None, limit=None, stats=False, threads=1, announce=False, speed=None,
        )  # fmt: skip


def _piece(source: Any, folder: str, name: str) -> Any:
    """The first of a stream."""
    from cqels_py.sources.stdin import STANDARD_INPUT

    if not isinstance(source, str):
        return _first_rows(source)
    if source != STANDARD_INPUT:
        return first_lines(source, folder, name)
    given = Path(gettempdir(), INPUT)
    return first_lines(given.read_bytes() if given.exists() else b"", folder, name)


def _first_rows(source: Any) -> list[Any]:
    """Of the Arrow batches that a scenario's stream is."""
    return [batch.slice(0, FIRST_ROWS) for batch in [next(iter(source), None)] if batch is not None]


def main(format_: str, *arguments: str) -> None:
    """Run the command as if somebody looked on who sees nothing."""
    from cqels_py.cli.main import main as run

    hide()
    _FORMAT.set(format_)
    with suppress(KeyboardInterrupt):
        run(arguments)


if __name__ == "__main__":
    from cqels_py.cli import rehearsal

    # Under its own name, as those know it that ask whether this is one.
    rehearsal.main(*sys.argv[1:])
