"""The snapshots of a run: the last two are kept, and a damaged one is replaced by the one before it."""

from __future__ import annotations

import fcntl
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from cqels_py.checkpoints import durable_files
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.history import check_origin
from cqels_py.checkpoints.log import Incomplete
from cqels_py.checkpoints.manifest import Contents
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

    def load(self, contents: Contents | None = None) -> dict[str, NamedValues] | None:
        """The last snapshot that is intact; None if there are no snapshots. `contents`: what should be there. StorageError if all
        are damaged or missing."""
        numbers = sorted({*self.numbers(), *(() if contents is None else contents.snapshots)})
        for number in reversed(numbers):
            try:
                state = from_bytes(self._store.get(_named(number)))
                check_origin(state, number, contents)
                self.loaded = number
                self._unused = numbers[numbers.index(number) + 1 :]
                return state
            except StorageError as error:
                self.damaged.append(f"snapshot {number} is not used: {error.message}")
        if numbers:
            raise Incomplete(f"no snapshot can be read: {'; '.join(self.damaged)}. To start again, remove the folder")
        return None

    def remove_damaged(self) -> None:
        """Delete those that `load` has not used, once all of the one before them is there: they would count among the last two."""
        for number in self._unused:
            self._store.delete(_named(number))
        self._unused = []

    def save(self, state: State, number: int) -> int:
        """Write the snapshot of this number; returns its bytes."""
        data = to_bytes(state)
        self._store.put(_named(number), data)
        return len(data)

    def last(self) -> list[int]:
        """The numbers of those that are to be kept."""
        return self.numbers()[-_KEPT:]

    def remove_before(self, number: int) -> None:
        """Delete those before this one."""
        for old in self.numbers():
            if old < number:
                self._store.delete(_named(old))


def _named(number: int) -> str:
    return f"{number:012}.snapshot"


@contextmanager
def locked(folder: Path) -> Iterator[None]:
    """Make the folder if it is missing; inside, no other process can lock it. UsageError if another one has."""
    try:
        durable_files.make_folder(folder)
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
