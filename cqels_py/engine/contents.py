"""The data of queries now, as N-Quads: the triples in their windows, and their static data."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np

from cqels_py.batches.elements import Ids
from cqels_py.dataflow.window_contents import content, scans_of, unkept
from cqels_py.dictionary import Dictionary
from cqels_py.engine.query import Query
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    from cqels_py.engine.engine import Engine

_IN_A_PART = 1 << 16


@dataclass(frozen=True, slots=True)
class QueryWindow:
    """A window of a query. `patterns`: its triples match one of these. `unkept`: why they are not known, or None."""

    stream: str
    text: str
    patterns: tuple[str, ...]
    unkept: str | None


@dataclass(frozen=True, slots=True)
class WindowGraph:
    """A window, by its position in the query, under the name of a graph."""

    query: Query
    window: int
    iri: str


def windows_of(query: Query) -> list[QueryWindow]:
    """The windows of a query that is registered, in their order. UsageError for another query."""
    with query._host._lock:
        dataflow = query._dataflow
        if dataflow is None:
            raise UsageError("this query is no longer registered: it has no windows")
        return [
            QueryWindow(
                query.plan.streams[window.stream],
                window.text,
                tuple(dict.fromkeys(" ".join(scan.node.pattern) for scan in scans_of(dataflow, number))),
                unkept(dataflow, number),
            )
            for number, window in enumerate(query.plan.windows)
        ]


def static_graphs(engine: Engine, queries: Iterable[Query]) -> frozenset[str]:
    """The IRIs of the named graphs in the static data of queries."""
    with engine._lock:
        names = [np.unique(each._dataflow.static.quads[3]) for each in queries if each._dataflow is not None]
        found = np.unique(np.concatenate([np.empty(0, np.int64), *names]))
        terms = engine.dictionary.decode(found[found != 0])
    return frozenset(term[1:-1] for term in terms if term is not None and term.startswith("<"))


def as_n_quads(
    engine: Engine, graphs: Sequence[WindowGraph], static: Iterable[Query], named: Iterable[str], most: int
) -> list[bytes]:
    """The triples in windows at one instant, each window under its name, and the static default graphs of queries, in parts.

    `named`: the IRIs of the static named graphs that are wanted too.
    OverflowError if they are more than `most`. Elements that have been pushed are taken in before. The engine goes on while texts
    are made.
    """
    engine.flush()
    dictionary, held = engine.dictionary, _Held()
    names = [f"<{iri}>" for iri in named]
    with engine._lock:
        identifiers = dictionary.encode(names)
        for each in graphs:
            if each.query._dataflow is not None:
                held.add(f"<{each.iri}>", content(each.query._dataflow, each.window, dictionary))
        for query in static:
            if query._dataflow is not None:
                quads = query._dataflow.static.quads
                held.add("", quads[:3, quads[3] == 0])
                for name, identifier in zip(names, identifiers.tolist(), strict=True):
                    held.add(name, quads[:3, quads[3] == identifier])
        if held.count > most:
            raise OverflowError(held.count)
        dictionary.hold(held.live_ids)
    try:
        return [part for graph, triples in held.parts for part in _lines(triples, graph, dictionary)]
    finally:
        with engine._lock:
            dictionary.release_holder(held.live_ids)


class _Held:
    """Triples by graph, whose terms are not released meanwhile."""

    def __init__(self) -> None:
        self.parts: list[tuple[str, Ids]] = []
        self.count = 0

    def add(self, graph: str, triples: Ids) -> None:
        self.parts.append((graph, triples))
        self.count += triples.shape[1]

    def live_ids(self) -> list[Ids]:
        return [triples.reshape(-1) for _, triples in self.parts]


def _lines(triples: Ids, graph: str, dictionary: Dictionary) -> Iterable[bytes]:
    for start in range(0, triples.shape[1], _IN_A_PART):
        part = triples[:, start : start + _IN_A_PART]
        ids, places = np.unique(part, return_inverse=True)
        texts = np.array(dictionary.decode(ids), object)[places.reshape(part.shape)]
        yield "".join([f"{s} {p} {o} {graph} .\n" for s, p, o in texts.T.tolist()]).encode()
