"""How much the parts of a dataflow have done: rows counted exactly, time by measuring some steps."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from time import perf_counter_ns
from typing import TYPE_CHECKING, Protocol, TypeVar

from cqels_py.batches.delta import Delta

if TYPE_CHECKING:
    from cqels_py.batches.results import ResultBatch
    from cqels_py.dataflow.router import RoutedBatch
    from cqels_py.event_time.clock import Ticks
    from cqels_py.operators.r2s.changelog_output import Output

MEASURED_ONE_IN = 64
"""Of the steps with few elements one in so many is measured, once the first so many have been."""
COMPILED_ONE_IN = 4096
"""Of the steps that are one compiled call one in so many is done by single calls, and measured; the first after fewer."""
FIRST_COMPILED = 32
LARGE = 8192
"""Steps with so many elements are all measured: reading a clock costs nothing beside them."""
_STRIDE = 37
"""Prime to `MEASURED_ONE_IN`: steps that come at regular intervals, as those of boundaries do, are not always or never measured."""

Chunk = TypeVar("Chunk")


class Work:
    """The work that one part has done since it was built.

    `rows_in`: that it has taken in, counted where no other part delivers them; `rows_out`: that it has delivered. `nanoseconds`:
    an estimate, by the measured steps.
    """

    __slots__ = ("nanoseconds", "rows_in", "rows_out")

    def __init__(self) -> None:
        self.rows_in = self.rows_out = self.nanoseconds = 0

    def counted(self, made: Iterable[Delta]) -> Iterator[Delta]:
        """The deltas, whose rows are counted as they are read."""
        for delta in made:
            self.rows_out += len(delta.tick)
            yield delta


class TakesSteps(Protocol):
    """A scan."""

    work: Work

    def take(self, routed: RoutedBatch) -> int:
        """Take in a step; returns the number of changes."""
        ...

    def fail(self, error: Exception) -> None:
        """It has raised this error in the middle of a step."""
        ...

    def check_whole(self) -> None:
        """Raise the error that ended it, if there was one."""
        ...


def taken_in(scan: TakesSteps, routed: RoutedBatch) -> int:
    """Let a scan take in a step; returns the number of changes. If it raises an error it has failed, for all its readers."""
    scan.check_whole()
    try:
        return scan.take(routed)
    except Exception as error:
        scan.fail(error)
        raise


class StepTimer:
    """Measures the time that parts take in a step, each without those whose deltas it reads meanwhile.

    `measured`: the number of steps that were measured.
    """

    def __init__(self) -> None:
        self.measured = 0
        self._early, self._block = MEASURED_ONE_IN, 0
        # So many steps until the next one that is measured.
        self._left = 1
        self._stands_for = 0
        self._weight = 1
        self._running: list[Work] = []
        self._passed: dict[Work, int] = {}
        self._since = 0

    def begin(self, elements: int) -> StepTimer | None:
        """A step of so many elements begins; None if it is not measured."""
        self._left -= 1
        return self._measure(elements) if self._left <= 0 or elements >= LARGE else None

    def measure_next(self, stands_for: int) -> None:
        """Measure the next step: it stands for so many, which were not taken by calls."""
        self._left, self._stands_for = 1, stands_for

    def _measure(self, elements: int) -> StepTimer:
        if elements >= LARGE:
            self._weight = 1
        elif self._stands_for:
            self._weight, self._stands_for = self._stands_for, 0
        else:
            self._weight = 1 if self._early else MEASURED_ONE_IN
        if self._left <= 0:
            self._left = self._next()
        # An error may have ended the step before in the middle.
        self._running.clear()
        self._passed.clear()
        return self

    def _next(self) -> int:
        """After how many steps the next one is measured: one in each block, at another place in each."""
        if self._early:
            self._early -= 1
            return 1
        place, self._block = self._block * _STRIDE % MEASURED_ONE_IN, self._block + 1
        return MEASURED_ONE_IN - place + self._block * _STRIDE % MEASURED_ONE_IN

    def end(self) -> None:
        """The step has ended."""
        self.measured += 1
        for work, passed in self._passed.items():
            work.nanoseconds += self._weight * passed

    def enter(self, work: Work) -> None:
        """This part goes on; one that reads its deltas waits."""
        now = perf_counter_ns()
        if self._running:
            self._add(self._running[-1], now)
        self._running.append(work)
        self._since = now

    def leave(self) -> None:
        """The part that was entered last has made the rows that were asked of it."""
        now = perf_counter_ns()
        if self._running:
            self._add(self._running.pop(), now)
        self._since = now

    def _add(self, work: Work, now: int) -> None:
        self._passed[work] = self._passed.get(work, 0) + now - self._since

    def take(self, scans: Iterable[TakesSteps], routed: RoutedBatch) -> int:
        """Let scans take in a step; returns the number of changes."""
        changed = 0
        for scan in scans:
            self.enter(scan.work)
            changed += taken_in(scan, routed)
            self.leave()
        return changed

    def results(self, work: Work, output: Output, ticks: Ticks, deltas: Iterable[Delta]) -> Iterable[ResultBatch]:
        """Let the operator that makes results process a step."""
        self.enter(work)
        made = output.process(ticks, deltas)
        self.leave()
        return self.rest(work, made)

    def rest(self, work: Work, made: Iterable[Chunk]) -> Iterator[Chunk]:
        """The rows that a part has still to make, and the time that it takes."""
        chunks = iter(made)
        while True:
            self.enter(work)
            chunk = next(chunks, None)
            self.leave()
            if chunk is None:
                return
            yield chunk


class CompiledSteps:
    """Decides which steps a program leaves to calls, as these can be measured: the first one early, and then one in many."""

    def __init__(self, timer: StepTimer) -> None:
        self._timer = timer
        self.left = self._stands_for = FIRST_COMPILED
        """So many steps until `measure_next`, which those who take steps count down."""

    def measure_next(self) -> None:
        """The next step is taken by calls."""
        self._timer.measure_next(self._stands_for)
        self.left = self._stands_for = COMPILED_ONE_IN

    def next_is_measured(self) -> bool:
        """Is the next step to be taken by calls?"""
        self.left -= 1
        if self.left:
            return False
        self.measure_next()
        return True
