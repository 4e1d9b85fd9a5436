"""The exchange between stages: changes, with their ticks and the texts of their terms, from all partitions of one stage
to those of the next.

All partitions of a stage have the same ticks, as each gets the times of all elements. So changes of different
partitions are combined by the numbers of their ticks. The ticks themselves, also those without changes, come from one
of the partitions.
"""

from __future__ import annotations

import pickle
from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
import numpy.typing as npt

from cqels_py.batches.delta import Delta, concatenate
from cqels_py.batches.elements import Ids
from cqels_py.dataflow.ownership import owner_of_rows
from cqels_py.dictionary import Dictionary
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2s.changelog_output import Changelog
from cqels_py.runners.spark.routing import learn, texts_of


@dataclass(frozen=True, slots=True)
class Exchange:
    """How changes of `width` columns are partitioned for the next stage: by the values in the columns `by`. None: all
    to one partition."""

    width: int
    by: tuple[int, ...]
    parts: int

    def owners(self, delta: Delta) -> npt.NDArray[np.int64]:
        if not self.by:
            return np.zeros(len(delta), np.int64)
        return owner_of_rows(delta.columns[list(self.by)], self.parts)


@dataclass(frozen=True, slots=True)
class Changes:
    """The input of one partition from one partition of the stage before. `ticks`: None from all but one of them."""

    ticks: Ticks | None
    delta: Delta
    ids: Ids
    texts: npt.NDArray[np.uint8]
    offsets: Ids

    def pack(self) -> bytes:
        delta = self.delta
        return pickle.dumps(
            (self.ticks, delta.tick, delta.sign, delta.columns, self.ids, self.texts, self.offsets),
            pickle.HIGHEST_PROTOCOL,
        )

    @staticmethod
    def unpack(data: bytes) -> Changes:
        ticks, tick, sign, columns, ids, texts, offsets = pickle.loads(data)
        return Changes(ticks, Delta(tick, sign, columns), ids, texts, offsets)


def sent(changelog: Changelog, exchange: Exchange, dictionary: Dictionary, *, with_ticks: bool) -> list[Changes]:
    """The input of each partition of the next stage, from the changes of one partition."""
    owners = exchange.owners(changelog.delta)
    found = []
    for part in range(exchange.parts):
        mine = changelog.delta.take(owners == part)
        terms = texts_of(mine.columns.reshape(-1), dictionary)
        found.append(Changes(changelog.ticks if with_ticks else None, mine, *terms))
    return found


def received(parts: Sequence[Changes], width: int, dictionary: Dictionary) -> Changelog:
    """The changes of all partitions by tick, those of one partition in their order, with their terms in this
    partition's dictionary."""
    for changes in parts:
        learn(changes.ids, changes.texts, changes.offsets, dictionary)
    (ticks,) = (changes.ticks for changes in parts if changes.ticks is not None)
    together = concatenate([changes.delta for changes in parts], width)
    return Changelog(ticks, together.take(np.argsort(together.tick, kind="stable")))
