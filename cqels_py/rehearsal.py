"""A program's queries, run over the first of its data and seen by nobody: `python -m cqels_py.rehearsal`.

`kernels.building.ahead` starts it to learn which kernels the program will call; what the program has told its engine
(`cqels_py.script`) lies in the folder for its temporary files. Here is also what this shares with the rehearsal of a command.
"""

from __future__ import annotations

import atexit
import os
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import suppress
from datetime import UTC, datetime
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory, gettempdir
from threading import Lock, Thread
from typing import TYPE_CHECKING, Any

from cqels_py.kernels.compiler.parallel_build import FOLDER, INPUT
from cqels_py.script import MOST_BYTES

if TYPE_CHECKING:
    import pyarrow as pa

    from cqels_py.engine.engine import Engine
    from cqels_py.formats.triples import Triple
    from cqels_py.plan.nodes import Plan
    from cqels_py.script import Input, Pushed, Told

_LOOKED_THROUGH = 1 << 22
"""So many bytes of static data are searched for the terms of a stream."""

_IRI = re.compile(rb"<[^>]*>")
_LINES = ("nt", "nq", "csv", "tsv", "ndjson")
_ANYTHING = "<http://example.org/>"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_VALUES = tuple(f'"{value}"^^<{_XSD}integer>' for value in (1_000_000, 0, -1_000_000))
"""Mostly one of them passes a filter."""
_LATER = (1_000_000, 60_000_000, 3_600_000_000, 86_400_000_000)
"""Microseconds after the last element: expiring until then calls kernels too."""


# --- pieces of data -------------------------------------------------------------------------------------------------


def first_lines(source: str | bytes, folder: str, name: str, most: int = MOST_BYTES) -> str:
    """The first lines of a file of lines, or of N-Quads as bytes, as a file; of other files, an empty one."""
    from cqels_py.formats.compression import local_path, read_chunks
    from cqels_py.formats.endings import STREAMS, format_of

    kind, text = "nq", b""
    if isinstance(source, bytes):
        text = source
    elif format_of(source, STREAMS) in _LINES and local_path(source).is_file():
        kind, text = format_of(source, STREAMS), next(iter(read_chunks(source, most)), b"")
    piece = Path(folder) / f"{name}.{kind}"
    piece.write_bytes(_lines(text, most))
    return str(piece)


def lines_about(known: set[bytes], source: Path | bytes, folder: str, name: str) -> Path | bytes:
    """Of static data in N-Triples, the lines about these terms, for joins to find something."""
    if isinstance(source, bytes):
        return _about(source[:_LOOKED_THROUGH], known)
    piece = Path(first_lines(str(source), folder, name, _LOOKED_THROUGH))
    piece.write_bytes(_about(piece.read_bytes(), known))
    return piece


def terms(streams: Iterable[Any]) -> set[bytes]:
    """The IRIs in pieces of streams: files, or Arrow batches."""
    found: set[bytes] = set()
    for stream in streams:
        if isinstance(stream, str):
            found.update(_IRI.findall(Path(stream).read_bytes()))
        else:
            for batch in stream:
                for column in ("subject", "object"):
                    found.update(str(term).encode() for term in batch.column(column).to_pylist())
    return found


def _about(text: bytes, known: set[bytes]) -> bytes:
    subjects = ((line, _IRI.match(line)) for line in text.splitlines(keepends=True))
    found = b"".join(line for line, subject in subjects if subject and subject[0] in known)
    return _lines(found or text, MOST_BYTES)


def _lines(text: bytes, most: int) -> bytes:
    return text[: text.rfind(b"\n", 0, most) + 1]


# --- seen by nobody -------------------------------------------------------------------------------------------------


def hide() -> None:
    """From now on this process reads nothing, prints nothing, and ends with the one that started it."""
    ending = Lock()
    Thread(target=_end_with_the_starter, args=(os.dup(0), ending), daemon=True).start()
    # The removal of the folder can make the rehearsal fail: the process must not end before the folder is gone.
    atexit.register(ending.acquire)
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in range(3):
        os.dup2(nowhere, stream)


def _end_with_the_starter(standard_input: int, ending: Lock) -> None:
    """However the process has ended that started this one, its end of the pipe is closed: leave nothing behind, and end."""
    while os.read(standard_input, 1):
        pass
    ending.acquire()
    folder = Path(gettempdir())
    if folder.name.startswith(FOLDER):
        rmtree(folder, ignore_errors=True)
    os._exit(1)


# --- a program's engine ---------------------------------------------------------------------------------------------


def rehearse(told: Told) -> None:
    """Repeat the program's calls, as far as the script has them."""
    from cqels_py.engine.engine import Engine
    from cqels_py.errors import CqelsError
    from cqels_py.script import Pushed, Sources

    def ignore(error: Exception) -> None:
        """Who runs the program hears of it there."""

    def pass_over(result: object) -> None:
        """It was decoded: nothing more is done with it here."""

    engine = Engine(**told.options, on_error="skip", report=ignore)
    plans: list[Plan] = []
    with TemporaryDirectory(prefix=FOLDER) as folder:
        given = _with_pieces_of(told.input, folder)
        known = _terms_of(given)
        for i, query in enumerate(told.queries):
            # One that asks for data that is not told of is left out.
            with suppress(CqelsError):
                registered = engine.register(**_with_pieces(query, known, folder, f"static{i}"))
                # Whoever runs the program will want to read its results, now or later.
                registered.subscribe(pass_over)
                plans.append(registered.plan)
        with suppress(CqelsError):
            if isinstance(given, Sources):
                sources = {iri: _table(plans, iri) if piece is None else piece for iri, piece in given.sources.items()}
                engine.run(sources, time_predicates=given.time_predicates, threads=1)
            elif isinstance(given, Pushed):
                _push(engine, given, plans)
            else:
                engine.push_batch(given.stream, _table(plans, given.stream) if given.rows is None else given.rows)
                _wait(engine)


def _with_pieces_of(given: Input, folder: str) -> Input:
    """The input, with files of its first lines in the place of files and bytes."""
    from cqels_py.script import Sources

    if not isinstance(given, Sources):
        return given
    pieces = {
        iri: first_lines(source, folder, f"stream{i}") if isinstance(source, str | bytes) else source
        for i, (iri, source) in enumerate(given.sources.items())
    }
    return Sources(pieces, given.time_predicates)


def _with_pieces(query: Mapping[str, Any], known: set[bytes], folder: str, name: str) -> dict[str, Any]:
    """The arguments of `register` with pieces of static data."""

    def piece(data: str | bytes, number: int) -> Path | bytes:
        return lines_about(known, Path(data) if isinstance(data, str) else data, folder, f"{name}-{number}")

    static = [piece(data, i) for i, data in enumerate(query["static"])]
    graphs = {iri: piece(data, -1 - i) for i, (iri, data) in enumerate(query["static_graphs"].items())}
    return {**query, "static": static, "static_graphs": graphs}


def _terms_of(given: Input) -> set[bytes]:
    from cqels_py.script import Pushed, Table

    if isinstance(given, Pushed):
        return {text for _, texts, _, _ in given.elements for text in texts}
    pieces = [given.rows] if isinstance(given, Table) else given.sources.values()
    return terms(piece if isinstance(piece, str) else piece.to_batches() for piece in pieces if piece is not None)


def _push(engine: Engine, given: Pushed, plans: Sequence[Plan]) -> None:
    """The first input is often one element alone, or nothing yet: then some that match are pushed."""
    for stream, texts, time, graph in given.elements:
        terms_of = iter(map(bytes.decode, texts))
        named = None if graph is None else graph.decode()
        engine.push(stream, zip(terms_of, terms_of, terms_of, strict=True), time=time, graph=named)
    now = engine.statistics.event_time or 0
    for plan in plans:
        for value in _VALUES:
            for stream, predicate, name, triples in _matching(plan, value, now):
                engine.push(stream, triples, time=now if predicate is None else None, graph=name)
    _wait(engine)


def _table(plans: Sequence[Plan], iri: str) -> pa.Table:
    """The same for one stream, as a table."""
    import pyarrow as pa

    rows = [
        (time * 1_000_000, graph, *triple)
        for plan in plans
        for time, value in enumerate(_VALUES)
        for stream, _, graph, triples in _matching(plan, value, time * 1_000_000)
        if stream == iri
        for triple in triples
    ]
    return pa.table(
        [list(column) for column in zip(*rows, strict=True)], ["time", "graph", "subject", "predicate", "object"]
    )


def _matching(plan: Plan, value: str, now: int) -> Iterator[tuple[str, str | None, str, list[Triple]]]:
    """Triples that the patterns of each stream match, and each other: stream, predicate of its times, graph, triples.

    A variable that is only an object is the value; any other is one and the same node. Times are `now`.
    """
    from cqels_py.plan.nodes import GRAPH, is_variable
    from cqels_py.plan.traverse import scans_of

    scans = list(scans_of(plan.root))
    things = {position for scan in scans for position in scan.pattern[:2]}
    date = datetime.fromtimestamp(now // 1_000_000, UTC).isoformat()

    def term(position: str) -> str:
        return position if not is_variable(position) else _ANYTHING if position in things else value

    for number, (stream, predicate) in enumerate(zip(plan.streams, plan.time_predicates, strict=True)):
        patterns = [scan.pattern for scan in scans if plan.windows[scan.window].stream == number]
        triples: list[Triple] = [(term(s), term(p), term(o)) for s, p, o, *_ in patterns]
        graphs = [name for pattern in patterns for name in pattern[GRAPH:] if not is_variable(name)]
        if predicate is not None:
            triples.append((_ANYTHING, f"<{predicate}>", f'"{date}"^^<{_XSD}dateTime>'))
        yield stream, predicate, graphs[0] if graphs else _ANYTHING, triples


def _wait(engine: Engine) -> None:
    """Until all that was pushed has left the windows."""
    now = engine.statistics.event_time
    if now is not None:
        for later in _LATER:
            engine.advance(now + later)


def main() -> None:
    """Rehearse the script in the folder."""
    from cqels_py.script import told

    text = Path(gettempdir(), INPUT).read_bytes()
    hide()
    rehearse(told(text))


if __name__ == "__main__":
    main()
