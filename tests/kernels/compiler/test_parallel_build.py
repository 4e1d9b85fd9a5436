"""Parallel compilation by processes that always end."""

from __future__ import annotations

import os
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from cqels_py.kernels.compiler import parallel_build as build
from cqels_py.kernels.compiler.manifest import KernelCall
from cqels_py.kernels.compiler.prepare import _request

MIX = [KernelCall("cqels_py.dataflow.router", "structures.hashing.mix", (kind,)) for kind in ("int64", "bool")]
MIXED = {"cqels_py.kernels.structures.hashing.mix(int64,)", "cqels_py.kernels.structures.hashing.mix(bool,)"}


@pytest.fixture
def started(monkeypatch: pytest.MonkeyPatch) -> Iterator[list[subprocess.Popen[str]]]:
    """Processes that were started; each has ended when the test has."""
    found: list[subprocess.Popen[str]] = []
    start = subprocess.Popen

    def remember(*arguments: Any, **options: Any) -> subprocess.Popen[str]:
        found.append(start(*arguments, **options))
        return found[-1]

    monkeypatch.setattr(subprocess, "Popen", remember)
    yield found
    assert all(process.poll() is not None for process in found)


compiling = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


@compiling
def test_kernels_are_compiled_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    monkeypatch.setenv("CQELS_CACHE_DIR", str(tmp_path))
    done: list[int] = []
    assert build.compile_calls(list(map(_request, MIX)), 2, lambda: done.append(1)) == MIXED
    assert (len(started), len(done)) == (2, 2)
    assert build.compile_calls(list(map(_request, MIX)), 1, lambda: None) == set()


@compiling
def test_a_kernel_that_fails_to_compile_stops_no_other(started: list[subprocess.Popen[str]], tmp_path: Path) -> None:
    wrong, right = map(_request, MIX)
    calls = [{**wrong, "name": "no_such_kernel"}, right]
    found = build.compile_calls(calls, 1, lambda: None, {"CQELS_CACHE_DIR": str(tmp_path)})
    assert found == {"cqels_py.kernels.structures.hashing.mix(bool,)"}


def test_nothing_happens_if_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert build.compile_calls([call("first")], 2, lambda: None) == set()


def test_an_interrupt_ends_all_processes(monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]) -> None:
    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(build._Team, "compile", interrupt)
    with pytest.raises(KeyboardInterrupt):
        build.compile_calls([call("first")], 2, lambda: None)
    assert len(started) == 2


def call(name: str, **parts: int) -> dict[str, Any]:
    return {"name": name, "parts": parts}


def test_the_largest_kernel_comes_first_and_those_that_share_helpers_wait() -> None:
    first = call("first", terms=60, scan=50)
    sharing = call("sharing", terms=60, encode=10)
    apart = call("apart", compare=20)
    calls = build.Calls([apart, sharing, first])
    assert calls.take(1) == first
    assert calls.take(2) == apart
    # The first worker has compiled the shared helpers.
    assert calls.take(1) == sharing
    assert calls.take(2) is None
