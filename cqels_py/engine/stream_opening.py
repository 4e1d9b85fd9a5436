"""How the elements of a stream are read into an engine."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from cqels_py.event_time.wall_clock import SECOND
from cqels_py.formats.input_wait import InputWait
from cqels_py.formats.scopes import ELEMENT
from cqels_py.sources.protocol import Opening

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine
    from cqels_py.errors import DataError
    from cqels_py.mappings.context import RowMap


def opening_of(
    engine: Engine,
    stream: str,
    time_predicate: str | None,
    report: Callable[[DataError], None],
    read_by: RowMap | None = None,
    interval: float | None = None,
    number: int | None = None,
    split: Callable[[DataError], None] | None = None,
) -> Opening:
    """The opening of a source of the stream, by the engine's options.

    `interval`: seconds after which a source without input returns. `number`: that of the stream, if it is not known by its IRI yet.
    `split` gets triples of elements that were complete before they came; None: they are reported.
    """
    options, streams = engine._options, engine._registry.streams
    drops = options.drops_duplicates(stream)
    return Opening(
        stream=stream,
        number=streams.number(stream) if number is None else number,
        dictionary=engine.dictionary,
        time_predicate=time_predicate,
        on_error=options.on_error,
        report=partial(_report_of_stream, stream, report),
        blank_nodes=ELEMENT if drops else engine._blank_nodes,
        graphs=drops or stream in streams.graphs_asked,
        contexts=options.contexts,
        omissions=engine._reports.omissions(stream),
        on_questionable_time=partial(engine._reports.ask_unit, stream),
        map=read_by,
        wait=InputWait(options.flush_after / SECOND or None, options.idle / SECOND, interval),
        on_split=partial(_report_of_stream, stream, split or engine._reports.split),
        continues=engine._inputs.keeps,
        reach=options.reach,
    )


def _report_of_stream(stream: str, report: Callable[[DataError], None], error: DataError) -> None:
    error.stream = stream
    report(error)
