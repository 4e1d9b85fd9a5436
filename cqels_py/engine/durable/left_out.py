"""Queries that do not come back from a checkpoint: their steps are not executed again."""

from __future__ import annotations

import weakref
from collections.abc import Collection, Iterable
from typing import TYPE_CHECKING

from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine
    from cqels_py.engine.query import Query


class LeftOut:
    """The queries that an engine leaves out while it goes on from a checkpoint. Other threads may add some meanwhile.

    `names`: theirs. `kept`: those that the program still has; then others are left out too, unless they construct a stream, which
    queries of before may have read.
    """

    def __init__(self, names: Iterable[str] = (), kept: Collection[str] | None = None) -> None:
        self._names = set(names)
        self._kept = kept
        self._engine: weakref.ref[Engine] | None = None

    def begin(self, engine: Engine) -> None:
        """This engine begins to go on from its checkpoint."""
        self._engine = weakref.ref(engine)

    def has(self, query: Query) -> bool:
        """Is this query left out?"""
        name = query.name
        return name in self._names or (self._kept is not None and name not in self._kept and query.form != "CONSTRUCT")

    def add(self, name: str) -> None:
        """Leave one more out: a step that evaluates it ends for it. For any thread. UsageError if others read its stream."""
        engine = None if self._engine is None else self._engine()
        query = None if engine is None else next((each for each in engine.queries if each.name == name), None)
        if engine is not None and query is not None:
            check_unread(engine, query, self)
        self._names.add(name)
        if engine is not None and query is not None:
            engine.stop(query)


def check_unread(engine: Engine, query: Query, left_out: LeftOut) -> None:
    """UsageError for a query whose stream others read that are not left out: they would miss what it has constructed."""
    if readers := [each for each in engine._registry.readers_of(query) if not left_out.has(each)]:
        read = ", ".join(str(each.name) for each in readers)
        raise UsageError(
            f"the query {query.name} cannot be left out, as {read} read the stream that it constructs: leave these out too"
        )
