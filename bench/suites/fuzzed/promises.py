"""The guarantee for inputs of any kind: only CqelsErrors are raised."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from bench.suites.fuzzed.files import STATIC, TIME, TIMED_WITHIN
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, DataError
from cqels_py.formats.static import load_static
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening


def read(path: Path, on_error: str) -> tuple[int, int, CqelsError | None]:
    """The elements of a stream's file, the reported errors, and the error that stopped it."""
    form = path.name.split(".")[1]
    dictionary, reported, elements = Dictionary(), list[DataError](), 0
    predicate = TIME if form in TIMED_WITHIN else None
    try:
        opening = Opening(
            stream="",
            number=0,
            dictionary=dictionary,
            on_error=on_error,
            report=reported.append,
            time_predicate=predicate,
        )
        for batch in open_source(str(path), opening):
            elements += len(batch)
            # Everything that was read can be written.
            dictionary.decode(batch.subject)
            dictionary.decode(batch.object)
    except CqelsError as error:
        return elements, len(reported), error
    return elements, len(reported), None


def check_file(ending: str, data: bytes, folder: Path) -> None:
    """Read a file as a stream, in both modes, and as static data."""
    path = folder / f"input.{ending}"
    path.write_bytes(data)
    stopped, _, error = read(path, "stop")
    elements, reported, broken = read(path, "skip")
    assert elements >= stopped, "skipped input took elements before it along"
    assert (error is None) == (reported == 0 and broken is None), "what stops is not what is reported"
    if ending.split(".")[0] in STATIC:
        with suppress(CqelsError):
            load_static(str(path), Dictionary(), 1)


def check_query(text: str) -> bool:
    """Register a text; returns whether it was a query."""
    try:
        Engine().register(text)
    except CqelsError:
        return False
    return True
