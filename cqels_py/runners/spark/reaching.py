"""Reaching the folder of a state: from the driver; or, with Spark Connect, from a task, as a client need not reach it."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict, dataclass
from functools import partial
from typing import Any, TypeAlias

import pyarrow as pa

from cqels_py.checkpoints.locations import Location
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.runners.spark import folder
from cqels_py.runners.spark.folder import Claim, PartLoad
from cqels_py.runners.spark.frequent import Frequent
from cqels_py.runners.spark.migration import split_state
from cqels_py.runners.spark.session import Session, is_connected
from cqels_py.runners.spark.stage import BEGINNING, Job
from cqels_py.runners.statistics import Statistics

_SCHEMA = pa.schema([("answer", pa.string())])
_VALUE, _ERROR, _IS_USAGE = "value", "error", "is usage"
NEEDED = (
    "The workers' Python needs cqels_py of the version of the driver and of a client, and the libraries to reach the state: install "
    "them there, or send an environment along (--archives, spark.archives)"
)
_Function: TypeAlias = Callable[..., Any]
"""Of a location and other arguments; its result can be written as JSON."""


@dataclass(frozen=True, slots=True)
class StateFolder:
    """The folder of a query's state. `session`: where tasks reach it, if that is one of Spark Connect."""

    location: Location
    session: Session | None = None

    def check_empty(self) -> None:
        """UsageError if there is something in the folder."""
        self._ask(folder.check_empty)

    def noted(self) -> dict[str, Any]:
        """The description of the state in the folder; empty where there is none."""
        return dict(self._ask(folder.noted))

    def lay_out(self, about: Mapping[str, str | int], application: str | None, beginning: bytes | memoryview) -> Claim:
        """Claim the folder for a query (see `folder.claim`). Its parts begin with this data, unless they have begun."""
        return Claim(**self._ask(_lay_out, dict(about), application, bytes(beginning)))

    def parts(self) -> list[int]:
        """The number of parts of each stage. UsageError if the folder does not hold the state of a query."""
        return list(self._ask(folder.parts_of))

    def check_same(self, about: Mapping[str, str | int]) -> dict[str, Any]:
        """The description of the state in the folder. UsageError if it is that of another query."""
        return dict(self._ask(folder.check_same, dict(about)))

    def split_from(self, old: Job, new: Job, about: Mapping[str, str | int], beginning: bytes | memoryview) -> None:
        """Write the states of the parts of a new layout, whose folder this is, from those of an old one."""
        self._ask(_split_from, old, new, dict(about), bytes(beginning))

    def statistics(self) -> Statistics:
        """The query's counts up to its last micro-batch."""
        return Statistics(**self._ask(_statistics))

    def loads(self) -> list[list[PartLoad]]:
        """The load of each part of each stage up to the last micro-batch."""
        return [[PartLoad(**each) for each in stage] for stage in self._ask(_loads)]

    def heavy_values(self) -> Frequent:
        """The frequent values up to the last micro-batch."""
        return dict(self._ask(folder.heavy_values))

    def _ask(self, function: _Function, *arguments: object) -> Any:
        return asked(self.session, partial(function, self.location, *arguments))


def asked(session: Session | None, call: Callable[[], Any]) -> Any:
    """The result of a call, which can be written as JSON: of a task, if the session is one of Spark Connect."""
    return call() if session is None or not is_connected(session) else _in_a_task(session, call)


def _lay_out(location: Location, about: Mapping[str, str | int], application: str | None, beginning: bytes) -> Any:
    claimed = folder.claim(location, about, application)
    store = location.open()
    if BEGINNING not in store.names():
        store.put(BEGINNING, beginning)
    return asdict(claimed)


def _split_from(location: Location, old: Job, new: Job, about: Mapping[str, str | int], beginning: bytes) -> None:
    split_state(old, new)
    location.open().put(BEGINNING, beginning)
    folder.describe(location, about, split=True)


def _statistics(location: Location) -> Any:
    found = asdict(folder.statistics(location))
    # By pairs, which are no names; on Spark there are none.
    del found["rejected"]
    return found


def _loads(location: Location) -> Any:
    return [[asdict(each) for each in stage] for stage in folder.loads(location)]


def _in_a_task(session: Session, call: Callable[[], Any]) -> Any:
    """The result of the call on the cluster; its errors are raised here. RunError if the task fails in another way."""
    from pyspark.errors import PySparkException

    try:
        rows = session.range(0, 1, 1, 1).mapInArrow(partial(_answer, call), "answer string").toArrow()
    except PySparkException as error:
        raise RunError(f"the cluster cannot run a task of cqels_py: {cause_of(str(error))}. {NEEDED}") from error
    (told,) = rows.column("answer").to_pylist()
    found = json.loads(told)
    if (message := found.get(_ERROR)) is not None:
        raise (UsageError if found[_IS_USAGE] else RunError)(message)
    return found[_VALUE]


def cause_of(message: str) -> str:
    """The line of an error of Spark that says most about why Python did not start, or a task failed.

    >>> cause_of("A task failed. See below.\\n  in main\\nModuleNotFoundError: No module named 'cqels_py'\\n\\tat org.x")
    "ModuleNotFoundError: No module named 'cqels_py'"
    """
    told = re.findall(r"(\w*Error: [^\n)]*|Cannot run program [^\n]*)", message)
    return told[-1].strip() if told else message.strip().partition("\n")[0].rstrip(".")


def _answer(call: Callable[[], Any], batches: Iterable[pa.RecordBatch]) -> Iterator[pa.RecordBatch]:
    """The task: the row that it gets is of no interest."""
    for _ in batches:
        pass
    try:
        found = {_VALUE: call()}
    except CqelsError as error:
        found = {_ERROR: str(error), _IS_USAGE: isinstance(error, UsageError)}
    yield pa.record_batch([[json.dumps(found)]], schema=_SCHEMA)
