"""Contenders that answer one query over the last elements of a stream, at each step: their rates, and a comparison of
their answers.

A contender takes elements in blocks, and remembers its answer at each step; only the taking is timed. Each has the same
time for a round, and stops when it is over; contenders take turns. The answers are compared at all steps that two of
them have reached.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from statistics import median
from typing import Any, Generic, TypeVar

import numpy as np
import numpy.typing as npt

Int64 = npt.NDArray[np.int64]
Prepared = TypeVar("Prepared")
Answers = Mapping[int, int]
"""By the number of elements seen (at a step), a checksum of the whole answer at this point."""


class Contender(Generic[Prepared]):
    """Answers the query over the window at each step.

    `unit`: the least number of elements per call, so that the time can be checked between calls; a multiple of the
    step.
    """

    name: str
    unit: int

    def fill(self, first: int, count: int) -> None:
        """Take in elements before the rounds, without comparing the answers; a multiple of the step."""
        self.take(self.prepare(first, count))

    def prepare(self, first: int, count: int) -> Prepared:
        """Elements `first` to `first + count` in the form that `take` needs: this is not timed."""
        raise NotImplementedError

    def take(self, prepared: Prepared) -> None:
        """Take in elements, and answer at each step."""
        raise NotImplementedError

    def answers(self) -> Answers:
        """All its answers so far."""
        raise NotImplementedError


@dataclass(frozen=True)
class Timing:
    """The number of rounds for the median, the maximum length of each in seconds, and in elements."""

    rounds: int
    seconds: float
    most: int


@dataclass(frozen=True)
class Pace:
    """One contender at one step: elements per second in each round. `checked`: the number of steps at which its answer
    was compared.
    """

    contender: str
    step: int
    rates: list[float]
    steps: int
    checked: int

    @property
    def median(self) -> float:
        return median(self.rates)


class Disagreement(Exception):
    """Two contenders give different answers."""


def compete(
    contenders: Sequence[Callable[[int], Contender[Any]]], step: int, window: int, timing: Timing
) -> list[Pace]:
    """All contenders take turns, round by round, so that other load of the machine affects all of them alike.

    Disagreement names two whose answers differ.
    """
    courses = [Course(make(step), window) for make in contenders]
    for _ in range(timing.rounds):
        for course in courses:
            course.round(timing)
    known: dict[int, tuple[str, int]] = {}
    return [course.finished(step, known) for course in courses]


class Course:
    """The state of a contender, from a full window on."""

    def __init__(self, contender: Contender[Any], window: int) -> None:
        self._contender = contender
        unit = contender.unit
        filled = -(-window // unit) * unit
        contender.fill(0, filled)
        # One call before the rounds loads everything that is loaded at first use.
        contender.take(contender.prepare(filled, unit))
        self._begun = self._next = filled + unit
        self._rates: list[float] = []

    def round(self, timing: Timing) -> None:
        contender, first, spent = self._contender, self._next, 0.0
        while spent < timing.seconds and self._next - first < timing.most:
            prepared = contender.prepare(self._next, contender.unit)
            started = time.perf_counter()
            contender.take(prepared)
            spent += time.perf_counter() - started
            self._next += contender.unit
        self._rates.append((self._next - first) / spent)

    def finished(self, step: int, known: dict[int, tuple[str, int]]) -> Pace:
        """`known`: by elements seen, the first answer given, and by whom."""
        checked, name = 0, self._contender.name
        for seen, found in self._contender.answers().items():
            other, expected = known.setdefault(seen, (name, found))
            if found != expected:
                raise Disagreement(f"{name} and {other} differ after {seen:,} elements, at STEP {step}")
            checked += other != name
        return Pace(name, step, self._rates, (self._next - self._begun) // step, checked)


def checksum(columns: Sequence[Int64]) -> int:
    """The checksum of a bag of rows: the sum of a hash of each row, so that inserted and retracted rows can be added
    and subtracted.
    """
    return int(row_hashes(columns).sum(dtype=np.uint64))


def row_hashes(columns: Sequence[Int64]) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def checksums(time_of_row: Int64, hashes: npt.NDArray[np.uint64]) -> dict[int, int]:
    """By time, the sum of the hashes of its rows; times do not decrease."""
    if not len(time_of_row):
        return {}
    starts = np.flatnonzero(np.diff(time_of_row, prepend=time_of_row[0] - 1))
    return dict(zip(time_of_row[starts].tolist(), np.add.reduceat(hashes, starts).tolist(), strict=True))
