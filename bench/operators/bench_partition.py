"""How does the cost of a window with PARTITION BY depend on the number of its partitions?

The last three elements of each key; the "window size" of this benchmark is the number of keys.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k ?a WHERE {
  STREAM <http://ex.org/s> [COUNT 3 PARTITION BY ?k] { ?k :p0 ?a }
}"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, window, (MANY,), values_are_numbers=False)


CONTEST = by_window_size("partition", QUERY, *map(setting, (1_000, 10_000, 100_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
