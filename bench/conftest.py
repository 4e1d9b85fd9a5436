"""How pytest finds and sets up benchmarks: a file bench_*.py has a CONTEST and a test that measures each of its meetings."""

from __future__ import annotations

import pytest

from bench.contest import Timing


def pytest_addoption(parser: pytest.Parser) -> None:
    group = parser.getgroup("bench")
    group.addoption("--quick", action="store_true", help="tiny sizes: does everything run?")
    group.addoption("--rounds", type=int, default=5, help="rounds that a median is taken over (default 5)")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("python_files", "bench_*.py")


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "meeting" in metafunc.fixturenames:
        meetings = list(metafunc.module.CONTEST.meetings(quick=metafunc.config.getoption("quick")))
        metafunc.parametrize("meeting", meetings, ids=str)


@pytest.fixture
def timing(request: pytest.FixtureRequest) -> Timing:
    return Timing(request.config.getoption("rounds"), 0.05 if request.config.getoption("quick") else 1.0)
