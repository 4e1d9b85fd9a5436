"""The snapshots of a run: the last two are kept, and a damaged one is replaced by the one before it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.objects import Store
from cqels_py.checkpoints.state_file import State, from_bytes, to_bytes
from cqels_py.errors import UsageError
from cqels_py.state.named_values import NamedValues

_KEPT = 2
_NAME = re.compile(r"(\d{12})\.snapshot")
_LOCK = "lock"


class Snapshots:
    """Numbered snapshots in a store. `loaded`: the number of the one that `load` returned; `damaged`: messages about others."""

    def __init__(self, store: Store) -> None:
        self._store = store
        self.damaged: list[str] = []
        self._unused: list[int] = []
        self.loaded: int | None = None

    def numbers(self) -> list[int]:
        """The numbers of the snapshots, in order."""
        return [int(match[1]) for name in self._store.names() if (match := _NAME.fullmatch(name)) is not None]

    def load(self) -> dict[str, NamedValues] | None:
        """The last snapshot that is intact; None if there are no snapshots. StorageError if all are damaged."""
        numbers = self.numbers()
        for number in reversed(numbers):
            try:
                state = from_bytes(self._store.get(_named(number)))
                self.loaded = number
                self._unused = numbers[numbers.index(number) + 1 :]
                return state
            except StorageError as error:
                self.damaged.append(f"snapshot {number} is not used: {error.message}")
        if numbers:
            raise StorageError(f"no snapshot can be read: {'; '.join(self.damaged)}. To start again, remove the folder")
        return None

    def remove_damaged(self) -> None:
        """Delete those that `load` has not used, once all of the one before them is there: they would count among the last two."""
        for number in self._unused:
            self._store.delete(_named(number))
        self._unused = []

    def save(self, state: State, number: int | None = None) -> int:
        """Write the next snapshot, or that of this number, then delete all but the last two; returns its bytes."""
        numbers = self.numbers()
        if number is None:
            number = numbers[-1] + 1 if numbers else 0
        data = to_bytes(state)
        self._store.put(_named(number), data)
        for old in [*numbers, number][:-_KEPT]:
            self._store.delete(_named(old))
        return len(data)


def _named(number: int) -> str:
    return f"{number:012}.snapshot"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing; inside, no other process can lock it. UsageError if another one has."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
        descriptor = os.open(folder / _LOCK, os.O_RDWR | os.O_CREAT, 0o666)
    except OSError as error:
        raise UsageError(f"checkpoint: cannot write {folder}: {error.strerror}") from None
    try:
        try:
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise UsageError(f"checkpoint: another process or engine uses {folder}; wait until it has ended") from None
        yield
    finally:
        os.close(descriptor)
