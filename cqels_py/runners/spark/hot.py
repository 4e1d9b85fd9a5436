"""Hot states: copies in memory that the workers of a host share.

Spark decides which worker of which executor gets a partition's next micro-batch. A worker without the partition's state would
restore it from the snapshot and the log. So a copy is left beside the executor's own temporary files, which Spark removes when it
ends, in the system's page cache; and a link to it in a folder of the user that all executors of a host have in common. Any worker
of the host takes it from there at the speed of memory. If the part has been on another host since, the copy is an older state of
the part: then only the inputs since are read from the store, and replayed.

A copy has the format of a snapshot: data with a digest, without code. Nothing is synced, as nothing depends on it: a copy that is
missing, of another history, incomplete or damaged is ignored.
"""

from __future__ import annotations

import os
import stat
import tempfile
import uuid
from contextlib import suppress
from dataclasses import dataclass
from functools import cache
from pathlib import Path

import numpy as np

from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.state_file import State, from_bytes, to_bytes
from cqels_py.state.named_values import NamedValues

_COPY = "copy"
"""The part of the data with the name of the state."""
_NAME = "name"
LARGEST = 256 << 20
"""A larger state costs more to copy at every micro-batch than to restore now and then."""


@dataclass(frozen=True, slots=True)
class HotFolders:
    """`own`: where an executor leaves copies; `host`: where the executors of the host find each other's; None: they do not."""

    own: Path
    host: Path | None = None


@dataclass(frozen=True, slots=True)
class Named:
    """A state, and its name in its store."""

    name: str
    state: dict[str, NamedValues]


class HotCopy:
    """The copy of one partition's state. `mark` distinguishes its query's state from any other."""

    def __init__(self, folders: HotFolders, mark: str, stage: int, part: int) -> None:
        name = f"cqels-{mark}-{stage}-{part}.hot"
        self._path = folders.own / name
        self._link = None if folders.host is None else folders.host / name

    def leave(self, name: str, state: State) -> None:
        """Replace the copy; `name` is that of the state in its store. There is none if the disk is full, for example."""
        others = self._linked()
        size = sum(
            value.nbytes for values in state.values() for value in values.values() if isinstance(value, np.ndarray)
        )
        with suppress(OSError):
            if size > LARGEST:
                self._path.unlink(missing_ok=True)
            else:
                _write(self._path, to_bytes({_COPY: {_NAME: name}, **state}))
                if self._link is not None and others != self._path:
                    _link(self._link, self._path)
            if others is not None and others != self._path:
                others.unlink(missing_ok=True)

    def latest(self) -> Named | None:
        """The state that was left last on this host."""
        with suppress(OSError, StorageError):
            found = from_bytes((self._linked() or self._path).read_bytes())
            name = found.pop(_COPY, {}).get(_NAME)
            return Named(name, found) if isinstance(name, str) else None
        return None

    def _linked(self) -> Path | None:
        """Where the copy that the host's executors find is."""
        if self._link is not None:
            with suppress(OSError):
                return self._link.readlink()
        return None


def _write(path: Path, data: memoryview) -> None:
    """Replace a file as a whole."""
    aside = path.with_suffix(f".{uuid.uuid4().hex[:12]}")
    try:
        aside.write_bytes(data)
        aside.rename(path)
    except OSError:
        aside.unlink(missing_ok=True)
        raise


def _link(link: Path, to: Path) -> None:
    aside = link.with_suffix(f".{uuid.uuid4().hex[:12]}")
    aside.symlink_to(to)
    aside.rename(link)


def folder_of_executor(files: Path) -> Path:
    """The folder of the executor of this process, which goes with the application. `files`: Spark's own for the files of workers.

    Executors of clusters say "." for that, the folder where they run, which a standalone worker does not remove.
    """
    own, *_ = os.environ.get("SPARK_EXECUTOR_DIRS", "").split(os.pathsep)
    return Path(own) if own and Path(own).is_dir() else files.absolute()


@cache
def folder_of_host() -> Path | None:
    """The folder of this user that the executors of a host have in common, without links of executors that have ended.

    None if there can be none, or if others may write to it.
    """
    folder = Path(tempfile.gettempdir(), f"cqels-hot-{os.geteuid()}")
    try:
        folder.mkdir(mode=0o700, exist_ok=True)
        found = folder.lstat()
        if not stat.S_ISDIR(found.st_mode) or found.st_uid != os.geteuid() or found.st_mode & 0o077:
            return None
        for link in folder.iterdir():
            # A link that is replaced meanwhile may be lost: then its state is restored from the store.
            if not link.exists():
                link.unlink(missing_ok=True)
    except OSError:
        return None
    return folder
