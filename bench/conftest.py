"""How pytest collects benchmarks: a file bench_*.py has a CONTEST and a test that measures each of its meetings."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, cast

import pytest
from pytest_benchmark.stats import Stats

from bench.contest import Timing


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bench")
    group.addoption("--quick", action="store_true", help="tiny sizes, to test that everything runs")
    group.addoption("--rounds", type=int, default=5, help="number of rounds for the median (default 5)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "meeting" in metafunc.fixturenames:
        meetings = list(metafunc.module.CONTEST.meetings(quick=metafunc.config.getoption("quick")))
        metafunc.parametrize("meeting", meetings, ids=str)


@pytest.fixture
def timing(request: pytest.FixtureRequest) -> Timing:
    return Timing(request.config.getoption("rounds"), 0.05 if request.config.getoption("quick") else 1.0)


def pytest_benchmark_group_stats(benchmarks: Sequence[dict[str, Any]]) -> list[tuple[str, list[dict[str, Any]]]]:
    """Tables of pytest-benchmark: one per setting, a row for each competitor, times of one arrival, and arrivals per second."""
    now = [
        bench for bench in benchmarks if bench["path"] is None
    ]  # Files to compare with have the rounds of all competitors in one.
    return [(bench["group"], [bench | _row(rates) for rates in bench["extra_info"]["rates"]]) for bench in now]


def _row(rates: dict[str, Any]) -> dict[str, Any]:
    times: Any = cast(Any, Stats)()  # It has no types.
    for rate in rates["rates"]:
        times.update(1 / rate)
    return {"name": rates["competitor"], **times.as_dict()}
