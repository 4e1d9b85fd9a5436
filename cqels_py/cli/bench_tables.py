"""The results of a benchmark as tables."""

from __future__ import annotations

from collections.abc import Callable

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.measure import Measurement
from rich.table import Table

from cqels_py.suites.report import BOTH, Report, compared
from cqels_py.suites.task import Measured

_Cell = Callable[[Measured], str]
_LEFT_OUT_FIRST = ("seconds", "triples", "results", "p50 µs", "peak MB")
_ENDLESS = 10_000


def outcome(report: Report, console: Console) -> Table:
    """A row for each query: its figures, and comparisons; as many columns as the console has room for."""
    columns = _columns(report)
    table = _table(report, columns)
    for name in _LEFT_OUT_FIRST:
        if Measurement.get(console, console.options.update(max_width=_ENDLESS), table).maximum <= console.width:
            break
        del columns[name]
        table = _table(report, columns)
    if explained := _explained(report):
        table.caption, table.caption_justify = explained, "left"
    return table


def _columns(report: Report) -> dict[str, _Cell]:
    queries = report.queries
    columns: dict[str, _Cell] = {"query": lambda query: query.id}
    if any(query.window for query in queries):
        columns["window"] = lambda query: f"{query.window:,}"
    if report.settings.runner == BOTH:
        columns["runner"] = lambda query: query.runner
    columns |= {
        "triples": lambda query: f"{query.triples:,}",
        "results": lambda query: f"{query.results:,}",
        "seconds": lambda query: _fixed(query.seconds, 2),
        "triples/s": lambda query: _fixed(query.triples_per_second),
        "p50 µs": lambda query: _fixed(query.latency_p50_us),
        "p99 µs": lambda query: _fixed(query.latency_p99_us),
        "peak MB": lambda query: _fixed(query.peak_rss_mb),
    }
    if report.settings.runner == BOTH:
        columns["/ local"] = lambda query: "–" if query.local_ratio is None else f"{query.local_ratio:.2g}×"
    if any(query.paper_triples_per_second for query in queries):
        columns["/ paper"] = lambda query: _beside(query, query.paper_triples_per_second)
    if report.settings.check:
        columns["/ pyoxigraph"] = lambda query: _beside(query, query.peer_triples_per_second)
        columns["equal"] = _equal
    return columns


def _table(report: Report, columns: dict[str, _Cell]) -> Table:
    settings = report.settings
    on = {"local": "", BOTH: " on both runners"}.get(settings.runner, f" on {settings.runner}")
    title = f"{settings.suite}{on}, {settings.triples:,} triples, seed {settings.seed}"
    table = Table(title=title, title_justify="left", box=SIMPLE_HEAD, pad_edge=False)
    for name in columns:
        table.add_column(name, justify="left" if name in ("query", "runner", "equal") else "right", no_wrap=True)
    for query in report.queries:
        if query.error is None:
            table.add_row(*(cell(query) for cell in columns.values()))
        else:
            known = ("query", "runner")
            table.add_row(*(cell(query) if name in known else "–" for name, cell in columns.items()))
    return table


def comparison(earlier: Report, later: Report) -> Table:
    """Ratios to an earlier run."""
    table = Table(
        title=f"beside the run of {earlier.date}, {earlier.machine.get('cpu', '')}",
        title_justify="left",
        box=SIMPLE_HEAD,
        pad_edge=False,
    )
    rows = compared(earlier, later)
    windows = any(row.window for row in rows)
    runners = len({row.runner for row in rows}) > 1
    for name in (
        "query",
        *(["window"] if windows else []),
        *(["runner"] if runners else []),
        "triples/s before",
        "now",
        "ratio",
        "p99 ratio",
        "MB ratio",
    ):
        table.add_column(name, justify="left" if name in ("query", "runner") else "right", no_wrap=True)
    for row in rows:
        window = [f"{row.window:,}" if row.window else "own"] if windows else []
        ratios = (_fixed(each, 2) for each in (row.throughput, row.latency, row.memory))
        table.add_row(row.id, *window, *([row.runner] if runners else []), _fixed(row.before), _fixed(row.now), *ratios)
    return table


def _explained(report: Report) -> str:
    """Notes on columns that need one, and on queries that were not compared."""
    lines = []
    if report.settings.runner == BOTH:
        lines.append("/ local: times the local runner's rate, over the same files")
    if any(query.paper_triples_per_second for query in report.queries):
        lines.append("/ paper: times the paper's own figure (Xeon, 2.13 GHz, 2010)")
    if report.settings.check:
        lines.append("/ pyoxigraph: times re-evaluation with pyoxigraph at every tick, in this run")
        lines.append(f"equal: pyoxigraph has the same answer, at {_instants(report)} instants")
        lines += dict.fromkeys(f"query {query.id}: {query.note}" for query in report.queries if query.note)
    return "\n".join(lines)


def _equal(query: Measured) -> str:
    if query.equal and not query.results:
        return "yes: empty"
    return {True: "yes", False: "NO", None: "–"}[query.equal]


def _beside(query: Measured, other: float | None) -> str:
    if other is None or query.triples_per_second is None:
        return "–"
    ratio = query.triples_per_second / other
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"


def _instants(report: Report) -> str:
    """At how many instants answers were compared."""
    numbers = sorted({query.compared for query in report.queries if query.compared})
    return "no" if not numbers else "–".join(map(str, dict.fromkeys((numbers[0], numbers[-1]))))


def _fixed(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
