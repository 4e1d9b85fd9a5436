"""Other static data for a query that runs."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import TYPE_CHECKING

from cqels_py.engine.turns import in_turn
from cqels_py.errors import UsageError
from cqels_py.interrupts import undisturbed
from cqels_py.sources.static import StaticSource, load_static_data, ontology_of

if TYPE_CHECKING:
    from cqels_py.dataflow.static_data import StaticData
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query


@in_turn
def update_static(
    engine: Engine,
    query: Query,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
) -> None:
    """Read the data, and replace that of the query behind all elements that were pushed; see `Engine.update_static`."""
    engine._steps.check_open()
    engine._flush()
    engine._registry.check(query)
    check_replaceable(query, "it holds for past results, too; register the query anew")
    static = list(static) if isinstance(static, Iterator) else static
    if not replace_static(engine, query, other_static_data(engine, query, static, graphs)):
        # While the data was read.
        engine._registry.check(query)
    with engine._lock:
        if query in engine._queries:
            engine._refresh.keep(query, static, graphs)


def check_replaceable(query: Query, instead: str) -> None:
    """UsageError for a query whose static data cannot be replaced, and to do `instead`."""
    plan = query.plan
    kept_for = "EVENT outside of MATCH" if plan.event_memory else None if plan.rules is None else "rules"
    if kept_for is not None:
        raise UsageError(f"the static data of a query with {kept_for} cannot be replaced: {instead}")


def other_static_data(
    engine: Engine,
    query: Query,
    static: Iterable[StaticSource] | StaticSource,
    graphs: Mapping[str, StaticSource] | None,
) -> StaticData:
    """Other static data for a query. UsageError if it would have to be rewritten otherwise for entailment."""
    data = load_static_data(query.plan, static, graphs, engine.dictionary, engine._reports.json_ld())
    ontology = query.compiled.ontology
    if ontology is not None and ontology_of(data, engine.dictionary) != ontology:
        raise UsageError(
            "the new data has other classes or properties than those by which the query was rewritten for entailment: "
            "register the query anew"
        )
    return data


@undisturbed
def replace_static(engine: Engine, query: Query, data: StaticData) -> bool:
    """A step of its own, in which the query gets the data. False: it is no longer registered, and nothing has happened."""
    # A subscriber in another thread, which needs no turn, may unregister it up to here.
    with engine._lock:
        running = engine._queries.get(query)
        if running is None:
            return False
        engine._inputs.static_replaced(query, data)
        with engine._steps:
            engine._runner.update_static(running, data)
        return True
