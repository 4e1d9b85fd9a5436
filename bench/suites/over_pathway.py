"""Pathway as a contender: an incremental engine for tables. Its user supplies inputs row by row, including removals."""

from __future__ import annotations

import threading
from importlib import import_module
from queue import SimpleQueue
from typing import Any

from bench.suites.contenders import OverNumbers, Question
from bench.suites.observations import Int64

_PATIENCE = 60.0
"""Seconds to wait for an answer."""
_NEWEST = -1
"""A pseudo-sensor: its value is the number of the newest processed observation."""
_Row = tuple[int, int, int]


class Pathway(OverNumbers):
    """A join of five tables with a groupby, in a thread of Pathway. A step is one commit, and is over when its changes
    have arrived.
    """

    name = "Pathway"

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self._commits: SimpleQueue[tuple[list[_Row], list[_Row]] | None] = SimpleQueue()
        self._done = threading.Event()
        self._answer: dict[int, float] = {}
        self._expected = -1.0
        self._build()

    def _build(self) -> None:
        pw: Any = import_module("pathway")

        class Triple(pw.Schema):  # type: ignore[misc]
            o: int = pw.column_definition(primary_key=True)
            p: int = pw.column_definition(primary_key=True)
            v: int

        commits = self._commits

        class Source(pw.io.python.ConnectorSubject):  # type: ignore[misc]
            def run(self) -> None:
                while (commit := commits.get()) is not None:
                    come, gone = commit
                    for o, p, v in come:
                        self.next(o=o, p=p, v=v)
                    for o, p, v in gone:
                        self.delete(o=o, p=p, v=v)
                    self.commit()

        # Otherwise the tables of an earlier contender would run again.
        pw.internals.parse_graph.G.clear()
        triples = pw.io.python.read(Source(), schema=Triple, autocommit_duration_ms=None)
        joined: Any = None
        for number, each in enumerate(self.question.properties):
            mine = triples.filter(triples.p == number)
            mine = mine.select(mine.o, **{each.name: mine.v})
            if joined is None:
                joined = mine
            else:
                kept = [name for name in ("o", "sensor", "result") if name in joined.column_names()]
                new = {each.name: mine[each.name]} if each.name == "result" else {}
                joined = joined.join(mine, joined.o == mine.o).select(*(joined[name] for name in kept), **new)
        reducer = pw.reducers.avg(joined.result) if self.question.aggregate == "AVG" else pw.reducers.count()
        answer = joined.groupby(joined.sensor).reduce(joined.sensor, value=pw.cast(float, reducer))
        # A commit may leave the answer unchanged, but this row changes at each.
        newest = triples.reduce(sensor=_NEWEST, value=pw.cast(float, pw.reducers.max(triples.o)))
        told = pw.Table.concat_reindex(answer, newest)
        pw.io.subscribe(told, on_change=self._change, on_time_end=self._time_end)
        quiet = {"monitoring_level": pw.MonitoringLevel.NONE}
        self._thread = threading.Thread(target=pw.run, kwargs=quiet, daemon=True)
        self._thread.start()

    def _change(self, key: Any, row: dict[str, Any], time: int, is_addition: bool) -> None:
        sensor, value = row["sensor"], row["value"]
        if is_addition:
            self._answer[sensor] = value
        elif self._answer.get(sensor) == value:
            del self._answer[sensor]

    def _time_end(self, time: int) -> None:
        if self._answer.get(_NEWEST) == self._expected:
            self._done.set()

    def update(self, prepared: Int64) -> None:
        before = self.triples
        super().update(prepared)
        gone = before[:, : before.shape[1] + prepared.shape[1] - self.triples.shape[1]]
        arrived = prepared[:, -self.triples.shape[1] :]
        self._done.clear()
        self._expected = float(prepared[0, -1])
        self._commits.put((list(zip(*arrived.tolist(), strict=True)), list(zip(*gone.tolist(), strict=True))))
        if not self._done.wait(_PATIENCE):
            raise TimeoutError(f"Pathway gave no answer within {_PATIENCE:.0f} s")

    def rows(self) -> Any:
        found = {sensor: value for sensor, value in self._answer.items() if sensor != _NEWEST}
        return list(found), list(found.values())

    def answers(self) -> Any:
        self._commits.put(None)
        self._thread.join(_PATIENCE)
        return super().answers()
