"""How plots look: colours that colour-blind people tell apart, names at the ends of lines, pictures for light and dark pages."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

if TYPE_CHECKING:
    from matplotlib.axes import Axes
    from matplotlib.figure import Figure

COLOURS = ("#0072b2", "#d55e00", "#009e73", "#cc79a7", "#e69f00", "#56b4e9", "#5f6368")
"""Those of Okabe and Ito, without yellow, which is too light for lines."""
LINES = ("-", "--", ":", "-.")
"""After each round of colours."""
FORMATS = ("png", "svg")
INK, _PAPER = "#1f2328", "#fdfefd"
_DARK = f"""<style>
@media (prefers-color-scheme: dark) {{
  [style*="fill: {INK}"], text {{ fill: #e6edf3 !important; }}
  [style*="stroke: {INK}"] {{ stroke: #e6edf3 !important; }}
  [style*="fill: {_PAPER}"] {{ fill: #1e2129 !important; }}
}}
</style>
"""
_APART = 12.0
"""Points between the middles of two names."""


class Name(NamedTuple):
    """A name beside the last point of a line."""

    text: str
    x: float
    y: float
    colour: str


def colour(number: int) -> str:
    """Of the line of this number."""
    return COLOURS[number % len(COLOURS)]


def dashes(number: int) -> str:
    """Of the line of this number: lines of one colour differ in them."""
    return LINES[number // len(COLOURS) % len(LINES)]


def new_figure(width: float, height: float) -> tuple[Figure, Axes]:
    """A figure of so many inches, in the colours of a light page."""
    from matplotlib import rc_context
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    inks = ("text.color", "axes.labelcolor", "axes.edgecolor", "xtick.color", "ytick.color")
    style: dict[Any, str] = {**dict.fromkeys(inks, INK), "figure.facecolor": _PAPER, "axes.facecolor": _PAPER}
    with rc_context(style):
        figure = Figure(figsize=(width, height), layout="constrained")
        FigureCanvasAgg(figure)
        axes = figure.add_subplot()
    axes.spines[["top", "right"]].set_visible(False)
    axes.set_axisbelow(True)
    return figure, axes


def name_ends(axes: Axes, names: Sequence[Name]) -> None:
    """Write the names to the right of the axes, at the heights of their lines, moved apart where they would overlap.

    Call it when the limits and scales of the axes are final.
    """
    scale = 72.0 / axes.figure.dpi
    ordered = sorted(names, key=lambda each: float(axes.transData.transform((each.x, each.y))[1]))
    own = [float(axes.transData.transform((each.x, each.y))[1]) * scale for each in ordered]
    right = float(axes.transAxes.transform((1.0, 0.0))[0]) * scale
    for each, height, place in zip(ordered, own, spread(own, _APART), strict=True):
        end = float(axes.transData.transform((each.x, each.y))[0]) * scale
        axes.annotate(
            each.text, (each.x, each.y), (right - end + 14, place - height), textcoords="offset points", color=each.colour,
            va="center", fontsize="small", annotation_clip=False,
            arrowprops={"arrowstyle": "-", "color": each.colour, "linewidth": 0.6, "shrinkA": 0, "shrinkB": 2},
        )  # fmt: skip


def spread(heights: Sequence[float], apart: float) -> list[float]:
    """Places for names near ascending heights, so far apart at least.

    >>> spread([0.0, 1.0, 50.0], 10.0)
    [-4.5, 5.5, 50.0]
    """
    groups: list[
        list[float]
    ] = []  # Each: the sum of where its names would like to be, less their places in it, and their number.
    for height in heights:
        groups.append([height, 1])
        while len(groups) > 1 and _top(groups[-2], apart) > _bottom(groups[-1], apart) - apart:
            last = groups.pop()
            groups[-1][0] += last[0]
            groups[-1][1] += last[1]
    return [_bottom(group, apart) + apart * place for group in groups for place in range(int(group[1]))]


def _bottom(group: list[float], apart: float) -> float:
    return group[0] / group[1] - apart * (group[1] - 1) / 2


def _top(group: list[float], apart: float) -> float:
    return group[0] / group[1] + apart * (group[1] - 1) / 2


def save(figure: Figure, folder: Path, stem: str, formats: Sequence[str] = FORMATS) -> list[Path]:
    """Write a PNG for light pages, and an SVG that follows the reader's choice of light or dark: last, as in `FORMATS`. Returns
    the files."""
    from matplotlib import rc_context

    paths = [folder / f"{stem}.{form}" for form in formats]
    for path in paths:
        # Names that do not change from run to run.
        with rc_context({"svg.hashsalt": stem}):
            figure.savefig(path, dpi=150, bbox_inches="tight")
    text = paths[-1].read_text(encoding="utf-8")
    start = text.index("<svg")
    end = text.index(">", start) + 1
    paths[-1].write_text(text[:end] + "\n" + _DARK + text[end:], encoding="utf-8")
    return paths
