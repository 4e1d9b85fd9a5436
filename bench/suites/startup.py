"""How long does a small job take: on its first run ever, and on later runs?

    python -m bench.suites.startup [--quick] [--rounds N] [--output FOLDER]

from the repository's root. Seconds of wall-clock time from the start of the process to its end, with 200 elements per
stream, by `cqels run` over files and by a program that pushes one element after another. Cold starts have an empty
cache of compiled kernels. Printed are medians, with the lowest and the highest value; bench/results/startup.json has
all. `--quick` takes one warm start of each query.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import asdict, dataclass, field
from pathlib import Path
from statistics import median

from rich.console import Console
from rich.table import Table

from bench.suites.outcome import add_rounds, folder_of, parser_of, taken_now

_ELEMENTS = 200
_QUERIES = {
    "pattern with a filter": "SELECT ?k ?x WHERE { STREAM :a [RANGE 10s] { ?k :a ?x } FILTER(?x > 50) }",
    "join of 3 windows, AVG of its results": """SELECT ?k (AVG(?x + ?y) AS ?mean) (COUNT(*) AS ?n) WHERE {
        STREAM :a [RANGE 10s] { ?k :a ?x }
        STREAM :b [RANGE 10s] { ?k :b ?y }
        STREAM :c [RANGE 10s] { ?k :c ?z }
    } GROUP BY ?k""",
}


COMMAND, PROGRAM = "cqels run", "a program that pushes"
_PUSHING = """
import sys
import cqels_py
engine = cqels_py.Engine()
query = engine.register(sys.argv[1])
for i in range(int(sys.argv[2])):
    for name in sys.argv[3]:
        value = f'"{i * 37 % 100}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        triple = (f"<http://ex.org/k{i % 10}>", f"<http://ex.org/{name}>", value)
        engine.push(f"http://ex.org/{name}", [triple], time=i * 1_000_000)
engine.finish()
print(sum(1 for _ in query.results()))
"""


@dataclass(slots=True)
class Case:
    """A query, how it is run, and the seconds of each start."""

    query: str
    runner: str
    streams: str
    cold: list[float] = field(default_factory=list)
    warm: list[float] = field(default_factory=list)


def write_stream(path: Path, name: str) -> None:
    """One reading per second, of ten sensors."""
    with path.open("w", encoding="utf-8") as file:
        for i in range(_ELEMENTS):
            graph = f"<http://ex.org/{name}{i}>"
            at = f'"2026-01-01T00:{i // 60:02}:{i % 60:02}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
            value = f'"{i * 37 % 100}"^^<http://www.w3.org/2001/XMLSchema#integer>'
            file.write(f"{graph} <http://www.w3.org/ns/prov#generatedAtTime> {at} .\n")
            file.write(f"<http://ex.org/k{i % 10}> <http://ex.org/{name}> {value} {graph} .\n")


def seconds(case: Case, folder: Path, compiled: Path | None = None) -> float:
    """One run over the streams in `folder`; `compiled`: the cache folder, if it is not the usual one."""
    environment = dict(os.environ) if compiled is None else os.environ | {"CQELS_CACHE_DIR": str(compiled)}
    # Byte-compile modules, as an installation does.
    environment.pop("PYTHONDONTWRITEBYTECODE", None)
    text = f"PREFIX : <http://ex.org/>\n{_QUERIES[case.query]}"
    if case.runner == PROGRAM:
        command = [sys.executable, "-c", _PUSHING, text, str(_ELEMENTS), case.streams]
    else:
        command = [sys.executable, "-m", "cqels_py", "run", "-q", text]
        for name in case.streams:
            command += ["--stream", f"http://ex.org/{name}={folder / name}.nq"]
    start = time.perf_counter()
    finished = subprocess.run(command, env=environment, capture_output=True, text=True)
    taken = time.perf_counter() - start
    assert finished.returncode == 0 and finished.stdout, finished.stderr
    return taken


def measure(case: Case, folder: Path, *, cold: int, warm: int) -> None:
    """Fill in the case's figures. The first run may have to compile, and does not count."""
    seconds(case, folder)
    case.warm += [seconds(case, folder) for _ in range(warm)]
    for _ in range(cold):
        with tempfile.TemporaryDirectory() as compiled:
            case.cold.append(seconds(case, folder, Path(compiled)))


def shown_as(seconds: Sequence[float]) -> tuple[str, str]:
    """The median, then the lowest and the highest value."""
    return f"{median(seconds):.2f}", f"{min(seconds):.2f} … {max(seconds):.2f}"


def table(measured: Sequence[Case]) -> Table:
    made = Table("query", "run by", title="seconds of a start")
    for heading in ("cold", "lowest … highest", "warm", "lowest … highest"):
        made.add_column(heading, justify="right", no_wrap=True)
    for case in measured:
        cells = [text for each in (case.cold, case.warm) for text in (shown_as(each) if each else ("", ""))]
        made.add_row(case.query, case.runner, *cells)
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    parser = parser_of("startup", __doc__)
    add_rounds(parser, "number of cold starts; 4 N warm ones")
    given = parser.parse_args(arguments)
    measured = [
        Case(query, runner, "abc" if "STREAM :b" in text else "a")
        for query, text in _QUERIES.items()
        for runner in (COMMAND, PROGRAM)
    ]
    with tempfile.TemporaryDirectory() as made:
        folder = Path(made)
        for name in "abc":
            write_stream(folder / f"{name}.nq", name)
        for case in measured:
            measure(case, folder, cold=0 if given.quick else given.rounds, warm=1 if given.quick else 4 * given.rounds)
    Console().print(table(measured))
    figures = {"cases": [asdict(case) for case in measured]}
    found = taken_now("startup", (__doc__ or "").split("\n\n")[0], figures, quick=given.quick)
    print(f"written to {found.write(folder_of(given))}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
