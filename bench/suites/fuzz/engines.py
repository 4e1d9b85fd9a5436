"""Runs a case with the engine."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
import pyoxigraph as ox

import cqels_py
from bench.suites.fuzz.answers import Row, columns, parse_term, row_of
from bench.suites.fuzz.case import EX, Case
from cqels_py.batches.results import ResultBatch
from cqels_py.engine.compile import CompiledQuery, compile_query

BATCHES = (1, 3, None)
"""Elements that are processed together; None: all of them."""


@dataclass
class Delivered:
    """Signed rows with their times, in order; `late`: the number of dropped elements."""

    rows: list[tuple[int, int, Row]] = field(default_factory=list)
    late: int = 0


_BUILT = f"{EX}built"
_COPY = f"REGISTER RSTREAM <{EX}copy> AS SELECT ?s ?p ?o WHERE {{ STREAM <{_BUILT}> [COUNT 1] {{ ?s ?p ?o }} }}"


def run(case: Case, text: str, batch: int | None, *, graphs: bool = False) -> Delivered:
    """The engine's results; `graphs`: the triples that a CONSTRUCT feeds to a stream. CqelsError if the engine refuses
    the query.
    """
    engine = cqels_py.Engine(
        batch=batch or max(1, len(case.elements)), lateness=case.lateness, report=lambda error: None
    )
    query = engine.register(
        compiled(text, case.output == "CHANGELOG"),
        static=[list(case.static)] if case.static else [],
        static_graphs={name: list(triples) for name, triples in case.named},
    )
    names = [name[1:] for name in columns(case.query)]
    if graphs:
        engine.connect(query, _BUILT)
        query, names = engine.register(compiled(_COPY, False)), ["s", "p", "o"]
    delivered = Delivered()
    query.subscribe_batches(lambda found: delivered.rows.extend(_rows(found, names, engine.dictionary)), ids=True)
    streams = {window.stream for window in case.windows}
    timed = {window.stream for window in case.windows if window.timed}
    for element in case.elements:
        if element.stream in streams:
            graph: dict[str, Any] = {} if element.graph is None else {"graph": element.graph}
            time = None if element.stream in timed else element.time
            engine.push(EX + element.stream, list(element.triples), time=time, **graph)
    engine.finish()
    delivered.late = engine.statistics.late
    return delivered


@lru_cache(maxsize=16)
def compiled(text: str, changelog: bool) -> CompiledQuery:
    """Compiled once for all data sets of a query: compiling takes longer than a small run."""
    return compile_query(text, changelog=changelog)


def _rows(batch: ResultBatch, names: list[str], dictionary: Any) -> Iterator[tuple[int, int, Row]]:
    held = dict(zip(batch.variables, batch.columns, strict=True))
    ids = np.stack([held[name] for name in names], axis=1) if len(batch) else np.empty((0, len(names)), np.int64)
    distinct, place = np.unique(ids, return_inverse=True)
    terms = [None if each is None else _term(each) for each in dictionary.decode(distinct)]
    places = place.reshape(ids.shape).tolist()
    for time, sign, row in zip(batch.time.tolist(), batch.sign.tolist(), places, strict=True):
        yield time, sign, row_of([terms[at] for at in row])


@lru_cache(maxsize=4096)
def _term(text: str) -> Any:
    # pyoxigraph's parser relabels blank nodes.
    return ox.BlankNode(text[2:]) if text.startswith("_:") else parse_term(text)
