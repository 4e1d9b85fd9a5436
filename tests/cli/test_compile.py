"""`cqels compile`."""

from __future__ import annotations

from collections.abc import Callable, Iterable

import pytest

from cqels_py.kernels.compiler import prepare
from cqels_py.kernels.compiler.manifest import KernelCall, manifest
from tests.cli.conftest import Cqels


def test_the_kernels_of_the_manifest_that_are_missing_are_compiled(
    cqels: Cqels, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[KernelCall] = []

    def compile_kernels(calls: Iterable[KernelCall], on_done: Callable[[], None]) -> set[str]:
        asked.extend(calls)
        on_done()
        return {"one", "helper"}

    monkeypatch.setattr(prepare, "missing", lambda calls: list(calls)[:3])
    monkeypatch.setattr(prepare, "compile_kernels", compile_kernels)
    finished = cqels("compile")
    assert (finished.status, finished.out) == (0, "")
    assert finished.err.startswith("compiled 2 kernels in")
    assert asked == list(manifest()[:3])


def test_where_nothing_is_missing_nothing_is_compiled(cqels: Cqels, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(prepare, "missing", lambda calls: [])
    finished = cqels("compile")
    assert (finished.status, finished.out, finished.err) == (0, "", "all kernels are compiled\n")
