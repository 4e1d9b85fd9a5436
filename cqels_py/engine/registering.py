"""How a compiled query becomes one of the queries of an engine.

kernels compiled ─ a turn: static data read ─ dataflow built ─ checked beside the others ─ logged ─ added

`engine.backfill` does the same in several turns.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import TYPE_CHECKING

from cqels_py.checkpoints.kernel_calls import calls_to_log
from cqels_py.dataflow import Dataflow
from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.compile import CompiledQuery, compile_query
from cqels_py.engine.options import WALL
from cqels_py.engine.query import Query
from cqels_py.engine.reports import report_for
from cqels_py.engine.turns import in_turn
from cqels_py.formats.kernel_calls import calls_to_read
from cqels_py.functions.limits import Limits
from cqels_py.kernels.compiler.prepare import load, prepare
from cqels_py.runners.running import RunningQuery
from cqels_py.sources.static import StaticSource, load_static_data, ontology_of

if TYPE_CHECKING:
    from cqels_py.dataflow.static_data import StaticData
    from cqels_py.engine.durable.registration import Registration
    from cqels_py.engine.engine import Engine
    from cqels_py.plan.nodes import Plan


def prepare_kernels(engine: Engine, compiled: CompiledQuery, asked: Registration, *, has_static: bool) -> None:
    """Compile the kernels that the query calls, unless they have been. It needs no turn: other threads can push meanwhile."""
    reading = [*calls_to_read("arrow"), *(calls_to_read("nq") if has_static else ())]
    logging = calls_to_log() if engine._inputs.keeps else ()
    called = calls_of(compiled.plan, rewritten=asked.entailment is not None)
    prepare([*called, *reading, *logging])
    if engine._queries:
        # Not in a step, for which elements of the others wait.
        load(called)


@in_turn
def register(
    engine: Engine,
    compiled: CompiledQuery,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
    asked: Registration,
) -> Query:
    """Read the query's static data, and add it behind all elements that were pushed."""
    return register_with(engine, compiled, static_data_of_new(engine, compiled, static, graphs), asked)


def static_data_of_new(
    engine: Engine,
    compiled: CompiledQuery,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
) -> StaticData:
    """The static data of a query that comes behind all elements that were pushed. UsageError if its streams have another order."""
    engine._steps.check_open()
    engine.flush()
    engine._registry.streams.check_time_predicates(compiled.plan)
    return load_static_data(compiled.plan, static, graphs, engine.dictionary, engine._reports.json_ld())


def register_with(engine: Engine, compiled: CompiledQuery, data: StaticData, asked: Registration) -> Query:
    """Add a query with this static data. UsageError if it cannot run beside the others."""
    asked = replace(asked, documents=engine.dictionary.documents)
    streams = len(engine._registry.all_streams)
    query = None
    try:
        query, running = built(engine, compiled, data, asked)
        engine._registry.check_chaining(query)
        engine._inputs.registered(query, asked, data)
    except BaseException:
        give_up(engine, query, streams)
        raise
    engine._add(query, running)
    engine._reports.warn(query.plan)
    return query


def built(engine: Engine, compiled: CompiledQuery, data: StaticData, asked: Registration) -> tuple[Query, RunningQuery]:
    """A query that is to be added, or to be given up."""
    if asked.entailment is not None:
        compiled = compile_query(compiled, source=asked.source, ontology=ontology_of(data, engine.dictionary))
    limits = Limits(
        engine._options.max_text, report_for(compiled.plan, engine._reports.report), engine._counters.add_no_numbers
    )
    dataflow = Dataflow(
        compiled.plan,
        engine.dictionary,
        data,
        pool=engine._runner.pool,
        limits=limits,
        seed=asked.seed,
        by_clock=engine._clocks.follows(asked.clock, compiled.plan.streams),
    )
    try:
        query = Query(compiled, dataflow, engine, asked.name, asked.clock)
        by_clock = None if asked.clock is None else asked.clock == WALL
        return query, RunningQuery(dataflow, _numbered(engine, query.plan), query.delivery, by_clock=by_clock)
    except BaseException:
        # It would take part in steps.
        dataflow.detach()
        raise


def give_up(engine: Engine, query: Query | None, streams: int) -> None:
    """A query that was built, or began to be, is not added after all; before it there were so many streams."""
    if query is not None:
        assert query._dataflow is not None
        query._dataflow.detach()
        engine._inputs.given_up(query)
    engine._registry.forget_streams_after(streams)


def _numbered(engine: Engine, plan: Plan) -> list[int]:
    """The numbers of the streams that a plan reads, whose lateness the runner knows from now on."""
    numbers = engine._registry.numbers(plan)
    engine._lateness_of.update(zip(numbers, map(engine._options.lateness_at, plan.streams), strict=True))
    # A number may have been that of a stream of a query that was not registered after all.
    engine._drops.difference_update(numbers)
    engine._drops.update(
        number for number, stream in zip(numbers, plan.streams, strict=True) if engine._options.drops_duplicates(stream)
    )
    engine._clocks.know(numbers, plan.streams)
    return numbers
