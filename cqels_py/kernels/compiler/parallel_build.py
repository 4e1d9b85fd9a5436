"""On a machine's first use all kernels that a query will need are compiled at once, by one process per core.

A rehearsal finds out which ones these are: a process that runs the query over the first rows of its data, with kernels
as plain Python, and reports each kernel it calls. A kernel that the rehearsal misses is compiled when it is called. As
long as no kernel is missing nothing of this happens.
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
"""Environment variable of a rehearsing process: the number of the open file descriptor to which it writes its calls."""

FOLDER: Final = "cqels-rehearsal-"
"""Prefix of the name of a folder for temporary files."""

INPUT: Final = "standard-input"
"""A file in that folder: the first bytes of the command's standard input."""

REHEARSAL_SECONDS: Final = 10.0
"""A rehearsal is stopped after this time; the calls reported by then count."""

_ROOT = Path(__file__).resolve().parents[3]
_WORKER = "cqels_py.kernels.compiler.build_worker"
_MOST_WORKERS = 8
_WORKER_BYTES = 600 << 20
"""Memory required for each worker; one takes half a gigabyte."""

Input = Callable[[], bytes | None]
"""The first bytes of standard input; None while there are none yet."""

Done = Callable[[int, float], None]
"""Called with the number of kernels compiled and the seconds it took."""


def _no_input() -> bytes:
    return b""


class _Expected:
    """The actions for a missing kernel, and how often they are taken. A program may need it twice: when queries are registered and
    when data arrive."""

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
    """While this lasts, the first missing kernel starts `rehearsal` (a module and its arguments) and compiles the
    kernels it calls.

    If standard input is read, the first missing kernel after some of it has arrived, as the rehearsal reads that input.
    """
    _EXPECTED.rehearsal, _EXPECTED.first_input, _EXPECTED.left, _EXPECTED.by_command = rehearsal, first_input, 1, True
    try:
        yield
    finally:
        _EXPECTED.rehearsal = None


def expect(rehearsal: Sequence[str], first_input: Input, on_start: Callable[[], None]) -> None:
    """As `rehearsing`, but from now on and at most twice in this process: for programs. It has no effect inside of a
    command that rehearses.

    `on_start` is called when a kernel is missing, also where this process compiles all of them itself.
    """
    if not _EXPECTED.by_command and _EXPECTED.left > 0:
        _EXPECTED.rehearsal, _EXPECTED.first_input, _EXPECTED.on_start = rehearsal, first_input, on_start


@contextmanager
def reporting(on_start: Callable[[], None], on_end: Done) -> Iterator[None]:
    """While this lasts, `on_start` and `on_end` are called around parallel compilation."""
    before = _EXPECTED.on_start, _EXPECTED.on_end
    _EXPECTED.on_start, _EXPECTED.on_end = on_start, on_end
    try:
        yield
    finally:
        _EXPECTED.on_start, _EXPECTED.on_end = before


def reports(on_start: Callable[[], None]) -> tuple[Callable[[], None], Done]:
    """Whom to tell of compilation, before and after it: a command that watches, otherwise `on_start`."""
    return (_EXPECTED.on_start if _EXPECTED.by_command else on_start), _EXPECTED.on_end


def something_is_missing(can_be_kept: Callable[[], bool] = lambda: True) -> bool:
    """Called when a kernel is in no file. Returns whether to look again, because kernels have been compiled in the
    meantime.

    Where files cannot be kept the answer is no: this process would not see the kernels that others compile.
    """
    rehearsal = _EXPECTED.rehearsal
    if rehearsal is None or _EXPECTED.left == 0:
        return False
    _EXPECTED.on_start()
    available = workers()
    if available < 2 or not can_be_kept() or (first_input := _EXPECTED.first_input()) is None:
        return False
    _EXPECTED.left -= 1
    started = time.perf_counter()
    compiled: set[str] = set()
    try:
        compiled = compile_all(rehearsal, available, first_input)
    finally:
        _EXPECTED.on_end(len(compiled), time.perf_counter() - started)
    return True


def workers() -> int:
    """How many processes can compile at once; a single one would be no faster than this process."""
    if not _is_python() or os.name != "posix":
        return 0
    room = memory.available()
    return min(_cores(), _MOST_WORKERS, _MOST_WORKERS if room is None else room // _WORKER_BYTES)


def _is_python() -> bool:
    """Can sys.executable run a module? A frozen program, or one that embeds Python, would start itself again."""
    return not getattr(sys, "frozen", False) and Path(sys.executable or "").name.startswith("py")


def _cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def compile_all(rehearsal: Sequence[str], workers: int, first_input: bytes = b"") -> set[str]:
    """Compile the kernels that the rehearsal calls; returns their names and types. Where no process can be started,
    none is compiled."""
    compiled: set[str] = set()
    with suppress(OSError), TemporaryDirectory(prefix=FOLDER) as folder:
        Path(folder, INPUT).write_bytes(first_input)
        team = _Team()
        try:
            compiled = team.rehearse(rehearsal, folder, workers)
        finally:
            team.dismiss()
    return compiled


def compile_calls(calls: list[dict[str, Any]], workers: int, on_done: Callable[[], None]) -> set[str]:
    """Compile these kernels; returns their names and types. `on_done` is called after each one, by several threads.

    Where no process can be started, none is compiled."""
    team = _Team(on_done)
    with suppress(OSError):
        try:
            team.compile(Calls(calls), team.start_workers(workers))
        finally:
            team.dismiss()
    return team.compiled


class Calls:
    """The kernels to compile, largest first. Kernels that share helpers are not compiled at the same time, as each
    would compile the helpers."""

    def __init__(self, calls: list[dict[str, Any]]) -> None:
        self._waiting = calls
        self._under_way: dict[int, dict[str, int]] = {}
        self._done: set[str] = set()
        self._lock = Lock()

    def take(self, worker: int) -> dict[str, Any] | None:
        """The next kernel for a worker that has finished its last one; None when there are no more."""
        with self._lock:
            self._done.update(self._under_way.pop(worker, ()))
            if not self._waiting:
                return None
            call = max(self._waiting, key=self._worth)
            self._waiting.remove(call)
            self._under_way[worker] = call["parts"]
            return call

    def _worth(self, call: dict[str, Any]) -> int:
        """Bytes of bytecode that only this kernel would compile, minus those that other workers are compiling."""
        taken = set().union(*self._under_way.values())
        left = [(name, size) for name, size in call["parts"].items() if name not in self._done]
        return sum(-size if name in taken else size for name, size in left)


class _Team:
    """Compiling processes, with a thread each that talks to it; and one that rehearses, where there is a rehearsal."""

    def __init__(self, on_done: Callable[[], None] = lambda: None) -> None:
        self._on_done = on_done
        self._processes: list[subprocess.Popen[str]] = []
        self.compiled: set[str] = set()

    def rehearse(self, rehearsal: Sequence[str], folder: str, workers: int) -> set[str]:
        """Compile the kernels that the rehearsal calls: those that were compiled."""
        read, write = os.pipe()
        with os.fdopen(read) as reports:
            try:
                # Its temporary files are removed with the folder, however it ends.
                variables = {"NUMBA_DISABLE_JIT": "1", REHEARSAL: str(write), "TMPDIR": folder}
                process = self._start(rehearsal, variables, (write,))
            finally:
                os.close(write)
            # The workers import their modules while the rehearsal runs.
            team = self.start_workers(workers)
            calls = Calls(_reported_calls(reports, process))
        # If this process were killed now, nobody else would remove them.
        process.kill()
        process.wait()
        rmtree(folder, ignore_errors=True)
        self.compile(calls, team)
        return self.compiled

    def start_workers(self, workers: int) -> list[subprocess.Popen[str]]:
        return [self._start((_WORKER,), {}, ()) for _ in range(workers)]

    def compile(self, calls: Calls, workers: Sequence[subprocess.Popen[str]]) -> None:
        """Let the workers compile the calls; ends when all are done."""
        threads = [Thread(target=self._order, args=(process, calls), daemon=True) for process in workers]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()

    def dismiss(self) -> None:
        """Whatever has happened, no process is left behind."""
        for process in self._processes:
            process.kill()
        for process in self._processes:
            process.wait()

    def _start(self, module: Sequence[str], variables: dict[str, str], files: Sequence[int]) -> subprocess.Popen[str]:
        """Start a module of this package; `-P` keeps the current directory off the import path."""
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", *module],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            pass_fds=files, env={**os.environ, "PYTHONPATH": path, **variables},
        )  # fmt: skip
        self._processes.append(process)
        return process

    def _order(self, process: subprocess.Popen[str], calls: Calls) -> None:
        """Send calls to a worker until there are no more, or the worker is gone."""
        assert process.stdin is not None and process.stdout is not None
        with suppress(OSError, ValueError):
            while (call := calls.take(process.pid)) is not None:
                process.stdin.write(json.dumps(call) + "\n")
                process.stdin.flush()
                self.compiled.update(json.loads(process.stdout.readline()))
                self._on_done()


def _reported_calls(reports: IO[str], rehearsal: subprocess.Popen[str]) -> list[dict[str, Any]]:
    """The calls reported by the rehearsal, once it has ended."""
    over = Timer(REHEARSAL_SECONDS, rehearsal.kill)
    over.start()
    try:
        return [json.loads(line) for line in reports if line.endswith("\n")]
    finally:
        over.cancel()
