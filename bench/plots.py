"""Plots of rates: a block for each setting, in it a line for each competitor, from its slowest round to its fastest."""

from __future__ import annotations

from pathlib import Path
from typing import TYPE_CHECKING

from bench.report import Report, short
from cqels_py.suites.plot_style import INK, colour, new_figure, save

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_LINE, _GAP = 0.2, 1.6
"""Inches of one line; lines of the space above a block, which has the setting."""


def draw(report: Report, folder: Path) -> Path:
    """Write an SVG named after the benchmark, and return its path. ImportError if matplotlib is not installed."""
    competitors = list(dict.fromkeys(rate.competitor for rate in report.rates))
    lines = len(report.rates) + _GAP * len(report.settings)
    figure, axes = new_figure(9, 1.1 + _LINE * lines)
    names: list[tuple[float, str]] = []
    y = 0.0
    for setting in report.settings:
        y += _GAP
        axes.text(0, y - 0.9, setting, transform=axes.get_yaxis_transform(), weight="bold", va="center", color=INK)
        for name in competitors:
            if name in report.at(setting):
                _draw_line(axes, report, setting, name, y, colour(competitors.index(name)))
                names.append((y, name))
                y += 1
    axes.set_yticks([y for y, _ in names], [name for _, name in names])
    for label, (_, name) in zip(axes.get_yticklabels(), names, strict=True):
        label.set_color(colour(competitors.index(name)))
    axes.tick_params(axis="y", length=0)
    axes.set_ylim(y, 0)
    axes.set_xscale("log")
    axes.set_xlabel(
        f"arrivals a second: median, slowest and fastest round ({report.machine['cpu']}, {report.date[:10]})"
    )
    axes.grid(axis="x", which="both", alpha=0.3)
    axes.spines["left"].set_visible(False)
    axes.set_title(report.question, loc="left", fontsize="medium", wrap=True, color=INK)
    (path,) = save(figure, folder, report.name, ["svg"])
    return path


def _draw_line(axes: Axes, report: Report, setting: str, name: str, y: float, ink: str) -> None:
    rate = report.at(setting)[name]
    axes.plot([rate.slowest, rate.fastest], [y, y], color=ink, linewidth=2, solid_capstyle="butt", alpha=0.5)
    axes.plot(rate.median, y, "o", color=ink, markersize=5)
    axes.annotate(
        short(rate.median),
        (rate.fastest, y),
        (5, 0),
        textcoords="offset points",
        va="center",
        fontsize="x-small",
        color=INK,
    )
