"""The folder with the state of one query: which query it belongs to, and the counts of its partitions."""

from __future__ import annotations

import hashlib
import json
import secrets
import uuid
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from cqels_py.checkpoints.locations import Location
from cqels_py.checkpoints.objects import Store
from cqels_py.checkpoints.shared_folder import ASIDE
from cqels_py.errors import RunError, UsageError
from cqels_py.runners.spark.frequent import Frequent, noted_values
from cqels_py.runners.spark.stage import VALUES, store_of
from cqels_py.runners.statistics import Statistics

FORMAT = 33
"""Raised when the form of the state changes: an older one is then refused."""
_NAME = "query.json"
_FORMAT = "format"
_MARK = "mark"
_SPLIT = "split"
_RUN = ".run"
_TRIES = 5
_APART = 1000


@dataclass(frozen=True, slots=True)
class PartLoad:
    """The load of one partition of a stage so far. `rows`: triples of the streams or changes of the stage before;
    `rows_of_batch`: those of the last micro-batch. `rebuilt`: how often its state was restored from its store, as no
    worker of the host had it in memory; at the first micro-batch none has. `caught_up`: how often the host had an older state, to
    which only the inputs since were applied."""

    rows: int
    rows_of_batch: int
    rebuilt: int
    caught_up: int = 0


_ANOTHER = {
    "static data": "other static data",
    "partitions": "another number of partitions",
    "heavy values": "other heavy values",
    "watermarks": "another lateness_of, partition or idle",
}
_NEW_FOLDER = "give the query a new folder (and a new checkpoint)"
_RESCALED = "; cqels_py.spark.migrate splits a state into more parts, and tasks= runs it in fewer tasks"


@dataclass(frozen=True, slots=True)
class Claim:
    """`mark` distinguishes this state from any other one; `run`: the number of the Spark application that works on it,
    from 1. `split`: parts may hold rows of others, as each was one of several into which a part was split."""

    mark: str
    run: int
    split: bool = False


def claim(location: Location, about: Mapping[str, str | int], application: str | None = None) -> Claim:
    """Claim the folder for a query, or find that it has its state already.

    `about`: properties that have to be the same when a query continues from there. UsageError if they are not, or if
    the folder belongs to something else. `application`: Spark's id of it; without one each claim counts as a run of its
    own.
    """
    store = location.open()
    if _NAME in store.names():
        found = check_same(location, about)
        return Claim(str(found[_MARK]), _number_of_run(store, application), bool(found.get(_SPLIT)))
    if store.names() or _holds_others(location):
        raise UsageError(f"{location} is not empty, and does not hold the state of a query")
    return Claim(describe(location, about), _number_of_run(store, application))


def describe(location: Location, about: Mapping[str, str | int], *, split: bool = False) -> str:
    """Write whose state the folder holds; returns its mark."""
    mark = uuid.uuid4().hex
    extra = {_SPLIT: 1} if split else {}
    location.open().put(_NAME, json.dumps({_FORMAT: FORMAT, **about, **extra, _MARK: mark}).encode())
    return mark


def noted(location: Location) -> dict[str, Any]:
    """The description of the state in the folder; empty where there is none. UsageError if it is something else."""
    return _read(location) if _NAME in location.open().names() else {}


def check_same(location: Location, about: Mapping[str, str | int]) -> dict[str, Any]:
    """The description of the state in the folder. UsageError if it is that of another query."""
    found = _read(location)
    changed = [name for name, value in about.items() if found.get(name, "") != value]
    if changed:
        raise UsageError(
            f"the state in {location} was made with {_ANOTHER.get(changed[0], f'another {changed[0]}')}: {_NEW_FOLDER}"
            f"{_RESCALED if changed[0] == 'partitions' else ''}"
        )
    return found


def parts_of(location: Location) -> list[int]:
    """The number of parts of each stage. UsageError if the folder does not hold the state of a query."""
    if _NAME not in location.open().names():
        raise UsageError(f"{location} does not hold the state of a query")
    return [int(count) for count in str(_read(location)["partitions"]).split()]


def check_empty(location: Location) -> None:
    """UsageError if there is something in the folder."""
    if location.open().names() or _holds_others(location):
        raise UsageError(f"{location} is not empty: give the run a new folder for its state")


def _holds_others(location: Location) -> bool:
    """Are there folders, or files that no driver has left behind that died?"""
    folder = Path(location.text)
    return location.is_local and folder.exists() and any(path.suffix != ASIDE for path in folder.iterdir())


def _number_of_run(store: Store, application: str | None) -> int:
    """The number of this run: that of its application, or a new one, greater than all before.

    Each run has an object of its own. Of two that take the same number at the same time, at least one sees the other,
    and takes another one.
    """
    mine = hashlib.blake2b((application or uuid.uuid4().hex).encode(), digest_size=8).hexdigest()
    runs = _runs(store)
    newest = max(runs, default=(0, ""))
    if newest[1] == mine and [number for number, _ in runs].count(newest[0]) == 1:
        return newest[0]
    number = newest[0] + 1
    for _ in range(_TRIES):
        store.put(f"{number}-{mine}{_RUN}", json.dumps({"application": application}).encode())
        if sum(other == number for other, _ in _runs(store)) == 1:
            return number
        number += secrets.randbelow(_APART) + 1
    raise RunError("drivers that start again and again take each other's numbers: start only one on a state")


def _runs(store: Store) -> list[tuple[int, str]]:
    """The numbers of all runs, and which applications have them."""
    found = (name.removesuffix(_RUN).partition("-") for name in store.names() if name.endswith(_RUN))
    return [(int(number), token) for number, _, token in found]


def statistics(location: Location) -> Statistics:
    """The query's counts up to its last micro-batch."""
    noted = _all_noted(location)
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


def loads(location: Location) -> list[list[PartLoad]]:
    """The load of each partition of each stage up to the last micro-batch; nothing before the first."""
    return [
        [PartLoad(each["rows"], each["rows_of_batch"], each["rebuilt"], each.get("caught_up", 0)) for each in stage]
        for stage in _all_noted(location)
    ]


def heavy_values(location: Location) -> Frequent:
    """The frequent values up to the last micro-batch."""
    parts_of(location)
    first = _noted(location, 0, 1)
    return noted_values(first[0].get(VALUES, {})) if first else {}


def _all_noted(location: Location) -> list[list[Mapping[str, Any]]]:
    return [_noted(location, stage, count) for stage, count in enumerate(parts_of(location))]


def _noted(location: Location, stage: int, parts: int) -> list[Mapping[str, Any]]:
    counts = [store_of(location.text, stage, part).counts() for part in range(parts)]
    return [each for each in counts if each is not None]


def _read(location: Location) -> dict[str, Any]:
    """The description of the state in the folder. UsageError if it is none, or that of a state of another format."""
    try:
        found = json.loads(location.open().get(_NAME))
        if not isinstance(found, dict) or not {_FORMAT, _MARK} & found.keys():
            raise ValueError("it has other content")
    except ValueError as error:
        raise UsageError(
            f"{location.below(_NAME)} does not describe the state of a query ({error}): {_NEW_FOLDER}"
        ) from None
    if found.get(_FORMAT) != FORMAT:
        raise UsageError(
            f"the state in {location} was made with another version of cqels_py, whose format differs: {_NEW_FOLDER}, or go on with "
            "that version"
        )
    return found
