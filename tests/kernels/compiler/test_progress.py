"""The messages about kernels that are compiled, by this process or by others."""

from __future__ import annotations

from cqels_py.kernels.compiler import prepare
from cqels_py.kernels.compiler.progress import announced


def test_kernels_that_other_processes_compiled_count() -> None:
    said: list[str] = []
    with announced(said.append):
        prepare._reporter.begin()
        prepare._reporter.add(120, 11.5)
    assert [said[0].partition(";")[0], *said[1:]] == [
        "compiling kernels for this machine",
        "compiled 120 kernels in 11.5 s; the next start will not need it",
    ]


def test_compilation_may_be_announced_in_one_line() -> None:
    said: list[str] = []
    with announced(said.append, summary=False):
        for _ in range(2):
            prepare._reporter.begin()
            prepare._reporter.add(120, 11.5)
    assert [line.partition(";")[0] for line in said] == ["compiling kernels for this machine"]


def test_without_compilation_nothing_is_said() -> None:
    said: list[str] = []
    with announced(said.append):
        pass
    assert said == []
