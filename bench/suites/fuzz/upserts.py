"""Compares a table that is to equal the answer (`mode=upsert`) with the sum of the engine's changelog, at every commit.

The changelog itself is compared with pyoxigraph's answers elsewhere. The table is one of SQLite, whose statements for keys are those
of the other databases.
"""

from __future__ import annotations

import sqlite3
from collections import Counter
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import cqels_py
from bench.suites.fuzz.case import EX, Case
from bench.suites.fuzz.engines import compiled
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.formats.values import value_of
from cqels_py.plan.answer_key import answer_key

_BATCH = 3
_TABLES = "/dev/shm"
Terms = tuple[str | None, ...]
Values = tuple[str | None, ...]


class Answer:
    """The rows that stand, as terms, in the order in which they were written last."""

    def __init__(self, variables: tuple[str, ...], key: tuple[str, ...] | None) -> None:
        self._places = [variables.index(name) for name in key or ()]
        self._rows: dict[Terms, int] = {}

    def add(self, batch: ResultBatch, dictionary: Dictionary) -> None:
        """Results, retractions first within a tick."""
        rows = zip(*(dictionary.decode(column) for column in batch.columns), strict=True)
        for sign, row in zip(batch.sign.tolist(), rows, strict=True):
            count = self._rows.pop(row, 0) + sign
            if count:
                self._rows[row] = count

    def shown(self) -> Counter[Values]:
        """The rows of the table: one for each key, by its values, or all."""
        rows = [(_values(row), count) for row, count in self._rows.items()]
        if self._places:
            last = {tuple(row[place] for place in self._places): row for row, _ in rows}
            return Counter(last.values())
        counted: Counter[Values] = Counter()
        for row, count in rows:
            counted[row] += count
        return counted


def _values(row: Terms) -> Values:
    return tuple(None if term is None else value_of(term) for term in row)


def differences(case: Case, text: str) -> list[str]:
    """The lines of the first difference of the table; none if there is none, or the query has no changelog of rows."""
    if case.output != "CHANGELOG" or case.query.form == "CONSTRUCT":
        return []
    with TemporaryDirectory(dir=_TABLES if Path(_TABLES).is_dir() else None) as folder:
        return _differences(case, text, Path(folder) / "answer.db")


def _differences(case: Case, text: str, file: Path) -> list[str]:
    engine = cqels_py.Engine(batch=_BATCH, lateness=case.lateness, report=lambda error: None)
    found = compiled(text, True)
    query = engine.register(
        found,
        static=[list(case.static)] if case.static else [],
        static_graphs={name: list(triples) for name, triples in case.named},
    )
    key = answer_key(found.plan)
    answer = Answer(query.variables, key)
    query.subscribe_batches(lambda batch: answer.add(batch, engine.dictionary), ids=True)
    query.write_to(f"sqlite:{file}#answer?mode=upsert")
    streams = {window.stream: window.timed for window in case.windows}
    lines: list[str] = []
    with sqlite3.connect(file) as table:
        for number, element in enumerate(case.elements):
            if element.stream in streams:
                graph: dict[str, Any] = {} if element.graph is None else {"graph": element.graph}
                time = None if streams[element.stream] else element.time
                engine.push(EX + element.stream, list(element.triples), time=time, **graph)
            if not lines and number % _BATCH == _BATCH - 1:
                lines = _difference(table, query.variables, key, answer)
        engine.finish()
        lines = lines or _difference(table, query.variables, key, answer)
    table.close()
    engine.close()
    return lines


def _difference(table: Any, variables: tuple[str, ...], key: tuple[str, ...] | None, answer: Answer) -> list[str]:
    names = ", ".join([f'"{name}"' for name in variables] + (["1"] if key else ["_count"]))
    rows = table.execute(f"SELECT {names} FROM answer").fetchall()
    held: Counter[Values] = Counter()
    for *row, count in rows:
        held[tuple(row)] += count
    wanted = answer.shown()
    return [f"  only the table  {row} x {count}" for row, count in (held - wanted).items()] + [
        f"  only the answer {row} x {count}" for row, count in (wanted - held).items()
    ]
