"""Messages in a column of a data frame, such as Kafka's `value`, as triples: they are parsed in the tasks that read them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from dataclasses import dataclass
from functools import partial
from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from pyspark.sql import Column, DataFrame
from pyspark.sql import functions as F
from pyspark.sql.types import BinaryType, StringType, StructType, TimestampType

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError, UsageError
from cqels_py.formats.contexts import Contexts
from cqels_py.formats.rendering import render_terms
from cqels_py.mappings.context import RowMap
from cqels_py.runners.spark.pipeline import number_of_partition
from cqels_py.runners.spark.stage import PARTITION
from cqels_py.sources.live import MessageColumns
from cqels_py.sources.messages import MessageDecoder, MessageFormat
from cqels_py.sources.protocol import Opening

_TRIPLES = pa.schema(
    [("time", pa.int64()), *((name, pa.string()) for name in ("graph", "subject", "predicate", "object", "element"))]
)
_TRIPLE_COLUMNS = "time long, graph string, subject string, predicate string, object string, element string"
_BODY, _ORIGIN, _ARRIVED, _NUMBER, _ERROR = "_body", "_origin", "_arrived", "_number", "error"
_EMPTY = "the message is empty"


@dataclass(frozen=True, slots=True)
class MessageParsing:
    """How messages become elements. `format`: None: found by the first byte. `arrival`: the column with the time of messages that
    have none; `origin`: that with the ?topic of a map; `partition`: that with its partition, whose number the triples
    have then."""

    column: str
    format: str | None = None
    map: RowMap | None = None
    time_predicate: str | None = None
    arrival: str | None = None
    origin: str | None = None
    contexts: Contexts | None = None
    stop: bool = False
    partition: str | None = None


class Parsed(NamedTuple):
    """`triples`: a frame for `continuous`; `rejects`: the messages that are malformed, with all columns, and the `error` of each."""

    triples: DataFrame
    rejects: DataFrame


def parsed(frame: DataFrame, how: MessageParsing) -> Parsed:
    """The frames of triples and of rejects; each is computed by itself where a sink reads it."""
    _check(frame, how)
    rows = frame.select(
        "*",
        F.col(how.column).cast("binary").alias(_BODY),
        _or(how.origin, lambda name: F.col(name).cast("string"), F.lit("")).alias(_ORIGIN),
        _or(how.arrival, F.unix_micros, F.lit(0)).cast("long").alias(_ARRIVED),
    )
    number = [] if how.partition is None else [number_of_partition(frame, how.partition).alias(_NUMBER)]
    return Parsed(
        rows.select(_BODY, _ORIGIN, _ARRIVED, *number).mapInArrow(
            partial(triples_of, how), ", ".join([_TRIPLE_COLUMNS, *(f"{PARTITION} long" for _ in number)])
        ),
        rows.mapInArrow(partial(rejects_of, how), StructType([*frame.schema.fields]).add(_ERROR, "string")),
    )


def _or(name: str | None, made: Callable[[str], Column], otherwise: Column) -> Column:
    return otherwise if name is None else made(name)


def _check(frame: DataFrame, how: MessageParsing) -> None:
    for name in (how.column, how.arrival, how.origin, how.partition):
        if name is not None and name not in frame.columns:
            raise UsageError(f"the data frame has no column {name!r}; it has {', '.join(frame.columns)}")
    if not isinstance(frame.schema[how.column].dataType, BinaryType | StringType):
        kind = frame.schema[how.column].dataType.simpleString()
        raise UsageError(f"messages are texts or bytes; the column {how.column} is of type {kind}")
    if how.arrival is not None and not isinstance(frame.schema[how.arrival].dataType, TimestampType):
        kind = frame.schema[how.arrival].dataType.simpleString()
        raise UsageError(f"the times of messages are timestamps; the column {how.arrival} is of type {kind}")
    if _ERROR in frame.columns:
        raise UsageError(f"rename the column {_ERROR!r}: rejects have one of their own")


def triples_of(how: MessageParsing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The triples of messages (columns _body, _origin, _arrived, maybe _number). `element` changes from one element to the next."""
    made = 0
    for number, rows in _by_partition(batches):
        errors: dict[int, str] = {}
        dictionary = Dictionary()
        elements = _elements(how, rows, dictionary, errors)
        if how.stop and errors:
            place, error = min(errors.items())
            shown = rows.column(_ORIGIN)[place].as_py()
            raise DataError(f"message {place + 1} of the task's rows{f' of {shown}' if shown else ''}: {error}")
        found = _rows(elements, dictionary, made)
        if number is not None:
            found = found.append_column(PARTITION, pa.array(np.full(len(found), number)))
        yield found
        made += len(elements)


def _by_partition(batches: Iterable[pa.RecordBatch]) -> Iterator[tuple[int | None, pa.RecordBatch]]:
    """The rows, apart by the numbers of their partitions if they have any. A task of Kafka's source reads one."""
    for rows in batches:
        if _NUMBER not in rows.schema.names:
            yield None, rows
            continue
        for number in pc.unique(rows.column(_NUMBER)).to_pylist():
            yield number, rows.filter(pc.equal(rows.column(_NUMBER), number))


def rejects_of(how: MessageParsing, batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The rows of messages that are malformed, without the three columns of `triples_of`, and why each is."""
    for rows in batches:
        errors: dict[int, str] = {}
        _elements(how, rows, Dictionary(), errors)
        places = sorted(errors)
        kept = rows.select([name for name in rows.schema.names if name not in (_BODY, _ORIGIN, _ARRIVED)])
        kept = kept.take(pa.array(places, pa.int64()))
        yield kept.append_column(_ERROR, pa.array([errors[place] for place in places], pa.string()))


def _elements(
    how: MessageParsing, rows: pa.RecordBatch, dictionary: Dictionary, errors: dict[int, str]
) -> ElementBatch:
    """The elements of the messages; `errors` gets those of malformed ones by the places of their rows."""

    def note(error: DataError) -> None:
        place = 0 if error.place is None else error.place.line - 1
        errors.setdefault(place, error.message)

    opening = Opening(
        stream="",
        number=0,
        dictionary=dictionary,
        time_predicate=how.time_predicate,
        on_error="skip",
        report=note,
        graphs=True,
        contexts=how.contexts or {},
        map=how.map,
    )
    decoder = MessageDecoder(opening, how.column, MessageFormat(how.format, how.arrival is not None))
    bodies = rows.column(_BODY).to_pylist()
    for place, body in enumerate(bodies):
        if not body or body.isspace():
            errors[place] = _EMPTY
    there = [place for place in range(rows.num_rows) if place not in errors]
    messages = MessageColumns(
        bodies, rows.column(_ORIGIN).to_pylist(), [None] * rows.num_rows, rows.column(_ARRIVED).to_pylist()
    )
    return decoder.elements(messages.at(there), [place + 1 for place in there])


def _rows(elements: ElementBatch, dictionary: Dictionary, before: int) -> pa.RecordBatch:
    sizes = np.diff(elements.first)
    number = np.repeat(np.arange(before, before + len(elements)), sizes)
    nothing = np.zeros(elements.triples, np.int64)
    graph = nothing if elements.graph is None else elements.graph
    texts = [render_terms(ids, dictionary).cast(pa.string()) for ids in (graph, *elements.positions[:3])]
    columns = [pa.array(np.repeat(elements.time, sizes)), *texts, pa.array(number).cast(pa.string())]
    return pa.record_batch(columns, schema=_TRIPLES)
