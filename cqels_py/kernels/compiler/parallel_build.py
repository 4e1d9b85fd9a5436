"""Processes that compile kernels at the same time, one per core."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from pathlib import Path
from threading import Lock, Thread
from types import MappingProxyType
from typing import Any, Final

from cqels_py.kernels.compiler import memory

_ROOT = Path(__file__).resolve().parents[3]
_WORKER = "cqels_py.kernels.compiler.build_worker"
_MOST_WORKERS = 8
_WORKER_BYTES = 600 << 20
"""Memory required for each worker; one takes half a gigabyte."""

NO_VARIABLES: Final[Mapping[str, str]] = MappingProxyType({})


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


def compile_calls(
    calls: list[dict[str, Any]], workers: int, on_done: Callable[[], None], variables: Mapping[str, str] = NO_VARIABLES
) -> set[str]:
    """Compile these kernels; returns their names and types. `on_done` is called after each one, by several threads.
    `variables`: of the environment of the processes, beside those of this one.

    Where no process can be started, none is compiled."""
    team = _Team(on_done, variables)
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
    """Compiling processes, with a thread each that talks to it."""

    def __init__(self, on_done: Callable[[], None], variables: Mapping[str, str]) -> None:
        self._on_done = on_done
        self._variables = variables
        self._processes: list[subprocess.Popen[str]] = []
        self.compiled: set[str] = set()

    def start_workers(self, workers: int) -> list[subprocess.Popen[str]]:
        return [self._start() for _ in range(workers)]

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

    def _start(self) -> subprocess.Popen[str]:
        """Start a worker; `-P` keeps the current directory off the import path."""
        path = os.pathsep.join(filter(None, (str(_ROOT), os.environ.get("PYTHONPATH"))))
        process = subprocess.Popen(
            [sys.executable, "-P", "-W", "ignore", "-m", _WORKER],
            stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL, text=True, encoding="utf-8",
            env={**os.environ, **self._variables, "PYTHONPATH": path},
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
