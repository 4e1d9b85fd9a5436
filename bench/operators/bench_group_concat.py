"""How does the cost of GROUP_CONCAT depend on the window's size?

Ten values per group, whatever the window's size; each arrival builds the texts of the groups that it changes.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k (GROUP_CONCAT(?a) AS ?all) WHERE {
  STREAM <http://ex.org/s> [COUNT {window}] { ?k :p0 ?a }
} GROUP BY ?k"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, window // 10, (1_000_000,), batch=1_000, values_are_numbers=True)


CONTEST = by_window_size("group_concat", QUERY, *map(setting, (1_000, 10_000, 100_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
