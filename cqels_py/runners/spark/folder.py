"""The folder with the state of one query: which query it belongs to, and the counts of its partitions."""

from __future__ import annotations

import json
import uuid
from collections.abc import Mapping
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

from cqels_py.checkpoints.store import write_whole
from cqels_py.errors import UsageError
from cqels_py.runners.spark.stage import store_of
from cqels_py.runners.statistics import Statistics

_NAME = "query.json"
_MARK = "mark"
_RUN = "run"
_APPLICATION = "application"


@dataclass(frozen=True, slots=True)
class PartLoad:
    """The load of one partition of a stage so far. `rows`: triples of the streams or changes of the stage before;
    `rows_of_batch`: those of the last micro-batch. `rebuilt`: how often its state was restored from its store, as no
    worker of the host had it in memory; at the first micro-batch none has."""

    rows: int
    rows_of_batch: int
    rebuilt: int


_ANOTHER = {
    "static data": "other static data",
    "partitions": "another number of partitions",
    "format": "another version of cqels_py, whose format differs",
}


@dataclass(frozen=True, slots=True)
class Claim:
    """`mark` distinguishes this state from any other one; `run`: the number of the Spark application that works on it,
    from 1."""

    mark: str
    run: int


def claim(folder: Path, about: Mapping[str, str | int], application: str | None = None) -> Claim:
    """Claim the folder for a query, or find that it has its state already.

    `about`: properties that have to be the same when a query continues from there. UsageError if they are not, or if
    the folder belongs to something else. `application`: Spark's id of it; without one each claim counts as a run of its
    own.
    """
    path = folder / _NAME
    if path.exists():
        found = _read(path)
        changed = [name for name, value in about.items() if found.get(name) != value]
        if changed:
            raise UsageError(
                f"the state in {folder} was made with {_ANOTHER.get(changed[0], f'another {changed[0]}')}: give the query a new "
                "folder (and a new checkpoint)"
            )
        claimed = Claim(str(found[_MARK]), int(found.get(_RUN, 1)))
        if application is None or found.get(_APPLICATION) != application:
            claimed = replace(claimed, run=claimed.run + 1)
            _write(path, about, claimed, application)
        return claimed
    if folder.exists() and any(each.suffix != ".tmp" for each in folder.iterdir()):
        raise UsageError(f"{folder} is not empty, and does not hold the state of a query")
    folder.mkdir(parents=True, exist_ok=True)
    claimed = Claim(uuid.uuid4().hex, 1)
    _write(path, about, claimed, application)
    return claimed


def _write(path: Path, about: Mapping[str, str | int], claimed: Claim, application: str | None) -> None:
    text = json.dumps({**about, _MARK: claimed.mark, _RUN: claimed.run, _APPLICATION: application})
    write_whole(path, text.encode())


def statistics(folder: Path) -> Statistics:
    """The query's counts up to its last micro-batch."""
    noted = _all_noted(folder)
    if not noted[0]:
        return Statistics()
    # Every part sees every element; the triples of each were counted when they were partitioned.
    first = noted[0][0]
    return Statistics(
        elements=first["elements"],
        triples=sum(each["triples"] for each in noted[0]),
        results=sum(each["results"] for each in noted[-1]),
        late=first["late"],
        malformed=sum(each["malformed"] for each in noted[0]),
        event_time=first["event_time"],
        no_numbers=sum(each["no_numbers"] for stage in noted for each in stage),
    )


def loads(folder: Path) -> list[list[PartLoad]]:
    """The load of each partition of each stage up to the last micro-batch; nothing before the first."""
    return [
        [PartLoad(each["rows"], each["rows_of_batch"], each["rebuilt"]) for each in stage]
        for stage in _all_noted(folder)
    ]


def _all_noted(folder: Path) -> list[list[Mapping[str, Any]]]:
    path = folder / _NAME
    if not path.exists():
        raise UsageError(f"{folder} does not hold the state of a query")
    parts = str(_read(path)["partitions"]).split()
    return [_noted(folder, stage, int(count)) for stage, count in enumerate(parts)]


def _noted(folder: Path, stage: int, parts: int) -> list[Mapping[str, Any]]:
    counts = [store_of(folder, stage, part).counts() for part in range(parts)]
    return [each for each in counts if each is not None]


def _read(path: Path) -> dict[str, Any]:
    try:
        found = json.loads(path.read_text())
        if not isinstance(found, dict) or _MARK not in found:
            raise ValueError("it has other content")
    except ValueError as error:
        raise UsageError(
            f"{path} does not describe the state of a query ({error}): give the query a new folder (and a new checkpoint)"
        ) from None
    return found
