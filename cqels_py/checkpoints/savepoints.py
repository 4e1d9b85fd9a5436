"""Copies of a checkpoint, which may be in use."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import NamedTuple

from cqels_py.checkpoints import durable_files, log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.history import check_origin, logs_behind, rebuilt
from cqels_py.checkpoints.log import Incomplete, ReadLog
from cqels_py.checkpoints.manifest import NAME, Contents
from cqels_py.checkpoints.objects import LocalStore
from cqels_py.checkpoints.snapshots import Snapshots
from cqels_py.checkpoints.state_file import from_bytes
from cqels_py.errors import UsageError
from cqels_py.state.named_values import NamedValues

_ATTEMPTS = 5


class Parts(NamedTuple):
    """The last snapshot of a folder, and the logs behind it."""

    contents: Contents | None
    number: int
    data: bytes
    state: Mapping[str, NamedValues]
    logs: list[ReadLog]


def copy(folder: Path, to: Path, *, intact: bool = False) -> None:
    """Copy the last intact snapshot, and the log behind it, to a folder that does not exist or is empty.

    The process that uses the checkpoint can go on meanwhile. `intact`: if files of the folder are missing or damaged, copy what
    comes before them; otherwise that is StorageError, as is a copy that fails. UsageError for wrong folders.
    """
    if to.exists() and (not to.is_dir() or any(to.iterdir())):
        raise UsageError(f"{to} is there already: name a folder that is empty, or that does not exist")
    with explained(folder):
        parts = parts_of(folder, intact=intact)
    try:
        durable_files.make_folder(to)
        store = LocalStore(to)
        for each in parts.logs:
            # All that is appended from here on belongs to the original only.
            store.put(log.name_of(each.number), (folder / log.name_of(each.number)).read_bytes()[: each.length])
    except OSError as error:
        raise StorageError(f"cannot copy {folder} to {to}: {error.strerror}") from error
    if parts.contents is not None:
        logs = {each.number: "" if each.head is None else each.head.own for each in parts.logs}
        end = parts.logs[-1].digest if parts.logs else None
        store.put(NAME, Contents(parts.contents.engine, [parts.number], logs, end, copied=True).to_bytes())
    store.put(f"{parts.number:012}.snapshot", parts.data)


@contextmanager
def explained(folder: Path) -> Iterator[None]:
    """Errors about files that are missing, or are not those that were written, say how one can go on."""
    try:
        yield
    except Incomplete as error:
        try:
            parts = parts_of(folder, intact=True)
        except (StorageError, UsageError):
            way = "Nothing of the folder can be used without it: use a copy of the folder from before (cqels checkpoint copy)"
        else:
            records = sum(len(each.records) for each in parts.logs)
            way = (
                f"Put it back; or go on from snapshot {parts.number} and the {records:,} records behind it, and without what came "
                f"after them: cqels checkpoint copy --intact {folder} TO copies these to another folder"
            )
        where = "" if str(folder) in error.message else f"{folder}: "
        raise StorageError(f"{where}{error.message}. {way}") from error


def numbers_of(folder: Path) -> list[int]:
    """The numbers of the snapshots in a folder. UsageError if it has none."""
    numbers = Snapshots(LocalStore(folder)).numbers() if folder.is_dir() else []
    if not numbers:
        raise UsageError(f"{folder} is no folder of a checkpoint: it has no snapshot")
    return numbers


def parts_of(folder: Path, *, intact: bool = False) -> Parts:
    """The last intact snapshot of a folder that may be in use, and the logs behind it. `intact`: those before the first that is
    missing or damaged, which is Incomplete otherwise."""
    for _ in range(_ATTEMPTS - 1):
        before = _manifest_of(folder)
        try:
            return _parts_of(folder, intact=intact)
        except StorageError:
            # Files are removed when there are newer ones.
            if _manifest_of(folder) == before:
                raise
    return _parts_of(folder, intact=intact)


def _manifest_of(folder: Path) -> bytes:
    try:
        return (folder / NAME).read_bytes()
    except OSError:
        return b""


def _parts_of(folder: Path, *, intact: bool) -> Parts:
    numbers = numbers_of(folder)
    try:
        contents = Contents.read(folder)
    except Incomplete:
        if not intact:
            raise
        contents = None
    found = _intact_snapshot(folder, numbers, contents)
    if found is None and intact:
        # The manifest may be that of another engine.
        found, contents = _intact_snapshot(folder, numbers, None), None
    if found is None:
        raise Incomplete(f"no snapshot of {folder} is intact")
    number, data, state = found
    if intact:
        contents = rebuilt(folder, contents, state)
    logs = list[ReadLog]()
    try:
        for each in logs_behind(folder, contents, number, state):
            logs.append(each)
    except Incomplete:
        if not intact:
            raise
    return Parts(contents, number, data, state, logs)


def _intact_snapshot(
    folder: Path, numbers: list[int], contents: Contents | None
) -> tuple[int, bytes, Mapping[str, NamedValues]] | None:
    for number in reversed(numbers):
        # There are newer ones by now, if it is not there.
        with suppress(StorageError, FileNotFoundError):
            data = (folder / f"{number:012}.snapshot").read_bytes()
            state = from_bytes(data)
            check_origin(state, number, contents)
            return number, data, state
    return None
