"""A command, run over the first of its data and without any output: `python -m cqels_py.cli.rehearsal FORMAT ARGUMENT…`.

`kernels.ahead` starts it to learn which kernels the command will call. FORMAT is that of the results, or - where the command or
its query says.
"""

from __future__ import annotations

import os
import re
import sys
from collections.abc import Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from contextvars import ContextVar
from dataclasses import replace
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from threading import Thread
from typing import TYPE_CHECKING, Any, Final

from cqels_py.kernels.building.ahead import FOLDER, INPUT

if TYPE_CHECKING:
    from cqels_py.cli.execution import Job

FIRST_BYTES: Final = 1 << 15
"""So much of each file is looked at: kernels are slow as plain Python."""

FIRST_ROWS: Final = 200
"""So many rows of each Arrow stream."""

_LOOKED_THROUGH = 1 << 22
"""So many bytes of static data are searched for what is known of a stream's terms."""

_IRI = re.compile(rb"<[^>]*>")
_LINES = ("nt", "nq", "csv", "tsv", "ndjson")

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
    """The first of what comes on standard input, for a rehearsal to see it too; None while nothing has come."""
    from cqels_py.connectors.compression import STANDARD_INPUT
    from cqels_py.connectors.standard_input import standard_input

    read = any(isinstance(source, str) and source == STANDARD_INPUT for source in job.streams.values())
    return standard_input().first() if read else b""


@contextmanager
def shortened(job: Job) -> Iterator[Job]:
    """The job; in a rehearsal, over pieces of its data, and without what it would leave behind."""
    format_ = _FORMAT.get()
    if format_ is None:
        yield job
        return
    with TemporaryDirectory(prefix=FOLDER) as folder:
        streams = {iri: _piece(source, folder, f"stream{i}") for i, (iri, source) in enumerate(job.streams.items())}
        known = _terms(streams.values())
        yield replace(
            job,
            format=job.format if format_ == "-" else format_,
            streams=streams,
            static=[_static(source, folder, f"static{i}", known) for i, source in enumerate(job.static)],
            static_graphs={
                iri: str(_static(Path(path), folder, f"graph{i}", known))
                for i, (iri, path) in enumerate(job.static_graphs.items())
            },
            output=None, limit=None, stats=False, threads=1, announce=False, speed=None,
        )  # fmt: skip


def _terms(streams: Iterable[Any]) -> set[bytes]:
    """The IRIs in pieces of streams."""
    found: set[bytes] = set()
    for stream in streams:
        if isinstance(stream, str):
            found.update(_IRI.findall(Path(stream).read_bytes()))
        else:
            for batch in stream:
                for column in ("subject", "object"):
                    found.update(str(term).encode() for term in batch.column(column).to_pylist())
    return found


def _static(source: Path | bytes, folder: str, name: str, known: set[bytes]) -> Path | bytes:
    """Of N-Triples, the lines about terms of the streams, for joins to find something."""
    if isinstance(source, bytes):
        return _about(source[:_LOOKED_THROUGH], known)
    piece = Path(_piece(str(source), folder, name, _LOOKED_THROUGH))
    piece.write_bytes(_about(piece.read_bytes(), known))
    return piece


def _about(text: bytes, known: set[bytes]) -> bytes:
    subjects = ((line, _IRI.match(line)) for line in text.splitlines(keepends=True))
    found = b"".join(line for line, subject in subjects if subject and subject[0] in known)
    return _lines(found or text, FIRST_BYTES)


def _piece(source: Any, folder: str, name: str, most: int = FIRST_BYTES) -> Any:
    """The first lines of a file of lines or of standard input, as a file; of other files, an empty one."""
    if not isinstance(source, str):
        return _first_rows(source)
    from cqels_py.connectors.compression import STANDARD_INPUT, local_path, read_chunks
    from cqels_py.connectors.formats import STREAMS, format_of

    kind, text = "nq", b""
    if source == STANDARD_INPUT:
        with suppress(FileNotFoundError):
            text = Path(gettempdir(), INPUT).read_bytes()
    elif format_of(source, STREAMS) in _LINES and local_path(source).is_file():
        kind, text = format_of(source, STREAMS), next(iter(read_chunks(source, most)), b"")
    piece = Path(folder) / f"{name}.{kind}"
    piece.write_bytes(_lines(text, most))
    return str(piece)


def _lines(text: bytes, most: int) -> bytes:
    return text[: text.rfind(b"\n", 0, most) + 1]


def _first_rows(source: Any) -> list[Any]:
    """Of the Arrow batches that a scenario's stream is."""
    return [batch.slice(0, FIRST_ROWS) for batch in [next(iter(source), None)] if batch is not None]


def _end_with_the_starter(standard_input: int) -> None:
    """However the process has ended that started this one, its end of the pipe is closed: leave nothing behind, and end."""
    while os.read(standard_input, 1):
        pass
    folder = Path(gettempdir())
    if folder.name.startswith(FOLDER):
        rmtree(folder, ignore_errors=True)
    os._exit(1)


def main(format_: str, *arguments: str) -> None:
    """Run the command as if somebody looked on who sees nothing."""
    from cqels_py.cli.main import main as run

    Thread(target=_end_with_the_starter, args=(os.dup(0),), daemon=True).start()
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)
    _FORMAT.set(format_)
    with suppress(KeyboardInterrupt):
        run(arguments)


if __name__ == "__main__":
    from cqels_py.cli import rehearsal

    # Under its own name, as those know it that ask whether this is one.
    rehearsal.main(*sys.argv[1:])
