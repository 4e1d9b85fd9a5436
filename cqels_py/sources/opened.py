"""What a program gives as the source of a stream, opened: files, standard input, tables, batches, connectors."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import numpy as np

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import with_streams
from cqels_py.errors import UsageError
from cqels_py.formats.compression import is_file
from cqels_py.formats.ntriples import ELEMENT_BITS
from cqels_py.formats.scopes import ELEMENT
from cqels_py.sources.batches import BatchSource
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Connector, Opening, Source

if TYPE_CHECKING:
    import pyarrow as pa

ArrowStream: TypeAlias = "pa.Table | pa.RecordBatchReader | Any"
"""What exports Arrow's C stream: also data frames of Polars and pandas, and DuckDB's relations."""
StreamSource: TypeAlias = "str | Path | ArrowStream | Connector | Iterable[ElementBatch]"

_KINDS = 'a file, "-", an Arrow table or reader, or batches of elements (or a connector, which has a method open)'


def opened(source: StreamSource, opening: Opening) -> Source:
    """The source of a stream. UsageError for what is none, and for a file that is not there."""
    if isinstance(source, str | Path):
        return BatchSource(open_file(str(source), opening), again=is_file(Path(str(source).removeprefix("file://"))))
    if hasattr(source, "__arrow_c_stream__"):
        dictionary = opening.dictionary
        scope = None if opening.blank_nodes == ELEMENT else dictionary.next_document() << ELEMENT_BITS
        return BatchSource(table_elements(source, opening, scope))
    if isinstance(source, Connector):
        return source.open(opening)
    if isinstance(source, Iterable):
        return BatchSource(_numbered(source, opening.number))
    raise UsageError(f"{source!r} is no source of <{opening.stream}>: {_KINDS}")


def open_file(location: str, opening: Opening) -> Iterator[ElementBatch]:
    """The elements of a file, or of standard input."""
    return open_source(
        location,
        dictionary=opening.dictionary,
        stream=opening.number,
        time_predicate=opening.time_predicate,
        on_error=opening.on_error,
        report=opening.report,
        blank_nodes=opening.blank_nodes,
        graphs=opening.graphs,
        contexts=opening.contexts,
        doubt=opening.doubt,
    )


def table_elements(table: ArrowStream, opening: Opening, scope: int | None, **how: Any) -> Iterator[ElementBatch]:
    """The elements of an Arrow table or reader. `scope`: that of all blank nodes; None: each element has its own.

    Malformed rows always go to the opening's `report`, which raises or not.
    """
    from cqels_py.formats.tabular import elements_from_arrow

    return elements_from_arrow(
        table,
        opening.dictionary,
        opening.number,
        opening.time_predicate,
        opening.report,
        scope,
        per_element=scope is None,
        graphs=opening.graphs,
        doubt=opening.doubt,
        **how,
    )


def _numbered(batches: Iterable[object], stream: int) -> Iterator[ElementBatch]:
    """As elements of this stream, whatever number they came with."""
    for batch in batches:
        if not isinstance(batch, ElementBatch):
            raise UsageError(f"a source is {_KINDS}; among its batches is {batch!r}")
        yield with_streams(batch, np.full(len(batch), stream, np.int32))
