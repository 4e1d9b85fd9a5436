"""Files and tables whose rows or JSON objects are no RDF, through a map."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import replace
from typing import Any

import pyarrow as pa

from cqels_py.batches.elements import ElementBatch
from cqels_py.errors import UsageError
from cqels_py.formats.compression import CHUNK_BYTES, local_path, read_chunks
from cqels_py.formats.encodings import kind_of_json
from cqels_py.formats.endings import STREAMS, format_of
from cqels_py.formats.json_ld import file_iri
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.lines import Malformed, line_blocks
from cqels_py.formats.ndjson import json_elements
from cqels_py.formats.ntriples import Reading
from cqels_py.formats.tabular import batches_of, ipc_batches, parquet_batches
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.mappings.context import MessageContext
from cqels_py.mappings.elements import MappedElements
from cqels_py.mappings.frame_map import FrameMap
from cqels_py.mappings.frames import FrameElements, frame_rows
from cqels_py.mappings.json_rows import json_rows
from cqels_py.mappings.mapping import TIME, Mapping
from cqels_py.mappings.rows import Rows, with_time
from cqels_py.mappings.table_rows import delimited_rows, needed_columns, table_rows
from cqels_py.sources.files import handling
from cqels_py.sources.protocol import Opening
from cqels_py.sources.stdin import STANDARD_INPUT, standard_input_chunks

_DELIMITERS = {"csv": ",", "tsv": "\t"}
_JSON = ("ndjson", "json")


def mapped_file(location: str, opening: Opening) -> Iterator[ElementBatch]:
    """The elements of a file, or of JSON lines on standard input.

    UsageError for a file that is not there, for a format that the map does not read, and for a column that is not there.
    """
    from_stdin = location == STANDARD_INPUT
    if not from_stdin:
        opening = replace(opening, base=file_iri(local_path(location)))
    form = "ndjson" if from_stdin else format_of(location, STREAMS)
    _check(opening, form)
    prepare(calls_to_read(form))
    malformed = handling(opening.on_error, opening.report)
    reading = _reading("<stdin>" if from_stdin else location, opening)
    if form == "parquet":
        return _parquet(location, opening, reading, malformed)
    if form == "arrow":
        how = _rows_of(opening, reading, malformed)
        return _elements(opening, reading, malformed, table_rows(ipc_batches(str(local_path(location))), *how))
    # JSON may be one document, which its first lines decide.
    wait = None if form == "json" else opening.wait
    chunks = standard_input_chunks(CHUNK_BYTES, wait) if from_stdin else read_chunks(location, CHUNK_BYTES, wait)
    return _lines(form, chunks, opening, reading, malformed)


def mapped_chunks(
    form: str, chunks: Iterator[bytes], opening: Opening, source: str, arrival: int | None = None
) -> Iterator[ElementBatch]:
    """The elements of lines of a format as they come; where a chunk is empty, so is a batch. Errors as of `mapped_file`.

    `arrival`: the time, in microseconds, of rows whose ?time is unbound.
    """
    _check(opening, form)
    prepare(calls_to_read(form))
    reading = _reading(source, opening, arrival)
    return _lines(form, chunks, opening, reading, handling(opening.on_error, opening.report))


def mapped_table(table: Any, opening: Opening, arrival: int | None = None) -> Iterator[ElementBatch]:
    """The elements of an Arrow table, a reader, or anything that exports Arrow's C stream (Polars, pandas, DuckDB). `arrival`: see
    `mapped_chunks`."""
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(f"a map reads files and tables; {table!r} is not one")
    _check(opening, "arrow")
    prepare(calls_to_read("arrow"))
    reading = _reading("the table", opening, arrival)
    malformed = handling(opening.on_error, opening.report)
    if isinstance(opening.map, FrameMap):
        return _frame(batches_of(table), opening, opening.map, reading, malformed)
    return _elements(opening, reading, malformed, table_rows(batches_of(table), *_rows_of(opening, reading, malformed)))


def _frame(
    batches: Iterator[pa.RecordBatch], opening: Opening, how: FrameMap, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    elements = FrameElements(how.mapping, opening.dictionary, reading, malformed)
    return elements.read(frame_rows(batches, how, elements, opening.dictionary))


def _check(opening: Opening, form: str) -> None:
    if opening.time_predicate is not None and isinstance(opening.map, Mapping | FrameMap):
        raise UsageError(f"<{opening.stream}> has a map, which gives the times, and a time predicate: leave one out")
    if isinstance(opening.map, FrameMap) and form != "arrow":
        raise UsageError(
            f"the map of <{opening.stream}> is one of data frames and Arrow tables; files are read through a CONSTRUCT"
        )
    is_context = isinstance(opening.map, MessageContext)
    if form not in (_JSON if is_context else (*_JSON, "csv", "tsv", "parquet", "arrow")):
        read = "JSON" if is_context else "tables (CSV, TSV, Parquet, Arrow) and JSON"
        raise UsageError(f"the map of <{opening.stream}> reads {read}, not {form}")


def _reading(source: str, opening: Opening, arrival: int | None = None) -> Reading:
    return opening.reading(source, per_element=True, arrival=arrival)


def _lines(
    form: str, chunks: Iterator[bytes], opening: Opening, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    if form == "json":
        form, chunks = kind_of_json(chunks)
        if form != "ndjson":
            raise UsageError(f"{reading.source}: a map reads JSON with one object a line")
    blocks = line_blocks(chunks, reading.source, malformed)
    if isinstance(opening.map, MessageContext):
        yield from json_elements(blocks, opening.dictionary, reading, malformed, opening.json_ld, opening.map.context)
        return
    how = _rows_of(opening, reading, malformed)
    rows = delimited_rows(blocks, _DELIMITERS[form], *how) if form in _DELIMITERS else json_rows(blocks, *how)
    yield from _elements(opening, reading, malformed, rows)


def _parquet(location: str, opening: Opening, reading: Reading, malformed: Malformed) -> Iterator[ElementBatch]:
    how = _rows_of(opening, reading, malformed)
    batches = parquet_batches(str(local_path(location)), lambda names: needed_columns(names, how[0]))
    return _elements(opening, reading, malformed, table_rows(batches, *how))


def _rows_of(opening: Opening, reading: Reading, malformed: Malformed) -> tuple[Any, ...]:
    assert isinstance(opening.map, Mapping)
    return opening.map.columns, opening.dictionary, reading.source, malformed


def _elements(
    opening: Opening, reading: Reading, malformed: Malformed, rows: Iterator[Rows | None]
) -> Iterator[ElementBatch]:
    assert isinstance(opening.map, Mapping)
    if reading.arrival is not None and TIME in opening.map.columns:
        rows = with_time(rows, reading.arrival, opening.dictionary)
    return MappedElements(opening.map, opening.dictionary, reading, malformed).read(rows)
