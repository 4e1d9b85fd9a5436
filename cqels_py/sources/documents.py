"""Whole documents, such as the bodies of requests: their elements, all or none."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.ntriples import Reading
from cqels_py.formats.scopes import ELEMENT
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.kernels.text.tokenizer import BY_GRAPH
from cqels_py.sources.files import elements_of_document, handling
from cqels_py.sources.live import MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

FORMATS = {
    "application/n-quads": "nq",
    "application/n-triples": "nt",
    "application/trig": "trig",
    "text/turtle": "ttl",
    "application/ld+json": "jsonld",
    "application/x-ndjson": "ndjson",
    "application/json": "json",
    "text/csv": "csv",
    "text/tab-separated-values": "tsv",
    "application/vnd.apache.arrow.stream": "arrow",
    "application/x-jelly-rdf": "jelly",
}
"""Formats by media type."""
_TABLES = ("csv", "tsv")


def document_elements(body: bytes, format: str, opening: Opening, *, source: str, arrival: int) -> ElementBatch:
    """The elements of a document. Those without a time get that of its `arrival`, in microseconds.

    `opening`: its `on_error` is "stop", so that DataError is raised at the first place that cannot be read. `source` names the
    document in messages. UsageError for a format that the stream cannot read.
    """
    if format in ("json", "ndjson", "jsonld"):
        return _json(body, format, opening, source, arrival)
    if format == "arrow":
        return concatenate_elements(list(_arrow(body, opening, arrival)))
    if opening.map is not None:
        if format not in _TABLES:
            raise UsageError(f"the stream <{opening.stream}> has a map, which reads JSON and tables, not {format}")
        from cqels_py.sources.mapped import mapped_chunks

        return concatenate_elements(list(mapped_chunks(format, iter([body]), opening, source)))
    prepare(calls_to_read(format))
    batches = elements_of_document(
        format,
        iter([body]),
        opening.dictionary,
        _reading(opening, source, arrival),
        handling(opening.on_error, opening.report),
        opening.contexts,
    )
    return concatenate_elements(list(batches))


def _reading(opening: Opening, source: str, arrival: int) -> Reading:
    return Reading(
        BY_GRAPH,
        opening.number,
        None if opening.time_predicate is None else f"<{opening.time_predicate.strip('<>')}>",
        source,
        per_element=opening.blank_nodes == ELEMENT,
        graphs=opening.graphs,
        on_questionable_time=opening.on_questionable_time,
        arrival=arrival,
    )


def _json(body: bytes, format: str, opening: Opening, source: str, arrival: int) -> ElementBatch:
    """A document of JSON-LD is an element, as is each line of NDJSON, and each object of plain JSON through the map."""
    if format == "json" and opening.map is None:
        raise UsageError(
            f"the stream <{opening.stream}> has no map for application/json: declare it with a map or a context, or send "
            "application/ld+json"
        )
    if format == "ndjson":
        lines = [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    elif format == "json":
        lines = list(enumerate(_objects(body, source), 1))
    else:
        lines = [(1, body)]
    numbers, bodies = [number for number, _ in lines], [line for _, line in lines]
    columns = MessageColumns(bodies, [source] * len(lines), [None] * len(lines), [arrival] * len(lines))
    return MessageDecoder(opening, source, MessageFormat("jsonld", arrival=True)).elements(columns, numbers)


def _objects(body: bytes, source: str) -> list[bytes]:
    """The object of a document of JSON, or those of its array."""
    try:
        found = json.loads(body)
    except json.JSONDecodeError as error:
        raise DataError(f"no JSON: {error.msg}", Place(error.lineno, error.colno, source)) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise DataError(f"no JSON: {error}", Place(1, None, source)) from None
    objects = found if isinstance(found, list) else [found]
    for number, each in enumerate(objects, 1):
        if not isinstance(each, dict):
            raise DataError("expected a JSON object, or an array of them", Place(number, None, source))
    return [json.dumps(each, ensure_ascii=False).encode() for each in objects]


def _arrow(body: bytes, opening: Opening, arrival: int) -> Iterator[ElementBatch]:
    """An Arrow IPC stream: rows of triples, or those of a map."""
    import pyarrow as pa

    from cqels_py.sources.opened import table_elements

    try:
        table: Any = pa.ipc.open_stream(io.BytesIO(body)).read_all()
        table.validate(full=True)
    except (pa.ArrowException, OSError, ValueError) as error:
        raise DataError(f"no Arrow IPC stream: {error}") from None
    if opening.map is not None:
        from cqels_py.sources.mapped import mapped_table

        yield from mapped_table(table, opening)
        return
    if "time" not in table.column_names and opening.time_predicate is None:
        table = table.append_column("time", pa.array([arrival] * len(table), pa.int64()))
    yield from table_elements(table, replace(opening), opening.dictionary.next_document() << 40)
