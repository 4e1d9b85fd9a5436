"""The Spark suite's figures as one plot: rates, rebuilding, and copies of triples."""

from __future__ import annotations

from pathlib import Path
from statistics import median
from typing import TYPE_CHECKING

from bench.suites.on_spark.figures import Case, Figures
from bench.suites.on_spark.rebuilding import Rebuilding

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_MARKS = "oDs^vP"


def draw(figures: Figures, title: str, path: Path) -> None:
    """Write a PNG. ImportError if matplotlib is not installed."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(12, 8), layout="constrained")
    FigureCanvasAgg(figure)
    (rates, latencies), (rebuilding, copies) = figure.subplots(2, 2)
    _rates(rates, figures)
    _latencies(latencies, figures)
    _rebuilding(rebuilding, figures.rebuilding)
    _copies(copies, figures)
    for axes in (rates, latencies, rebuilding, copies):
        axes.grid(which="major", alpha=0.3)
        axes.set_axisbelow(True)
    figure.suptitle(title, fontsize="medium")
    figure.savefig(path, dpi=120)


def _rates(axes: Axes, figures: Figures) -> None:
    for mark, name in zip(_MARKS, figures.competitors(), strict=False):
        cases = _of(figures, name)
        spread = [[c.median - min(c.rates) for c in cases], [max(c.rates) - c.median for c in cases]]
        axes.errorbar(
            [c.rows for c in cases], [c.median for c in cases], yerr=spread, fmt=f"{mark}-", capsize=3, label=name
        )
    axes.set(
        xscale="log",
        yscale="log",
        xlabel="rows a micro-batch",
        ylabel="rows per second: median, slowest, fastest round",
    )
    axes.legend(fontsize="small")


def _latencies(axes: Axes, figures: Figures) -> None:
    for mark, name in zip(_MARKS, figures.competitors(), strict=False):
        cases = _of(figures, name)
        middle = [c.milliseconds(50) for c in cases]
        above = [[0.0] * len(cases), [c.milliseconds(99) - c.milliseconds(50) for c in cases]]
        axes.errorbar([c.rows for c in cases], middle, yerr=above, fmt=f"{mark}-", capsize=3, label=name)
    axes.set(xscale="log", yscale="log", xlabel="rows a micro-batch", ylabel="ms per micro-batch: p50 to p99")


def _rebuilding(axes: Axes, found: Rebuilding) -> None:
    for place, seconds in enumerate((found.hot, found.cold)):
        ms = [1000 * each for each in seconds]
        middle = median(ms)
        axes.bar([place], [middle], 0.5, yerr=[[middle - min(ms)], [max(ms) - middle]], capsize=4)
    axes.set_xticks([0, 1], ["at hand", "read back"])
    axes.set(ylabel=f"ms for {found.rows:,} rows", xlabel=f"the state of a window of {found.window:,} elements is")


def _copies(axes: Axes, figures: Figures) -> None:
    for shape in dict.fromkeys(each.shape for each in figures.paper):
        mine = [each for each in figures.paper if each.shape == shape]
        (line,) = axes.plot(
            [each.partitions for each in mine], [each.replication for each in mine], label=f"{shape}, formula"
        )
        seen = [(each.partitions, each.counted) for each in figures.counted if each.shape == shape]
        axes.plot(*zip(*seen, strict=True), "o", color=line.get_color(), label=f"{shape}, counted")
    axes.set(xscale="log", yscale="log", xlabel="partitions", ylabel="copies of a triple")
    axes.legend(fontsize="small", ncols=2)


def _of(figures: Figures, competitor: str) -> list[Case]:
    return [figures.case(size, competitor) for size in figures.sizes()]
