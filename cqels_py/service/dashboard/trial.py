"""A query is tried on samples of its streams, in an engine of its own, before it is registered."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterable, Mapping
from contextlib import closing, suppress
from dataclasses import dataclass, replace
from itertools import chain
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch, first_rows
from cqels_py.engine.compile import compile_query
from cqels_py.engine.engine import Engine
from cqels_py.engine.last_elements import SeenElement
from cqels_py.engine.options import EVENTS
from cqels_py.engine.query import Query
from cqels_py.engine.stream_opening import opening_of
from cqels_py.engine.unread import IGNORE
from cqels_py.errors import CqelsError, DataError, RunError
from cqels_py.functions.dates import instant_text
from cqels_py.service.dashboard.result_rows import Names, columns_of, row_of
from cqels_py.service.definitions import QueryDefinition
from cqels_py.service.limits import MIB
from cqels_py.service.result_lines import ResultLines
from cqels_py.service.service import Service, asks_nobody
from cqels_py.sources.documents import document_elements

MOST_CHARACTERS, MOST_ELEMENTS, MOST_RESULTS = 256 * 1024, 2_000, 200
"""Of the sample of a stream; of all samples; and of results that are shown."""
SECONDS = 5.0
"""For which a query is tried, without the time to compile."""
FORMATS = {"nq": "N-Quads", "trig": "TriG", "nt": "N-Triples", "ttl": "Turtle", "jsonld": "JSON-LD", "ndjson": "NDJSON"}
FORMATS |= {"json": "JSON", "csv": "CSV", "tsv": "TSV"}
"""Of samples, and their names."""
_STATE = 64 * MIB
_TOGETHER = 20
"""Elements between two looks at the limits."""
_TIME = "<http://www.w3.org/ns/prov#generatedAtTime>"
_DATE_TIME = "<http://www.w3.org/2001/XMLSchema#dateTime>"


@dataclass(frozen=True, slots=True)
class Sample:
    """Elements of a stream as a text in one of FORMATS."""

    text: str
    format: str = "nq"


@dataclass(frozen=True, slots=True)
class Trial:
    """`columns`: names and headings of those of `rows`. `late`: elements that were dropped. `ended`: why before the end, or ""."""

    columns: list[tuple[str, str]]
    rows: list[dict[str, str]]
    elements: int
    late: int
    ended: str


def sample_of(elements: Iterable[SeenElement]) -> str:
    """Elements as N-Quads, with their times; those of which a part is not known are left out."""
    lines = []
    for number, element in enumerate(elements):
        if not element.whole or not element.quads:
            continue
        named = next((graph for *_, graph in element.quads if graph is not None), None)
        graph = named or f"<urn:element:{number}>"
        lines.append(f'{graph} {_TIME} "{instant_text(element.time)}"^^{_DATE_TIME} .')
        for subject, predicate, value, own in element.quads:
            place = own if named else graph
            lines.append(" ".join((subject, predicate, value, *([place] if place else []), ".")))
    return "".join(f"{line}\n" for line in lines)


class Trials:
    """Tries queries, one at a time."""

    def __init__(self, service: Service) -> None:
        self._service = service
        self._lock = threading.Lock()

    def tried(self, definition: QueryDefinition, samples: Mapping[str, Sample]) -> Trial:
        """The results over samples of streams by IRI, merged by time; streams without one are empty.

        Errors as of `Service.put_query`; DataError with its `stream` for a sample that cannot be read.
        """
        lateness = {each.definition.iri: each.definition.lateness for each in list(self._service.streams.values())}
        options: dict[str, Any] = {
            "batch": _TOGETHER,
            "max_state": _STATE,
            "lateness_of": lateness,
            "on_unread": IGNORE,
        }
        # It is not finished, which would tell more results.
        with self._lock, closing(self._service.engine_apart(clock=EVENTS, **options)) as engine:
            query = self._service.register_in(engine, definition)
            sources = {iri: [self._elements(engine, iri, samples.get(iri))] for iri in query.streams}
            elements = sum(len(batch) for (batch,) in sources.values())
            if elements > MOST_ELEMENTS:
                raise DataError(f"the samples have {elements:,} elements, and a trial takes {MOST_ELEMENTS:,}")
            kept = _FirstResults(engine, query)
            query.write_to(kept)
            with engine.dictionary.holding(
                lambda: chain.from_iterable(batch.live_ids() for (batch,) in sources.values())
            ):
                ended = _run(engine, sources, kept)
            found = engine.statistics
        columns, names = columns_of(query.variables, query.form), Names(definition.text)
        return Trial(
            columns, [row_of(line, query.variables, names) for line in kept.lines], elements, found.late, ended
        )

    def _elements(self, engine: Engine, iri: str, sample: Sample | None) -> ElementBatch:
        text, format = ("", "nt") if sample is None or not sample.text.strip() else (sample.text, sample.format)
        if len(text) > MOST_CHARACTERS:
            raise _about(iri, DataError(f"a sample has at most {MOST_CHARACTERS:,} characters"))
        maps = {each.definition.iri: each.map for each in list(self._service.streams.values())}
        mapped = maps.get(iri) if format in ("json", "ndjson", "csv", "tsv") else None
        opening = replace(opening_of(engine, iri, None, _raise, mapped), on_error="stop")
        now = time.time_ns() // 1000
        try:
            return document_elements(text.encode(), format, opening, source="<sample>", arrival=now)
        except CqelsError as error:
            if format == "nq":
                # Triples without graphs are N-Triples, which people paste as they are.
                with suppress(CqelsError):
                    return document_elements(text.encode(), "nt", opening, source="<sample>", arrival=now)
            raise _about(iri, error if isinstance(error, DataError) else DataError(error.message)) from None

    def streams_of(self, definition: QueryDefinition) -> list[str]:
        """The IRIs of the streams that a query reads. Errors as of `Service.put_query`."""
        self._service.check(definition)
        return list(compile_query(definition.text, ask=asks_nobody).plan.streams)


class _Enough(Exception):
    """A limit is reached."""


class _FirstResults:
    """Keeps the first results as lines of JSON, in the place of a sink."""

    def __init__(self, engine: Engine, query: Query) -> None:
        self._lines = ResultLines(engine.dictionary, query.form, query.variables, query.template)
        self.lines: list[bytes] = []

    def write(self, batch: ResultBatch) -> None:
        room = MOST_RESULTS - len(self.lines)
        if room:
            self.lines += self._lines.of(first_rows(batch, room), len(self.lines) + 1)
        if len(batch) > room:
            raise _Enough

    def flush(self) -> None: ...

    def commit(self) -> None: ...


def _run(engine: Engine, sources: Mapping[str, list[ElementBatch]], kept: _FirstResults) -> str:
    """Take in all elements; why that ended before, or ""."""
    until = time.monotonic() + SECONDS

    def look(_: object) -> None:
        if time.monotonic() > until:
            raise TimeoutError

    try:
        engine.run(sources, progress=look)
    except _Enough:
        return f"the first {len(kept.lines)} results; there are more"
    except TimeoutError:
        return f"ended after {SECONDS:g} seconds"
    except RunError as error:
        return f"ended: {error.message}"
    return ""


def _about(iri: str, error: DataError) -> DataError:
    error.stream = iri
    return error


def _raise(error: DataError) -> None:
    raise error
