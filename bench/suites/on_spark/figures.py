"""All figures of the Spark suite, and their tables."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import asdict, dataclass, field
from statistics import median
from typing import Any

import numpy as np
from rich.table import Table

from bench.report import short
from bench.suites.on_spark.placing import Placed
from bench.suites.on_spark.rebuilding import Rebuilding
from bench.suites.on_spark.replication import Copies
from bench.suites.on_spark.tasks import TaskCost
from bench.suites.on_spark.tasks import table_of as table_of_tasks
from bench.suites.scale_out import Cost, table_of

LOCAL = "local runner"
IDLE = "idle tasks on Spark"
NET = "spark, 2 cores, files in tasks, net"
"""The query with `net=True`, whose files are read in the tasks."""


@dataclass(slots=True)
class Case:
    """One competitor at micro-batches of so many rows. `rates`: rows per second of each round; `seconds`: of each
    micro-batch of all rounds.
    """

    rows: int
    competitor: str
    rates: list[float] = field(default_factory=list)
    seconds: list[float] = field(default_factory=list)

    def add(self, seconds: list[float]) -> None:
        """Another round."""
        self.rates.append(self.rows * len(seconds) / sum(seconds))
        self.seconds += seconds

    @property
    def median(self) -> float:
        return median(self.rates)

    def milliseconds(self, percent: float) -> float:
        return float(np.percentile(self.seconds, percent)) * 1000


@dataclass(frozen=True, slots=True)
class Figures:
    """`rebuilt`: by competitor, the fraction of tasks that had to read the state back; `placed`: that on clusters; `costs`: of more
    parts; `tasks`: of the package's part of tasks."""

    cases: list[Case]
    rebuilt: dict[str, float]
    rebuilding: Rebuilding
    paper: list[Copies]
    counted: list[Copies]
    placed: list[Placed] = field(default_factory=list)
    costs: list[Cost] = field(default_factory=list)
    tasks: list[TaskCost] = field(default_factory=list)

    def case(self, rows: int, competitor: str) -> Case:
        return next(case for case in self.cases if (case.rows, case.competitor) == (rows, competitor))

    def sizes(self) -> list[int]:
        return list(dict.fromkeys(case.rows for case in self.cases))

    def competitors(self) -> list[str]:
        return list(dict.fromkeys(case.competitor for case in self.cases))

    def ratio(self, case: Case) -> float:
        """The ratio of the case's median rate to the local runner's."""
        return case.median / self.case(case.rows, LOCAL).median

    def as_plain(self) -> dict[str, Any]:
        """For JSON: all rounds, and the figures derived from them."""
        cases = [
            {
                **asdict(case),
                "rate": {"median": case.median, "slowest": min(case.rates), "fastest": max(case.rates)},
                "milliseconds": {"p50": case.milliseconds(50), "p99": case.milliseconds(99)},
                "to_local": self.ratio(case),
            }
            for case in self.cases
        ]
        copies = {"on_paper": list(map(asdict, self.paper)), "counted": list(map(asdict, self.counted))}
        return {
            "cases": cases,
            "rebuilt": self.rebuilt,
            "rebuilding": asdict(self.rebuilding),
            "replication": copies,
            "cluster": list(map(asdict, self.placed)),
            "parts": list(map(asdict, self.costs)),
            "tasks": list(map(asdict, self.tasks)),
        }

    def tables(self) -> Iterator[Table]:
        yield self._rates()
        yield self._rebuilding()
        yield self._copies()
        if self.placed:
            yield self._placed()
        if self.costs:
            yield table_of(self.costs)
        if self.tasks:
            yield table_of_tasks(self.tasks)

    def _placed(self) -> Table:
        made = Table("executors", title="A standalone cluster of two workers", title_justify="left")
        for heading in ("parts", "micro-batches", "states read back", "caught up"):
            made.add_column(heading, justify="right", no_wrap=True)
        for each in self.placed:
            where = "two on one host" if each.hosts == 1 else "one on each of two hosts"
            told = [f"{each.read_backs:.1%}", f"{each.caught_up:.1%}"]
            made.add_row(where, str(each.partitions), str(each.micro_batches), *told)
        return made

    def _rates(self) -> Table:
        made = Table(
            "rows a micro-batch", title="The same query and data, from files to rows of results", title_justify="left"
        )
        for heading in ("rows/s", "slowest … fastest", "p50 ms", "p99 ms", "/ local"):
            made.add_column(heading, justify="right", no_wrap=True)
        for size in self.sizes():
            made.add_section()
            made.add_row(f"{size:,}", style="bold")
            for case in (self.case(size, name) for name in self.competitors()):
                made.add_row(
                    f"  {case.competitor}",
                    short(case.median),
                    f"{short(min(case.rates))} … {short(max(case.rates))}",
                    f"{case.milliseconds(50):,.0f}",
                    f"{case.milliseconds(99):,.0f}",
                    f"{self.ratio(case):.2g}",
                )
        told = [f"{name}: {part:.0%} of the tasks had to read the state back" for name, part in self.rebuilt.items()]
        made.caption, made.caption_justify = "\n".join(told), "left"
        return made

    def _rebuilding(self) -> Table:
        found = self.rebuilding
        title = f"A micro-batch of {found.rows:,} rows over a window of {found.window:,}, one part"
        made = Table("its state is", title=title, title_justify="left")
        for heading in ("ms", "lowest … highest", "snapshot MB", "log MB"):
            made.add_column(heading, justify="right", no_wrap=True)
        for name, seconds in (("at hand", found.hot), ("read back", found.cold)):
            ms = [1000 * each for each in seconds]
            read = ("", "") if name == "at hand" else (_spread(found.snapshot_mb), _spread(found.log_mb))
            made.add_row(name, f"{median(ms):,.0f}", f"{min(ms):,.0f} … {max(ms):,.0f}", *read)
        return made

    def _copies(self) -> Table:
        title = "Copies of a triple by shares of variables, and a partition's fraction of the triples: by the formula, and counted"
        made = Table("patterns", title=title, title_justify="left")
        for heading in ("parts", "shares", "copies", "counted", "a part", "busiest"):
            made.add_column(heading, justify="right", no_wrap=True)
        for shape in dict.fromkeys(each.shape for each in self.counted):
            made.add_section()
            shown = [each for each in self.counted if each.shape == shape]
            shown += [each for each in self.paper if each.shape == shape and each.partitions in (64, 1_000)]
            for each in shown:
                made.add_row(
                    shape,
                    f"{each.partitions:,}",
                    each.axes,
                    f"{each.replication:.4g}",
                    "–" if each.counted is None else f"{each.counted:.4g}",
                    f"{each.load:.2%}",
                    "–" if each.busiest is None else f"{each.busiest:.2%}",
                )
        return made


def _spread(values: list[float]) -> str:
    return f"{min(values):.1f} … {max(values):.1f}"
