"""The outcome of a benchmark: rates by setting and competitor, as a table and as JSON."""

from __future__ import annotations

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass
from pathlib import Path
from statistics import median
from typing import Any

from rich.table import Table

from bench.contest import BY_HAND, ENGINE, IN_CPP, SAME_WORK, same_work_as


@dataclass(frozen=True)
class Rate:
    """One competitor at one setting: arrivals per second in each round, and new results per arrival."""

    setting: str
    competitor: str
    rates: list[float]
    results_per_arrival: float

    @property
    def median(self) -> float:
        return median(self.rates)

    @property
    def slowest(self) -> float:
        return min(self.rates)

    @property
    def fastest(self) -> float:
        return max(self.rates)


@dataclass(frozen=True)
class Report:
    """All rates of one benchmark, with place and date."""

    name: str
    question: str
    date: str
    quick: bool
    machine: dict[str, Any]
    versions: dict[str, str]
    rates: list[Rate]

    @property
    def settings(self) -> list[str]:
        return list(dict.fromkeys(rate.setting for rate in self.rates))

    def at(self, setting: str) -> dict[str, Rate]:
        """The rates at a setting, by competitor."""
        return {rate.competitor: rate for rate in self.rates if rate.setting == setting}

    def ratio(self, setting: str, competitor: str, *, to: str = BY_HAND) -> float | None:
        """The ratio of a competitor's median rate to another's; without a name, to that of the kernel by hand."""
        at = self.at(setting)
        return at[competitor].median / at[to].median if to in at and competitor in at else None

    @staticmethod
    def read(path: Path) -> Report:
        """A report that `write` has written."""
        written = json.loads(path.read_text())
        del written["summary"]
        return Report(**{**written, "rates": [Rate(**rate) for rate in written["rates"]]})

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        summary = {
            setting: {
                "engine_to_by_hand": self.ratio(setting, ENGINE),
                "engine_to_cpp": self.ratio(setting, ENGINE, to=IN_CPP),
                "engine_to_same_work": self.ratio(setting, ENGINE, to=SAME_WORK),
                "arrivals_per_second": {
                    name: {"median": rate.median, "slowest": rate.slowest, "fastest": rate.fastest}
                    for name, rate in self.at(setting).items()
                },
            }
            for setting in self.settings
        }
        path.write_text(json.dumps({**asdict(self), "summary": summary}, indent=1) + "\n")
        return path


def read_rates(path: Path) -> list[Rate]:
    """The rates in a file of `pytest --benchmark-json`."""
    settings = json.loads(path.read_text())["benchmarks"]
    return [Rate(**rates) for setting in settings for rates in setting["extra_info"]["rates"]]


def table(reports: Iterable[Report]) -> Table:
    made = Table("competitor", title="arrivals per second, and results per arrival", collapse_padding=True)
    for heading in ("median", "slowest … fastest", "/ numba", "/ C++", "/ same", "results"):
        made.add_column(heading, justify="right", no_wrap=True)
    for report in reports:
        for setting in report.settings:
            made.add_section()
            made.add_row(f"{report.name}, {setting}", style="bold")
            for name, rate in report.at(setting).items():
                yardsticks = (BY_HAND, IN_CPP, same_work_as(name))
                ratios = [report.ratio(setting, name, to=yardstick) for yardstick in yardsticks]
                made.add_row(
                    f"  {name}",
                    short(rate.median),
                    f"{short(rate.slowest)} … {short(rate.fastest)}",
                    *("" if ratio is None else f"{ratio:.2g}" for ratio in ratios),
                    f"{rate.results_per_arrival:.3g}",
                )
    return made


def short(rate: float) -> str:
    """A rate with three digits.

    >>> short(1234567.0), short(98765.0), short(123.4)
    ('1.23 M', '98.8 k', '123')
    """
    for size, unit in ((1e6, " M"), (1e3, " k")):
        if rate >= size:
            digits = max(0, 2 - (len(str(int(rate / size))) - 1))
            return f"{rate / size:.{digits}f}{unit}"
    return f"{rate:.3g}"
