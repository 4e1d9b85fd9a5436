"""How does the cost of ORDER BY with LIMIT depend on the window's size?

The ten largest of random values: the larger the window, the fewer arrivals enter the top ten.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k ?a WHERE {
  STREAM <http://ex.org/s> [COUNT {window}] { ?k :p0 ?a }
} ORDER BY DESC(?a) LIMIT 10"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, window, (1_000_000_000,), values_are_numbers=True)


CONTEST = by_window_size("top", QUERY, *map(setting, (1_000, 10_000, 100_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
