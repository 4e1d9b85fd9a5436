"""`cqels bench patterns`: event patterns, by case and window."""

from __future__ import annotations

import json
import subprocess
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from shutil import which

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cqels_py.cli.failures import say
from cqels_py.suites import patterns
from cqels_py.suites.machine import machine

NAME = "patterns"
_WIDE = 200


def run(*, windows: Sequence[int], triples: int, seed: int, json_file: Path | None, core: str | None) -> None:
    """Measure, show and write. `core`: a Python that has CORE's package pycer."""
    count = max(1, triples // 3)
    python = _with_core(core)
    chosen = windows or [window for window in patterns.WINDOWS if 2 * window <= count] or [max(1, count // 2)]
    figures = patterns.run(chosen, count, seed, python, say if sys.stderr.isatty() else _silent)
    Console(width=None if sys.stdout.isatty() else _WIDE).print(_table(figures))
    if json_file is not None:
        document = {"machine": machine(), "seed": seed, "figures": [asdict(each) for each in figures]}
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _silent(_: str) -> None:
    """Nobody looks at standard error."""


def _with_core(core: str | None) -> Path | None:
    """The Python to run CORE with; a warning where there is none."""
    if core is None:
        say("CORE is left out: --core PYTHON names a Python 3.13 with its package (pip install pycer)")
        return None
    python = which(core)
    found = python and subprocess.run([python, "-c", "import pycer"], capture_output=True, check=False)
    if not python or not found or found.returncode:
        say(f"CORE is left out: {core} has no package pycer; CORE needs a Python 3.13 with it (pip install pycer)")
        return None
    return Path(python)


def _table(figures: Sequence[patterns.Figures]) -> Table:
    names = ("pattern", "within", "matches", "to JSON", "from texts", "from ids", "kernel", "by hand", "CORE")
    table = Table(
        box=SIMPLE_HEAD, caption="Thousands of events per second, three triples each.", caption_justify="left"
    )
    for name in (*names, "JSON / CORE", "ids / CORE", "push µs", "most steps", "between"):
        table.add_column(name, justify="left" if name == "pattern" else "right")
    for each in figures:
        rates = (each.to_json, each.from_texts, each.from_ids, each.kernel, each.by_hand, each.core)
        ratios = ("–" if each.core is None else f"{rate / each.core:.3g}" for rate in (each.to_json, each.from_ids))
        table.add_row(
            each.case, f"{each.window:,}", f"{each.matches:,}", *map(_thousands, rates), *ratios, f"{each.push_us:.0f}",
            str(each.most_steps), str(each.most_between),
        )  # fmt: skip
    return table


def _thousands(rate: float | None) -> str:
    return "–" if rate is None else f"{rate / 1_000:,.0f}"
