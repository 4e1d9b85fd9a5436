"""From a data frame of Polars to a data frame: how late each airline has been leaving over the last hour.

python examples/data_frame.py [ROWS]
"""

from __future__ import annotations

import sys
from datetime import UTC, datetime, timedelta

import polars as pl

import cqels_py as cqels

EX = "http://ex.org/"
QUERY = """
PREFIX : <http://ex.org/>
SELECT ?airline (AVG(?delay) AS ?mean) (COUNT(*) AS ?departures)
WHERE { STREAM :departures [RANGE 1h] { ?flight :airline ?airline ; :delay ?delay } }
GROUP BY ?airline
"""


def departures(rows: int) -> pl.DataFrame:
    """A departure each minute, of three airlines in turn."""
    start = datetime(2024, 5, 1, 6, tzinfo=UTC)
    return pl.DataFrame(
        {
            "time": [start + timedelta(minutes=row) for row in range(rows)],
            "flight": [f"f{row}" for row in range(rows)],
            "airline": ["AA", "B6", "DL"] * (rows // 3) + ["AA", "B6", "DL"][: rows % 3],
            "delay": [row * 7 % 31 for row in range(rows)],
        }
    )


def main(rows: int) -> None:
    """Push a whole frame, and print the last rows of the results and the answer that stands."""
    with cqels.Engine() as engine:
        query = engine.register(QUERY)
        engine.push_frame(
            EX + "departures",
            departures(rows),
            subject=EX + "{flight}",
            time="time",
            columns={"airline": (EX + "airline", EX + "{airline}"), "delay": EX + "delay"},
        )
        results = query.to_polars(schema={"mean": "float64"})
        print(len(results), "results")
        answer = pl.from_arrow(query.current_arrow(schema={"mean": "float64"}))
        for airline, mean, count in answer.select("airline", "mean", "departures").sort("airline").rows():
            print(airline, round(mean, 2), count)


if __name__ == "__main__":
    main(int(sys.argv[1]) if len(sys.argv) > 1 else 600)
