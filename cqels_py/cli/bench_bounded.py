"""`cqels bench bounded`: a join without windows by counters, over time."""

from __future__ import annotations

import json
import sys
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cqels_py.cli.failures import say
from cqels_py.suites import bounded
from cqels_py.suites.machine import machine

NAME = "bounded"
_WIDE = 200


def run(*, events: int, seed: int, json_file: Path | None) -> None:
    """Measure, show and write."""
    figures = bounded.measure(events, seed, say if sys.stderr.isatty() else _silent)
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.print(_over_time(figures))
    console.print(
        f"{figures.events:,} events, {figures.counters} counters. Events per second: {figures.from_texts:,.0f} from texts, "
        f"{figures.kernel:,.0f} in the kernel, {figures.by_hand:,.0f} by hand."
    )
    if json_file is not None:
        document = {"machine": machine(), "seed": seed, "figures": asdict(figures)}
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _silent(_: str) -> None:
    """Nobody looks at standard error."""


def _over_time(figures: bounded.Figures) -> Table:
    table = Table(box=SIMPLE_HEAD, caption="Events per second since the line before.", caption_justify="left")
    for name in ("by", "events", "events/s", "bytes"):
        table.add_column(name, justify="left" if name == "by" else "right")
    for name, points in (("counters", figures.points), ("all rows", figures.all_rows)):
        for each in points:
            table.add_row(name, f"{each.events:,}", f"{each.per_second:,.0f}", f"{each.nbytes:,}")
    return table
