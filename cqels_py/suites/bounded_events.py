"""The events of `cqels bench bounded`: resets, thresholds and readings, one triple each."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

import numpy as np
import pyarrow as pa

EX = "http://ex.org/"
_XSD = "http://www.w3.org/2001/XMLSchema#"
_START = 1_704_067_200_000_000
RESET, THRESHOLD, READING = range(3)
"""Kinds."""
LEVELS = 4
"""Thresholds above this level, or of level 0, do not count."""
_VALUES = 8


@dataclass(frozen=True, slots=True)
class Point:
    """After so many events: events per second since the point before, and the bytes of the query's state if they are known."""

    events: int
    per_second: float
    nbytes: int | None


@dataclass(frozen=True, slots=True)
class Curve:
    """A contender's points over time, with answers after each `batch` of events."""

    name: str
    batch: int
    points: tuple[Point, ...]

    @property
    def per_second(self) -> float:
        """Over all events."""
        seconds, before = 0.0, 0
        for each in self.points:
            seconds += (each.events - before) / each.per_second
            before = each.events
        return before / seconds


def term(value: int) -> str:
    """The integer as a term."""
    return f'"{value}"^^<{_XSD}integer>'


class Events:
    """Events drawn at random: resets, thresholds of levels from 0 to 7, readings; fewer are the first of more."""

    def __init__(self, count: int, seed: int) -> None:
        random = np.random.default_rng(seed)
        drawn = random.integers(0, (3, _VALUES), (count, 2))
        self.kind, self.value = np.ascontiguousarray(drawn.T)
        self.time = _START + np.arange(count) * 1_000

    def __len__(self) -> int:
        return len(self.kind)

    def table(self, first: int, last: int) -> pa.Table:
        """Some of them as triples."""
        kind = self.kind[first:last]
        predicates = np.array([f"<{EX}reset>", f"<{EX}level>", f"<{EX}value>"], object)
        return pa.table(
            {
                "time": self.time[first:last],
                "subject": np.array([f"<{EX}e{each}>" for each in range(3)], object)[kind],
                "predicate": predicates[kind],
                "object": np.array([term(value) for value in range(_VALUES)], object)[self.value[first:last]],
            }
        )

    def numbers(self, first: int, last: int) -> pa.Table:
        """Some of them as numbers."""
        return pa.table(
            {"moment": self.time[first:last], "kind": self.kind[first:last], "value": self.value[first:last]}
        )


def parts(count: int, batch: int) -> Iterator[tuple[int, int, bool]]:
    """First, last and whether there is a point then: after each doubling, and at the end."""
    following = batch
    for first in range(0, count, batch):
        last = min(first + batch, count)
        yield first, last, last >= following or last == count
        if last >= following:
            following = 2 * last
