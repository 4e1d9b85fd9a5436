"""The content of an engine's snapshots, as named values.

durable       options, registrations, counts, positions: as JSON
companion     the values of a program beside the engine
engine/…      the engine's own state
query/<n>/…   static data, waiting results and dataflow of each query, in order of registration
"""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from copy import deepcopy
from dataclasses import asdict
from pathlib import Path
from typing import TYPE_CHECKING, Any, cast

import numpy as np

from cqels_py.batches.results import ResultBatch
from cqels_py.dataflow.saved_state import dictionary_state, restore_dictionary
from cqels_py.engine.feeding import plain
from cqels_py.errors import UsageError
from cqels_py.runners.chaining import ConstructedStream
from cqels_py.state.named_values import NamedValues, restore, values_of

if TYPE_CHECKING:
    from cqels_py.engine.durable.companion import Companion
    from cqels_py.engine.durable.durable_state import DurableState
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query

HEADER, COMPANION, ENGINE, QUERY = "durable", "companion", "engine/", "query/"


def state_of(
    engine: Engine, durable: DurableState, options: str, companion: Companion | None
) -> dict[str, NamedValues]:
    """The state between two steps. Arrays are no copies. `options`: those of the engine that decide results, as JSON."""
    queries = engine.queries
    # Those of one number have the same contents.
    scans = [(dataflow.shared_scans, dataflow.origin) for dataflow in map(dataflow_of, queries)]
    header = {
        "options": options,
        "streams": engine._registry.all_streams,
        "id": durable.id,
        "registered": durable.registered,
        "ordinals": [durable.ordinals[query] for query in queries],
        "steps": durable.steps,
        "queries": [durable.registrations[query].plain() for query in queries],
        "counts": [query.delivery.count for query in queries],
        "steps_before": [durable.steps_before[query] for query in queries],
        "scans": [scans.index(each) for each in scans],
        "files": asdict(durable.files),
        "once": engine._once.plain(),
        "declared": engine._declared,
        "fed": plain(engine._fed),
        "rejects": engine._rejects.sync(),
        "failed": durable.failed,
        "connections": [[queries.index(query), stream] for query, stream in durable.connections],
    }
    state: dict[str, NamedValues] = {HEADER: {"json": json.dumps(header)}}
    if companion is not None:
        state[COMPANION] = companion.state()
    state |= {ENGINE + part: values for part, values in state_of_engine(engine).items()}
    # Those that were counted already, and are logged after this, are counted again after a restart.
    state[f"{ENGINE}pushed"]["elements"], state[f"{ENGINE}terms"]["documents"] = durable.scopes
    for place, query in enumerate(queries):
        state |= {f"{QUERY}{place}/{part}": values for part, values in _state_of_query(engine, query).items()}
    return state


def check_kind(folder: Path, state: Mapping[str, NamedValues]) -> None:
    """UsageError for a snapshot that is not one of an engine: runs over files once kept another kind."""
    if HEADER not in state:
        raise UsageError(
            f"{folder} is the checkpoint of a run over files by an earlier version, with which this one cannot go on: let that "
            "version complete it, or remove the folder, and the run begins anew"
        )


def copied(state: Mapping[str, NamedValues]) -> dict[str, NamedValues]:
    """The state as it is now, whatever comes. Arrays that several queries have are copied once."""
    made: dict[int, object] = {}
    return {part: {name: deepcopy(value, made) for name, value in values.items()} for part, values in state.items()}


def state_of_engine(engine: Engine) -> dict[str, NamedValues]:
    """Beside those of the queries. `pushed`: the number of pushed elements, from which their blank nodes get their scopes."""
    return {
        "terms": dictionary_state(engine.dictionary),
        "pushed": {"elements": engine._elements},
        "reports": values_of(engine._reports),
        **engine._runner.state(),
    }


def restore_engine(engine: Engine, state: dict[str, NamedValues]) -> None:
    """Give the state of another engine to one with the same options; then its queries are to be registered, and restored."""
    restore_dictionary(engine.dictionary, state["terms"])
    engine._elements = cast(int, state["pushed"]["elements"])
    restore(engine._reports, state["reports"])
    engine._runner.restore(state)


def _state_of_query(engine: Engine, query: Query) -> dict[str, NamedValues]:
    dataflow = dataflow_of(query)
    state: dict[str, NamedValues] = {}
    if isinstance(feed := engine._queries[query].feed, ConstructedStream):
        state["construction"] = values_of(feed.construction)
    state["static"] = {"quads": dataflow.static.quads, "names": dataflow.static.names}
    state["untaken"] = _saved_results(query.untaken(), len(query.variables))
    return {**state, **{f"dataflow/{part}": values for part, values in dataflow.state().items()}}


def dataflow_of(query: Query) -> Any:
    """The dataflow of a query that has not been closed."""
    assert query._dataflow is not None
    return query._dataflow


def below(prefix: str, state: Mapping[str, NamedValues]) -> dict[str, NamedValues]:
    """The parts of a state whose paths begin so, without that.

    >>> below("query/0/", {"query/0/static": {"names": []}, "durable": {}})
    {'static': {'names': []}}
    """
    return {part.removeprefix(prefix): values for part, values in state.items() if part.startswith(prefix)}


def _saved_results(batches: Iterable[ResultBatch], width: int) -> NamedValues:
    """Results that nobody has got, one batch behind the other. `tick` -1: the batch has none."""
    given = list(batches)
    columns = [np.stack(batch.columns) if width else np.zeros((0, len(batch)), np.int64) for batch in given]
    ticks = [np.full(len(batch), -1, np.int32) if batch.tick is None else batch.tick for batch in given]
    return {
        "counts": [len(batch) for batch in given],
        "numbers": [batch.number for batch in given],
        "time": np.concatenate([np.zeros(0, np.int64), *(batch.time for batch in given)]),
        "sign": np.concatenate([np.zeros(0, np.int8), *(batch.sign for batch in given)]),
        "tick": np.concatenate([np.zeros(0, np.int32), *ticks]),
        "columns": np.concatenate([np.zeros((width, 0), np.int64), *columns], axis=1),
    }


def restored_results(values: NamedValues, query: Query) -> Iterable[ResultBatch]:
    """The results that `state_of` has saved."""
    time, sign, tick, columns = (np.array(values[name]) for name in ("time", "sign", "tick", "columns"))
    start = 0
    for count, number in zip(cast("list[int]", values["counts"]), cast("list[int]", values["numbers"]), strict=True):
        rows = slice(start, start + count)
        ticks = None if tick[start] < 0 else tick[rows]
        yield ResultBatch(query.variables, time[rows], sign[rows], tuple(columns[:, rows]), ticks, number)
        start += count
