"""How does the cost of a correlated NOT EXISTS depend on the windows' size?

The filter inside compares with the outer mapping: one partner per mapping on average, half of which pass it.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k ?a WHERE {
  STREAM <http://ex.org/s> [COUNT {window}] { ?k :p0 ?a FILTER NOT EXISTS { ?k :p1 ?b FILTER(?b > ?a) } }
}"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, window, (1_000, 1_000), values_are_numbers=True)


CONTEST = by_window_size("not_exists", QUERY, *map(setting, (1_000, 10_000, 100_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
