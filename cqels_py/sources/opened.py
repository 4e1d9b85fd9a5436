"""Opens the source that a program gives for a stream: a file, standard input, a table, batches or a connector."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import ExitStack
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import with_streams
from cqels_py.errors import UsageError
from cqels_py.formats.compression import is_file
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.formats.ntriples import ELEMENT_BITS
from cqels_py.formats.scopes import ELEMENT
from cqels_py.kernels.compiler.prepare import prepare
from cqels_py.mappings.context import RowMap, read_map
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.files import may_pause, open_source
from cqels_py.sources.marked_file import MarkedFile, can_be_marked
from cqels_py.sources.protocol import Connector, Opening, Source
from cqels_py.sources.urls import SOURCES, source_of
from cqels_py.validation import by_iri

if TYPE_CHECKING:
    import pyarrow as pa

ArrowStream: TypeAlias = "pa.Table | pa.RecordBatchReader | Any"
"""An object that exports Arrow's C stream, such as data frames of Polars and pandas, and DuckDB's relations."""
StreamSource: TypeAlias = "str | Path | ArrowStream | Connector | Iterable[ElementBatch]"

_KINDS = (
    'a file, "-", a URL, an Arrow table or reader, or batches of elements (or a connector, which has a method open)'
)


def all_opened(
    sources: Mapping[str, StreamSource], opening: Callable[[str], Opening], cleanup: ExitStack
) -> list[Source]:
    """The sources of streams by IRI, each with its `opening`; `cleanup` closes them. Errors as of `opened`."""
    found = []
    for iri, source in sources.items():
        found.append(opened(source, opening(iri)))
        cleanup.callback(found[-1].close)
    return found


def opened(source: StreamSource, opening: Opening) -> Source:
    """The source of a stream. UsageError for an object that cannot be one, and for a file that does not exist."""
    if isinstance(source, str) and SOURCES.is_url(source):
        return source_of(source).open(opening)
    if isinstance(source, str | Path):
        if can_be_marked(str(source), opening):
            return MarkedFile(str(source), opening)
        batches = open_source(str(source), opening) if opening.map is None else _mapped(source, opening)
        path = str(source).removeprefix("file://")
        wait = opening.wait if may_pause(path) else None
        return BatchSource(batches, again=is_file(Path(path)), wait=wait)
    if opening.map is not None and not isinstance(source, Connector):
        return BatchSource(_mapped(source, opening))
    if hasattr(source, "__arrow_c_stream__"):
        dictionary = opening.dictionary
        scope = None if opening.blank_nodes == ELEMENT else dictionary.next_document() << ELEMENT_BITS
        return BatchSource(table_elements(source, opening, scope))
    if isinstance(source, Connector):
        return source.open(opening)
    if isinstance(source, Iterable):
        return BatchSource(_numbered(source, opening.number))
    raise UsageError(f"{source!r} is not a source for <{opening.stream}>: {_KINDS}")


def is_connected(source: StreamSource) -> bool:
    """Is the source a connector, or a URL, rather than a file, a table or batches?"""
    return SOURCES.is_url(source) if isinstance(source, str) else isinstance(source, Connector)


def _mapped(source: StreamSource, opening: Opening) -> Iterator[ElementBatch]:
    """The elements of a file or a table through the opening's map, which needs pyarrow."""
    from cqels_py.sources import mapped

    if isinstance(source, str | Path):
        return mapped.mapped_file(str(source), opening)
    return mapped.mapped_table(source, opening)


def table_elements(table: ArrowStream, opening: Opening, scope: int | None, **how: Any) -> Iterator[ElementBatch]:
    """The elements of an Arrow table or reader. `scope`: that of all blank nodes; None: each element has its own.

    Malformed rows always go to the opening's `report`, which raises or not.
    """
    from cqels_py.formats.tabular import elements_from_arrow
    from cqels_py.mappings.triple_tables import in_ntriples

    prepare(calls_to_read("arrow"))
    reading = opening.reading("row", per_element=scope is None, scope=scope)
    return elements_from_arrow(in_ntriples(table), opening.dictionary, reading, opening.report, **how)


def _numbered(batches: Iterable[object], stream: int) -> Iterator[ElementBatch]:
    """The batch with this stream's number for all elements."""
    for batch in batches:
        if not isinstance(batch, ElementBatch):
            raise UsageError(f"a source is {_KINDS}; among its batches is {batch!r}")
        yield with_streams(batch, np.full(len(batch), stream, np.int32))


def table_in_order(
    table: ArrowStream, opening: Opening, scope: int | None, lateness: int, *, sort: bool
) -> Iterator[ElementBatch]:
    """The elements of a table as of `table_elements`, in order of time.

    DataError for a row that is out of order by more than `lateness` microseconds; `sort`: the rows are sorted first.
    """
    from cqels_py.formats import table_order as order
    from cqels_py.formats.tabular import whole as all_rows

    once = order.is_read_once(table) and not sort
    check = order.OrderCheck(lateness, "row", order.BEFORE_TAKEN if once else order.NOTHING_TAKEN)
    if opening.time_predicate is not None or opening.map is not None:
        batches = _mapped(table, opening) if opening.map is not None else table_elements(table, opening, scope)
        return order.elements_in_order(batches, lateness, opening.dictionary, once=once, sort=sort)
    if once:
        return table_elements(table, opening, scope, look=check.look)
    rows = all_rows(table)
    times, numbers = order.times_of_rows(rows), None
    if times is not None:
        rows = order.with_times(rows, times)
    if times is not None and not sort:
        check.look(times)
    elif times is not None and (places := order.order_of(times)) is not None:
        rows, numbers = rows.take(places), places + 1
    return table_elements(rows, opening, scope, numbers=numbers)


def predicates_of(given: Mapping[str, str] | None, sources: Mapping[str, object]) -> dict[str, str]:
    """The time predicates of streams by IRI. UsageError for a stream that has no source."""
    predicates = by_iri({} if given is None else given, "time_predicates", "IRI of a property")
    for iri, predicate in predicates.items():
        if iri not in sources:
            raise UsageError(f"time_predicates has the stream <{iri}>, which has no source")
        if not isinstance(predicate, str):
            raise UsageError(f"the time predicate of <{iri}> is an IRI as a text, not {predicate!r}")
    return predicates


def maps_of(given: Mapping[str, object] | None, sources: Mapping[str, object]) -> dict[str, RowMap]:
    """The maps of streams by IRI. UsageError for a stream that has no source, and for a file that cannot be read."""
    maps = by_iri({} if given is None else given, "maps", "file")
    for iri in maps:
        if iri not in sources:
            raise UsageError(f"maps has the stream <{iri}>, which has no source")
    return {iri: read_map(each) for iri, each in maps.items()}
