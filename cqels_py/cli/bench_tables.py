"""What a benchmark found out, as tables."""

from __future__ import annotations

from collections.abc import Callable

from rich.table import Table

from cqels_py.suites.report import Report, compared
from cqels_py.suites.task import Measured

_Cell = Callable[[Measured], str]


def outcome(report: Report) -> Table:
    """A row for each query: what was measured, and what that is beside others."""
    settings = report.settings
    on = "" if settings.runner == "local" else f" on {settings.runner}"
    table = Table(
        title=f"{settings.suite}{on}, {settings.triples:,} triples, seed {settings.seed}", title_justify="left"
    )
    queries = report.queries
    columns: list[tuple[str, _Cell]] = [("query", lambda query: query.id)]
    if any(query.window for query in queries):
        columns.append(("window", lambda query: f"{query.window:,}"))
    columns += [
        ("triples", lambda query: f"{query.triples:,}"),
        ("results", lambda query: f"{query.results:,}"),
        ("seconds", lambda query: _fixed(query.seconds, 2)),
        ("triples/s", lambda query: _fixed(query.triples_per_second)),
        ("p50 µs", lambda query: _fixed(query.latency_p50_us)),
        ("p99 µs", lambda query: _fixed(query.latency_p99_us)),
        ("peak MB", lambda query: _fixed(query.peak_rss_mb)),
    ]
    if any(query.paper_triples_per_second for query in queries):
        columns.append(("/ paper", lambda query: _beside(query, query.paper_triples_per_second)))
    if settings.check:
        columns.append(("/ pyoxigraph", lambda query: _beside(query, query.peer_triples_per_second)))
        columns.append(("equal", _equal))
    for name, _ in columns:
        table.add_column(name, justify="left" if name in ("query", "equal") else "right", no_wrap=True)
    for query in queries:
        if query.error is None:
            table.add_row(*(cell(query) for _, cell in columns))
        else:
            table.add_row(query.id, *("–" for _ in columns[1:]))
    if explained := _explained(report):
        table.caption, table.caption_justify = explained, "left"
    return table


def comparison(earlier: Report, later: Report) -> Table:
    """Ratios to an earlier run."""
    table = Table(title=f"beside the run of {earlier.date}, {earlier.machine.get('cpu', '')}", title_justify="left")
    rows = compared(earlier, later)
    windows = any(row.window for row in rows)
    for name in (
        "query",
        *(["window"] if windows else []),
        "triples/s before",
        "now",
        "ratio",
        "p99 ratio",
        "MB ratio",
    ):
        table.add_column(name, justify="left" if name == "query" else "right", no_wrap=True)
    for row in rows:
        window = [f"{row.window:,}" if row.window else "own"] if windows else []
        ratios = (_fixed(each, 2) for each in (row.throughput, row.latency, row.memory))
        table.add_row(row.id, *window, _fixed(row.before), _fixed(row.now), *ratios)
    return table


def _explained(report: Report) -> str:
    """What stands in the columns that need a word, and what was not compared."""
    lines = []
    if any(query.paper_triples_per_second for query in report.queries):
        lines.append("/ paper: times the paper's own figure (Xeon, 2.13 GHz, 2010)")
    if report.settings.check:
        lines.append("/ pyoxigraph: times re-evaluation with pyoxigraph at every tick, in this run")
        lines += [f"query {query.id}: {query.note}" for query in report.queries if query.note]
    return "\n".join(lines)


def _equal(query: Measured) -> str:
    if query.equal is None:
        return "not compared"
    return f"{'yes' if query.equal else 'NO'}, at {query.compared} instants"


def _beside(query: Measured, other: float | None) -> str:
    if other is None or query.triples_per_second is None:
        return "–"
    ratio = query.triples_per_second / other
    return f"{ratio:,.0f}×" if ratio >= 10 else f"{ratio:.2g}×"


def _fixed(value: float | None, digits: int = 0) -> str:
    return "–" if value is None else f"{value:,.{digits}f}"
