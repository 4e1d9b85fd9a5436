"""Reports to the user when kernels are compiled: on a machine's first use, not when a query is registered later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager

from numba.core import event

from cqels_py.kernels.compiler.prepare import announcement, reporting

_COMPILE = "numba:compile"


class _Watcher(event.Listener):
    """Adds up the time of the outermost compilations."""

    def __init__(self, say: Callable[[str], None]) -> None:
        self._say = say
        self._begun = False
        self._depth = 0
        self._started = 0.0
        self.seconds = 0.0
        self.kernels = 0

    def begin(self) -> None:
        """The first time: say that compilation begins."""
        if not self._begun:
            self._begun = True
            self._say(f"{announcement()} …")

    def add(self, kernels: int, seconds: float) -> None:
        """Count kernels that other processes compiled while this one waited."""
        self.kernels += kernels
        self.seconds += seconds

    def on_start(self, event: event.Event) -> None:
        self.begin()
        if self._depth == 0:
            self._started = time.perf_counter()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        self.kernels += 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started


@contextmanager
def announced(say: Callable[[str], None], *, summary: bool = True) -> Iterator[_Watcher]:
    """While this lasts, `say` is called when compilation starts and, with `summary`, at the end with the time that all
    of it took."""
    watcher = _Watcher(say)
    event.register(_COMPILE, watcher)
    try:
        with reporting(watcher):
            yield watcher
    finally:
        event.unregister(_COMPILE, watcher)
        if summary and watcher.kernels:
            say(f"compiled {watcher.kernels} kernels in {watcher.seconds:.1f} s; the next start will not need it")
