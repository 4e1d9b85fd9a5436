"""Plots of runs, as PNG and SVG: throughput by query, latencies, memory over time, throughput by window size."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from cqels_py.errors import RunError
from cqels_py.suites.report import Report
from cqels_py.suites.task import Measured

if TYPE_CHECKING:
    from matplotlib.axes import Axes

_FORMATS = ("png", "svg")
_COLOURS = [
    f"tab:{name}" for name in ("blue", "orange", "green", "red", "purple", "brown", "pink", "gray", "olive", "cyan")
]


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
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    from matplotlib.figure import Figure

    figure = Figure(figsize=(10, 5.5), layout="constrained")
    FigureCanvasAgg(figure)
    axes = figure.add_subplot()
    # Thirty lines that can be distinguished.
    axes.set_prop_cycle(color=_COLOURS * 3, linestyle=["-"] * 10 + ["--"] * 10 + [":"] * 10)
    paint(axes)
    axes.set_axisbelow(True)
    axes.grid(which="major", alpha=0.3)
    figure.legend(*axes.get_legend_handles_labels(), loc="outside right upper", fontsize="small")
    settings = run.settings
    where = f"{run.machine.get('cpu', '')}, {run.date[:10]}"
    figure.suptitle(f"{settings.suite}, {settings.triples:,} triples, {settings.runner} ({where})", fontsize="small")
    paths = [folder / f"{settings.suite}-{name}.{form}" for form in _FORMATS]
    for path in paths:
        figure.savefig(path, dpi=150)
    return paths


def _throughput(axes: Axes, runs: Sequence[Report]) -> None:
    """A bar for each query and run, and one for the paper's figure. Of several window sizes, the first."""
    ids = list(dict.fromkeys(query.id for query in runs[-1].queries))
    paper = {query.id: query.paper_triples_per_second for query in runs[-1].queries}
    series: list[tuple[str, dict[str, float | None]]] = []
    if any(paper.values()):
        series.append(("paper (2.13 GHz Xeon of 2010)", paper))
    if any(query.peer_triples_per_second for query in runs[-1].queries):
        peer = {query.id: query.peer_triples_per_second for query in reversed(runs[-1].queries)}
        series.append(("re-evaluation with pyoxigraph", peer))
    for run in runs:
        for runner in dict.fromkeys(query.runner for query in run.queries):
            rates = {q.id: q.triples_per_second for q in reversed(run.queries) if q.runner == runner}
            series.append((f"this engine{_on(runner)}, {run.date[:16]}", rates))
    width = 0.8 / len(series)
    for number, (label, rates) in enumerate(series):
        there = [(place, rate) for place, id_ in enumerate(ids) if (rate := rates.get(id_))]
        left = [place - 0.4 + width * (number + 0.5) for place, _ in there]
        axes.bar(left, [rate for _, rate in there], width, label=label)
    axes.set_xticks(range(len(ids)), [_short(id_) for id_ in ids])
    axes.set_yscale("log")
    axes.set_ylabel("triples per second, from files to results")


def _latency(axes: Axes, queries: Sequence[Measured]) -> None:
    for query in queries:
        if query.latency_quantiles:
            axes.plot(query.latency_quantiles, range(len(query.latency_quantiles)), label=_label(query))
    axes.set_xscale("log")
    axes.set_xlabel("latency in µs (due to rendered), at 80 % of the maximum rate")
    axes.set_ylabel("percentile of elements")


def _memory(axes: Axes, queries: Sequence[Measured]) -> None:
    for query in queries:
        if query.memory:
            seconds, _, sizes = zip(*query.memory, strict=True)
            axes.plot(seconds, sizes, marker="." if len(sizes) < 20 else "", label=_label(query))
    axes.set_xlabel("seconds")
    axes.set_ylabel("resident memory in MB, interpreter included")
    axes.set_ylim(bottom=0)


def _windows(axes: Axes, runs: Sequence[Report]) -> None:
    """A line for each query and runner. For equal window sizes, the point of the later run is shown."""
    points: dict[tuple[str, str], dict[int, float]] = {}
    for run in runs:
        for query in run.queries:
            if query.window and query.triples_per_second:
                points.setdefault((query.id, query.runner), {})[query.window] = query.triples_per_second
    for (id_, runner), rates in points.items():
        windows = sorted(rates)
        label = _short(id_) + _on(runner)
        axes.plot(windows, [rates[window] for window in windows], marker="o", label=label)
    axes.set_xscale("log")
    axes.set_yscale("log")
    axes.set_xlabel("elements per window")
    axes.set_ylabel("triples per second, from files to results")


def _label(query: Measured) -> str:
    return _short(query.id) + _on(query.runner) + (f", window {query.window:,}" if query.window else "")


def _on(runner: str) -> str:
    return "" if runner == "local" else f" on {runner}"


def _short(id_: str) -> str:
    return f"Q{id_}" if id_.isdigit() else id_
