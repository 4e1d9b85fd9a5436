"""Contenders that answer one query over the last elements of a stream, at each step: their rates, and that their answers agree.

A contender takes elements in blocks, and remembers what it answered at each step; only the taking is timed. Each has so many
seconds for a round, and stops where it is then; contenders take turns. The answers are compared at all steps that two of them
have come to.
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
"""By the number of elements seen (at a step), a checksum of the whole answer then."""


class Contender(Generic[Prepared]):
    """Answers the query over the window at each step.

    `unit`: so many elements at least are taken in one call, so that the time can be looked at between calls; a multiple of the
    step.
    """

    name: str
    unit: int

    def fill(self, first: int, count: int) -> None:
        """Take in elements whose answers nobody wants, before the rounds; a multiple of the step."""
        self.take(self.prepare(first, count))

    def prepare(self, first: int, count: int) -> Prepared:
        """Elements `first` to `first + count` in the form in which `take` wants them: this is not timed."""
        raise NotImplementedError

    def take(self, prepared: Prepared) -> None:
        """Take in elements, and answer at each step."""
        raise NotImplementedError

    def answers(self) -> Answers:
        """What it has answered since it was made."""
        raise NotImplementedError


@dataclass(frozen=True)
class Timing:
    """How many rounds a median is taken over, how long each is at most, and the most elements in it."""

    rounds: int
    seconds: float
    most: int


@dataclass(frozen=True)
class Pace:
    """One contender at one step: elements a second in each round. `checked`: at so many steps its answer was the others'."""

    contender: str
    step: int
    rates: list[float]
    steps: int
    checked: int

    @property
    def median(self) -> float:
        return median(self.rates)


class Disagreement(Exception):
    """Two contenders do not give the same answer."""


def compete(
    contenders: Sequence[Callable[[int], Contender[Any]]], step: int, window: int, timing: Timing
) -> list[Pace]:
    """All contenders take turns, round by round, so that what else the machine does weighs on all of them alike.

    Disagreement names two whose answers differ.
    """
    courses = [Course(make(step), window) for make in contenders]
    for _ in range(timing.rounds):
        for course in courses:
            course.round(timing)
    known: dict[int, tuple[str, int]] = {}
    return [course.finished(step, known) for course in courses]


class Course:
    """A contender on its way, from a full window on."""

    def __init__(self, contender: Contender[Any], window: int) -> None:
        self._contender = contender
        unit = contender.unit
        filled = -(-window // unit) * unit
        contender.fill(0, filled)
        # One call ahead of the rounds loads what is loaded at first use.
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
    """Of a bag of rows: the sum of a hash of each, so that rows that come and go can be added and taken away."""
    return int(row_hashes(columns).sum(dtype=np.uint64))


def row_hashes(columns: Sequence[Int64]) -> npt.NDArray[np.uint64]:
    hashes = np.zeros(len(columns[0]), np.uint64)
    for column in columns:
        hashes = (hashes ^ column.astype(np.uint64)) * np.uint64(0x9E3779B97F4A7C15)
        hashes ^= hashes >> np.uint64(32)
    return hashes


def checksums(time_of_row: Int64, hashes: npt.NDArray[np.uint64]) -> dict[int, int]:
    """By time, the sum of the hashes of its rows; times do not fall."""
    if not len(time_of_row):
        return {}
    starts = np.flatnonzero(np.diff(time_of_row, prepend=time_of_row[0] - 1))
    return dict(zip(time_of_row[starts].tolist(), np.add.reduceat(hashes, starts).tolist(), strict=True))
