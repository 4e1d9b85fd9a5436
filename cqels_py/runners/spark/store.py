"""The durable state of one part: snapshots, and a log of what came in since.

    <folder>/<part>/<batch>-<content>.snapshot   the whole state after a micro-batch
    <folder>/<part>/<batch>-<content>.input      what a micro-batch brought
    <folder>/<part>/statistics.json              what the part has counted so far

The state after batch n is the latest snapshot up to n with the inputs after it replayed: the dataflow is deterministic, so it
is the same state, whatever the query keeps. A file is written under another name, synced and renamed: a crash at any moment
leaves the old or the new version. Names tell contents: a batch that is run again writes the same file, even while an earlier
attempt is still at it. A snapshot is written when the inputs since the last one outweigh it, so the size of a folder follows
the state, not the stream; the one before is kept, with its inputs, in case a snapshot turns out to be damaged.
"""

from __future__ import annotations

import contextlib
import hashlib
import os
import pickle
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from cqels_py.errors import RunError
from cqels_py.runners.spark.whole import to_bytes

State = TypeVar("State")

BEFORE = -1
"""The number of the batch that the first snapshot stands for."""
_LEAST = 1 << 20
_CHECK = 4
_TEMPORARY = ".tmp"
_START_ANEW = "To start anew remove both the state and Spark's checkpoint: the one goes with the other"


class DamagedFile(RunError):
    """A file of the state is not what was written."""


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    batch: int
    size: int
    written: int


class PartStore(Generic[State]):
    """Loads and saves the state of one part."""

    def __init__(self, folder: Path, part: int) -> None:
        self._folder = folder / str(part)

    def begin(self, state: State) -> None:
        """Write the state before the first batch, unless there is one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left_over in self._folder.glob(f"*{_TEMPORARY}"):
            left_over.unlink(missing_ok=True)
        if not self._files("snapshot"):
            self._save_snapshot(BEFORE, state)

    def newest(self, batch: int) -> str | None:
        """The name of the input of a batch, which tells its versions apart."""
        found = [file for file in self._files("input") if file.batch == batch]
        return found[-1].path.name if found else None

    def load(self, before: int) -> tuple[State, list[bytes]]:
        """The latest sound snapshot of a batch before `before`, and the inputs from there up to it."""
        snapshots = [file for file in self._files("snapshot") if file.batch < before]
        if not snapshots:
            raise RunError(
                f"the state in {self._folder} has no snapshot from before micro-batch {before}: it was removed, or the "
                f"checkpoint is another one. {_START_ANEW}"
            )
        damage: DamagedFile | None = None
        for snapshot in reversed(snapshots):
            try:
                state: State = pickle.loads(read_checked(snapshot.path))
                return state, self._inputs(snapshot.batch, before)
            except DamagedFile as error:
                damage = damage or error
        assert damage is not None
        raise damage

    def _inputs(self, after: int, before: int) -> list[bytes]:
        inputs = {file.batch: file for file in self._files("input") if after < file.batch < before}
        for batch in range(after + 1, before):
            if batch not in inputs:
                raise RunError(
                    f"the state in {self._folder} is incomplete: the input of micro-batch {batch} is missing, as when a "
                    f"sink does not evaluate all rows of a micro-batch, or files were removed. {_START_ANEW}"
                )
        return [read_checked(inputs[batch].path) for batch in sorted(inputs)]

    def save(self, batch: int, data: bytes, state: State) -> str:
        """Keep what a batch brought, and from time to time the state after it. Returns the input's name."""
        name = f"{batch}-{hashlib.blake2b(data, digest_size=8).hexdigest()}.input"
        write_checked(self._folder / name, data)
        for file in self._files("input"):
            if file.batch >= batch and file.path.name != name:
                file.path.unlink(missing_ok=True)
        for file in self._files("snapshot"):
            if file.batch >= batch:
                file.path.unlink(missing_ok=True)
        snapshots = self._files("snapshot")
        since = sum(file.size for file in self._files("input") if file.batch > snapshots[-1].batch)
        if _outweighs(since, snapshots[-1].size):
            self._save_snapshot(batch, state)
            self._drop_before(snapshots[-1].batch)
        return name

    def _save_snapshot(self, batch: int, state: State) -> None:
        data = to_bytes(state)
        write_checked(self._folder / f"{batch}-{hashlib.blake2b(data, digest_size=8).hexdigest()}.snapshot", data)

    def _drop_before(self, batch: int) -> None:
        """Nothing goes back behind the last snapshot but one: only the newest batch is ever run again."""
        for kind in ("snapshot", "input"):
            for file in self._files(kind):
                if file.batch < batch or (kind == "input" and file.batch == batch):
                    file.path.unlink(missing_ok=True)

    def _files(self, kind: str) -> list[_File]:
        """Files of a kind, by batch; of one batch the newest last."""
        found = []
        for path in self._folder.glob(f"*.{kind}"):
            # Another attempt at the batch may clean up at the same time.
            with contextlib.suppress(FileNotFoundError):
                status = path.stat()
                found.append(_File(path, int(path.name.rsplit("-", 1)[0]), status.st_size, status.st_mtime_ns))
        return sorted(found, key=lambda file: (file.batch, file.written))

    # --- statistics -----------------------------------------------------------------------------------------------

    def note(self, text: str) -> None:
        """Replace the part's statistics."""
        write_whole(self._folder / "statistics.json", text.encode())

    def noted(self) -> str | None:
        """The part's statistics after the last batch."""
        try:
            return (self._folder / "statistics.json").read_text()
        except FileNotFoundError:
            return None


def _outweighs(inputs: int, snapshot: int) -> bool:
    """Are so many bytes of inputs worth another snapshot, if the last one has so many?"""
    return inputs > max(_LEAST, snapshot)


def write_checked(path: Path, data: bytes) -> None:
    """The data with a checksum before it."""
    write_whole(path, zlib.crc32(data).to_bytes(_CHECK, "big") + data)


def read_checked(path: Path) -> bytes:
    """What `write_checked` wrote; DamagedFile if it is not that any more."""
    raw = path.read_bytes()
    check, data = raw[:_CHECK], raw[_CHECK:]
    if zlib.crc32(data).to_bytes(_CHECK, "big") != check or len(check) < _CHECK:
        raise DamagedFile(f"the state file {path} is damaged: its checksum is wrong. {_START_ANEW}")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file so that at any moment the old or the new version is there, also after a crash of the machine."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}{_TEMPORARY}")
    with temporary.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    temporary.rename(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
