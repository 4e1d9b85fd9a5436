"""Reports to the user when kernels are compiled: on a machine's first use, not when a query is registered later."""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager, ExitStack, contextmanager

from numba.core import event

from cqels_py.kernels.compiler.prepare import announcement, reporting

Bar = Callable[[int], AbstractContextManager[Callable[[], None]]]
"""Draws progress over so many kernels; the function advances it by one."""
_COMPILE = "numba:compile"


def _nothing() -> None:
    """Advances no bar."""


class _Watcher(event.Listener):
    """Adds up the time of the outermost compilations."""

    def __init__(self, say: Callable[[str], None], bar: Bar | None) -> None:
        self._say = say
        self._bar = bar
        self._drawn = ExitStack()
        self._advance: Callable[[], None] = _nothing
        self._begun = False
        self._depth = 0
        self._started = 0.0
        self.seconds = 0.0
        self.kernels = 0

    def begin(self, kernels: int) -> None:
        """Say that compilation begins, the first time, and draw the bar for so many kernels."""
        if not self._begun:
            self._begun = True
            self._say(f"{announcement()} …")
        if self._bar is not None and kernels:
            self._advance = self._drawn.enter_context(self._bar(kernels))

    def done(self) -> None:
        """A kernel has been compiled by another process."""
        self._advance()

    def add(self, kernels: int, seconds: float) -> None:
        """Count kernels that other processes compiled while this one waited; the bar goes."""
        self.close()
        self.kernels += kernels
        self.seconds += seconds

    def close(self) -> None:
        """Remove the bar, if there is one."""
        self._advance = _nothing
        self._drawn.close()

    def on_start(self, event: event.Event) -> None:
        self.begin(0)
        if self._depth == 0:
            self._started = time.perf_counter()
        self._depth += 1

    def on_end(self, event: event.Event) -> None:
        self._depth -= 1
        self.kernels += 1
        if self._depth == 0:
            self.seconds += time.perf_counter() - self._started


@contextmanager
def announced(say: Callable[[str], None], *, summary: bool = True, bar: Bar | None = None) -> Iterator[_Watcher]:
    """While this lasts, `say` is called when compilation starts and, with `summary`, at the end with the time that all
    of it took. `bar` draws how many kernels have been compiled."""
    watcher = _Watcher(say, bar)
    event.register(_COMPILE, watcher)
    try:
        with reporting(watcher):
            yield watcher
    finally:
        watcher.close()
        event.unregister(_COMPILE, watcher)
        if summary and watcher.kernels:
            say(f"compiled {watcher.kernels} kernels in {watcher.seconds:.1f} s; the next start will not need it")
