"""Plots of runs, as PNG and SVG: throughput by query, latencies, memory over time, throughput by window size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from math import log10
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.errors import RunError
from cqels_py.suites.plot_style import Name, colour, dashes, name_ends, new_figure, save
from cqels_py.suites.report import Report
from cqels_py.suites.task import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes


def draw(runs: Sequence[Report], folder: Path) -> list[Path]:
    """Draw the runs; the last of them is the current one. Returns the files. ImportError without matplotlib."""
    found = [query for query in runs[-1].queries if query.error is None]
    pictures: list[tuple[str, Callable[[Axes], None]]] = []
    if any(query.triples_per_second for query in found):
        pictures.append(("throughput", lambda axes: _throughput(axes, runs)))
    if any(query.latency_quantiles for query in found):
        pictures.append(("latency", lambda axes: _latency(axes, found)))
    if any(query.memory for query in found):
        pictures.append(("memory", lambda axes: _memory(axes, found)))
    if len({query.window for run in runs for query in run.queries if query.window}) > 1:
        pictures.append(("windows", lambda axes: _windows(axes, runs)))
    try:
        folder.mkdir(parents=True, exist_ok=True)
        return [path for name, paint in pictures for path in _save(name, paint, runs[-1], folder)]
    except OSError as error:
        raise RunError(f"cannot write plots to {folder}: {error.strerror}") from None


def _save(name: str, paint: Callable[[Axes], None], run: Report, folder: Path) -> list[Path]:
    figure, axes = new_figure(9, 5.5)
    settings = run.settings
    where = f"{run.machine.get('cpu', '')}, {run.date[:10]}"
    title = f"{settings.suite}, {settings.triples:,} triples, {settings.runner} ({where})"
    axes.set_title(title, fontsize="small", loc="left", pad=28 if name == "throughput" else 8)
    axes.grid(which="major", alpha=0.3)
    paint(axes)
    return save(figure, folder, f"{settings.suite}-{name}")


_LETTER = 4.8
"""About the width of a small letter, in points."""


def _throughput(axes: Axes, runs: Sequence[Report]) -> None:
    """A bar for each query and run, and one for the paper's figure. Of several window sizes, the first."""
    ids = list(dict.fromkeys(query.id for query in runs[-1].queries))
    paper = {query.id: query.paper_triples_per_second for query in runs[-1].queries}
    series: list[tuple[str, dict[str, float | None]]] = []
    if any(paper.values()):
        series.append(("the paper (2.13 GHz Xeon of 2010)", paper))
    if any(query.peer_triples_per_second for query in runs[-1].queries):
        peer = {query.id: query.peer_triples_per_second for query in reversed(runs[-1].queries)}
        series.append(("re-evaluation with pyoxigraph", peer))
    for run in runs:
        for runner in dict.fromkeys(query.runner for query in run.queries):
            rates = {q.id: q.triples_per_second for q in reversed(run.queries) if q.runner == runner}
            series.append((f"this engine{_on(runner)}, {run.date[:16]}", rates))
    width, offset = 0.8 / len(series), 0.0
    for number, (label, rates) in enumerate(series):
        there = [(place, rate) for place, id_ in enumerate(ids) if (rate := rates.get(id_))]
        left = [place - 0.4 + width * (number + 0.5) for place, _ in there]
        axes.bar(left, [rate for _, rate in there], width, color=colour(number))
        # The names of the kinds of bars, in their colours, above the bars.
        beside = axes.annotate(
            label, (0, 1), (offset, 8), xycoords="axes fraction", textcoords="offset points", color=colour(number),
            fontsize="small", annotation_clip=False,
        )  # fmt: skip
        beside.set_in_layout(False)
        offset += _LETTER * (len(label) + 3)
    axes.set_xticks(range(len(ids)), [_short(id_) for id_ in ids])
    axes.set_yscale("log")
    axes.set_ylabel("triples per second, from files to results")


_PERCENTILES = (0, 50, 90, 99, 100)
_LAST = 99.7
"""Where the slowest element stands on the axis of percentiles."""


def _nines(percentile: float) -> float:
    """The place of a percentile on an axis on which 90 and 99 are as far apart as 0 and 90."""
    return -log10(1 - min(percentile, _LAST) / 100)


def _latency(axes: Axes, queries: Sequence[Measured]) -> None:
    """A line for each query, with dots at p50 and p99."""
    names = []
    for number, query in enumerate(each for each in queries if each.latency_quantiles):
        quantiles = query.latency_quantiles
        step = 100 / (len(quantiles) - 1)
        places = [_nines(step * place) for place in range(len(quantiles))]
        axes.plot(places, quantiles, color=colour(number), linestyle=dashes(number))
        marked = [round(percentile / step) for percentile in (50, 99)]
        axes.plot(
            [places[at] for at in marked], [quantiles[at] for at in marked], "o", color=colour(number), markersize=4
        )
        names.append(Name(_label(query), places[-1], quantiles[-1], colour(number)))
    axes.set_xticks([_nines(each) for each in _PERCENTILES], ["fastest", "p50", "p90", "p99", "slowest"])
    axes.set_xlabel("percentile of elements")
    axes.set_yscale("log")
    axes.set_ylabel("latency in µs, from due to rendered, at 80 % of the maximum rate")
    _name(axes, names)


def _memory(axes: Axes, queries: Sequence[Measured]) -> None:
    names = []
    for number, query in enumerate(each for each in queries if each.memory):
        seconds, _, sizes = zip(*query.memory, strict=True)
        axes.plot(seconds, sizes, color=colour(number), linestyle=dashes(number), marker="." if len(sizes) < 20 else "")
        names.append(Name(_label(query), seconds[-1], sizes[-1], colour(number)))
    axes.set_xlabel("seconds")
    axes.set_ylabel("resident memory in MB, interpreter included")
    axes.set_ylim(bottom=0)
    _name(axes, names)


def _windows(axes: Axes, runs: Sequence[Report]) -> None:
    """A line for each query and runner. For equal window sizes, the point of the later run is shown."""
    points: dict[tuple[str, str], dict[int, float]] = {}
    for run in runs:
        for query in run.queries:
            if query.window and query.triples_per_second:
                points.setdefault((query.id, query.runner), {})[query.window] = query.triples_per_second
    names = []
    for number, ((id_, runner), rates) in enumerate(points.items()):
        windows = sorted(rates)
        axes.plot(
            windows, [rates[each] for each in windows], marker="o", color=colour(number), linestyle=dashes(number)
        )
        names.append(Name(_short(id_) + _on(runner), windows[-1], rates[windows[-1]], colour(number)))
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("elements per window")
    axes.set_ylabel("triples per second, from files to results")
    _name(axes, names)


def _name(axes: Axes, names: Sequence[Name]) -> None:
    """Names at the ends of lines, once the layout is known."""
    figure = axes.get_figure(root=True)
    assert figure is not None
    figure.draw_without_rendering()
    # The names stand beside the axes, which must not become narrower for them.
    figure.set_layout_engine("none")
    name_ends(axes, names)


def _label(query: Measured) -> str:
    return _short(query.id) + _on(query.runner) + (f", window {query.window:,}" if query.window else "")


def _on(runner: str) -> str:
    return "" if runner == "local" else f" on {runner}"


def _short(id_: str) -> str:
    return f"Q{id_}" if id_.isdigit() else id_
