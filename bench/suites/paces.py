"""Rates by contender and step: measured, as a table and as a plot."""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from rich.console import Console
from rich.table import Table

from bench.report import short
from bench.suites.outcome import Outcome, add_rounds, folder_of, parser_of, taken_now
from bench.suites.stepping import Contender, Pace, Timing, compete

Make = Callable[[int], Contender[Any]]
LIBRARIES = ("duckdb", "pathway", "polars", "rdflib")
_MARKS = "oDs^vPX*<>"


def taken(contenders: Sequence[Make], steps: Iterable[int], window: int, timing: Timing) -> list[Pace]:
    """Measure all contenders at all steps, with progress on standard error."""
    found = []
    for step in steps:
        for pace in compete(contenders, step, window, timing):
            print(f"STEP {step:,}: {pace.contender}: {short(pace.median)} elements a second", file=sys.stderr)
            found.append(pace)
    return found


def by_contender(paces: Iterable[Pace]) -> dict[str, dict[int, Pace]]:
    made: dict[str, dict[int, Pace]] = {}
    for pace in paces:
        made.setdefault(pace.contender, {})[pace.step] = pace
    return made


def figures_of(paces: Sequence[Pace], **settings: Any) -> dict[str, Any]:
    """For a file: each pace with its median, and the ratio of the first contender's rate to it."""
    first = by_contender(paces)[paces[0].contender]
    rows = [
        asdict(pace) | {"median": pace.median, "first_is_times_as_fast": first[pace.step].median / pace.median}
        for pace in paces
    ]
    return {**settings, "paces": rows}


def table(paces: Sequence[Pace], title: str) -> Table:
    """Median elements per second; in parentheses how many times faster the first contender is."""
    steps = list(dict.fromkeys(pace.step for pace in paces))
    made = Table("contender", title=title)
    for step in steps:
        made.add_column(f"STEP {step:,}", justify="right")
    rows = by_contender(paces)
    first = next(iter(rows.values()))
    for name, mine in rows.items():
        cells = [
            f"{short(mine[step].median)} ({short(first[step].median / mine[step].median)})" if step in mine else ""
            for step in steps
        ]
        made.add_row(name, *cells)
    return made


def draw(outcome: Outcome, paces: Sequence[Pace], title: str, paths: Sequence[Path]) -> None:
    """A line for each contender, from its slowest to its fastest round. ImportError if matplotlib is not installed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(9, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    for number, (name, mine) in enumerate(by_contender(paces).items()):
        middle = [pace.median for pace in mine.values()]
        low = [pace.median - min(pace.rates) for pace in mine.values()]
        high = [max(pace.rates) - pace.median for pace in mine.values()]
        mark = _MARKS[number % len(_MARKS)]
        axes.errorbar(list(mine), middle, yerr=[low, high], marker=mark, capsize=3, label=name)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel(f"STEP: elements between two answers ({outcome.origin})")
    axes.set_ylabel("elements per second: median, slowest and fastest round")
    axes.grid(which="major", alpha=0.3)
    axes.set_title(title, loc="left", fontsize="medium")
    figure.legend(loc="outside lower center", ncols=3)
    for path in paths:
        figure.savefig(path, dpi=150)


def main(
    name: str,
    doc: str,
    measure: Callable[[bool, Timing], tuple[Sequence[Pace], Mapping[str, Any]]],
    title: str,
    formats: Sequence[str],
    arguments: Sequence[str] | None,
) -> int:
    """The command of a suite. `measure` returns the paces, and the settings for the file."""
    parser = parser_of(name, doc)
    add_rounds(parser, "rounds for the median")
    parser.add_argument("--seconds", type=float, default=1.0, metavar="S", help="maximum length of a round (default 1)")
    given = parser.parse_args(arguments)
    if given.seconds <= 0:
        parser.error("--seconds must be above 0")
    timing = Timing(1, 0.01, 100) if given.quick else Timing(given.rounds, given.seconds, 1_000_000)
    paces, settings = measure(given.quick, timing)
    figures = figures_of(paces, rounds=timing.rounds, seconds=timing.seconds, **settings)
    outcome = taken_now(name, doc.split("\n\n")[0], figures, quick=given.quick, libraries=LIBRARIES)
    folder = folder_of(given)
    path = outcome.write(folder)
    Console().print(table(paces, f"{title}: elements a second (and how many times as fast {paces[0].contender} is)"))
    try:
        draw(outcome, paces, title, [folder / f"{name}.{form}" for form in formats])
    except ImportError:
        print("no plot: matplotlib is not installed (pip install -e .[bench])", file=sys.stderr)
    print(f"written to {path}", file=sys.stderr)
    return 0
