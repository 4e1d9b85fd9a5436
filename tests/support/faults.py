"""Faults of a disk: every operation on the files of a checkpoint can be the one at which a process ends, or that fails."""

from __future__ import annotations

import gc
import os
from collections.abc import Callable
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.checkpoints import durable_files
from cqels_py.engine.engine import Engine

OPERATIONS = ("write_synced", "rename", "link", "sync_entries", "remove", "create", "append", "sync", "cut")


class Crash(BaseException):
    """The process has ended here."""


class Faults:
    """Lets the operation with the number `at` fail; without a number it counts them.

    After a crash none succeeds until there is another number: no thread of a process outlives it.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, fail: Callable[[str, tuple[Any, ...]], None]) -> None:
        self.count, self.at = 0, -1
        self._crashed = False
        for name in OPERATIONS:
            monkeypatch.setattr(durable_files, name, self._faulty(name, getattr(durable_files, name), fail))

    def _faulty(
        self, name: str, operation: Callable[..., Any], fail: Callable[[str, tuple[Any, ...]], None]
    ) -> Callable[..., Any]:
        def operate(*arguments: Any) -> Any:
            self.count += 1
            if self._crashed and 0 < self.at < self.count:
                raise Crash
            self._crashed = False
            if self.count == self.at:
                try:
                    fail(name, arguments)
                except Crash:
                    self._crashed = True
                    raise
            return operation(*arguments)

        return operate


def crash(name: str, arguments: tuple[Any, ...]) -> None:
    """The process ends before this operation, or in the middle of a write."""
    if name == "write_synced":
        path, data = arguments
        path.write_bytes(data[: len(data) // 2])
    if name == "append":
        descriptor, data = arguments
        os.write(descriptor, data[: len(data) // 2])
    raise Crash


class PowerFailures:
    """The machine stops: of what was appended and not synced, a part is there. Give `fail` to `Faults`.

    `kept`: the length of a file that is left, from that which was synced to that which was written.
    """

    def __init__(self, monkeypatch: pytest.MonkeyPatch, kept: Callable[[int, int], int]) -> None:
        self._synced: dict[str, int] = {}
        self._kept = kept
        sync = durable_files.sync

        def synced(descriptor: int) -> None:
            sync(descriptor)
            self._synced[_file(descriptor)] = os.fstat(descriptor).st_size

        monkeypatch.setattr(durable_files, "sync", synced)

    def fail(self, name: str, arguments: tuple[Any, ...]) -> None:
        """Cut each log to a length from that which is synced to that which was written."""
        for path, synced in self._synced.items():
            if os.path.exists(path):
                written = os.path.getsize(path)
                os.truncate(path, self._kept(min(synced, written), written))
        raise Crash


def _file(descriptor: int) -> str:
    return str(Path(f"/proc/self/fd/{descriptor}").readlink())


class Failing:
    """The process ends before the operation on its disk that is `left` ones away, or in the middle of it, and none follows."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.left: int | None = None
        for name in ("append", "write_synced", "rename"):
            monkeypatch.setattr(durable_files, name, self._faulty(name, getattr(durable_files, name)))

    def _faulty(self, name: str, operation: Any) -> Any:
        def operate(*arguments: Any) -> Any:
            if self.left is not None:
                self.left -= 1
                if self.left == 0:
                    crash(name, arguments)
                if self.left < 0:
                    raise Crash
            return operation(*arguments)

        return operate

    def completed(self, random: Random, run: Callable[[], Engine]) -> Engine:
        """The engine of the first process that does not end, each of them at another operation."""
        for _ in range(200):
            self.left = random.randrange(1, 25)
            try:
                engine = run()
                self.left = None
                return engine
            except Crash:
                gc.collect()
        raise AssertionError("each of 200 processes has ended")


def crashed(engine: Engine) -> None:
    """Its process has ended."""
    inputs: Any = engine._inputs
    for thread in (inputs._saving, inputs._syncing):
        with suppress(BaseException):
            thread.wait()
    inputs._resources.close()
