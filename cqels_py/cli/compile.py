"""`cqels compile`: all kernels ahead of time, for images and installers."""

from __future__ import annotations

import time

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeElapsedColumn

from cqels_py.cli.failures import say


def compile_all() -> None:
    """Compile the kernels of the manifest that are not in the cache."""
    from cqels_py.kernels.compiler.manifest import manifest
    from cqels_py.kernels.compiler.prepare import compile_kernels, missing

    absent = missing(manifest())
    if not absent:
        say("all kernels are compiled")
        return
    started = time.perf_counter()
    console = Console(stderr=True)
    columns = (TextColumn("compiling kernels"), BarColumn(), MofNCompleteColumn(), TimeElapsedColumn())
    with Progress(*columns, console=console, disable=not console.is_terminal) as progress:
        task = progress.add_task("compile", total=len(absent))
        compiled = compile_kernels(absent, lambda: progress.advance(task))
    say(f"compiled {len(compiled)} kernels in {time.perf_counter() - started:.0f} s")
