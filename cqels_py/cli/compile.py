"""`cqels compile`: all kernels ahead of time, for images, installers and wheels."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cqels_py.cli.failures import say
from cqels_py.errors import RunError, UsageError


def compile_all() -> None:
    """Compile the kernels of the manifest that are not in the cache."""
    from cqels_py.kernels.compiler.manifest import manifest
    from cqels_py.kernels.compiler.prepare import compile_kernels, missing

    absent = missing(manifest())
    if not absent:
        say("all kernels are compiled")
        return
    started = time.perf_counter()
    with kernels_bar(len(absent)) as advance:
        compiled = compile_kernels(absent, advance)
    say(f"compiled {len(compiled)} kernels in {time.perf_counter() - started:.0f} s")


def compile_for_others(target: str, folder: Path) -> None:
    """Compile all kernels of the manifest for processors of a kind into a folder."""
    from cqels_py.kernels.compiler.manifest import manifest
    from cqels_py.kernels.compiler.prepare import compile_for
    from cqels_py.kernels.compiler.shipped import TARGETS, Shipment

    if target not in TARGETS:
        raise UsageError(f"there is no target {target!r}; there are {', '.join(TARGETS)}")
    folder.mkdir(parents=True, exist_ok=True)
    started = time.perf_counter()
    with kernels_bar(len(manifest())) as advance:
        absent = compile_for(Shipment.made_here(target), manifest(), folder, advance)
    if absent:
        raise RunError(f"{len(absent)} kernels could not be compiled for {target}, the first is {absent[0].kernel}")
    say(f"compiled all kernels for {target} into {folder} in {time.perf_counter() - started:.0f} s")


@contextmanager
def kernels_bar(total: int) -> Iterator[Callable[[], None]]:
    """A bar with n of `total` on a terminal, which goes at the end; the function advances it."""
    console = Console(stderr=True)
    columns = (TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal, transient=True) as progress:
        task = progress.add_task("compile", total=total)
        yield lambda: progress.advance(task)
