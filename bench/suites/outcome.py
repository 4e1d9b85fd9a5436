"""The common part of the suites: options, and a file of figures with place and date."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Iterable, Mapping
from dataclasses import asdict, dataclass
from datetime import UTC, datetime
from importlib import metadata
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from cqels_py.suites.machine import machine, versions

RESULTS = Path(__file__).parents[1] / "results"


@dataclass(frozen=True)
class Outcome:
    """The figures of one suite."""

    name: str
    question: str
    date: str
    quick: bool
    machine: Mapping[str, Any]
    versions: Mapping[str, str]
    figures: Mapping[str, Any]

    def write(self, folder: Path) -> Path:
        folder.mkdir(parents=True, exist_ok=True)
        path = folder / f"{self.name}.json"
        path.write_text(json.dumps(asdict(self), indent=1) + "\n", encoding="utf-8")
        return path

    @property
    def origin(self) -> str:
        """For the foot of a plot."""
        tiny = "tiny sizes, figures are meaningless; " if self.quick else ""
        return f"{tiny}{self.machine['cpu']}, {self.machine['cores']} cores, {self.date[:10]}"


def taken_now(
    name: str, question: str, figures: Mapping[str, Any], *, quick: bool, libraries: Iterable[str] = ()
) -> Outcome:
    """Figures of this machine, now. `libraries`: others whose versions matter, if they are installed."""
    date = datetime.now(UTC).isoformat(timespec="seconds")
    others = {library: metadata.version(library) for library in libraries if find_spec(library) is not None}
    # A busy machine affects the figures.
    where = machine() | {"load": round(os.getloadavg()[0], 1)}
    return Outcome(name, question, date, quick, where, versions() | others, figures)


def parser_of(module: str, doc: str | None) -> argparse.ArgumentParser:
    """A parser with `--quick` and `--output`; each suite adds its own options."""
    parser = argparse.ArgumentParser(
        prog=f"python -m bench.suites.{module}", description=doc, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test that everything runs")
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: bench/results")
    return parser


def add_rounds(parser: argparse.ArgumentParser, what: str) -> None:
    """`--rounds N`, at least one."""
    parser.add_argument("--rounds", type=_at_least_one, default=5, metavar="N", help=f"{what} (default 5)")


def _at_least_one(text: str) -> int:
    rounds = int(text) if text.isdecimal() else 0
    if rounds < 1:
        raise argparse.ArgumentTypeError("must be a number, at least 1")
    return rounds


def folder_of(given: argparse.Namespace) -> Path:
    """The folder for the figures: those of tiny sizes are kept apart."""
    return given.output or (RESULTS / "quick" if given.quick else RESULTS)
