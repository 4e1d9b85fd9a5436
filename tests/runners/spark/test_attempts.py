"""Attempts at micro-batches in any order, against a plain model: the list of inputs of what Spark has accepted.

The stage's own functions run, on a state that only remembers its inputs. Each attempt is a thread, and one runs at a time: it
stops where it computes and before it writes, and chance says which goes on. So an attempt may be overtaken anywhere, by another
one at its micro-batch or by later micro-batches; the driver may crash before or after it has noted the end of a micro-batch.
"""

from __future__ import annotations

import random
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cqels_py.checkpoints import shared_folder, state_file, store
from cqels_py.checkpoints.locations import Location
from cqels_py.checkpoints.state_file import State
from cqels_py.checkpoints.store import OtherRows
from cqels_py.errors import CqelsError
from cqels_py.runners.spark import parts, stage
from cqels_py.runners.spark.hot import HotFolders
from cqels_py.runners.spark.routing import Routing
from cqels_py.runners.spark.stage import BEGINNING, Job
from cqels_py.runners.statistics import Statistics
from tests.runners.spark import simulation

History = tuple[bytes, ...]
_ENDED: Any = object()


class Thread:
    """Runs a function step by step: `go_on` returns True when it has paused again."""

    current: Thread | None = None

    def __init__(self, work: Callable[[], Any]) -> None:
        self._work = work
        self._mine, self._others = threading.Semaphore(0), threading.Semaphore(0)
        self.result: Any = _ENDED
        self.error: BaseException | None = None
        self._thread = threading.Thread(target=self._run, daemon=True)
        self._thread.start()

    def _run(self) -> None:
        self._mine.acquire()
        try:
            self.result = self._work()
        except BaseException as error:
            self.error = error
        self._others.release()

    def go_on(self) -> bool:
        Thread.current = self
        self._mine.release()
        self._others.acquire()
        Thread.current = None
        return self.result is _ENDED and self.error is None

    @staticmethod
    def pause() -> None:
        me = Thread.current
        if me is not None and threading.current_thread() is me._thread:
            me._others.release()
            me._mine.acquire()


@dataclass
class Results:
    """What a micro-batch makes of the history before it: both, to be compared."""

    wanted: bool = True
    found: list[tuple[History, bytes]] = field(default_factory=list)

    def fetch(self) -> list[tuple[History, bytes]]:
        found, self.found = self.found, []
        return found


@dataclass
class Remembered:
    """A state: all inputs in their order."""

    history: History = ()
    results: Results = field(default_factory=Results)
    rows: int = 0

    @property
    def statistics(self) -> Statistics:
        return Statistics(elements=len(self.history))

    def take(self, slice_data: list[bytes], *, final: bool, in_order: bool) -> None:
        if self.results.wanted:
            Thread.pause()
        (data,) = slice_data
        self.results.found.append((self.history, data))
        self.history += (data,)

    def state(self) -> State:
        return {"part": {"history": [data.decode() for data in self.history]}}

    @staticmethod
    def make(number: int, part: int, beginning: State, saved: State | None) -> Remembered:
        """As a blueprint does."""
        history = saved["part"]["history"] if saved else []
        assert isinstance(history, list)
        return Remembered(tuple(str(each).encode() for each in history))


@dataclass
class Execution:
    """A micro-batch as the driver has planned it once; `offered`: the rows that its attempts got."""

    batch: int
    run: int
    number: int
    offered: list[bytes] = field(default_factory=list)
    failed: int = 0
    attempts: list[Thread] = field(default_factory=list)


class Driver:
    """Spark's: plans micro-batches, starts attempts, accepts the first that ends, and crashes."""

    def __init__(self, folder: Path, seed: int, *, stable: bool) -> None:
        self.chance = random.Random(seed)
        self.folder, self.stable = folder, stable
        self.workers: list[dict[Any, Any]] = [{}, {}, {}]
        self.job = Job(str(folder), "mark", (), (), ("s",), (None,), Routing(1, ()), in_order=True)
        self.store = stage.store_of(str(folder), 0, 0)
        Location(str(folder)).open().put(BEGINNING, state_file.to_bytes({}))
        self.accepted: list[bytes] = []
        self.live: list[tuple[Execution, Thread]] = []
        self.run, self.number, self.attempts = 1, 0, 0
        self.replays = self.late = self.unsettled = 0
        self.current = self.plan()

    def plan(self) -> Execution:
        self.number += self.chance.randrange(1, 3)
        return Execution(len(self.accepted), self.run, self.number)

    def launch(self) -> None:
        execution = self.current
        variant = 0 if self.stable else self.chance.randrange(3)
        data = f"{execution.batch} {variant}".encode()
        execution.offered.append(data)
        rows = pa.record_batch([[0], [0], [data]], schema=parts.ROUTED)
        job = replace(self.job, run=execution.run)
        number = execution.number
        self.attempts += 1
        mine = self.attempts
        near = HotFolders(self.folder.parent)

        def attempt() -> tuple[History, bytes]:
            (result,) = stage.evaluate(job, [rows], execution.batch, 0, False, 0, near, number, mine)
            return result  # type: ignore[return-value]

        thread = Thread(attempt)
        execution.attempts.append(thread)
        self.live.append((execution, thread))

    def step(self) -> None:
        """Start an attempt, or let one go on."""
        mine = [execution for execution, _ in self.live if execution is self.current]
        if not mine or self.chance.random() < 0.08:
            self.launch()
            return
        each = self.chance.choice(self.live)
        execution, thread = each
        stage._HOT = self.chance.choice(self.workers)
        if thread.go_on():
            return
        self.live.remove(each)
        if execution is not self.current:
            # Spark no longer waits for it.
            self.late += 1
            assert thread.error is None or isinstance(thread.error, CqelsError), thread.error
            return
        if isinstance(thread.error, OtherRows):
            self.fail(execution)
            return
        if thread.error is not None:
            raise thread.error
        self.accept(*thread.result)

    def fail(self, execution: Execution) -> None:
        """An attempt has failed; Spark gives up after the fourth, and the query is started again, perhaps by another driver."""
        assert not self.stable
        self.unsettled += 1
        execution.failed += 1
        if execution.failed == 4:
            if self.chance.random() < 0.7:
                self.run, self.number = self.run + 1, 0
            self.current = self.plan()

    def accept(self, history: History, data: bytes) -> None:
        assert history == tuple(self.accepted)
        assert data in self.current.offered
        happens = self.chance.random()
        if happens < 0.2:
            # The driver crashes before it has recorded the end: the micro-batch is planned again, by the same
            # application or another.
            self.replays += 1
            if self.chance.random() < 0.7:
                self.run, self.number = self.run + 1, 0
        else:
            self.accepted.append(data)
            if happens < 0.3:
                self.run, self.number = self.run + 1, 0
        self.current = self.plan()


@contextmanager
def driver(seed: int, monkeypatch: pytest.MonkeyPatch, *, stable: bool) -> Iterator[Driver]:
    snapshots = random.Random(seed)
    monkeypatch.setattr(store, "_outweighs", lambda inputs, snapshot: snapshots.random() < 0.3)
    monkeypatch.setattr(stage, "_HOT", {})
    monkeypatch.setattr(stage, "blueprint_of", lambda data: Remembered)
    folder = shared_folder.SharedFolder
    for name in ("put", "names"):
        monkeypatch.setattr(folder, name, pausing(getattr(folder, name)))
    with simulation.scratch() as folder:
        yield Driver(folder, seed, stable=stable)


def pausing(request: Callable[..., Any]) -> Callable[..., Any]:
    def first(*arguments: Any) -> Any:
        Thread.pause()
        return request(*arguments)

    return first


@pytest.mark.parametrize("stable", [True, False], ids=["same rows", "other rows each time"])
def test_attempts_in_any_order_continue_the_accepted_history(monkeypatch: pytest.MonkeyPatch, stable: bool) -> None:
    replays = late = unsettled = 0
    for seed in range(12):
        with monkeypatch.context() as patch, driver(seed, patch, stable=stable) as spark:
            while len(spark.accepted) < 12:
                spark.step()
            replays, late = replays + spark.replays, late + spark.late
            unsettled += spark.unsettled
            counts = spark.store.counts()
            assert counts is not None
            assert counts["elements"] >= 12
    assert replays > 20
    assert late > 40
    assert (unsettled > 10) != stable
