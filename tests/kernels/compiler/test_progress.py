"""The messages about kernels that are compiled, by this process or by others."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager

from cqels_py.kernels.compiler import prepare
from cqels_py.kernels.compiler.progress import announced


def test_kernels_that_other_processes_compiled_count() -> None:
    said: list[str] = []
    with announced(said.append):
        prepare._reporter.begin(120)
        prepare._reporter.add(120, 11.5)
    assert [said[0].partition(";")[0], *said[1:]] == [
        "compiling kernels for this machine",
        "compiled 120 kernels in 11.5 s; the next start will not need it",
    ]


def test_compilation_may_be_announced_in_one_line() -> None:
    said: list[str] = []
    with announced(said.append, summary=False):
        for _ in range(2):
            prepare._reporter.begin(120)
            prepare._reporter.add(120, 11.5)
    assert [line.partition(";")[0] for line in said] == ["compiling kernels for this machine"]


def test_without_compilation_nothing_is_said() -> None:
    said: list[str] = []
    with announced(said.append):
        pass
    assert said == []


def test_a_bar_advances_with_each_kernel_and_goes() -> None:
    drawn: list[str] = []

    @contextmanager
    def bar(kernels: int) -> Iterator[Callable[[], None]]:
        drawn.append(f"of {kernels}")
        yield lambda: drawn.append("one")
        drawn.append("gone")

    with announced(lambda _: None, bar=bar):
        for kernels in (2, 1):
            prepare._reporter.begin(kernels)
            for _ in range(kernels):
                prepare._reporter.done()
            prepare._reporter.add(kernels, 1.0)
        prepare._reporter.done()
    assert drawn == ["of 2", "one", "one", "gone", "of 1", "one", "gone"]
