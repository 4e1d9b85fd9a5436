"""What a program has told its engine: enough to rehearse it in another process (`cqels_py.rehearsal`)."""

from __future__ import annotations

import pickle
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final, TypeAlias

FIRST_ROWS: Final = 200
"""So many elements, or rows of a table, are rehearsed: kernels are slow as plain Python."""

MOST_QUERIES: Final = 20
"""So many queries: those that follow mostly need nothing more."""

_NO_DATA = b""
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Pushed:
    """Elements of `Engine.push`: the stream, the texts of the triples, the time."""

    elements: Sequence[tuple[str, Sequence[bytes], int | None]]


@dataclass(frozen=True, slots=True)
class Table:
    """The first rows of what `Engine.push_batch` takes."""

    stream: str
    rows: Any


@dataclass(frozen=True, slots=True)
class Sources:
    """What `Engine.run` reads, by stream: files, bytes of N-Quads, or the first rows of tables."""

    sources: Mapping[str, Any]
    time_predicates: Mapping[str, str]


Input: TypeAlias = "Pushed | Table | Sources"


@dataclass(frozen=True, slots=True)
class Told:
    """All that a rehearsal needs: the options of an engine, the arguments of `register` for each query, and input."""

    options: Mapping[str, Any]
    queries: Sequence[Mapping[str, Any]]
    input: Input


@dataclass(slots=True)
class Script:
    """Told along by an engine. `input` is what it is working on, as it got it."""

    options: Mapping[str, Any]
    queries: dict[Any, Mapping[str, Any]] = field(default_factory=dict)
    input: Any = None

    def registered(
        self, query: Any, text: str, static: Any, static_graphs: Mapping[str, Any] | None, **others: Any
    ) -> None:
        """A query. Of static data only files are noted: other data would be kept alive."""
        self.queries[query] = {
            "text": text,
            "static": _files(static),
            "static_graphs": {iri: _file(data) or _NO_DATA for iri, data in (static_graphs or {}).items()},
            **others,
        }

    @contextmanager
    def working_on(self, given: Table | Sources) -> Iterator[None]:
        """While this lasts, that is the input; it is not kept any longer."""
        self.input = given
        try:
            yield
        finally:
            self.input = None

    def as_bytes(self) -> bytes | None:
        """What there is to be rehearsed, as `told` reads it; None if there is nothing, or nothing yet."""
        # Endpoints would be asked twice.
        queries = [each for each in self.queries.values() if "service" not in each["text"].lower()]
        # What cannot be shown to another process is not rehearsed.
        with suppress(Exception):
            if queries and (given := _input(self.input)) is not None:
                return pickle.dumps(Told(self.options, queries[:MOST_QUERIES], given))
        return None


def told(text: bytes) -> Told:
    """The inverse of `Script.as_bytes`."""
    read: Told = pickle.loads(text)
    return read


def _file(data: Any) -> str | None:
    return str(data) if isinstance(data, str | Path) else None


def _files(static: Any) -> list[str]:
    single = isinstance(static, str | Path | bytes) or not isinstance(static, list | tuple)
    return [file for each in ([static] if single else static) if (file := _file(each)) is not None]


def _input(given: Any) -> Input | None:
    if isinstance(given, list):
        return Pushed([(each.iri, each.texts, each.time) for each in given[:FIRST_ROWS]])
    if isinstance(given, Table):
        rows = _first_rows(given.rows)
        return None if rows is None else Table(given.stream, rows)
    if isinstance(given, Sources):
        found = {iri: _source(source) for iri, source in given.sources.items()}
        return None if None in found.values() else Sources(found, given.time_predicates)
    return None


def _source(source: Any) -> Any:
    from cqels_py.connectors.standard_input import standard_input

    if str(source) == _STANDARD_INPUT:
        return standard_input().first()
    return _file(source) or _first_rows(source) or _NO_DATA


def _first_rows(table: Any) -> Any:
    """As an Arrow table; None of a reader, which can be read but once."""
    import pyarrow as pa

    for method, arguments in (("head", (FIRST_ROWS,)), ("limit", (FIRST_ROWS,)), ("slice", (0, FIRST_ROWS))):
        if hasattr(table, method):
            return pa.RecordBatchReader.from_stream(getattr(table, method)(*arguments)).read_all()
    return None
