"""The plot of `cqels bench bounded`: memory, and time for each event, over the number of events so far."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.errors import RunError
from cqels_py.suites.bounded_events import Curve, Point
from cqels_py.suites.plot_style import COLOURS, FORMATS

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(curves: Sequence[Curve], where: str, folder: Path) -> list[Path]:
    """Write the pictures; `where`: the machine. Returns the files. ImportError without matplotlib, RunError without a folder."""
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(13, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    memory, seconds = figure.subplots(1, 2)
    _paint(memory, curves, "bytes of state", lambda point: None if point.nbytes is None else float(point.nbytes))
    _paint(seconds, curves, "microseconds for each event", lambda point: 1e6 / point.per_second)
    figure.suptitle(f"A join without windows: by counters, and by all rows ({where})", fontsize="small")
    paths = [folder / f"bounded.{form}" for form in FORMATS]
    try:
        folder.mkdir(parents=True, exist_ok=True)
        for path in paths:
            figure.savefig(path, dpi=150)
    except OSError as error:
        raise RunError(f"cannot write plots to {folder}: {error.strerror}") from None
    return paths


def _paint(axes: Axes, curves: Sequence[Curve], label: str, value: Callable[[Point], float | None]) -> None:
    """Lines with their names at their ends."""
    for curve, colour in zip(curves, COLOURS, strict=False):
        found = [(point.events, height) for point in curve.points if (height := value(point)) is not None]
        if found:
            events, heights = zip(*found, strict=True)
            axes.plot(events, heights, marker=".", color=colour)
            axes.annotate(
                f"{curve.name},\n{curve.batch:,} at a time", (events[-1], heights[-1]), (6, 0),
                textcoords="offset points", color=colour, va="center", fontsize="small", annotation_clip=False,
            )  # fmt: skip
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("events so far")
    axes.set_ylabel(label)
    # Room for the names.
    first, last = axes.get_xlim()
    axes.set_xlim(first, last * 8)
    axes.grid(which="major", alpha=0.3)
