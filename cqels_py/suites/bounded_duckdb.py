"""DuckDB on the question of `cqels bench bounded`: it is asked anew over all events so far."""

from __future__ import annotations

import time
from importlib import import_module
from typing import Any

from cqels_py.suites.bounded_events import LEVELS, READING, RESET, THRESHOLD, Curve, Events, Point, parts, term

Answer = dict[str, str]

JOIN = f"""SELECT b.value, COUNT(*) FROM events a, events b, events c
WHERE a.kind = {READING} AND b.kind = {THRESHOLD} AND c.kind = {RESET} AND b.value BETWEEN 1 AND {LEVELS}
  AND a.moment > b.moment AND b.moment > c.moment AND a.value > b.value
GROUP BY b.value"""
"""The query as it is."""

_PAIRS = ", ".join(
    f"SUM(CASE WHEN kind = {THRESHOLD} AND value = {level} THEN resets ELSE 0 END) OVER (ORDER BY moment) AS pairs{level}"
    for level in range(1, LEVELS + 1)
)
_LEVELS = " UNION ALL ".join(
    f"SELECT {level}, SUM(pairs{level}) FROM pairs WHERE kind = {READING} AND value > {level}"
    for level in range(1, LEVELS + 1)
)
RUNNING_SUMS = f"""WITH resets AS (
  SELECT *, SUM(CASE WHEN kind = {RESET} THEN 1 ELSE 0 END) OVER (ORDER BY moment) AS resets FROM events),
pairs AS (SELECT *, {_PAIRS} FROM resets)
{_LEVELS}"""
"""The same as running sums, by someone who knows the counters; times differ."""


def measure(name: str, question: str, events: Events, batch: int) -> tuple[Curve, Answer]:
    """The times, and the last answer by level. ImportError if DuckDB is not installed."""
    _run(question, Events(batch, 1), batch)
    points, answer = _run(question, events, batch)
    return Curve(name, batch, tuple(points)), answer


def _run(question: str, events: Events, batch: int) -> tuple[list[Point], Answer]:
    database: Any = import_module("duckdb").connect()
    database.execute("CREATE TABLE events (moment BIGINT, kind BIGINT, value BIGINT)")
    points: list[Point] = []
    found: list[tuple[int, int | None]] = []
    since, began = 0, time.perf_counter()
    for first, last, is_point in parts(len(events), batch):
        database.register("arrived", events.numbers(first, last))
        database.execute("INSERT INTO events SELECT * FROM arrived")
        found = database.execute(question).fetchall()
        if is_point:
            points.append(Point(last, (last - since) / (time.perf_counter() - began), None))
            since, began = last, time.perf_counter()
    return points, {term(level): term(int(total)) for level, total in found if total}
