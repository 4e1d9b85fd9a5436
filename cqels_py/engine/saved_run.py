"""The state of an engine with one query between two parts of a run, and back into a new engine."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import cast

from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Query
from cqels_py.engine.rejects import MALFORMED
from cqels_py.errors import UsageError
from cqels_py.state.named_values import NamedValues

_ENGINE, _QUERY, _REJECTS = "engine/", "query/", "rejects"


def saved(engine: Engine, query: Query) -> dict[str, NamedValues]:
    """The state between two parts. Arrays are not copies: write them before the next part.

    UsageError for an engine that has ended or failed.
    """
    engine._steps.check_open()
    dataflow = query._dataflow
    if dataflow is None:
        raise UsageError("the query has been closed, and has no state")
    return {
        _REJECTS: {"length": engine._rejects.sync()},
        **{_ENGINE + part: values for part, values in engine._state().items()},
        **{_QUERY + part: values for part, values in dataflow.state().items()},
    }


def restore_engine(engine: Engine, state: Mapping[str, NamedValues]) -> None:
    """Give a new engine the state, before its query is registered and its sources are opened, in the order of the first time."""
    engine._restore(_below(_ENGINE, state))
    engine.dictionary.number_documents_after(0)
    rejected = engine.statistics.rejected
    # They are met again when the files are read again.
    engine._reports.known = {stream: count for (stream, reason), count in rejected.items() if reason == MALFORMED}


def begin_rejects(engine: Engine, path: Path, state: Mapping[str, NamedValues] | None) -> None:
    """Write the rejects of a new engine to a file, behind those of the state, if there is one, before that is restored.

    StorageError for a file that has not got all of them, UsageError for one that cannot be written.
    """
    length = 0 if state is None else state.get(_REJECTS, {}).get("length", 0)
    engine._rejects.begin(path, cast(int, length))


def restore_query(query: Query, state: Mapping[str, NamedValues]) -> None:
    """Give the query of a restored engine its state."""
    assert query._dataflow is not None
    query._dataflow.restore(_below(_QUERY, state))


def process_at_once(engine: Engine) -> None:
    """No elements wait for a boundary of a window, so that steps do not depend on the instants at which states are taken."""
    engine._runner.process_at_once()


def expect_run(engine: Engine) -> None:
    """Until `run` is called, time does not follow the clock."""
    engine._inputs.expects_run = True


def end_of_input(engine: Engine) -> None:
    """Deliver the results that `finish` would; the state can still be saved."""
    engine._end_input()


def _below(prefix: str, state: Mapping[str, NamedValues]) -> dict[str, NamedValues]:
    return {part.removeprefix(prefix): values for part, values in state.items() if part.startswith(prefix)}
