"""`cqels bench bounded`: a join without windows by counters, over time."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from datetime import UTC, datetime
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cqels_py.cli.bench import check_plots
from cqels_py.cli.failures import say
from cqels_py.suites import bounded, bounded_plots
from cqels_py.suites.machine import machine, versions

NAME = "bounded"
_WIDE = 200


def run(*, events: int, seed: int, json_file: Path | None, plots: Path | None) -> None:
    """Measure, show, write and draw."""
    check_plots(plots)
    figures = bounded.measure(events, seed, say if sys.stderr.isatty() else _silent)
    here, date = machine(), datetime.now(UTC).isoformat(timespec="seconds")
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.print(_over_time(figures))
    console.print(
        f"{figures.events:,} events, {figures.counters} counters. Events per second: {figures.from_texts:,.0f} from texts, "
        f"{figures.from_ids:,.0f} from ids, {figures.kernel:,.0f} in the kernel, {figures.by_hand:,.0f} by hand. "
        f"All rows and DuckDB get the first events only."
    )
    if not any(curve.name == bounded.JOIN for curve in figures.curves):
        console.print("DuckDB is left out: pip install 'cqels_py\\[bench]'.")
    if json_file is not None:
        document = {"date": date, "machine": here, "versions": versions(), "seed": seed, "figures": asdict(figures)}
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")
    if plots is not None:
        for path in bounded_plots.draw(figures.curves, f"{here['cpu']}, {here['cores']} cores, {date[:10]}", plots):
            say(f"drawn: {path}")


def _silent(_: str) -> None:
    """Nobody looks at standard error."""


def _over_time(figures: bounded.Figures) -> Table:
    table = Table(box=SIMPLE_HEAD, caption="Events per second since the line before.", caption_justify="left")
    for name in ("by", "events at a time", "events", "events/s", "bytes"):
        table.add_column(name, justify="left" if name == "by" else "right")
    for curve in figures.curves:
        for each in curve.points:
            nbytes = "" if each.nbytes is None else f"{each.nbytes:,}"
            table.add_row(curve.name, f"{curve.batch:,}", f"{each.events:,}", f"{each.per_second:,.0f}", nbytes)
    return table
