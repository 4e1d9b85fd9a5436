"""A counted join of a plan as the arrays that the kernel interprets (kernels/joins/counted.py)."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.event_time.windows import NEVER
from cqels_py.kernels.joins import counted as kernel
from cqels_py.plan.nodes import CountedColumn, CountedJoin, CountedSet, CountedStep

Int64 = npt.NDArray[np.int64]
_OPERATORS = {
    "<": kernel.LESS, "<=": kernel.LESS_EQUAL, "=": kernel.EQUALS, "!=": kernel.DIFFERS, ">": kernel.GREATER,
    ">=": kernel.GREATER_EQUAL,
}  # fmt: skip
_NO_BOUNDS = CountedColumn("", exact=True)


@dataclass(frozen=True, slots=True)
class CountedProgram:
    """`arrays` in the order of the kernel. The rest is for CountedState."""

    arrays: tuple[Int64, ...]
    width: int
    indexes: int
    ids: tuple[tuple[int, ...], ...]


def counted_program(node: CountedJoin) -> CountedProgram:
    """The program of a plan's node."""
    indexes = _indexes(node)
    steps, steps_of, equal, compared, copied = _steps(node, indexes)
    sets: list[tuple[int, ...]] = []
    spans: list[tuple[int, int]] = []
    columns: list[int] = []
    better: list[int] = []
    for number, each in enumerate(node.sets):
        first = len(spans)
        for index in indexes[number]:
            spans.append((len(columns), len(columns) + len(index)))
            columns += index
        sets.append((len(each.columns), first, len(spans), len(better), _keyed(each)))
        better += [column.better for column in each.columns]
    return CountedProgram(
        (
            _table(steps, kernel.STEP_FIELDS), np.array(steps_of, np.int64), _table(equal, 2), _table(compared, 3),
            _table(copied, 4), _table(sets, kernel.SET_FIELDS), _table(spans, 2), np.array([*columns, 0], np.int64),
            np.array([*better, 0], np.int64),
            np.array([*(NEVER if each.until is None else each.until for each in node.sets), NEVER], np.int64),
        ),
        max((len(each.columns) for each in node.sets), default=0),
        max(map(len, indexes), default=1),
        tuple(tuple(c for c, column in enumerate(each.columns) if column.exact) for each in node.sets),
    )  # fmt: skip


def _keyed(counted: CountedSet) -> int:
    """The number of columns that are no best values."""
    return sum(column.better == 0 for column in counted.columns)


def _table(rows: Iterable[Sequence[int]], width: int) -> Int64:
    found = list(rows)
    return np.array(found, np.int64).reshape(len(found), width)


def _indexes(node: CountedJoin) -> list[list[tuple[int, ...]]]:
    """The indexes of each set by their columns: by all that are no best values, and by those that steps compare."""
    found = [[tuple(range(_keyed(each)))] for each in node.sets]
    for step in node.steps:
        columns = tuple(column for _, column in step.equal)
        if step.start >= 0 and columns not in found[step.start]:
            found[step.start].append(columns)
    assert all(len(each) < kernel.MOST_INDEXES for each in found)
    return found


def _steps(
    node: CountedJoin, indexes: Sequence[Sequence[tuple[int, ...]]]
) -> tuple[
    list[list[int]], list[int], list[tuple[int, int]], list[tuple[int, int, int]], list[tuple[int, int, int, int]]
]:
    steps: list[list[int]] = []
    steps_of = [0]
    equal: list[tuple[int, int]] = []
    compared: list[tuple[int, int, int]] = []
    copied: list[tuple[int, int, int, int]] = []
    for source in range(len(node.sources)):
        for step in (each for each in node.steps if each.source == source):
            index = 0 if step.start < 0 else indexes[step.start].index(tuple(column for _, column in step.equal))
            begun = len(equal), len(compared), len(copied)
            equal += step.equal
            compared += [(left, _OPERATORS[operator], right) for left, operator, right in step.compared]
            copied += _copied(node, step)
            ended = len(equal), len(compared), len(copied)
            spans = [number for span in zip(begun, ended, strict=True) for number in span]
            steps.append([step.start, step.target, index, *spans])
        steps_of.append(len(steps))
    return steps, steps_of, equal, compared, copied


def _copied(node: CountedJoin, step: CountedStep) -> list[tuple[int, int, int, int]]:
    columns = node.sets[step.target].columns if step.target >= 0 else (_NO_BOUNDS,) * len(step.copied)
    found = []
    for (origin, column), bounds in zip(step.copied, columns, strict=True):
        low = np.iinfo(np.int64).min if bounds.low is None else bounds.low
        high = np.iinfo(np.int64).max if bounds.high is None else bounds.high
        found.append((origin, column, int(low), int(high)))
    return found
