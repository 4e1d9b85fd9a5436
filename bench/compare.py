"""Runs benchmarks, prints one table, and writes their rates and plots to bench/results:

    python -m bench.compare [--quick] [--only NAME]… [--rounds N] [--output FOLDER]

from the repository's root, with `pip install -e .[bench]`. NAME is a benchmark's file without `bench_`: star_join. Each
benchmark runs in a process of its own, in which all competitors of a setting take turns. `--quick` uses tiny sizes to
test that everything runs; its rates are meaningless and go to bench/results/quick.
"""

from __future__ import annotations

import argparse
import ast
import os
import subprocess
import sys
import tempfile
from collections.abc import Sequence
from datetime import UTC, datetime
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console

from bench.kernels.cpp import library as cpp
from bench.plots import draw
from bench.report import Report, read_rates, table
from bench.suites.outcome import add_rounds
from cqels_py.suites.machine import machine, versions

_BENCH = Path(__file__).parent
_FOLDERS = ("kernels", "operators")
_PREFIX = "bench_"


def benchmarks() -> dict[str, Path]:
    """The benchmark files by name."""
    files = [path for folder in _FOLDERS for path in sorted((_BENCH / folder).glob(f"{_PREFIX}*.py"))]
    return {path.stem.removeprefix(_PREFIX): path for path in files}


def measure(name: str, path: Path, *, quick: bool, rounds: int) -> Report:
    """Run one benchmark. CalledProcessError if it fails; the output of pytest is shown."""
    with tempfile.TemporaryDirectory() as folder:
        rates = Path(folder) / "rates.json"
        command = [sys.executable, "-m", "pytest", str(path), "-q", "--no-header", "--benchmark-enable"]
        command += [f"--benchmark-json={rates}", "--benchmark-quiet", f"--rounds={rounds}"]
        # Inside a worker of pytest-xdist, pytest-benchmark would disable measurements.
        alone = {name: value for name, value in os.environ.items() if not name.startswith("PYTEST")}
        subprocess.run(command + ["--quick"] * quick, cwd=_BENCH.parent, check=True, stdout=2, env=alone)
        found = read_rates(rates)
    question = (ast.get_docstring(ast.parse(path.read_text())) or name).split("\n\n")[0].replace("\n", " ")
    date = datetime.now(UTC).isoformat(timespec="seconds")
    return Report(name, question, date, quick, machine(), {**versions(), cpp.COMPILER: cpp.version()}, found)


def main(arguments: Sequence[str] | None = None) -> int:
    known = benchmarks()
    summary, usage = __doc__.split("\n\n", 1)
    parser = argparse.ArgumentParser(
        prog="python -m bench.compare", description=summary, epilog=usage, formatter_class=argparse.RawTextHelpFormatter
    )
    parser.add_argument("--quick", action="store_true", help="tiny sizes, to test that everything runs")
    parser.add_argument("--only", action="append", choices=known, metavar="NAME", help=", ".join(known))
    add_rounds(parser, "rounds of about a second")
    parser.add_argument(
        "--redraw", action="store_true", help="measure nothing: draw the plots of the folder's JSON files again"
    )
    parser.add_argument("--output", type=Path, metavar="FOLDER", help="default: bench/results")
    given = parser.parse_args(arguments)
    if find_spec("pytest_benchmark") is None:
        parser.exit(2, "pytest-benchmark is not installed: pip install -e .[bench]\n")
    if cpp.compiler() is None:
        print(f"C++ by hand is {cpp.version()}", file=sys.stderr)
    folder = given.output or _BENCH / "results" / ("quick" if given.quick else "")
    if given.redraw:
        return _draw(
            [Report.read(path) for path in (folder / f"{each}.json" for each in given.only or known) if path.exists()],
            folder,
        )
    reports = []
    for name in given.only or known:
        try:
            reports.append(measure(name, known[name], quick=given.quick, rounds=given.rounds))
        except subprocess.CalledProcessError:
            print(f"{name} failed; see the output of pytest above", file=sys.stderr)
            return 1
        reports[-1].write(folder)
    Console().print(table(reports))
    return _draw(reports, folder)


def _draw(reports: Sequence[Report], folder: Path) -> int:
    try:
        for report in reports:
            draw(report, folder)
    except ImportError:
        print("no plots: matplotlib is not installed (pip install -e .[bench])", file=sys.stderr)
    print(f"written to {folder}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
