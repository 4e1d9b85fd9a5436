"""The durable state of one partition: snapshots, a log of the input of each micro-batch since, and the outcome of each.

    <folder>/<part>/<batch>-<id>.input               the rows of a micro-batch, and the id of the state before it
    <folder>/<part>/<batch>-<id>.snapshot            the whole state after a micro-batch
    <folder>/<part>/<batch>-<run>-<execution>.outcome  the id of the state after a micro-batch, and the partition's
                                                       counts

A state's id is a digest of the id before it and the input, so it identifies the whole history of the partition, like a
commit in git: equal histories have equal ids in every process. The state is the latest snapshot of that history
with the later inputs replayed, since the dataflow is deterministic.

Spark may run a task of a micro-batch more than once: after a failure, in speculative execution, or when a lost worker
turns out to be alive; and after a restart of the driver it may run the whole micro-batch again. Three rules keep the
state correct:

* All attempts at one execution (one Spark stage of one run of the driver) have one outcome, which is created once and
  never replaced. An attempt that finds another input there evaluates that one instead of its own. So all attempts
  deliver the same rows, and it does not matter which of them Spark accepts.
* A micro-batch starts from the latest execution of the one before it, and its input records which. A replay after a
  restart is a later execution, and it counts from then on.
* No attempt removes or replaces files of its own micro-batch or of later ones. When a snapshot has been written,
  everything older than the snapshot before it is removed; an attempt that sees the outcome of a later micro-batch
  writes nothing.

Files are written under another name, synced, and renamed or linked: after a crash there is the old or the new version.
A snapshot is written when the inputs since the last one are larger than it, so the size of a folder follows the state,
not the stream. The snapshot before it is kept, with the inputs after it, in case a snapshot turns out to be damaged.
"""

from __future__ import annotations

import contextlib
import errno
import hashlib
import json
import os
import pickle
import re
import uuid
import zlib
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, Generic, TypeVar

from cqels_py.checkpoints.snapshot import to_bytes
from cqels_py.errors import RunError

State = TypeVar("State")

BEFORE = -1
"""The number of the batch before the first: that of the first snapshot."""
_LEAST = 1 << 20
_CHECK = 4
_ID = 16
_FIRST_ID = "0" * _ID
_TEMPORARY = ".tmp"
_OUTCOME = re.compile(r"(\d+)-(\d+)-(\d+)\.outcome")
_FILE = re.compile(r"(-?\d+)-.+\.(input|snapshot|outcome)")
_NO_LINKS = (errno.EPERM, errno.ENOTSUP, errno.EOPNOTSUPP, errno.ENOSYS)
_START_AGAIN = "To start again, remove both the state and Spark's checkpoint: neither is of use without the other"


class DamagedFile(RunError):
    """A file of the state differs from the data that was written."""

    code = "CQ-DAMAGED"


@dataclass(frozen=True, slots=True)
class Attempt:
    """An attempt at a micro-batch. `execution`: Spark's number of the stage, which all attempts at it share; it grows
    within a `run` of the driver, as runs do: so the order of (run, execution) is that in which the driver planned them."""

    batch: int
    run: int = 0
    execution: int = 0

    @property
    def age(self) -> tuple[int, int]:
        return self.run, self.execution

    def is_late(self, others: list[Attempt]) -> bool:
        """Has a later micro-batch finished that was planned after this attempt? Then Spark has accepted another
        attempt."""
        return any(other.batch > self.batch and other.age >= self.age for other in others)


@dataclass(frozen=True, slots=True)
class Outcome:
    """The state after a micro-batch. `snapshot`: the name of the last snapshot before it; `since`: bytes of inputs
    after that."""

    id: str
    before: str
    snapshot: str
    since: int
    counts: Mapping[str, Any]


@dataclass(frozen=True, slots=True)
class Start:
    """The state from which an attempt starts: its name, the last snapshot up to it, and bytes of inputs after that.

    `counts`: of the partition so far. `settled`: the input for which this execution has an outcome, None if it has none
    yet.
    """

    name: str
    snapshot: str
    since: int
    counts: Mapping[str, Any]
    settled: bytes | None = None
    late: bool = False

    @property
    def id(self) -> str:
        return _parsed(self.name)[1]


@dataclass(frozen=True, slots=True)
class Saved:
    """The name of the state after an attempt. `late`: a later micro-batch has finished already."""

    name: str
    late: bool


class PartStore(Generic[State]):
    """Loads and saves the state of one partition."""

    def __init__(self, folder: Path, part: int) -> None:
        self._folder = folder / str(part)

    def begin(self, state: State) -> None:
        """Write the state before the first batch, unless there is one."""
        self._folder.mkdir(parents=True, exist_ok=True)
        for left_over in self._folder.glob(f"*{_TEMPORARY}"):
            left_over.unlink(missing_ok=True)
        if not any(self._folder.glob("*.snapshot")):
            write_checked(self._snapshot(_named(BEFORE, _FIRST_ID)), to_bytes(state))

    # --- loading --------------------------------------------------------------------------------------------------

    def start(self, attempt: Attempt) -> Start:
        """The state from which an attempt starts; RunError if there is none of the micro-batch before it."""
        outcomes = self._outcomes()
        late = attempt.is_late(outcomes)
        if attempt in outcomes:
            kept = self._read(attempt)
            data = self._input(_named(attempt.batch, kept.id), late=late)[1]
            before = _named(attempt.batch - 1, kept.before)
            return Start(before, kept.snapshot, kept.since - len(data), kept.counts, data, late)
        if attempt.batch - 1 == BEFORE:
            first = _named(BEFORE, _FIRST_ID)
            return Start(first, first, 0, {}, late=late)
        candidates = [each for each in outcomes if each.batch == attempt.batch - 1]
        if not candidates:
            done = [each.batch for each in outcomes if each.batch < attempt.batch]
            raise self._missing(max(done, default=BEFORE) + 1, late=late)
        # A streaming query of an earlier run that is started again may come after the batches of a later one.
        planned_before = [each for each in candidates if each.age <= attempt.age] or candidates
        found = self._read(max(planned_before, key=lambda each: each.age))
        name = _named(attempt.batch - 1, found.id)
        if self._snapshot(name).exists():
            return Start(name, name, 0, found.counts, late=late)
        return Start(name, found.snapshot, found.since, found.counts, late=late)

    def load(self, start: Start) -> tuple[State, list[bytes]]:
        """The latest intact snapshot in the history of the state to start from, and the inputs after it."""
        name, inputs = start.name, list[bytes]()
        damage: DamagedFile | None = None
        while True:
            try:
                state: State = pickle.loads(read_checked(self._snapshot(name)))
                return state, inputs[::-1]
            except FileNotFoundError:
                pass
            except DamagedFile as error:
                damage = damage or error
            batch = _parsed(name)[0]
            if batch == BEFORE or not self._path(name, "input").exists():
                raise damage or self._incomplete(batch, late=start.late)
            before, data = self._input(name, late=start.late)
            inputs.append(data)
            name = _named(batch - 1, before)

    def _input(self, name: str, *, late: bool) -> tuple[str, bytes]:
        """The id of the state before, and the input."""
        try:
            found = read_checked(self._path(name, "input"))
        except FileNotFoundError:
            raise self._missing(_parsed(name)[0], late=late) from None
        return found[:_ID].decode(), found[_ID:]

    def _incomplete(self, batch: int, *, late: bool) -> RunError:
        if any(_parsed(path.stem)[0] <= batch for path in self._folder.glob("*.snapshot")):
            return self._missing(batch, late=late)
        return _late_or(
            f"the state in {self._folder} has no snapshot from before micro-batch {batch + 1}: it was removed, or the "
            f"checkpoint is another one. {_START_AGAIN}",
            late=late,
        )

    def _missing(self, batch: int, *, late: bool) -> RunError:
        return _late_or(
            f"the state in {self._folder} is incomplete: the input of micro-batch {batch} is missing, as when a "
            f"sink does not evaluate all rows of a micro-batch, or files were removed. {_START_AGAIN}",
            late=late,
        )

    # --- saving ---------------------------------------------------------------------------------------------------

    def save(
        self, attempt: Attempt, start: Start, data: bytes, state: State, counts: Mapping[str, Any]
    ) -> Saved | None:
        """Save the input of a batch and its outcome, and from time to time a snapshot.

        None: another attempt at this execution was faster, with another input. Then `start` again, with that one.
        """
        id_ = _digest(start.id, data)
        name = _named(attempt.batch, id_)
        outcome = Outcome(id_, start.id, start.snapshot, start.since + len(data), counts)
        outcomes = self._outcomes()
        late = attempt.is_late(outcomes)
        if not late and attempt not in outcomes:
            self._write_input(name, start.id, data)
            write_once(self._outcome(attempt), _checked(json.dumps(asdict(outcome)).encode()))
        with contextlib.suppress(FileNotFoundError):
            # If it is missing, the attempt is late, and its files were removed with older ones.
            if self._read(attempt).id != id_:
                return None
        if not late:
            sync_folder(self._folder)
            self._take_snapshot(name, outcome, state)
        return Saved(name, late)

    def _write_input(self, name: str, before: str, data: bytes) -> None:
        path = self._path(name, "input")
        if not path.exists():
            write_checked(path, before.encode(), data)

    def _take_snapshot(self, name: str, outcome: Outcome, state: State) -> None:
        last, path = self._snapshot(outcome.snapshot), self._snapshot(name)
        size = last.stat().st_size if last.exists() else 0
        if _outweighs(outcome.since, size) and not path.exists():
            write_checked(path, to_bytes(state))
            self._drop_before(_parsed(outcome.snapshot)[0])

    def _drop_before(self, batch: int) -> None:
        """Remove everything that is older than the snapshot before the last: only the newest batch is ever run again."""
        for name in os.listdir(self._folder):
            match = _FILE.fullmatch(name)
            # The inputs after a snapshot begin with the next batch.
            if match is not None and int(match[1]) < batch + (match[2] == "input"):
                (self._folder / name).unlink(missing_ok=True)

    # --- files ----------------------------------------------------------------------------------------------------

    def _path(self, name: str, kind: str) -> Path:
        return self._folder / f"{name}.{kind}"

    def _snapshot(self, name: str) -> Path:
        return self._path(name, "snapshot")

    def _outcome(self, attempt: Attempt) -> Path:
        return self._folder / f"{attempt.batch}-{attempt.run}-{attempt.execution}.outcome"

    def _outcomes(self) -> list[Attempt]:
        """The attempts that have outcomes."""
        found = map(_OUTCOME.fullmatch, os.listdir(self._folder))
        return [Attempt(*map(int, match.groups())) for match in found if match is not None]

    def _read(self, attempt: Attempt) -> Outcome:
        return Outcome(**json.loads(read_checked(self._outcome(attempt))))

    def counts(self) -> Mapping[str, Any] | None:
        """The partition's counts after the last batch."""
        outcomes = self._outcomes() if self._folder.exists() else []
        if not outcomes:
            return None
        return self._read(max(outcomes, key=lambda each: (each.age, each.batch))).counts


def _named(batch: int, id_: str) -> str:
    return f"{batch}-{id_}"


def _parsed(name: str) -> tuple[int, str]:
    """Batch and id of a state's name.

    >>> _parsed("-1-00ff")
    (-1, '00ff')
    """
    batch, _, id_ = name.rpartition("-")
    return int(batch), id_


def _digest(before: str, data: bytes) -> str:
    found = hashlib.blake2b(before.encode(), digest_size=_ID // 2)
    found.update(data)
    return found.hexdigest()


def _late_or(message: str, *, late: bool) -> RunError:
    """The error. An attempt that Spark no longer waits for must not ask anybody to remove a state that is intact."""
    if late:
        return RunError("this attempt came too late: later micro-batches have ended, and its files were removed")
    return RunError(message)


def _outweighs(inputs: int, snapshot: int) -> bool:
    """Is it time for a snapshot, given the bytes of inputs since the last one and its own size?"""
    return inputs > max(_LEAST, snapshot)


def _checked(*blocks: bytes) -> bytes:
    check = 0
    for block in blocks:
        check = zlib.crc32(block, check)
    return b"".join((check.to_bytes(_CHECK, "big"), *blocks))


def write_checked(path: Path, *blocks: bytes) -> None:
    """Write the data with a checksum before it."""
    write_whole(path, _checked(*blocks))


def read_checked(path: Path) -> bytes:
    """Data written by `write_checked`; DamagedFile if the checksum is wrong."""
    raw = path.read_bytes()
    check, data = raw[:_CHECK], raw[_CHECK:]
    if zlib.crc32(data).to_bytes(_CHECK, "big") != check or len(check) < _CHECK:
        raise DamagedFile(f"the state file {path} is damaged: its checksum is wrong. {_START_AGAIN}")
    return data


def write_whole(path: Path, data: bytes) -> None:
    """Write a file atomically and durably: at any moment there is the old or the new version, also after a crash of the
    machine."""
    _temporary(path, data).rename(path)
    sync_folder(path.parent)


def write_once(path: Path, data: bytes) -> None:
    """Write a file like `write_whole`, unless it exists: of several concurrent attempts exactly one succeeds.

    Where the file system has no hard links this is a check and a rename, which are not atomic.
    """
    temporary = _temporary(path, data)
    try:
        os.link(temporary, path)
    except FileExistsError:
        pass
    except OSError as error:
        if error.errno not in _NO_LINKS:
            raise
        if not path.exists():
            temporary.rename(path)
    temporary.unlink(missing_ok=True)
    sync_folder(path.parent)


def _temporary(path: Path, data: bytes) -> Path:
    """Write the data to a file of another name, and sync it."""
    temporary = path.with_name(f"{path.name}.{uuid.uuid4().hex[:12]}{_TEMPORARY}")
    with temporary.open("wb") as out:
        out.write(data)
        out.flush()
        os.fsync(out.fileno())
    return temporary


def sync_folder(path: Path) -> None:
    """Sync a folder's entries."""
    folder = os.open(path, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
