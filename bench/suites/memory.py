"""How many bytes does the engine keep for each leaf mapping, and for each result of a join?

    python -m bench.suites.memory [--quick]

Windows of 1,000,000 mappings each: joins of 2 to 8 patterns (the paper's Table 2) on one variable, with as many keys as
mappings (about one partner in each other window), a join of 2 with a hundredth of that, one over a time window, and two
with larger windows. Windows are turned over ten times, so the number of mappings per key varies. The bytes are those of
the arrays that the query's operators hold, including free space; the growth of the process is shown as well. The
dictionary is left out. Every case runs in a process of its own. Writes bench/results/memory.json.
"""

from __future__ import annotations

import ctypes
import gc
import multiprocessing
import re
import sys
from collections import Counter
from collections.abc import Iterator, Sequence
from concurrent.futures import ProcessPoolExecutor
from dataclasses import asdict, dataclass
from typing import Any

import numpy as np
from rich.console import Console
from rich.table import Table

from bench.arrivals import MANY, Setting
from bench.queries import RunningQuery
from bench.suites.outcome import folder_of, parser_of, taken_now
from cqels_py.dictionary import Dictionary
from cqels_py.kernels.primitives.state_record import ArrayTable
from cqels_py.suites import memory

WINDOW = 1_000_000
TURNOVERS = 10
INTEGER = 8
_WINDOW = re.compile(r"\[.*?\]")
BAR_FACTOR, BAR_BYTES = 1.5, 24
"""The bar for a leaf with one ring index: at most so many times a mapping's own integers (its ids), and so many bytes more."""


@dataclass(frozen=True)
class Case:
    """A query of `inputs` patterns over windows of `window` mappings each, with `keys` different keys."""

    name: str
    text: str
    inputs: int
    window: int
    keys: int
    rings: int = 0

    @property
    def setting(self) -> Setting:
        return Setting(self.name, self.window, self.keys, (MANY,) * self.inputs, max(100, self.window // 100))


@dataclass(frozen=True)
class Kept:
    """The memory of a query after its windows have been turned over TURNOVERS times.

    `arrays`: bytes by the attribute that holds them. `reported`: `Query.nbytes`. `grown`: growth of resident memory in
    bytes. `results`: rows of the current answer.
    """

    name: str
    rings: int
    leaves: int
    keys: int
    results: int
    arrays: dict[str, int]
    reported: int
    grown: int

    @property
    def total(self) -> int:
        return sum(self.arrays.values())

    @property
    def a_leaf(self) -> float:
        return self.total / self.leaves

    @property
    def bar(self) -> float | None:
        """The bar for leaves with one ring index."""
        return BAR_FACTOR * 2 * INTEGER + BAR_BYTES if self.rings == 1 else None


def star(n: int, window: int, keys: int, *, timed: bool = False) -> Case:
    """n patterns that share ?k, over a window of so many elements for each, or of as many microseconds with one element
    in each.
    """
    patterns = " . ".join(f"?k :p{i} ?v{i}" for i in range(n))
    size = f"RANGE PT{n * window / 1e6:.6f}S" if timed else f"COUNT {n * window}"
    text = f"SELECT * WHERE {{ STREAM <http://ex.org/s> [{size}] {{ {patterns} }} }}"
    name = f"{n}-way join, {keys:,} keys{', of time' if timed else ''}"
    return Case(name, text, n, window, keys, rings=1)


def cases(window: int) -> list[Case]:
    alone = f"SELECT * WHERE {{ STREAM <http://ex.org/s> [COUNT {window}] {{ ?k :p0 ?v }} }}"
    return [
        Case("window alone", alone, 1, window, window),
        star(2, window, window // 100),
        *(star(n, window, window) for n in range(2, 9)),
        star(2, window, window, timed=True),
        # The free space depends on the window's size relative to the sizes at which arrays grow.
        *(star(2, larger, larger) for larger in (window * 23 // 20, window * 13 // 10)),
    ]


def measure(case: Case) -> Kept:
    """Fill the windows, turn them over, and measure."""
    # The terms of all keys are in the dictionary, which is not measured.
    query = RunningQuery(case.text, case.setting)
    _run(case, RunningQuery(_WINDOW.sub("[COUNT 100]", case.text), case.setting), batches=2)
    before = _resident()
    results = _run(case, query, batches=(1 + TURNOVERS) * case.inputs * case.window // case.setting.batch)
    grown = _resident() - before
    held = {name: size for name, size in arrays_of(query.dataflow).most_common() if size}
    return Kept(
        case.name, case.rings, case.inputs * case.window, case.keys, results, held, query.dataflow.nbytes, grown
    )


def _run(case: Case, query: RunningQuery, batches: int) -> int:
    """Returns the number of rows of the answer at the end."""
    arrivals = case.setting.arrivals(seed=1)
    return sum(int(chunk.sign.sum()) for _ in range(batches) for chunk in query.take(arrivals.batch()))


def _resident() -> int:
    """Resident memory in bytes, after free memory has been returned."""
    gc.collect()
    trim = getattr(ctypes.CDLL(None), "malloc_trim", None)
    if trim is not None:
        trim(0)
    return int(memory.now() * 2**20)


def arrays_of(root: object) -> Counter[str]:
    """Bytes of all numpy arrays reachable from an object, by the class and attribute that hold them.

    An array with several holders counts once, as a whole even if only a part of it is held.
    """
    found: Counter[str] = Counter()
    seen: set[int] = set()
    # Objects in `waiting` stay alive, so that identities are unique.
    waiting: list[tuple[str, object]] = [("", root)]
    last: list[tuple[str, object]] = []
    kept: list[object] = []
    while waiting or last:
        name, item = (waiting or last).pop()
        while isinstance(item, np.ndarray) and isinstance(item.base, np.ndarray):
            item = item.base
        if id(item) in seen or isinstance(item, type | Dictionary):
            continue
        seen.add(id(item))
        kept.append(item)
        if isinstance(item, np.ndarray):
            found[name] += item.nbytes
        elif isinstance(item, ArrayTable):
            # Its content mostly belongs to another holder.
            last += _parts(name, item)
        else:
            waiting += _parts(name, item)
    return found


def _parts(name: str, item: object) -> Iterator[tuple[str, object]]:
    """The parts of an object, each with the name of its holder."""
    match item:
        case dict():
            yield from ((name, value) for value in item.values())
        case list() | tuple() | set() | frozenset():
            yield from ((name, value) for value in item)
        case _ if type(item).__module__.startswith("cqels_py."):
            slots = [slot for kind in type(item).__mro__ for slot in getattr(kind, "__slots__", ())]
            held = {slot: getattr(item, slot) for slot in slots if hasattr(item, slot)} | getattr(item, "__dict__", {})
            yield from ((f"{type(item).__name__}.{key}", value) for key, value in held.items())


def table(found: Sequence[Kept]) -> Table:
    made = Table(title=f"bytes kept, windows full and turned over {TURNOVERS} times")
    made.add_column("query", no_wrap=True)
    for heading in ("leaves", "a leaf", "bar", "resident", "results", "a result"):
        made.add_column(heading, justify="right")
    for kept in found:
        made.add_row(
            kept.name,
            f"{kept.leaves:,}",
            f"{kept.a_leaf:.1f}",
            "" if kept.bar is None else f"{kept.bar:.0f}",
            f"{kept.grown / kept.leaves:.1f}",
            f"{kept.results:,}",
            f"{kept.total / kept.results:.1f}" if kept.results else "",
        )
        for name, size in kept.arrays.items():
            if size >= kept.total / 20:
                made.add_row(f"  {name}", "", f"{size / kept.leaves:.1f}", style="dim")
    return made


def main(arguments: Sequence[str] | None = None) -> int:
    given = parser_of("memory", __doc__).parse_args(arguments)
    asked = cases(300 if given.quick else WINDOW)
    if given.quick:
        found = [measure(case) for case in asked]
    else:
        # One process per case: memory freed by another case must not be reused.
        with ProcessPoolExecutor(1, multiprocessing.get_context("spawn"), max_tasks_per_child=1) as pool:
            found = list(pool.map(measure, asked))
    Console().print(table(found))
    question = (__doc__ or "").split("\n\n")[0]
    figures: dict[str, Any] = {
        "cases": [asdict(kept) | {"bytes_a_leaf": kept.a_leaf, "bar": kept.bar} for kept in found]
    }
    path = taken_now("memory", question, figures, quick=given.quick).write(folder_of(given))
    print(f"written to {path}", file=sys.stderr)
    return 0


if __name__ == "__main__":
    sys.exit(main())
