"""The snapshots of a folder and the logs behind them, each checked to be the one that the engine has written there."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from pathlib import Path
from typing import NamedTuple, cast

from cqels_py.checkpoints import log
from cqels_py.checkpoints.durable_files import StorageError
from cqels_py.checkpoints.log import Incomplete, ReadLog
from cqels_py.checkpoints.manifest import NAME, Contents
from cqels_py.state.named_values import NamedValues

ORIGIN = "origin"
"""The part of a snapshot that says which one it is."""


class Origin(NamedTuple):
    """Where a snapshot belongs. `engine`: its id; `before`: the digest of the log before it."""

    engine: str
    number: int
    before: int

    def values(self) -> NamedValues:
        """As a part of a snapshot."""
        return {"engine": self.engine, "number": self.number, "before": self.before}


def origin_of(state: Mapping[str, NamedValues]) -> Origin | None:
    """Where a snapshot belongs; those of earlier versions do not say it."""
    values = state.get(ORIGIN)
    return None if values is None else Origin(**cast("dict[str, int | str]", values))  # type: ignore[arg-type]


def check_origin(state: Mapping[str, NamedValues], number: int, contents: Contents | None) -> None:
    """StorageError if a snapshot is not the one of this number."""
    origin = origin_of(state)
    if origin is None:
        return
    if contents is not None and origin.engine != contents.engine:
        raise StorageError("it is that of another engine")
    if origin.number != number:
        raise StorageError(f"it is snapshot {origin.number} under another name")


def logs_behind(
    folder: Path, contents: Contents | None, first: int, state: Mapping[str, NamedValues] | None
) -> Iterator[ReadLog]:
    """The logs from that of a snapshot on. `state`: of that snapshot, unless it is not known. Incomplete if one is missing, or
    is not the one that was written there."""
    origin = None if state is None else origin_of(state)
    if contents is None and origin is not None:
        raise Incomplete(f"{folder / NAME} is missing")
    before, former = None if origin is None else origin.before, f"snapshot {first}"
    numbers = _named(folder, contents, first)
    for number in numbers:
        found, path = log.read(folder, number), folder / log.name_of(number)
        if number != numbers[-1] and found.torn:
            raise Incomplete(f"{path} is damaged behind byte {found.length}, and records of a later log follow")
        if contents is not None:
            _check_own(path, found, contents)
        if found.head is not None and before not in (None, found.head.before):
            raise Incomplete(f"{path} does not follow {former}, as that one is now: one of the two is of another time")
        before, former = found.digest, str(path)
        yield found
    if contents is not None and contents.end not in (None, before):
        raise Incomplete(
            f"{former} is not as it was when its engine was closed: records at its end are missing, or it is an older copy"
        )


def _check_own(path: Path, found: ReadLog, contents: Contents) -> None:
    head = found.head
    if head is None:
        if contents.logs[found.number]:
            raise Incomplete(f"{path} is damaged at its beginning, or of an earlier version")
    elif head.engine != contents.engine:
        raise Incomplete(f"{path} is the log of another engine")
    elif (head.own, head.number) != (contents.logs[found.number], found.number):
        raise Incomplete(f"{path} is another log than the one that was written there, such as that of a copy")


def _named(folder: Path, contents: Contents | None, first: int) -> list[int]:
    """The numbers of the logs from this one on that should be there. Incomplete if others are there."""
    present = log.numbers(folder)
    if contents is None:
        named = [number for number in present if number >= first and not _is_begun(folder, number)]
        for number in named:
            if log.read(folder, number).head is not None:
                raise Incomplete(f"{folder / NAME} is missing")
        for number, expected in zip(named, range(first, first + len(named)), strict=True):
            if number != expected:
                raise Incomplete(f"{folder / log.name_of(expected)} is missing")
        if first and not named:
            raise Incomplete(f"{folder / log.name_of(first)} is missing")
        return named
    last = max(contents.logs, default=-1)
    for number in present:
        if number > max(last, contents.dropped) and not _is_begun(folder, number):
            raise Incomplete(f"{folder / NAME} is older than {log.name_of(number)}, which it does not name")
    if contents.logs and first not in contents.logs:
        raise Incomplete(f"{folder / NAME} does not name {log.name_of(first)}: it is an older copy")
    return [number for number in sorted(contents.logs) if number >= first]


def _is_begun(folder: Path, number: int) -> bool:
    """Is it a log of which the process ended before it was named? Nothing was appended to it."""
    found = log.read(folder, number)
    return not found.records and (found.head is not None or not found.length)


def rebuilt(folder: Path, contents: Contents | None, state: Mapping[str, NamedValues]) -> Contents | None:
    """Contents for a folder whose manifest is lost or old: the logs that are there. None if all is of earlier versions."""
    found = dict[int, ReadLog]()
    for number in log.numbers(folder):
        with suppress(StorageError):
            found[number] = log.read(folder, number)
    heads = {number: each.head for number, each in found.items() if each.head is not None}
    if contents is not None:
        engine = contents.engine
    elif (origin := origin_of(state)) is not None:
        engine = origin.engine
    elif heads:
        engine = heads[min(heads)].engine
    else:
        return None
    named = {} if contents is None else contents.logs
    logs = {number: named.get(number, heads[number].own if number in heads else "") for number in {*found, *named}}
    return Contents(engine, logs=logs)
