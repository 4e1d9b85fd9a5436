"""What does NOW() in a filter cost? It is evaluated for every mapping in the window at every tick: the cost depends on
the content.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k ?a WHERE {
  STREAM <http://ex.org/s> [COUNT {window}] { ?k :p0 ?a } FILTER(?a < SECONDS(NOW()) * 1000000)
}"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, 10, (2_000,), batch=1_000, values_are_numbers=True)


CONTEST = by_window_size("now", QUERY, *map(setting, (100, 1_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
