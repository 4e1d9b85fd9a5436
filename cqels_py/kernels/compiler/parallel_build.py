"""On a machine's first use: all kernels that a query will need are compiled at once, by a process on each core.

Which kernels those are, a rehearsal says: a process that runs the query over the first of its data with kernels as plain Python,
and tells what it calls. What it overlooks is compiled when it is needed. Nothing of this happens while no kernel is missing.
"""

from __future__ import annotations

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from pathlib import Path
from shutil import rmtree
from tempfile import TemporaryDirectory
from threading import Lock, Thread, Timer
from typing import IO, Any, Final

from cqels_py.kernels.compiler import memory

REHEARSAL: Final = "CQELS_REHEARSAL"
"""In the environment of a process that rehearses: the number of an open file that takes what it calls."""

FOLDER: Final = "cqels-rehearsal-"
"""How the name of a folder for its temporary files begins."""

INPUT: Final = "standard-input"
"""A file in that folder: the first bytes of what the command gets on standard input."""

REHEARSAL_SECONDS: Final = 10.0
"""So long a rehearsal may take; what it has told by then counts."""

_ROOT = Path(__file__).resolve().parents[3]
_WORKER = "cqels_py.kernels.compiler.build_worker"
_MOST_WORKERS = 8
_WORKER_BYTES = 600 << 20
"""So much memory is left for each worker; one takes half a gigabyte."""

Input = Callable[[], bytes | None]
"""Standard input's first bytes; None while there are none, but may be."""

Done = Callable[[int, float], None]
"""Told how many kernels were compiled, and in how many seconds."""


def _no_input() -> bytes:
    return b""


class _Expected:
    """What to do when a kernel is missing, and how often: a program has two occasions, when queries and when data come."""

    def __init__(self) -> None:
        self.rehearsal: Sequence[str] | None = None
        self.first_input: Input = _no_input
        self.left = 2
        self.by_command = False
        self.on_start: Callable[[], None] = lambda: None
        self.on_end: Done = lambda kernels, seconds: None


_EXPECTED = _Expected()


@contextmanager
def rehearsing(rehearsal: Sequence[str] | None, first_input: Input = _no_input) -> Iterator[None]:
    """While this lasts, the first missing kernel starts `rehearsal`, a module and its arguments, and compiles what it calls.

    The first one, that is, since when there is some of standard input, for the rehearsal has that.
    """
    _EXPECTED.rehearsal, _EXPECTED.first_input, _EXPECTED.left, _EXPECTED.by_command = rehearsal, first_input, 1, True
    try:
        yield
    finally:
        _EXPECTED.rehearsal = None


def expect(rehearsal: Sequence[str], first_input: Input, on_start: Callable[[], None]) -> None:
    """The same from now on, twice in this process and only where no command says what is rehearsed: for programs.

    `on_start` hears of it when a kernel is missing, also where all are compiled by this process.
    """
    if not _EXPECTED.by_command and _EXPECTED.left > 0:
        _EXPECTED.rehearsal, _EXPECTED.first_input, _EXPECTED.on_start = rehearsal, first_input, on_start


@contextmanager
def told(on_start: Callable[[], None], on_end: Done) -> Iterator[None]:
    """While this lasts, somebody hears of what is compiled ahead."""
    before = _EXPECTED.on_start, _EXPECTED.on_end
    _EXPECTED.on_start, _EXPECTED.on_end = on_start, on_end
    try:
        yield
    finally:
        _EXPECTED.on_start, _EXPECTED.on_end = before


def something_is_missing(can_be_kept: Callable[[], bool] = lambda: True) -> bool:
    """A kernel is in no file. Is it worth looking again, because kernels have been compiled in the meantime?

    Where files cannot be kept it is not: nobody would see those that other processes compile.
    """
    rehearsal = _EXPECTED.rehearsal
    if rehearsal is None or _EXPECTED.left == 0:
        return False
    _EXPECTED.on_start()
    workers = _workers()
    if workers < 2 or not can_be_kept() or (first_input := _EXPECTED.first_input()) is None:
        return False
    _EXPECTED.left -= 1
    started = time.perf_counter()
    compiled: set[str] = set()
    try:
        compiled = compile_all(rehearsal, workers, first_input)
    finally:
        _EXPECTED.on_end(len(compiled), time.perf_counter() - started)
    return True


def _workers() -> int:
    """How many processes can compile at once; one alone is no faster than this one."""
    if not _is_python() or os.name != "posix":
        return 0
    room = memory.available()
    return min(_cores(), _MOST_WORKERS, _MOST_WORKERS if room is None else room // _WORKER_BYTES)


def _is_python() -> bool:
    """Can this program be asked to run a module? One that holds Python within it, or that was frozen, would start itself."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.startswith("py")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_all(rehearsal: Sequence[str], workers: int, first_input: bytes = b"") -> set[str]:
    """Compile what the rehearsal calls; names and types of what was compiled. Where no process can be started, nothing is."""
    compiled: set[str] = set()
    with suppress(OSError), TemporaryDirectory(prefix=FOLDER) as folder:
        Path(folder, INPUT).write_bytes(first_input)
        team = _Team(rehearsal, folder)
        try:
            compiled = team.work(workers)
        finally:
            team.dismiss()
    return compiled


class Calls:
    """What is to be compiled: the largest first, and not at once what shares much, which would be compiled twice."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._waiting = calls
        self._under_way: dict[int, dict[str, int]] = {}
        self._done: set[str] = set()
        self._lock = Lock()

    def take(self, worker: int) -> dict[str, Any] | None:
        """The next one for a worker that has done its last; None when there are no more."""
        with self._lock:
            self._done.update(self._under_way.pop(worker, ()))
            if not self._waiting:
                return None
            call = max(self._waiting, key=self._worth)
            self._waiting.remove(call)
            self._under_way[worker] = call["parts"]
            return call

    def _worth(self, call: dict[str, Any]) -> int:
        """Bytes that only this one compiles, less those that others are at."""
        taken = set().union(*self._under_way.values())
        left = [(name, size) for name, size in call["parts"].items() if name not in self._done]
        return sum(-size if name in taken else size for name, size in left)


class _Team:
    """A process that rehearses and processes that compile, each with a thread that talks to it."""

    def __init__(self, rehearsal: Sequence[str], folder: str) -> None:
        self._rehearsal = rehearsal
        self._folder = folder
        self._processes: list[subprocess.Popen[str]] = []
        self._compiled: set[str] = set()

    def work(self, workers: int) -> set[str]:
        """What could be compiled."""
        read, write = os.pipe()
        with os.fdopen(read) as told:
            try:
                # Whatever ends it, its temporary files are gone with the folder.
                variables = {"NUMBA_DISABLE_JIT": "1", REHEARSAL: str(write), "TMPDIR": self._folder}
                rehearsal = self._start(self._rehearsal, variables, (write,))
            finally:
                os.close(write)
            # They import what they need while the rehearsal goes on.
            team = [self._start((_WORKER,), {}, ()) for _ in range(workers)]
            calls = Calls(_heard(told, rehearsal))
        # Nobody else would do that if this process were ended now.
        rehearsal.kill()
        rehearsal.wait()
        rmtree(self._folder, ignore_errors=True)
        threads = [Thread(target=self._order, args=(process, calls), daemon=True) for process in team]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return self._compiled

    def dismiss(self) -> None:
        """Whatever has happened, no process stays behind."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _start(self, module: Sequence[str], variables: dict[str, str], files: Sequence[int]) -> subprocess.Popen[str]:
        """`-P`: what lies in the folder where somebody stands is not what Python shall import."""
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", *module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            pass_fds=files, env={**os.environ, "PYTHONPATH": path, **variables},
        )  # fmt: skip
        self._processes.append(process)
        return process

    def _order(self, process: subprocess.Popen[str], calls: Calls) -> None:
        """Until there are no more calls, or the process is gone."""
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError, ValueError):
            while (call := calls.take(process.pid)) is not None:
                process.stdin.write(json.dumps(call) + "\n")
                process.stdin.flush()
                self._compiled.update(json.loads(process.stdout.readline()))


def _heard(told: IO[str], rehearsal: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """What the rehearsal calls, when it is over."""
    over = Timer(REHEARSAL_SECONDS, rehearsal.kill)
    over.start()
    try:
        return [json.loads(line) for line in told if line.endswith("\n")]
    finally:
        over.cancel()
