"""Hash partitioning of a state: the part that a mapping belongs to follows from the ids of its variables, on every machine alike.

Parts are the cells of a hypercube: each variable with a share has an axis, and a mapping the coordinate of its id's hash there.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import Ids

_MULTIPLIER = np.uint64(0x9E3779B97F4A7C15)
_SHIFT = np.uint64(33)


def owner_of(ids: Ids, parts: int) -> npt.NDArray[np.int64]:
    """The part (from 0) that each id belongs to."""
    mixed = ids.view(np.uint64) * _MULTIPLIER
    return (((mixed ^ (mixed >> _SHIFT)) * _MULTIPLIER >> _SHIFT) % np.uint64(parts)).astype(np.int64)


def owner_of_rows(columns: Ids, parts: int) -> npt.NDArray[np.int64]:
    """The part that each row belongs to, by all its columns (width, rows)."""
    mixed = np.zeros(columns.shape[1], np.uint64)
    for column in columns:
        mixed = (mixed ^ (mixed >> _SHIFT)) * _MULTIPLIER + column.view(np.uint64)
    return owner_of(mixed.view(np.int64), parts)


def strides(axes: Sequence[tuple[str, int]]) -> list[int]:
    """The difference of the numbers of two cells that are neighbours along each axis."""
    found, stride = [], 1
    for _, share in axes:
        found.append(stride)
        stride *= share
    return found


@dataclass(frozen=True, slots=True)
class Coordinate:
    """A cell's place on one axis: it has the mappings whose `variable` has an id with that coordinate."""

    variable: str
    share: int
    place: int

    def mine(self, ids: Ids) -> npt.NDArray[np.bool_]:
        owned: npt.NDArray[np.bool_] = owner_of(ids, self.share) == self.place
        return owned


@dataclass(frozen=True, slots=True)
class HasValue:
    """A part has the mappings whose `variable` has this id, or (`other`) any but this."""

    variable: str
    id: int
    other: bool = False

    def mine(self, ids: Ids) -> npt.NDArray[np.bool_]:
        has: npt.NDArray[np.bool_] = ids == self.id
        return ~has if self.other else has


Condition: TypeAlias = Coordinate | HasValue
"""Mappings belong to a part if all its conditions hold for those of the variables that they have."""


def cell(axes: Sequence[tuple[str, int]], number: int) -> tuple[Coordinate, ...]:
    """Where a part is, by its number.

    >>> [(each.variable, each.place) for each in cell([("b", 2), ("c", 3)], 5)]
    [('b', 1), ('c', 2)]
    """
    return tuple(
        Coordinate(variable, share, number // stride % share)
        for (variable, share), stride in zip(axes, strides(axes), strict=True)
    )
