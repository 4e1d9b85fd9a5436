"""How does the cost of OPTIONAL depend on the windows' size?

One partner per mapping on average, whatever the size: rows change between unbound and bound as partners arrive and
expire.
"""

from __future__ import annotations

from pytest_benchmark.fixture import BenchmarkFixture

from bench.arrivals import MANY, Setting
from bench.contest import Meeting, Timing
from bench.queries import by_window_size

QUERY = """SELECT ?k ?a ?b WHERE {
  STREAM <http://ex.org/s> [COUNT {window}] { ?k :p0 ?a OPTIONAL { ?k :p1 ?b } }
}"""


def setting(window: int) -> Setting:
    return Setting(f"window {window:,}", window, window, (MANY, MANY), values_are_numbers=False)


CONTEST = by_window_size("optional", QUERY, *map(setting, (1_000, 10_000, 100_000)), quick=setting(50))


def test_rate(benchmark: BenchmarkFixture, meeting: Meeting, timing: Timing) -> None:
    meeting.measure(benchmark, timing)
