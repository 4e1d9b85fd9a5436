"""Whole documents, such as the bodies of requests: their elements, all or none."""

from __future__ import annotations

import codecs
import io
import json
import re
from collections.abc import Iterator, Sequence
from dataclasses import replace
from itertools import accumulate
from typing import Any

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.errors import DataError, Place, UsageError
from cqels_py.formats.depth import MOST_STATEMENTS, too_many
from cqels_py.formats.joined_documents import Joined, JoinedDocuments
from cqels_py.formats.json_documents import json_value
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.lines import line_blocks
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.kernels.text.tokenizer import BY_SUBJECT
from cqels_py.mappings.mapping import TIME, Mapping
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
_JSON = ("json", "ndjson", "jsonld")
_WITH_GRAPHS = ("nq", "trig")
_TIME_OF_A_GRAPH = b"generatedAtTime"
_TABLES = ("csv", "tsv")
_LINE = re.compile(rb"^(?=[^\r\n])", re.MULTILINE)
"""The beginning of a line that is not empty."""


def document_elements(body: bytes, format: str, opening: Opening, *, source: str, arrival: int) -> ElementBatch:
    """The elements of a document. Those without a time get that of its `arrival`, in microseconds.

    `opening`: its `on_error` is "stop", so that DataError is raised at the first place that cannot be read. `source` names the
    document in messages. UsageError for a format that the stream cannot read.
    """
    if format in _JSON:
        return _json([body], format, opening, source, arrival).batch
    if format == "arrow":
        return concatenate_elements(list(_arrow(body, opening, arrival)))
    if format in _TABLES:
        body = _timed_lines(body, format, opening, source, arrival)
    if opening.map is not None:
        if format not in _TABLES:
            raise UsageError(f"the stream <{opening.stream}> has a map, which reads JSON and tables, not {format}")
        from cqels_py.sources.mapped import mapped_chunks

        return concatenate_elements(list(mapped_chunks(format, iter([body]), opening, source, arrival)))
    try:
        return _of_text(body, format, opening, source, arrival)
    except DataError as error:
        if format not in _WITH_GRAPHS or opening.time_predicate is not None or _TIME_OF_A_GRAPH in body:
            raise
        try:
            return _of_text(body, format, opening, source, arrival, by_subject=True)
        except DataError:
            raise error from None


def joined_elements(
    bodies: Sequence[bytes], format: str, opening: Opening, *, source: str, arrival: int
) -> Joined | None:
    """The elements of several documents of a format, as `document_elements` would give them one by one.

    None where each has to be read alone to know, and for formats of which each is read alone. DataError if one cannot be read:
    which one, is found in the same way.
    """
    if format in _JSON:
        return _json(bodies, format, opening, source, arrival)
    if format not in ("nq", "nt") or opening.map is not None:
        return None
    prepare(calls_to_read(format))
    malformed = handling(opening.on_error, opening.report)
    reading = opening.reading(source, arrival=arrival)
    if format == "nt":
        reading = replace(reading, form=BY_SUBJECT, graphs=False)
    reader = JoinedDocuments(opening.dictionary, reading, malformed)
    return reader.read_documents(line_blocks((body,), source, malformed) for body in bodies)


def _of_text(
    body: bytes, format: str, opening: Opening, source: str, arrival: int, *, by_subject: bool = False
) -> ElementBatch:
    prepare(calls_to_read(format))
    batches = elements_of_document(
        format,
        iter([body]),
        opening.dictionary,
        opening.reading(source, arrival=arrival),
        handling(opening.on_error, opening.report),
        opening.json_ld,
        by_subject=by_subject,
    )
    found, triples = list[ElementBatch](), 0
    for batch in batches:
        found.append(batch)
        triples += len(batch.subject)
        if triples > MOST_STATEMENTS:
            raise too_many(Place(1, None, source))
    return concatenate_elements(found)


def _json(bodies: Sequence[bytes], format: str, opening: Opening, source: str, arrival: int) -> Joined:
    """A document of JSON-LD is an element, as is each line of NDJSON, and each object of plain JSON through the map."""
    if format == "json" and opening.map is None:
        raise UsageError(
            f"the stream <{opening.stream}> has no map for application/json: declare it with a map or a context, or send "
            "application/ld+json"
        )
    decoder = MessageDecoder(opening, source, MessageFormat("jsonld", arrival=True))
    parts = [_messages(body, format, source) for body in bodies]
    ends = list(accumulate(map(len, parts)))
    found = [message for part in parts for _, message in part]
    columns = MessageColumns(found, [source] * len(found), [None] * len(found), [arrival] * len(found))
    if len(bodies) > 1:
        return decoder.joined(columns, ends)
    batch = decoder.elements(columns, [number for part in parts for number, _ in part])
    return Joined(batch, [len(batch)])


def _messages(body: bytes, format: str, source: str) -> list[tuple[int, bytes]]:
    """The messages in a document, with the numbers by which errors name them."""
    if format == "ndjson":
        return [(number, line) for number, line in enumerate(body.split(b"\n"), 1) if line.strip()]
    if format == "json":
        return list(enumerate(_objects(body, source), 1))
    return [(1, body)]


def _objects(body: bytes, source: str) -> list[bytes]:
    """The object of a document of JSON, or those of its array."""
    found = json_value(body, source)
    objects = found if isinstance(found, list) else [found]
    for number, each in enumerate(objects, 1):
        if not isinstance(each, dict):
            raise DataError("expected a JSON object, or an array of them", Place(number, None, source))
    return [json.dumps(each, ensure_ascii=False).encode() for each in objects]


def _timed_lines(body: bytes, format: str, opening: Opening, source: str, arrival: int) -> bytes:
    """A table with a column time: that of its arrival, if it has none."""
    # It needs pyarrow.
    from cqels_py.formats.tabular import column_names

    delimiter = "," if format == "csv" else "\t"
    body = body.removeprefix(codecs.BOM_UTF8)
    head, newline, rest = body.partition(b"\n")
    names = column_names(head, delimiter, 1, source)
    if not names or not _lacks_time(names, opening):
        return body
    before = f"{arrival}{delimiter}".encode()
    return f"{TIME}{delimiter}".encode() + head + newline + _LINE.sub(before, rest)


def _lacks_time(names: Sequence[str], opening: Opening) -> bool:
    """Have the rows of these columns no time, and nothing else that gives them one?"""
    if isinstance(opening.map, Mapping):
        return TIME in opening.map.columns and TIME not in names
    return TIME not in names and opening.time_predicate is None


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

        if _lacks_time(table.column_names, opening):
            table = table.append_column("time", pa.array([arrival] * len(table), pa.int64()))
        yield from mapped_table(table, opening, arrival)
        return
    if _lacks_time(table.column_names, opening):
        table = table.append_column("time", pa.array([arrival] * len(table), pa.int64()))
    yield from table_elements(table, opening, opening.dictionary.next_document() << 40)
