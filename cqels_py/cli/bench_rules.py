"""`cqels bench rules`: temporal rules, by suite and density of the facts."""

from __future__ import annotations

import json
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from rich.box import SIMPLE_HEAD
from rich.console import Console
from rich.table import Table

from cqels_py.cli.failures import say
from cqels_py.suites import rules
from cqels_py.suites.machine import machine

NAME = "rules"
_WIDE = 200


def run(*, suite: str | None, triples: int, seed: int, json_file: Path | None) -> None:
    """Measure, show and write."""
    tell = say if sys.stderr.isatty() else _silent
    figures = [rules.measure(each, triples, seed, tell) for each in rules.chosen(suite)]
    tell("reelay, and its property by rules")
    peer = rules.measure_peer(max(rules.LEAST_UPDATES, triples // 10), seed)
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.print(_rates(figures))
    console.print(_peaks(figures))
    console.print(rules.PUBLISHED)
    console.print(_beside_reelay(peer))
    if json_file is not None:
        document = {
            "machine": machine(),
            "seed": seed,
            "figures": [asdict(each) for each in figures],
            "reelay": asdict(peer),
        }
        json_file.write_text(json.dumps(document, indent=1) + "\n", encoding="utf-8")


def _silent(_: str) -> None:
    """Nobody looks at standard error."""


def _rates(figures: Sequence[rules.Figures]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        caption="Facts per second; milliseconds of an instant's facts; intervals kept after each eighth of the time.",
        caption_justify="left",
    )
    for name in ("suite", "facts", "results", "from texts", "from ids", "p50 ms", "p99 ms", "kept"):
        table.add_column(name, justify="left" if name == "suite" else "right")
    for each in figures:
        rates = (f"{number:,.0f}" for number in (each.facts, each.results, each.from_texts, each.from_ids))
        kept = " ".join(f"{number:,}" for number in each.kept)
        table.add_row(each.suite, *rates, f"{each.p50:.2f}", f"{each.p99:.2f}", kept)
    return table


def _peaks(figures: Sequence[rules.Figures]) -> Table:
    table = Table(
        box=SIMPLE_HEAD,
        caption="Facts over the same time: how many per second, and the most intervals kept.",
        caption_justify="left",
    )
    for name in ("suite", "seconds between facts", "facts", "from ids", "most intervals"):
        table.add_column(name, justify="left" if name == "suite" else "right")
    for each in figures:
        for peak in each.peaks:
            table.add_row(
                each.suite, f"{peak.gap:g}", f"{peak.facts:,}", f"{peak.per_second:,.0f}", f"{peak.intervals:,}"
            )
    return table


def _beside_reelay(peer: rules.Peer) -> str:
    own = f"{rules.PROPERTY}, one entity: {peer.rules:,.0f} updates per second by rules"
    if peer.reelay is None:
        return f"{own}; reelay is left out: pip install reelay, or cqels-py\\[bench]."
    return f"{own}, {peer.reelay:,.0f} in reelay (from Python); {peer.rules / peer.reelay:.1f} times as many."
