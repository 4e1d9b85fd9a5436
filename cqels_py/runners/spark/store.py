"""The durable state of one part: snapshots, and a log of what came in since.

    <folder>/<part>/<batch>-<token>.snapshot   the whole state after a micro-batch
    <folder>/<part>/<batch>-<token>.input      what a micro-batch brought

The state after batch n is the latest snapshot up to n with the inputs after it replayed: the dataflow is deterministic, so it
is the same state, whatever the query keeps. A file is written under another name, synced and renamed: a crash at any moment
leaves the old or the new version. A batch that is run again replaces what it left before. A snapshot is written when the
inputs since the last one outweigh it, so the size of a folder follows the state, not the stream.
"""

from __future__ import annotations

import os
import pickle
import uuid
import zlib
from dataclasses import dataclass
from pathlib import Path
from typing import Generic, TypeVar

from cqels_py.errors import RunError

State = TypeVar("State")

BEFORE = -1
"""The number of the batch that the first snapshot stands for."""
_LEAST = 1 << 20
_CHECK = 4


@dataclass(frozen=True, slots=True)
class _File:
    path: Path
    batch: int

    @property
    def size(self) -> int:
        return self.path.stat().st_size


class PartStore(Generic[State]):
    """Loads and saves the state of one part."""

    def __init__(self, folder: Path, part: int) -> None:
        self._folder = folder / str(part)

    def begin(self, state: State) -> None:
        """Write the state before the first batch, unless there is one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        if not self._files("snapshot"):
            self._write(BEFORE, "snapshot", pickle.dumps(state, pickle.HIGHEST_PROTOCOL))

    def newest(self, batch: int) -> str | None:
        """The name of the input of a batch, which tells its versions apart."""
        found = [file for file in self._files("input") if file.batch == batch]
        return found[-1].path.name if found else None

    def load(self, before: int) -> tuple[State, list[bytes]]:
        """The latest snapshot of a batch before `before`, and the inputs from there up to it."""
        snapshots = [file for file in self._files("snapshot") if file.batch < before]
        if not snapshots:
            raise RunError(f"the state in {self._folder} is gone: it has no snapshot before micro-batch {before}")
        snapshot = snapshots[-1]
        inputs = {file.batch: file for file in self._files("input") if snapshot.batch < file.batch < before}
        missing = [batch for batch in range(snapshot.batch + 1, before) if batch not in inputs]
        if missing:
            raise RunError(
                f"the state in {self._folder} is incomplete: the input of micro-batch {missing[0]} is missing"
            )
        state: State = pickle.loads(self._read(snapshot.path))
        return state, [self._read(inputs[batch].path) for batch in sorted(inputs)]

    def save(self, batch: int, data: bytes, state: State) -> str:
        """Keep what a batch brought, and from time to time the state after it. Returns the input's name."""
        name = self._write(batch, "input", data)
        for file in self._files("input"):
            if file.batch >= batch and file.path.name != name:
                file.path.unlink(missing_ok=True)
        for file in self._files("snapshot"):
            if file.batch >= batch:
                file.path.unlink(missing_ok=True)
        snapshots = self._files("snapshot")
        since = sum(file.size for file in self._files("input") if file.batch > snapshots[-1].batch)
        if since > max(_LEAST, snapshots[-1].size):
            self._write(batch, "snapshot", pickle.dumps(state, pickle.HIGHEST_PROTOCOL))
            self._drop_older(snapshots[-1].batch)
        return name

    def _drop_older(self, batch: int) -> None:
        """Nothing goes back behind the last snapshot but one: only the newest batch is ever run again."""
        for kind in ("snapshot", "input"):
            for file in self._files(kind):
                if file.batch < batch or (kind == "input" and file.batch == batch):
                    file.path.unlink(missing_ok=True)

    def _files(self, kind: str) -> list[_File]:
        """Files of a kind, by batch; of one batch the newest last."""
        found = [_File(path, int(path.name.rsplit("-", 1)[0])) for path in self._folder.glob(f"*.{kind}")]
        return sorted(found, key=lambda file: (file.batch, file.path.stat().st_mtime_ns))

    def _write(self, batch: int, kind: str, data: bytes) -> str:
        name = f"{batch}-{uuid.uuid4().hex[:12]}.{kind}"
        temporary = self._folder / f".{name}"
        with temporary.open("wb") as out:
            out.write(zlib.crc32(data).to_bytes(_CHECK, "big"))
            out.write(data)
            out.flush()
            os.fsync(out.fileno())
        temporary.rename(self._folder / name)
        return name

    @staticmethod
    def _read(path: Path) -> bytes:
        raw = path.read_bytes()
        check, data = raw[:_CHECK], raw[_CHECK:]
        if zlib.crc32(data).to_bytes(_CHECK, "big") != check:
            raise RunError(f"the state file {path} is damaged: its checksum is wrong. Remove the state and start anew")
        return data
