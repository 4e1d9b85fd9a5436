"""Parallel compilation of the kernels that a rehearsal calls, by processes that always end."""

from __future__ import annotations

import os
import subprocess
import tempfile
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest

from cqels_py.kernels.compiler import parallel_build as ahead

REHEARSAL = ("tests.kernels.compiler.calls_mix",)
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


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_the_kernels_that_a_rehearsal_calls_are_compiled_and_kept(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    monkeypatch.setenv("CQELS_CACHE_DIR", str(tmp_path))
    assert ahead.compile_all(REHEARSAL, 2) == MIXED
    assert len(started) == 3
    assert ahead.compile_all(REHEARSAL, 1) == set()


def test_a_rehearsal_that_fails_compiles_nothing(started: list[subprocess.Popen[str]]) -> None:
    assert ahead.compile_all(("tests.kernels.compiler.no_such_module",), 1) == set()
    assert len(started) == 2


def test_nothing_happens_if_no_process_can_be_started(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*arguments: Any, **options: Any) -> Any:
        raise BlockingIOError("Resource temporarily unavailable")

    monkeypatch.setattr(subprocess, "Popen", refuse)
    assert ahead.compile_all(REHEARSAL, 2) == set()


def test_an_interrupt_ends_all_processes(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, started: list[subprocess.Popen[str]]
) -> None:
    def interrupt(*arguments: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(ahead, "_reported_calls", interrupt)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    with pytest.raises(KeyboardInterrupt):
        ahead.compile_all(REHEARSAL, 2)
    assert len(started) == 3
    assert list(tmp_path.iterdir()) == []


@pytest.fixture
def compiling(monkeypatch: pytest.MonkeyPatch) -> list[tuple[Sequence[str], int]]:
    """What is to be compiled ahead on a machine with four cores: it is told, and nothing is done."""
    asked: list[tuple[Sequence[str], int]] = []

    def compile_all(rehearsal: Sequence[str], workers: int, first_input: bytes) -> set[str]:
        asked.append((rehearsal, workers))
        return {"a", "b", "c"}

    monkeypatch.setattr(ahead, "compile_all", compile_all)
    monkeypatch.setattr(ahead, "_cores", lambda: 4)
    return asked


def test_only_the_first_missing_kernel_starts_a_rehearsal(compiling: list[tuple[Sequence[str], int]]) -> None:
    with ahead.rehearsing(("rehearsal", "argument")):
        assert [ahead.something_is_missing() for _ in range(3)] == [True, False, False]
    assert compiling == [(("rehearsal", "argument"), 4)]


def test_a_rehearsal_waits_until_standard_input_has_begun(
    compiling: list[tuple[Sequence[str], int]],
) -> None:
    come: list[bytes | None] = [None, b"<a> <b> <c> .", b"more"]
    with ahead.rehearsing(REHEARSAL, lambda: come.pop(0)):
        assert [ahead.something_is_missing() for _ in range(3)] == [False, True, False]
    assert len(compiling) == 1
    assert come == [b"more"]


def test_the_rehearsal_gets_the_first_bytes_of_standard_input(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    given: list[bytes] = []

    def rehearse(self: Any, rehearsal: Sequence[str], folder: str, workers: int) -> set[str]:
        given.append(Path(folder, ahead.INPUT).read_bytes())
        return set()

    monkeypatch.setattr(ahead._Team, "rehearse", rehearse)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    ahead.compile_all(REHEARSAL, 1, b"<a> <b> <c> .\n")
    assert given == [b"<a> <b> <c> .\n"]
    assert list(tmp_path.iterdir()) == []


def test_without_a_rehearsal_or_a_second_core_nothing_is_started(
    compiling: list[tuple[Sequence[str], int]], monkeypatch: pytest.MonkeyPatch
) -> None:
    assert not ahead.something_is_missing()
    monkeypatch.setattr(ahead, "_cores", lambda: 1)
    with ahead.rehearsing(REHEARSAL):
        assert not ahead.something_is_missing()
    assert compiling == []


def test_where_kernels_cannot_be_kept_nothing_is_started(compiling: list[tuple[Sequence[str], int]]) -> None:
    begun: list[str] = []
    with ahead.reporting(lambda: begun.append("begun"), lambda kernels, seconds: None), ahead.rehearsing(REHEARSAL):
        assert not ahead.something_is_missing(lambda: False)
    assert (begun, compiling) == (["begun"], [])


def test_compilation_is_reported(compiling: list[tuple[Sequence[str], int]]) -> None:
    said: list[Any] = []
    with (
        ahead.reporting(lambda: said.append("begun"), lambda kernels, seconds: said.append(kernels)),
        ahead.rehearsing(REHEARSAL),
    ):
        ahead.something_is_missing()
    assert said == ["begun", 3]


def call(name: str, **parts: int) -> dict[str, Any]:
    return {"name": name, "parts": parts}


def test_the_largest_kernel_comes_first_and_those_that_share_helpers_wait() -> None:
    first = call("first", terms=60, scan=50)
    sharing = call("sharing", terms=60, encode=10)
    apart = call("apart", compare=20)
    calls = ahead.Calls([apart, sharing, first])
    assert calls.take(1) == first
    assert calls.take(2) == apart
    # The first worker has compiled the shared helpers.
    assert calls.take(1) == sharing
    assert calls.take(2) is None
