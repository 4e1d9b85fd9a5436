"""Streams as tables: columns time, graph, subject, predicate, object; one row per triple; terms in N-Triples syntax.

Consecutive rows with the same time and graph are one element; `graph` is optional. Times are ISO 8601 or integers of
microseconds. With a time predicate, an element's time is the value of that property, and `time` is optional. Other
columns are ignored. In .csv, a value that contains quotes is quoted, with its own quotes doubled; in .tsv terms stand
as they are. A row is a line.
"""

from __future__ import annotations

import csv
import re
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from itertools import pairwise
from typing import Any

import numpy as np
import numpy.typing as npt
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.csv
import pyarrow.ipc
import pyarrow.parquet as pq

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import empty_elements
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, Place
from cqels_py.formats.lines import Malformed
from cqels_py.formats.ntriples import ELEMENT_BITS, SPLIT, Reading
from cqels_py.formats.statements import statements
from cqels_py.formats.times import EXPECTED, FAR, NO_TIME, is_integer, questionable, times_of_ids, times_of_texts
from cqels_py.formats.triples import is_node
from cqels_py.kernels.values.positions import misplaced
from cqels_py.terms.layout import TAG_BLANK, TAG_IRI, TAG_OVERFLOW, TAG_SHIFT

TERMS = ("subject", "predicate", "object")
COLUMNS = ("time", "graph", *TERMS)
_GRAPH = 6

_ROWS = 1 << 16
_EXPECTED = {"subject": "<iri> or _:label", "predicate": "<iri>", "object": "<iri>, _:label or a literal in quotes"}
_INT64, _LARGE_STRING = pa.int64(), pa.large_string()
_MICROS = {"d": 86_400_000_000, "s": 1_000_000, "ms": 1_000, "us": 1}
"""Microseconds per unit of Arrow's time types."""
_A_FEW = 64
"""Up to this number of texts, Arrow validates faster than it takes to check for ASCII."""
_BYTES_OF_A_PLACE = 4
"""The most bytes a row of a column that repeats: texts take more."""
_NAMES_SHOWN = 200
"""The number of characters of column names that a message shows: the first line of a file that is no table may be very long."""
_SHORT = 20
"""The most characters of a value that is shown as a literal."""
_STRINGS = (pa.string(), _LARGE_STRING)
"""Types that need no cast: their offsets have 32 or 64 bits."""
_NOT_SOUND = (pa.ArrowException, OSError, MemoryError, ValueError, KeyError)
"""Exceptions of Arrow for a damaged file, which may ask for more memory than there is."""
_NEWLINE = "\n"
_IPC_FILE = b"ARROW1"
"""The first bytes of a file with an index of its batches; a stream has none."""
_NO_TEXT = np.frombuffer(b"\0", np.uint8)
_NO_TEXTS = pa.nulls(0, _LARGE_STRING)
_VALUE = rb'(?:"(?:[^"\r]|"")*+"(?!")[^,\r]*+|[^",\r][^,\r]*+|)'
_QUOTED_ROW = re.compile(rb"%b(?:,%b)*+\r?" % (_VALUE, _VALUE))
_PLAIN_ROW = re.compile(rb"[^\r]*+\r?")
"""A line that is a complete row, as Arrow reads it: with quoted values, and without."""
_QUOTES_OPEN = (
    "a quoted value does not end on this line, and a row is one line: let a table whose values have line breaks come as Parquet "
    "or NDJSON"
)
_LINE_END_WITHIN = (
    "there is a carriage return within this line; lines end with a newline, or with both: "
    r"tr '\r' '\n' < old.csv > new.csv"
)


def elements_from_arrow(
    table: Any,
    dictionary: Dictionary,
    reading: Reading,
    malformed: Malformed | None = None,
    *,
    numbers: npt.NDArray[np.int64] | None = None,
    look: Callable[[npt.NDArray[np.int64]], None] | None = None,
) -> Iterator[ElementBatch]:
    """The elements of an Arrow table, a RecordBatchReader, or anything that exports Arrow's C stream (Polars, DuckDB,
    pandas).

    `time` may also be a timestamp or a date; times of 2**62 microseconds or more from the epoch are malformed. DataError names the
    row (from 1, or by `numbers`) of malformed input after the reading's `source`, unless `malformed` handles it. `look` gets the
    times of the rows, part by part, before these are read; an exception from it ends the reading.
    """
    is_table = isinstance(table, pa.Table)
    source = table if is_table else exported(table)
    _check_columns(source.schema.names, reading, None)
    batches = source.to_batches() if is_table else _read(source)
    pieces = _pieces(batches) if look is None else _looked_at(_pieces(batches), look)
    return _RowReader(dictionary, reading, malformed or _stop, numbers=numbers).read(_numbered(pieces))


def parquet_elements(
    path: str, dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    """The elements of a Parquet file. The line of a place is the row's number, from 1."""
    reader = _RowReader(dictionary, reading, malformed)
    try:
        file = parquet_file(path)
        # All columns are known here; later only those that are read.
        schema = file.schema_arrow
    except _NOT_SOUND as error:
        raise _not_sound(path, error) from None
    try:
        _check_columns(schema.names, reading, None)
        for name in _used(schema.names):
            _plain(pa.nulls(0, schema.field(name).type), name)
    except DataError as error:
        raise DataError(f"{path}: {error}") from None
    return reader.read(_numbered(_batches(file, path, _used(file.schema_arrow.names))))


def ipc_elements(path: str, dictionary: Dictionary, reading: Reading, malformed: Malformed) -> Iterator[ElementBatch]:
    """The elements of an Arrow IPC file or stream. The line of a place is the row's number, from 1."""
    reader = _RowReader(dictionary, reading, malformed)
    return reader.read(_numbered(_pieces(ipc_batches(path))))


def ipc_batches(path: str) -> Iterator[pa.RecordBatch]:
    """The rows of an Arrow IPC file or stream, part by part. DataError for a damaged one, after the rows before."""
    try:
        with open(path, "rb") as file:
            if file.peek(len(_IPC_FILE))[: len(_IPC_FILE)] == _IPC_FILE:
                whole = pa.ipc.open_file(file)
                for number in range(whole.num_record_batches):
                    yield whole.get_batch(number)
            else:
                yield from pa.ipc.open_stream(file)
    except _NOT_SOUND as error:
        raise DataError(f"{path} is not a valid Arrow IPC stream: {str(error).partition(_NEWLINE)[0]}") from None


def delimited_elements(
    blocks: Iterable[tuple[bytes, int]], delimiter: str, dictionary: Dictionary, reading: Reading, malformed: Malformed
) -> Iterator[ElementBatch]:
    """The elements of blocks of whole lines of .csv or .tsv; the first line names the columns."""
    doubled = delimiter == ","
    return _RowReader(dictionary, reading, malformed, quotes_doubled=doubled).read(
        _delimited(blocks, delimiter, reading)
    )


def _stop(error: DataError) -> None:
    raise error


def exported(table: Any) -> pa.RecordBatchReader:
    """The Arrow stream of a table. Columns of Python objects (pandas) are converted only here, and may fail."""
    try:
        return pa.RecordBatchReader.from_stream(table)
    except pa.ArrowException as error:
        raise _no_arrow(error) from None


def whole(table: Any) -> pa.Table:
    """All rows of an object that exports Arrow's C stream, with texts of a type of which Arrow can take rows (Polars' is none)."""
    if isinstance(table, pa.Table):
        return table
    reader = exported(table)
    rows = pa.Table.from_batches(_read(reader), reader.schema)
    fields = [pa.field(each.name, _LARGE_STRING) if "view" in str(each.type) else each for each in rows.schema]
    # Not validated here: the reader names the row that is not UTF-8.
    return rows.cast(pa.schema(fields), safe=False)


def batches_of(table: Any) -> Iterator[pa.RecordBatch]:
    """The rows of an object that exports Arrow's C stream, part by part. DataError where it cannot be read."""
    return _read(exported(table))


def _read(reader: pa.RecordBatchReader) -> Iterator[pa.RecordBatch]:
    try:
        yield from reader
    except pa.ArrowException as error:
        raise _no_arrow(error) from None


def _no_arrow(error: pa.ArrowException) -> DataError:
    message = ": ".join(map(str, error.args))
    return DataError(f"the table cannot be read as Arrow ({message}); terms are texts in N-Triples syntax, all of them")


def parquet_batches(path: str, chosen: Callable[[list[str]], list[str]]) -> Iterator[pa.RecordBatch]:
    """The rows of a Parquet file: the columns that are `chosen` from the names of all. DataError for a damaged file."""
    try:
        file = pq.ParquetFile(path)
        names = file.schema_arrow.names
    except _NOT_SOUND as error:
        raise _not_sound(path, error) from None
    yield from _batches(file, path, chosen(names))


def parquet_file(source: Any) -> pq.ParquetFile:
    """A Parquet file of a stream, open. Columns of terms that repeat in it are read as dictionaries: each term is encoded once."""
    file = pq.ParquetFile(source)
    repeating = [name for name in TERMS if _repeats(file.metadata, name)]
    return pq.ParquetFile(source, metadata=file.metadata, read_dictionary=repeating) if repeating else file


def _repeats(metadata: pq.FileMetaData, name: str) -> bool:
    """Is a column stored as few values and their places? Where they become too many, a file goes on with the values themselves."""
    if name not in metadata.schema.names or not metadata.num_row_groups:
        return False
    # The name of a column within another one may be the same: then this is none of a stream.
    place = metadata.schema.names.index(name)
    chunks = [metadata.row_group(number).column(place) for number in range(metadata.num_row_groups)]
    size = sum(each.total_uncompressed_size for each in chunks)
    return all(each.has_dictionary_page for each in chunks) and size <= _BYTES_OF_A_PLACE * metadata.num_rows


def _batches(file: pq.ParquetFile, path: str, columns: list[str]) -> Iterator[pa.RecordBatch]:
    try:
        yield from file.iter_batches(batch_size=_ROWS, columns=columns)
    except _NOT_SOUND as error:
        raise _not_sound(path, error) from None


def _not_sound(path: str, error: Exception) -> DataError:
    return DataError(f"{path} is not a valid Parquet file: {str(error).partition(_NEWLINE)[0]}")


def _pieces(batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        rows = batch.num_rows
        for start in range(0, rows, _ROWS):
            yield batch if rows <= _ROWS else batch.slice(start, _ROWS)


def _numbered(batches: Iterable[pa.RecordBatch]) -> Iterator[Rows]:
    first = 1
    for batch in batches:
        yield Rows(batch, np.arange(first, first + batch.num_rows))
        first += batch.num_rows


def _looked_at(
    batches: Iterable[pa.RecordBatch], look: Callable[[npt.NDArray[np.int64]], None]
) -> Iterator[pa.RecordBatch]:
    for batch in batches:
        look(times_of_column(batch.column("time")))
        yield batch


@dataclass(frozen=True, slots=True)
class Rows:
    """Some rows of a table, their numbers (n), and the malformed rows between them, by number."""

    table: pa.RecordBatch
    lines: npt.NDArray[np.int64]
    errors: dict[int, DataError] = field(default_factory=dict)


# --- text to rows -----------------------------------------------------------------------------------------------------


def _delimited(blocks: Iterable[tuple[bytes, int]], delimiter: str, reading: Reading) -> Iterator[Rows | None]:
    """The rows; None where a block is empty: nothing comes for now."""
    names: list[str] | None = None
    for text, first in blocks:
        if not text:
            yield None
            continue
        if names is None:
            head, _, text = text.partition(b"\n")
            names = [name.strip().strip('"').lower() for name in column_names(head, delimiter, first, reading.source)]
            _check_columns(names, reading, Place(first, None, reading.source))
            first += 1
        if text.strip():
            yield rows_of_lines(text, first, names, _used(names), delimiter, reading.source)


def _check_columns(names: Sequence[str], reading: Reading, place: Place | None) -> None:
    missing = [name for name in TERMS if name not in names]
    if "time" not in names and reading.time_predicate is None:
        missing.insert(0, "time")
    shown = "; the columns are " + ", ".join(COLUMNS) + " (graph is optional)"
    if missing:
        found = ", ".join(names)
        found = found if len(found) <= _NAMES_SHOWN else found[:_NAMES_SHOWN] + "…"
        message = f"there is no column {' and no column '.join(missing)}{shown}; here they are {found or 'none'}"
        raise DataError(message, place)
    if len(set(names)) < len(names) and (several := [name for name in COLUMNS if names.count(name) > 1]):
        raise DataError(f"there is more than one column {several[0]}{shown}", place)
    if "time" not in names and "graph" not in names:
        raise DataError("without a column time, a column graph must distinguish the elements", place)


def column_names(head: bytes, delimiter: str, line: int, source: str) -> list[str]:
    """The values of the first line. DataError if it is no complete row."""
    is_row = _QUOTED_ROW if delimiter == "," else _PLAIN_ROW
    if not is_row.fullmatch(head):
        raise DataError(_incomplete(head, is_row), Place(line, None, source))
    text = head.decode(errors="replace").removesuffix("\r")
    if delimiter != ",":
        return text.split(delimiter)
    try:
        return next(csv.reader([text]), [])
    except csv.Error as error:
        raise DataError(f"the names of the columns cannot be read: {error}", Place(line, None, source)) from None


def _incomplete(line: bytes, is_row: re.Pattern[bytes]) -> str:
    """Why the line is no complete row: is it one without its carriage returns?"""
    return _LINE_END_WITHIN if is_row.fullmatch(line.replace(b"\r", b"")) else _QUOTES_OPEN


def rows_of_lines(
    text: bytes, first: int, names: Sequence[str], used: Sequence[str], delimiter: str, source: str
) -> Rows:
    """The rows of whole lines, the first with the number `first`: the columns `used` of those with these `names`, as texts.

    If Arrow finds another number of rows than of lines, malformed lines are taken out.
    """
    rows = _line_by_line(text, first, names, used, delimiter, source)
    if rows is not None:
        return rows
    sound, errors = _sound_lines(text, first, delimiter, source)
    rows = _line_by_line(sound, first, names, used, delimiter, source)
    if rows is None:
        raise DataError("these lines cannot be read as rows of a table", Place(first, None, source))
    return Rows(rows.table, rows.lines, rows.errors | errors)


def _line_by_line(
    text: bytes, first: int, names: Sequence[str], used: Sequence[str], delimiter: str, source: str
) -> Rows | None:
    """The rows of lines if each line is one row; None if a quoted value continues on the next line or contains a line end."""
    if b"\r" in text and text.count(b"\r") - text.endswith(b"\r") != text.count(b"\r\n"):
        return None
    # Arrow closes a quoted value at the end of the text. Anywhere before, it continues the value with the next line.
    end = len(text) - text.endswith(b"\n")
    if delimiter == "," and not _QUOTED_ROW.fullmatch(text, text.rfind(b"\n", 0, end) + 1, end):
        return None
    if not text.strip():
        return Rows(pa.RecordBatch.from_pydict(dict.fromkeys(used, _NO_TEXTS)), np.empty(0, np.int64))
    errors: dict[int, DataError] = {}
    skipped: list[int] = []

    def wrong(row: pa.csv.InvalidRow) -> str:
        line = first + row.number - 1
        message = f"{row.actual_columns} values where {row.expected_columns} are expected"
        errors[line] = DataError(message, Place(line, None, source)).about(row.text or "")
        skipped.append(row.number - 1)
        return "skip"

    try:
        table = pa.csv.read_csv(
            pa.BufferReader(text),
            pa.csv.ReadOptions(column_names=list(names), use_threads=False, block_size=max(len(text) + 1, 1 << 16)),
            pa.csv.ParseOptions(
                delimiter=delimiter,
                quote_char='"' if delimiter == "," else False,
                ignore_empty_lines=False,
                invalid_row_handler=wrong,
            ),
            pa.csv.ConvertOptions(column_types=dict.fromkeys(names, pa.large_string()), include_columns=list(used)),
        )
    except pa.ArrowInvalid:
        return None
    rows = table.num_rows + len(skipped)
    if rows != text.count(b"\n") + (not text.endswith(b"\n")):
        return None
    lines = np.delete(np.arange(rows), skipped) + first
    batch = _one_batch(table)
    filled = np.zeros(batch.num_rows, np.bool_)
    for column in batch.columns:
        filled |= np.diff(_buffers(column)[1]) > 0
    if not filled.all():
        # Values that are not filled in below are empty lines.
        batch, lines = batch.filter(pa.array(filled)), lines[filled]
    return Rows(batch, lines, errors)


def _sound_lines(text: bytes, first: int, delimiter: str, source: str) -> tuple[bytes, dict[int, DataError]]:
    """The lines, with an empty line for each that is not a complete row, and the errors of those lines by number."""
    is_row = _QUOTED_ROW if delimiter == "," else _PLAIN_ROW
    errors: dict[int, DataError] = {}
    lines = text.split(b"\n")
    for at, line in enumerate(lines):
        if not is_row.fullmatch(line):
            errors[first + at] = DataError(_incomplete(line, is_row), Place(first + at, None, source)).about(
                line.decode()
            )
            lines[at] = b""
    return b"\n".join(lines), errors


def _used(names: Sequence[str]) -> list[str]:
    return [name for name in COLUMNS if name in names]


def _one_batch(table: pa.Table) -> pa.RecordBatch:
    batches = table.combine_chunks().to_batches()
    return batches[0] if batches else pa.RecordBatch.from_pylist([], schema=table.schema)


def row_text(rows: Rows, line: int) -> str | None:
    """The values of a row, with tabs between them; None if it is not among the rows."""
    found = np.flatnonzero(rows.lines == line)
    return "\t".join(_value_text(each[int(found[0])]) for each in rows.table.columns) if len(found) else None


def _value_text(value: pa.Scalar) -> str:
    if not value.is_valid:
        return ""
    if isinstance(value, pa.StringScalar):
        # It may not be UTF-8.
        return str(value.as_buffer().to_pybytes(), "utf-8", "backslashreplace")
    if isinstance(value, pa.DictionaryScalar):
        return _value_text(value.dictionary[value.index.as_py()])
    # Times as the numbers that they are: not all can be Python's.
    is_time = isinstance(value, pa.TimestampScalar | pa.Date32Scalar | pa.Date64Scalar)
    return str(value.value if is_time else value.as_py())


# --- rows to elements -------------------------------------------------------------------------------------------------


class _RowReader:
    """Groups rows into elements. The last element is delivered when the next begins, or at the end.

    `quotes_doubled`: whether quotes of literals are doubled in the source text. `numbers`: the rows' numbers (n) in
    messages, if the rows were reordered.
    """

    def __init__(
        self,
        dictionary: Dictionary,
        reading: Reading,
        malformed: Malformed,
        *,
        quotes_doubled: bool = False,
        numbers: npt.NDArray[np.int64] | None = None,
    ) -> None:
        self._reading = reading
        self._on_questionable_time = reading.on_questionable_time
        self._row_numbers = numbers
        self._dictionary = dictionary
        self._malformed = malformed
        self._quotes_doubled = quotes_doubled
        self._scope = dictionary.next_document() << ELEMENT_BITS if reading.scope is None else reading.scope
        self._time_id = dictionary.encode_one(reading.time_predicate) if reading.time_predicate else 0
        self._number = 0
        self._last: tuple[int, str] | None = None
        # Rows not delivered yet: subject, predicate, object, element's number, time, line, and the graph if it is
        # needed.
        self._open = np.empty((_GRAPH + reading.graphs, 0), np.int64)
        self._delivered = self._open
        # The number of an element that was delivered because nothing came for some time.
        self._flushed = 0
        # By column its last dictionary, and the ids of its values.
        self._known: dict[str, tuple[pa.Array, Ids | None]] = {}

    def read(self, parts: Iterable[Rows | None]) -> Iterator[ElementBatch]:
        """The elements of consecutive parts of a table; an empty batch where there is none for now."""
        with self._dictionary.holding(self._held):
            try:
                for rows in parts:
                    if rows is None:
                        yield from self._pause()
                        continue
                    self._add(rows)
                    yield from self._take(last=False)
            except DataError:
                yield from self._take(last=False)
                raise
            yield from self._take(last=True)

    def _pause(self) -> Iterator[ElementBatch]:
        """Nothing comes for now: the element that has begun, as soon as that completes it; otherwise an empty batch."""
        wait = self._reading.wait
        if wait is not None and self._open.size:
            if wait.flush_due:
                yield from self._take(last=True)
                self._flushed = self._number
            elif wait.flush_comes:
                return
        if wait is not None:
            wait.at_rest = not self._open.shape[1]
        yield empty_elements()

    def _without_split(self, rows: Rows, triples: Ids) -> Ids:
        """The triples (as of `_open`) but those of an element that was complete already, which are reported."""
        split = triples[3] == self._flushed
        if split.any() and self._reading.on_split is not None:
            text = "\n".join(row_text(rows, line) or "" for line in triples[5, split].tolist())
            message = f"{self._reading.source}: {SPLIT}"
            self._reading.on_split(DataError(message).about(text))
        return triples[:, ~split]

    def _held(self) -> Iterator[Ids]:
        for rows in (self._open, self._delivered):
            yield rows[: len(TERMS)]
            yield rows[_GRAPH:]
        for _, ids in self._known.values():
            if ids is not None:
                yield ids

    def _add(self, rows: Rows) -> None:
        errors = dict(rows.errors)
        triples = self._encode(rows, errors)
        for line in sorted(errors):
            if errors[line].element is None:
                errors[line].element = row_text(rows, line)
            try:
                self._malformed(errors[line])
            except DataError:
                self._append(triples[:, triples[5] < line])
                raise
        if errors:
            triples = triples[:, ~np.isin(triples[5], list(errors))]
        self._append(self._without_split(rows, triples) if self._flushed else triples)

    def _append(self, triples: Ids) -> None:
        self._open = np.concatenate([self._open, triples], axis=1) if self._open.size else triples

    def _encode(self, rows: Rows, errors: dict[int, DataError]) -> Ids:
        """Columns as in `_open`. Errors are entered in `errors` by line."""
        columns, lines = self._decoded(rows, errors)
        time = _times(columns["time"]) if "time" in columns else np.zeros(len(lines), np.int64)
        if not self._time_id and len(wrong := np.flatnonzero((time <= -FAR) | (time >= FAR))):
            for row in wrong.tolist():
                errors[int(lines[row])] = self._error(_no_time(columns["time"], row), int(lines[row]))
            columns, lines, time = _without(wrong, columns), np.delete(lines, wrong), np.delete(time, wrong)
        if (
            self._on_questionable_time is not None
            and "time" in columns
            and (found := _questionable_time(columns["time"], time)) is not None
        ):
            self._on_questionable_time(found)
            self._on_questionable_time = None
        out = np.empty((len(self._open), len(lines)), np.int64)
        out[3] = self._numbers(time, columns.get("graph"))
        out[4], out[5] = time, lines
        scopes = self._scope + out[3] if self._reading.per_element else np.full(len(lines), self._scope, np.int64)
        for k, name in enumerate(TERMS):
            self._encode_column(name, columns[name], scopes, out, k, errors)
        if self._reading.graphs:
            self._encode_graphs(columns.get("graph"), scopes, out, errors)
        return out

    def _encode_graphs(self, texts: pa.Array | None, scopes: Ids, out: Ids, errors: dict[int, DataError]) -> None:
        """The ids of the graphs' names; 0 where there is none."""
        out[_GRAPH] = 0
        if texts is None:
            return
        wrong: dict[int, DataError] = {}
        out[_GRAPH] = self._dictionary.encode_bytes(*_buffers(texts), scopes, wrong)
        nameless = pc.equal(pc.binary_length(texts), 0).to_numpy(zero_copy_only=False)
        for row in np.flatnonzero(~(is_node(out[_GRAPH]) | nameless)).tolist():
            found = wrong[row].message if row in wrong else f"{texts[row].as_py()[:80]!r}"
            message = f"the graph is {found}; a query asks for it: expected <iri> or _:label, or nothing"
            errors.setdefault(int(out[5, row]), self._error(message, int(out[5, row])))

    def _decoded(self, rows: Rows, errors: dict[int, DataError]) -> tuple[dict[str, pa.Array], npt.NDArray[np.int64]]:
        """The columns by name, texts as UTF-8 strings (terms also as dictionaries of them) and times unconverted, and the rows'
        numbers."""
        table, lines = rows.table, rows.lines
        names = table.schema.names
        _check_columns(names, self._reading, None)
        columns = {name: _terms_or_times(table.column(name), name) for name in _used(names)}
        wrong: set[int] = set()
        for name, column in columns.items():
            for row, byte in _not_utf8(column):
                wrong.add(row)
                line = int(lines[row])
                errors.setdefault(line, self._error(f"the {name}: the byte 0x{byte:02x} is not UTF-8", line))
        if wrong:
            columns, lines = _without(sorted(wrong), columns), np.delete(lines, sorted(wrong))
        return columns, lines

    def _encode_column(
        self, name: str, texts: pa.Array, scopes: Ids, out: Ids, k: int, errors: dict[int, DataError]
    ) -> None:
        wrong: dict[int, DataError] = {}
        ids = self._ids_of_values(name, texts.dictionary) if pa.types.is_dictionary(texts.type) else None
        if ids is not None:
            out[k] = ids[_integers(texts.indices.cast(_INT64), np.int64)]
        else:
            texts = _decoded_once(texts)
            out[k] = self._dictionary.encode_bytes(*_buffers(texts), scopes, wrong)
        if not misplaced(out[k], k):
            return
        tag = (out[k] >> TAG_SHIFT) & 15
        allowed = tag != 0
        if name != "object":
            allowed = (tag == TAG_IRI) | (tag == TAG_OVERFLOW) | ((tag == TAG_BLANK) & (name == "subject"))
        for row in np.flatnonzero(~allowed).tolist():
            line = int(out[5, row])
            text = texts[row].as_py()
            if row in wrong:
                message = f"the {name}: {wrong[row].message}"
            else:
                found = repr(text[:80]) if text else "missing"
                message = f"the {name} is {found}; expected {_EXPECTED[name]}"
            if self._quotes_doubled and name == "object":
                message += _quotes_are_doubled(text)
            errors.setdefault(line, self._error(message, line))

    def _ids_of_values(self, name: str, values: pa.Array) -> Ids | None:
        """The ids of the values of a column's dictionary; None where they depend on the row, or some are no terms."""
        if name in self._known and self._known[name][0].equals(values):
            return self._known[name][1]
        wrong: dict[int, DataError] = {}
        ids = self._dictionary.encode_bytes(*_buffers(values), np.zeros(len(values), np.int64), wrong)
        same = not wrong and not np.isin((ids >> TAG_SHIFT) & 15, (0, TAG_BLANK, TAG_OVERFLOW)).any()
        self._known[name] = values, ids if same else None
        return self._known[name][1]

    def _error(self, message: str, line: int) -> DataError:
        if self._row_numbers is not None:
            line = self._row_numbers.item(line - 1)
        return DataError(message, Place(line, None, self._reading.source))

    def _numbers(self, time: npt.NDArray[np.int64], graph: pa.Array | None) -> npt.NDArray[np.int64]:
        """A number (n) for each run of rows with the same time and graph, also across parts of the table."""
        if not len(time):
            return time
        new = np.empty(len(time), np.bool_)
        np.not_equal(time[1:], time[:-1], out=new[1:])
        first = last = ""
        if graph is not None:
            codes = _integers(graph.dictionary_encode().indices, np.int32)
            new[1:] |= codes[1:] != codes[:-1]
            first, last = graph[0].as_py(), graph[-1].as_py()
        new[0] = self._last != (time.item(0), first)
        numbers: npt.NDArray[np.int64] = self._number + new.cumsum(dtype=np.int64)
        self._number = numbers.item(-1)
        self._last = (time.item(-1), last)
        return numbers

    def _take(self, last: bool) -> Iterator[ElementBatch]:
        """Deliver the complete elements."""
        numbers = self._open[3]
        end = len(numbers) if last or not len(numbers) else int(numbers.searchsorted(numbers[-1]))
        if end == 0:
            return
        taken, self._open = self._open[:, :end], self._open[:, end:].copy()
        self._delivered = taken
        # At the end, the last element is complete too: count one more beginning.
        begins = np.ones(end + 1, np.bool_)
        np.not_equal(numbers[1:end], numbers[: end - 1], out=begins[1:end])
        first = begins.nonzero()[0]
        starts = first[:-1]
        time, errors = taken[4, starts], dict[int, DataError]()
        if self._time_id:
            time = self._times_inside(taken, starts, errors)
        start = 0
        for wrong in [*sorted(errors), len(starts)]:
            if wrong > start:
                yield self._batch(time[start:wrong], first[start : wrong + 1], taken)
            start = wrong + 1
            if wrong < len(starts):
                left_out = taken[: len(TERMS), first[wrong] : first[wrong + 1]]
                self._malformed(errors[wrong].about(statements([*left_out], self._dictionary)))

    def _batch(self, time: Ids, first: Ids, rows: Ids) -> ElementBatch:
        subject, predicate, object_, *others = rows[:, first[0] : first[-1]].copy()
        stream = np.full(len(time), self._reading.stream, np.int32)
        graph = others[-1] if self._reading.graphs else None
        return ElementBatch(time, stream, first - first[0], subject, predicate, object_, graph)

    def _times_inside(self, rows: Ids, starts: Ids, errors: dict[int, DataError]) -> Ids:
        """The times (elements) that the time predicate gives."""
        out = np.full(len(starts), NO_TIME)
        said = np.flatnonzero(rows[1] == self._time_id)
        element = np.searchsorted(starts, said, side="right") - 1
        found = times_of_ids(rows[2, said], self._dictionary)
        out[element[::-1]] = found[::-1]
        for e in np.unique(element[found != out[element]]).tolist():
            errors[e] = self._error("the element has two different times", int(rows[5, starts[e]]))
        missing = np.setdiff1d(np.arange(len(starts)), element)
        for e in missing.tolist():
            message = f"the element has no time: no triple with the predicate {self._reading.time_predicate}"
            errors[e] = self._error(message, int(rows[5, starts[e]]))
        for row, e in zip(said.tolist(), element.tolist(), strict=True):
            if out[e] == NO_TIME and e not in errors:
                shown = self._dictionary.decode(rows[2, row : row + 1])[0]
                errors[e] = self._error(f"the element has the time {shown}; {EXPECTED}", int(rows[5, row]))
        return out


def _quotes_are_doubled(text: str) -> str:
    """A hint on how CSV quotes literals, for a value that lost its quotes."""
    if text.startswith(("<", "_:", '"')):
        return ""
    shown = text if text.isalnum() and len(text) <= _SHORT else "text"
    return f'; in CSV a literal has its quotes doubled, within quotes: """{shown}"""'


def _without(rows: Sequence[int] | Ids, columns: dict[str, pa.Array]) -> dict[str, pa.Array]:
    """The columns without these rows."""
    length = len(next(iter(columns.values())))
    kept = pa.array(np.delete(np.arange(length), rows))
    return {name: column.take(kept) for name, column in columns.items()}


# --- columns ----------------------------------------------------------------------------------------------------------


def _plain(column: pa.Array, name: str) -> pa.Array:
    """Times that are numbers unconverted, everything else as strings with empty for null. The strings are not validated
    as UTF-8 yet.
    """
    kind = column.type
    if name == "time":
        if pa.types.is_dictionary(kind):
            column = _plain(column.dictionary, name).take(column.indices)
            kind = column.type
        if pa.types.is_integer(kind) or pa.types.is_timestamp(kind) or pa.types.is_date(kind):
            return column
        if pa.types.is_duration(kind):
            raise DataError(
                f"the column time of type {kind} is a length of time, not a point in time; {EXPECTED}, or a timestamp"
            )
    try:
        return _texts(column)
    except (pa.ArrowInvalid, pa.ArrowNotImplementedError):
        if name == "time":
            raise DataError(f"the column time of type {kind} holds no times; {EXPECTED}, or a timestamp") from None
        raise DataError(f"the column {name} of type {kind} holds no terms in N-Triples syntax") from None


def _terms_or_times(column: pa.Array, name: str) -> pa.Array:
    """As `_plain`; but terms stay a dictionary if it is sound and not larger than the column."""
    is_small = pa.types.is_dictionary(column.type) and len(column.dictionary) <= len(column)
    if name in TERMS and is_small and not column.null_count:
        values = _plain(column.dictionary, name)
        if not _not_utf8(values):
            return pa.DictionaryArray.from_arrays(column.indices, values)
    return _plain(column, name)


def _decoded_once(texts: pa.Array) -> pa.Array:
    return texts.dictionary_decode() if pa.types.is_dictionary(texts.type) else texts


def _texts(column: pa.Array) -> pa.Array:
    if pa.types.is_dictionary(column.type):
        # Cast the few distinct values, not every row. (Arrow can cast values of some text types, such as Polars', but
        # not take rows of them.)
        column = pa.DictionaryArray.from_arrays(column.indices, _texts(column.dictionary)).dictionary_decode()
    elif column.type not in _STRINGS:
        # If Arrow validated here, one row that is not UTF-8 would invalidate all rows; `_not_utf8` finds the row.
        column = column.cast(_LARGE_STRING, safe=False)
    return column.fill_null("") if column.null_count else column


def _not_utf8(column: pa.Array) -> list[tuple[int, int]]:
    """The rows whose text is not UTF-8, and the first wrong byte of each. Arrow does not validate columns that claim to
    be UTF-8.
    """
    if column.type not in _STRINGS or (len(column) > _A_FEW and _is_ascii(column)):
        return []
    try:
        column.validate(full=True)
    except pa.ArrowInvalid:
        return list(_wrong_bytes(column))
    return []


def _is_ascii(texts: pa.Array) -> bool:
    data, bounds = _buffers(texts)
    found = data[bounds[0] : bounds[-1]]
    return len(found) == 0 or int(found.max()) < 128


def _wrong_bytes(texts: pa.Array) -> Iterator[tuple[int, int]]:
    data, bounds = _buffers(texts)
    for row, (start, end) in enumerate(pairwise(bounds.tolist())):
        text = data[start:end].tobytes()
        try:
            text.decode()
        except UnicodeDecodeError as error:
            yield row, text[error.start]


def _integers(array: pa.Array, kind: type[np.signedinteger[Any]]) -> npt.NDArray[Any]:
    """The values of an array of integers without nulls. `to_numpy` would import pandas if installed, which takes longer
    than a small job.
    """
    if not len(array):
        return np.empty(0, kind)
    return np.frombuffer(array.buffers()[1], kind)[array.offset : array.offset + len(array)]


def times_of_column(column: pa.Array) -> npt.NDArray[np.int64]:
    """Microseconds since the epoch (n) of a column `time` of any type. NO_TIME, or a value at least FAR from the epoch,
    where invalid.
    """
    column = _plain(column, "time")
    wrong = [row for row, _ in _not_utf8(column)]
    if not wrong:
        return _times(column)
    found = np.full(len(column), NO_TIME)
    right = np.delete(np.arange(len(column)), wrong)
    found[right] = _times(column.take(pa.array(right)))
    return found


def _questionable_time(column: pa.Array, times: npt.NDArray[np.int64]) -> int | None:
    """The first integer time of a column that seems to be in another unit."""
    kind = column.type
    if kind not in _STRINGS and not pa.types.is_integer(kind):
        return None
    places = questionable(times)
    if len(places) and (kind not in _STRINGS or is_integer(column[places[0].item()].as_py())):
        return times.item(places[0])
    return None


def _times(column: pa.Array) -> npt.NDArray[np.int64]:
    """Microseconds since the epoch (n). NO_TIME, or a value at least FAR from the epoch, where invalid."""
    kind = column.type
    if kind in _STRINGS:
        return times_of_texts(*_buffers(column))
    if pa.types.is_date32(kind):
        column = column.cast(pa.int32())
    # Unsigned numbers that do not fit become negative.
    counts = column if kind == _INT64 else column.cast(_INT64, safe=False)
    nulls = counts.is_null().to_numpy(zero_copy_only=False) if counts.null_count else None
    found: npt.NDArray[np.int64] = _integers(counts.fill_null(0) if counts.null_count else counts, np.int64)
    if pa.types.is_uint64(kind):
        found = np.where(found < 0, NO_TIME, found)
    elif kind != _INT64 and not pa.types.is_integer(kind):
        found = _microseconds(found, kind)
    return found if nulls is None else np.where(nulls, NO_TIME, found)


def _microseconds(counts: npt.NDArray[np.int64], kind: pa.DataType) -> npt.NDArray[np.int64]:
    """Microseconds of timestamps or dates (n) in their units. Fractions of a microsecond are cut off, as in texts."""
    unit = "ms" if pa.types.is_date64(kind) else "d" if pa.types.is_date32(kind) else kind.unit
    if unit == "ns":
        return counts // 1_000
    each = _MICROS[unit]
    most = FAR // each
    return counts if each == 1 else np.where((counts < -most) | (counts > most), NO_TIME, counts * each)


def _no_time(column: pa.Array, row: int) -> str:
    """The error message of an invalid time."""
    kind, found = column.type, column[row]
    if not found.is_valid or kind in _STRINGS:
        return f"the time is {found.as_py()!r}; {EXPECTED}"
    # Shown as a number: so far from the epoch, no date can express it.
    unit = "" if pa.types.is_integer(kind) else f" as {kind}"
    number = found.as_py() if pa.types.is_integer(kind) else found.value
    return f"the time is {number}{unit}, far beyond any date; {EXPECTED}"


def _buffers(texts: pa.Array) -> tuple[npt.NDArray[np.uint8], Ids]:
    """All texts as bytes, and the start of each (n + 1)."""
    if not len(texts):
        return _NO_TEXT, np.zeros(1, np.int64)
    _, offsets, data = texts.buffers()
    width = np.int64 if texts.type == _LARGE_STRING else np.int32
    bounds = np.frombuffer(offsets, width)[texts.offset : texts.offset + len(texts) + 1].astype(np.int64)
    found = np.frombuffer(data, np.uint8) if data is not None and data.size else _NO_TEXT
    # One type for all buffers: each further type would compile the kernels again.
    found.flags.writeable = False
    return found, bounds
