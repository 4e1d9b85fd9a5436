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

MOST_BYTES: Final = 1 << 15
"""So much of each file, and of static data in memory: more would be kept alive."""

_NO_DATA = b""
_STANDARD_INPUT = "-"


@dataclass(frozen=True, slots=True)
class Pushed:
    """Elements of `Engine.push`: the stream, the texts of the triples, the time, the name of the graph."""

    elements: Sequence[tuple[str, Sequence[bytes], int | None, bytes | None]]


@dataclass(frozen=True, slots=True)
class Table:
    """The first rows of what `Engine.push_batch` takes; None of a reader, which can be read but once."""

    stream: str
    rows: Any


@dataclass(frozen=True, slots=True)
class Sources:
    """What `Engine.run` reads, by stream: files, bytes of N-Quads, the first rows of tables; None of what can be read but once."""

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
    """Told along by an engine. `asked` is the query that is being registered, `input` what is being worked on, as it was given.

    It outlives the engine, and knows nothing of it that would do so too: registered queries are numbers here.
    """

    options: Mapping[str, Any]
    queries: dict[int, Mapping[str, Any]] = field(default_factory=dict)
    asked: Mapping[str, Any] | None = None
    input: Any = None

    def registering(self, compiled: Any, static: Any, static_graphs: Mapping[str, Any] | None, **others: Any) -> None:
        """A compiled query, with the other arguments of `register`. Static data is noted as files, or the first of it as bytes."""
        graphs = {iri: _static(data) for iri, data in (static_graphs or {}).items()}
        self.asked = {"text": compiled, "static": _several(static), "static_graphs": graphs, **others}

    def registered(self, query: int) -> None:
        """The number of the query that this has become."""
        assert self.asked is not None
        self.queries[query], self.asked = self.asked, None

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
        queries = [*self.queries.values(), *([self.asked] if self.asked is not None else [])]
        # What cannot be shown to another process is not rehearsed.
        with suppress(Exception):
            if queries and (given := _input(self.input)) is not None:
                return pickle.dumps(Told(self.options, queries[-MOST_QUERIES:], given))
        return None


def told(text: bytes) -> Told:
    """The inverse of `Script.as_bytes`."""
    read: Told = pickle.loads(text)
    return read


def _several(static: Any) -> list[str | bytes]:
    """One source or several; what can be read but once is left alone."""
    return [_static(each) for each in (static if isinstance(static, list | tuple) else [static])]


def _static(data: Any) -> str | bytes:
    if isinstance(data, bytes):
        return data[: data.rfind(b"\n", 0, MOST_BYTES) + 1]
    return _file(data) or _NO_DATA


def _file(data: Any) -> str | None:
    return str(data) if isinstance(data, str | Path) else None


def _input(given: Any) -> Input | None:
    """None while nothing has come on standard input."""
    if isinstance(given, Table):
        return Table(given.stream, _first_rows(given.rows))
    if isinstance(given, Sources):
        found: dict[str, Any] = {}
        for iri, source in given.sources.items():
            if _file(source) == _STANDARD_INPUT:
                found[iri] = _first_of_standard_input()
                if found[iri] is None:
                    return None
            else:
                found[iri] = _file(source) or _first_rows(source)
        return Sources(found, given.time_predicates)
    return Pushed([(each.iri, each.texts, each.time, each.graph) for each in (given or [])[:FIRST_ROWS]])


def _first_of_standard_input() -> bytes | None:
    from cqels_py.sources.stdin import standard_input

    return standard_input().first()


def _first_rows(table: Any) -> Any:
    """As an Arrow table."""
    import pyarrow as pa

    for method, arguments in (("head", (FIRST_ROWS,)), ("limit", (FIRST_ROWS,)), ("slice", (0, FIRST_ROWS))):
        if hasattr(table, method):
            return pa.RecordBatchReader.from_stream(getattr(table, method)(*arguments)).read_all()
    return None
