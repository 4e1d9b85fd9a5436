"""The scenarios that come with the package: data, static knowledge and queries, ready to run."""

from __future__ import annotations

import sys
from collections.abc import Mapping
from dataclasses import dataclass, replace
from importlib import import_module
from importlib.resources import files
from typing import Protocol, cast

import pyarrow as pa

from cqels_py.cli.job import Job
from cqels_py.errors import UsageError
from cqels_py.suggestions import unknown
from cqels_py.suites.suite import title

DEFAULT_SPEED = 7_200.0
"""Two hours of the data a second."""

ELEMENTS_A_LOOK = 25
"""The number of elements in a batch when results are shown live."""


class Dataset(Protocol):
    """A module of `cqels_py.datasets`."""

    def streams(self, days: int | None) -> Mapping[str, pa.RecordBatchReader]: ...

    def static(self) -> bytes: ...


@dataclass(frozen=True, slots=True)
class Scenario:
    """`name` is that of the data's module and of the queries' folder."""

    name: str
    description: str
    query: str

    def queries(self) -> dict[str, str]:
        """Texts of the queries by name."""
        folder = files("cqels_py.queries") / self.name
        found = (entry for entry in folder.iterdir() if entry.name.endswith(".rq"))
        return {entry.name[:-3]: entry.read_text(encoding="utf-8") for entry in sorted(found, key=lambda e: e.name)}

    def dataset(self) -> Dataset:
        return cast(Dataset, import_module(f"cqels_py.datasets.{self.name}"))


SCENARIOS = (
    Scenario("flights", "all departures from New York's airports in 2013, and the weather there", "delay-by-carrier"),
    Scenario("taxi", "taxi rides in a city like New York, generated", "busiest-areas"),
    Scenario("patterns", "event patterns (MATCH) in five domains, generated", "card-fraud"),
    Scenario("rules", "temporal rules (RULES, STATE) in four domains, generated", "sepsis"),
)


def job(name: str, query: str | None, days: int, speed: float | None, options: Job) -> Job:
    """`options`, which the user gave, with the scenario's query and data filled in."""
    scenario = find(name)
    queries = scenario.queries()
    chosen = query or scenario.query
    if chosen not in queries:
        raise UsageError(f"{name}: {unknown('query', chosen, queries)}")
    watched = sys.stdout.isatty() and options.output is None
    pace = (DEFAULT_SPEED if watched else 0.0) if speed is None else speed
    dataset = scenario.dataset()
    return replace(
        options,
        text=queries[chosen],
        source=f"{name}/{chosen}.rq",
        title=title(queries[chosen]),
        streams=dict(dataset.streams(days)),
        unread_streams=True,
        static=[dataset.static()],
        speed=pace or None,
        announce=True,
        batch=options.batch or (ELEMENTS_A_LOOK if pace else None),
    )


def find(name: str) -> Scenario:
    for scenario in SCENARIOS:
        if scenario.name == name:
            return scenario
    raise UsageError(unknown("scenario", name, [scenario.name for scenario in SCENARIOS]))


def show_list() -> None:
    """The scenarios and descriptions of their queries, on standard output."""
    for scenario in SCENARIOS:
        print(f"{scenario.name}: {scenario.description}")
        for name, text in scenario.queries().items():
            print(f"  {name:<22} {title(text)}")
