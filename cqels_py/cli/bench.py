"""`cqels bench`: a suite's queries, one after another, with a line of progress and tables at the end."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TaskID, TextColumn, TimeElapsedColumn

from cqels_py.cli import bench_tables
from cqels_py.cli.failures import FAILED, Exit, say
from cqels_py.errors import MissingExtra, QueryError, UsageError
from cqels_py.suites import data, plots, processes, report
from cqels_py.suites.folder_suite import FolderSuite
from cqels_py.suites.resize import with_windows_of
from cqels_py.suites.suite import SUITES, Suite, find, title
from cqels_py.suites.task import Measured, Task

_WIDE = 200
"""The width of tables without a terminal: nothing is cut off."""


@dataclass(frozen=True, slots=True)
class Asked:
    """The command line. `windows`: none is the queries' own. `runners`: each query is measured on all of them in turn."""

    suite: Suite
    queries: dict[str, str]
    windows: tuple[int, ...]
    triples: int
    data: Path
    runners: tuple[str, ...]
    partitions: int | None
    threads: int | None
    check: bool
    seed: int
    json: Path | None
    csv: Path | None
    plots: Path | None
    earlier: tuple[report.Report, ...]


def show_list() -> None:
    """The suites and descriptions of their queries, on standard output."""
    for suite in SUITES:
        print(f"{suite.name}: {suite.description}")
        for id_, text in suite.queries().items():
            print(f"  {id_:>4}  {title(text)}")
    print("patterns: event patterns (MATCH), beside a kernel by hand and CORE")


def suite_of(name: str | None, folder: Path | None = None) -> Suite:
    """The suite of a name, or of a folder. UsageError for neither, both, and a suite that is not there."""
    if folder is not None:
        if name is not None:
            raise UsageError(f"{name} and --suite-dir {folder}: name one of them")
        return FolderSuite.of(folder)
    if name is None:
        raise UsageError(f"name a suite: {', '.join(suite.name for suite in SUITES)}")
    return find(name, SUITES)


def chosen_queries(suite: Suite, text: str | None) -> dict[str, str]:
    """`1,4,5` → their texts by id; None: all queries."""
    if text is None:
        return suite.chosen(())
    ids = [each.strip() for each in text.split(",") if each.strip()]
    if not ids:
        raise UsageError("--queries: expected numbers, like 1,4,5")
    return suite.chosen([each.lstrip("0") if each.isdigit() else each for each in ids])


def sizes(text: str | None) -> tuple[int, ...]:
    """`1000,10000` → sizes."""
    if text is None:
        return ()
    found = tuple(each.strip() for each in text.split(","))
    if not all(re.fullmatch(r"[1-9]\d{0,8}", each) for each in found):
        raise UsageError(f"--window {text!r}: expected a number of elements, or several, like 1000,10000")
    return tuple(dict.fromkeys(map(int, found)))


def check_outputs(asked: Asked) -> None:
    """UsageError for an output that could not be written at the end, before anything runs."""
    check_plots(asked.plots)
    for option, path in (("--json", asked.json), ("--csv", asked.csv)):
        if path is not None and (path.is_dir() or not path.absolute().parent.is_dir()):
            raise UsageError(f"{option} {path}: expected a file in an existing folder")
    for earlier in asked.earlier:
        if earlier.settings.suite != asked.suite.name:
            raise UsageError(f"--compare: that run is one of {earlier.settings.suite}, not of {asked.suite.name}")
        ids = dict.fromkeys(query.id for query in earlier.queries)
        if not ids.keys() & asked.queries.keys():
            raise UsageError(f"--compare: that run has none of these queries; it has {', '.join(ids) or 'none at all'}")


def check_plots(folder: Path | None) -> None:
    """MissingExtra without matplotlib, UsageError for a file."""
    if folder is not None and find_spec("matplotlib") is None:
        raise MissingExtra("--plots needs matplotlib: pip install 'cqels_py[bench]'")
    if folder is not None and folder.exists() and not folder.is_dir():
        raise UsageError(f"--plots {folder} is not a folder")


def run(asked: Asked) -> None:
    """Measure everything, show and write it. `Exit` with 1 where a query failed or its answer was wrong."""
    runner = report.BOTH if len(asked.runners) > 1 else asked.runners[0]
    settings = report.Settings(
        asked.suite.name, runner, asked.partitions, asked.triples, asked.seed, asked.check, asked.threads
    )
    with _progress() as progress:
        tasks = _tasks(asked, progress)
        outcomes = list(_measured(asked, tasks, progress))
    differing = report.beside_local(outcomes)
    found = report.Report.here(settings, outcomes)
    _write(asked, found)
    console = Console(width=None if sys.stdout.isatty() else _WIDE)
    console.print(bench_tables.outcome(found, console))
    for earlier in asked.earlier:
        if report.compared(earlier, found):
            console.print(bench_tables.comparison(earlier, found))
        else:
            say(f"warning: no query has the same windows as in the run of {earlier.date}: there are no ratios to it")
        for difference in report.differences(earlier.settings, settings):
            say(f"warning: the runs differ: {difference}")
    failures = [line for outcome in outcomes for line in _failures(outcome, runner)]
    failures += [f"error: {line}" for line in differing]
    if failures:
        say("\n".join(failures))
        raise Exit(FAILED)


def _failures(outcome: Measured, runner: str) -> Iterator[str]:
    query = f"query {outcome.id}" + (f" on {outcome.runner}" if runner == report.BOTH else "")
    if outcome.error is not None:
        yield f"error: {query}: {outcome.error}"
    elif outcome.check_error is not None:
        yield f"error: {query}: its answer could not be compared: {outcome.check_error}"
    elif outcome.equal is False:
        yield f"error: {query}: the answer is not that of re-evaluation: {outcome.note}"


def _tasks(asked: Asked, progress: Progress) -> list[Task]:
    """The tasks: each query with each of the requested windows, over the files of its streams."""
    bar = progress.add_task(f"{asked.suite.name}: data", total=asked.triples, phase="writing")
    files = data.prepared(
        asked.suite, asked.triples, asked.seed, asked.data, lambda done: progress.update(bar, completed=done)
    )
    progress.remove_task(bar)
    return [
        Task(
            id_,
            text if window is None else _resized(id_, text, window),
            title(text),
            {iri: str(path) for iri, path in files.streams.items()},
            str(files.static),
            files.marks,
            files.triples,
            window or 0,
            runner,
            None if runner == "local" else asked.partitions,
            asked.check,
            None if runner == "spark" else asked.threads,
        )
        for id_, text in asked.queries.items()
        for window in asked.windows or (None,)
        for runner in asked.runners
    ]


def _resized(id_: str, text: str, window: int) -> str:
    try:
        return with_windows_of(text, window)
    except QueryError as error:
        raise UsageError(f"query {id_}: {error.message}") from None


def _measured(asked: Asked, tasks: Sequence[Task], progress: Progress) -> Iterator[Measured]:
    all_of_them = progress.add_task(asked.suite.name, total=len(tasks), phase="")
    for task in tasks:
        name = f"query {task.id}" + (f", window {task.window:,}" if task.window else "")
        name += f" on {task.runner}" if len(asked.runners) > 1 else ""
        one = progress.add_task(name, total=task.triples, phase="starting")
        outcome = processes.measured(task, _teller(progress, one))
        outcome.runner = task.runner
        if not task.window:
            outcome.paper_triples_per_second = asked.suite.paper.get(task.id)
        progress.remove_task(one)
        progress.advance(all_of_them)
        yield outcome


def _teller(progress: Progress, bar: TaskID) -> Callable[[str, int], None]:
    def tell(phase: str, done: int) -> None:
        progress.update(bar, completed=done, phase=phase)

    return tell


@contextmanager
def _progress() -> Iterator[Progress]:
    """Bars on a terminal, nothing elsewhere."""
    console = Console(stderr=True)
    columns = (
        TextColumn("{task.description}"), BarColumn(), MofNCompleteColumn(), TextColumn("{task.fields[phase]}"),
        TimeElapsedColumn(),
    )  # fmt: skip
    with Progress(*columns, console=console, transient=True, disable=not console.is_terminal) as progress:
        yield progress


def _write(asked: Asked, found: report.Report) -> None:
    for path, text in ((asked.json, found.as_json()), (asked.csv, found.as_csv())):
        if path is not None:
            try:
                path.write_text(text, encoding="utf-8")
            except OSError as error:
                raise UsageError(f"cannot write {path}: {error.strerror}") from None
    if asked.plots is not None:
        for path in plots.draw([*asked.earlier, found], asked.plots):
            say(f"drawn: {path}")
