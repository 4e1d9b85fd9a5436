"""Tables that are pushed: each row, or consecutive rows of one time and graph, an element."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING, Final

from cqels_py.engine.stream_opening import opening_of
from cqels_py.engine.turns import in_turn
from cqels_py.errors import UsageError
from cqels_py.formats.scopes import ELEMENT, scope_of_document
from cqels_py.mappings.context import RowMap, read_map
from cqels_py.sources.opened import ArrowStream, table_in_order
from cqels_py.validation import check_flag

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

MOST_OF_A_TABLE: Final = 1 << 16
"""The largest table, in rows, whose results are delivered only after all of it has been processed."""


@in_turn
def push_batch(
    engine: Engine,
    stream: str,
    table: ArrowStream,
    document: str | None,
    sort: bool,
    map: RowMap | str | Path | None,
) -> None:
    """Take in the elements of a table or reader; see `Engine.push_batch`."""
    engine._steps.check_open()
    scope = None if document is None else scope_of_document(document)
    if scope is not None and engine._blank_nodes == ELEMENT:
        raise UsageError('the engine was made with blank_nodes="element": leave document= out')
    if scope is not None and engine._options.drops_duplicates(stream):
        raise UsageError(
            f"duplicates of <{stream}> are dropped, so blank nodes belong to their element: leave document= out"
        )
    if not hasattr(table, "__arrow_c_stream__"):
        raise UsageError(f"push_batch takes an Arrow table or reader, not {type(table).__name__}; push takes triples")
    check_flag(sort, "sort")
    read_by = None if map is None else read_map(map)
    if engine._unread.passes_over(stream, engine._registry.streams.numbers, table):
        return
    engine._flush()
    engine._begin_time()
    if scope is None and read_by is None and stream not in engine._singles and engine._pushed_row(stream, table):
        return
    # Other threads can push while subscribers get the results of a small table, but not between the parts of a large one.
    small = getattr(table, "num_rows", MOST_OF_A_TABLE + 1) <= MOST_OF_A_TABLE
    predicate = engine._registry.streams.time_predicates.get(stream)
    opening = opening_of(engine, stream, predicate, engine._reports.malformed, read_by)
    for batch in table_in_order(table, opening, scope, engine._options.lateness_at(stream), sort=sort):
        engine._process_part(batch, deliver=not small)
