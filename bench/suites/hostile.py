"""Does any hostile input stop the engine, or take more memory or time than it should?

    python -m bench.suites.hostile [--quick] [--only TEXT] [--output FOLDER]

from the repository's root. Each case runs twice in a process of its own: the first run may have to compile kernels, and
the second one counts. Memory is the peak of the process (and of those that it starts); time is CPU time without
start-up and imports. bench/results/hostile.json has all figures. The exit status is 1 if a case exceeds its limits.
`--quick` runs each case once.
"""

from __future__ import annotations

import json
import os
import resource
import subprocess
import sys
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass
from tempfile import TemporaryDirectory

from rich.console import Console
from rich.table import Table

from bench.suites.hostility import data, processes, queries
from bench.suites.hostility.limits import CASES, Limit
from bench.suites.hostility.running import FOLDER
from bench.suites.outcome import folder_of, parser_of, taken_now
from cqels_py.suites import memory

__all__ = ["data", "processes", "queries"]

_PATIENCE = 10
"""A process is killed after so many times its case's seconds, plus one minute for the start."""
_ADDRESS_SPACE = 8 << 30
"""The memory limit of every case in bytes, to protect the machine."""


@dataclass(frozen=True, slots=True)
class Measured:
    """One case: its outcome, its peak memory (MB) and CPU time (s), and whether it is within its limits."""

    name: str
    outcome: str
    megabytes: int
    most_megabytes: int
    seconds: float
    most_seconds: float
    holds: bool


def run_here(name: str) -> None:
    """In the process of a case: run it and print its outcome and figures as JSON."""
    resource.setrlimit(resource.RLIMIT_AS, (_ADDRESS_SPACE, _ADDRESS_SPACE))
    begun = _cpu()
    try:
        found, holds = CASES[name].act(), True
    except AssertionError as error:
        found, holds = f"fails: {str(error)[:200]}", False
    except BaseException as error:
        found, holds = f"fails: {type(error).__name__}: {str(error)[:200]}", False
    peak = max(memory.peak(), resource.getrusage(resource.RUSAGE_CHILDREN).ru_maxrss / 1024)
    print(json.dumps({"outcome": found, "holds": holds, "seconds": _cpu() - begun, "megabytes": round(peak)}))


def _cpu() -> float:
    """CPU time (s) of this process and of those that it has waited for."""
    each = [resource.getrusage(who) for who in (resource.RUSAGE_SELF, resource.RUSAGE_CHILDREN)]
    return sum(usage.ru_utime + usage.ru_stime for usage in each)


def measure(case: Limit) -> Measured:
    """Run a case in a process of its own."""
    patience = 60 + _PATIENCE * case.seconds
    with TemporaryDirectory() as folder:
        process = subprocess.Popen(
            [sys.executable, "-m", "bench.suites.hostile", "--case", case.name],
            env=os.environ | {FOLDER: folder}, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, start_new_session=True,
        )  # fmt: skip
        started = time.perf_counter()
        try:
            said, errors = process.communicate(timeout=patience)
            found = json.loads(said.splitlines()[-1]) if said.strip() else None
            outcome = f"fails: it died ({process.returncode}): {errors.strip().splitlines()[-1:]}"
        except subprocess.TimeoutExpired:
            os.killpg(process.pid, 9)
            process.communicate()
            found, outcome = None, f"fails: it did not end within {patience:.0f} s"
    if found is None:
        seconds = time.perf_counter() - started
        return Measured(case.name, outcome, 0, case.megabytes, round(seconds, 2), case.seconds, False)
    within = found["megabytes"] <= case.megabytes and found["seconds"] <= case.seconds
    seconds = round(found["seconds"], 2)
    return Measured(
        case.name,
        found["outcome"],
        found["megabytes"],
        case.megabytes,
        seconds,
        case.seconds,
        found["holds"] and within,
    )


def table(measured: Sequence[Measured]) -> Table:
    made = Table("case", "outcome", title="hostile inputs", show_lines=True)
    for heading in ("MB", "at most", "CPU s", "at most", ""):
        made.add_column(heading, justify="right", no_wrap=True)
    for each in measured:
        figures = (each.megabytes, each.most_megabytes, f"{each.seconds:.2f}", f"{each.most_seconds:g}")
        made.add_row(each.name, each.outcome, *map(str, figures), "holds" if each.holds else "FAILS")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("hostile", __doc__)
    parser.add_argument("--only", default="", metavar="TEXT", help="only cases with this text in their names")
    parser.add_argument("--case", choices=CASES, help="run this case in this process and print its figures")
    asked = parser.parse_args(arguments)
    if asked.case is not None:
        run_here(asked.case)
        return 0
    measured: list[Measured] = []
    for case in CASES.values():
        if asked.only in case.name:
            found = measure(case)
            if not asked.quick:
                found = measure(case)
            measured.append(found)
            print(f"{'holds' if found.holds else 'FAILS'}  {found.name}: {found.outcome}", file=sys.stderr)
    Console(width=150).print(table(measured))
    if not asked.only:
        figures = {"cases": [asdict(each) for each in measured]}
        outcome = taken_now("hostile", (__doc__ or "").split("\n\n")[0], figures, quick=asked.quick)
        print(f"written to {outcome.write(folder_of(asked))}", file=sys.stderr)
    return 0 if all(each.holds for each in measured) else 1


if __name__ == "__main__":
    sys.exit(main())
