"""Plots of a benchmark's rates: a line for each setting, a mark for each competitor, from the slowest round to the fastest."""

from __future__ import annotations

from pathlib import Path

from bench.report import Report
from cqels_py.suites.plot_style import colour

_MARKS = "oDs^vPX*"


def draw(report: Report, path: Path) -> None:
    """Write a PNG. ImportError if matplotlib is not installed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    settings = report.settings
    figure = Figure(figsize=(9, 1.6 + 0.55 * len(settings)), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    competitors = list(dict.fromkeys(rate.competitor for rate in report.rates))
    for number, name in enumerate(competitors):
        mine = [(y, report.at(setting)[name]) for y, setting in enumerate(settings) if name in report.at(setting)]
        middle = [rate.median for _, rate in mine]
        spread = [
            [rate.median - rate.slowest for _, rate in mine],
            [rate.fastest - rate.median for _, rate in mine],
        ]
        axes.errorbar(
            middle,
            [y for y, _ in mine],
            xerr=spread,
            fmt=_MARKS[number % len(_MARKS)],
            color=colour(number),
            capsize=3,
            label=name,
        )
    axes.set_xscale("log")
    axes.set_yticks(range(len(settings)), settings)
    axes.set_ylim(len(settings) - 0.5, -0.5)
    axes.set_xlabel(
        f"arrivals per second: median, slowest and fastest round ({report.machine['cpu']}, {report.date[:10]})"
    )
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.set_title(report.question, loc="left", fontsize="medium", wrap=True)
    figure.legend(loc="outside lower center", ncols=min(len(competitors), 4))
    figure.savefig(path, dpi=150)
