"""The start of a service: while its engine replays what has been since the last snapshot, queries can be looked at and removed."""

from __future__ import annotations

import threading
from collections.abc import Collection
from typing import Any

from cqels_py.engine.durable.left_out import LeftOut
from cqels_py.errors import UsageError
from cqels_py.service.definitions import KeptQuery
from cqels_py.service.failures import Conflict, NotFound, Starting
from cqels_py.service.folder import QUERIES, Folder
from cqels_py.suggestions import unknown

NOT_YET = "the server is starting: it reads its folder"


class Start:
    """The queries that come back. `without`: names of those that do not; UsageError for one that is not in the folder."""

    def __init__(self, folder: Folder, without: Collection[str] = ()) -> None:
        self.folder = folder
        self._queries = {name: KeptQuery.from_plain(plain) for name, plain in folder.all(QUERIES)}
        for name in without:
            if name not in self._queries:
                raise UsageError(f"--without: {unknown('query', name, list(self._queries))}")
        self.without = frozenset(without)
        keys = {name: keys_of(name, kept) for name, kept in self._queries.items()}
        self.left_out = LeftOut(
            [key for name in without for key in keys[name]], {key for each in keys.values() for key in each}
        )
        self._changing = threading.Lock()
        self._is_over = False

    def figures(self) -> list[dict[str, Any]]:
        """The queries that come back as JSON."""
        return [self.figures_of(name) for name in list(self._queries)]

    def figures_of(self, name: str) -> dict[str, Any]:
        """A query that comes back as JSON. NotFound."""
        kept = self._queries.get(name)
        if kept is None:
            raise NotFound(unknown("query", name, list(self._queries)))
        return {"name": name, "state": "starting", **kept.definition.shown(), "generation": kept.generation}

    def remove(self, name: str) -> None:
        """Remove a query: a step that is replayed ends for it. NotFound; Conflict if others read its stream."""
        with self._changing:
            if self._is_over:
                raise Starting(NOT_YET)
            self.figures_of(name)
            kept = self._queries[name]
            try:
                for key in keys_of(name, kept):
                    self.left_out.add(key)
            except UsageError as error:
                raise Conflict(error.message) from None
            self.folder.remove(QUERIES, name)
            self.folder.remove_results(name)
            del self._queries[name]

    def end(self) -> None:
        """The engine is there, and the folder is about to be read: what is removed from now on waits for the service."""
        with self._changing:
            self._is_over = True


def keys_of(name: str, kept: KeptQuery) -> list[str]:
    """The names that the engine may have for a query: of its present text, and of one that has been replacing it."""
    return [key_of(name, generation) for generation in (kept.generation, kept.generation + 1)]


def key_of(name: str, generation: int) -> str:
    """The name that the engine has for a text of a query."""
    return f"{name}@{generation}"
