"""What the parts of one stage send to those of the next: changes, with their ticks and the texts of their terms.

All parts of a stage have the same ticks, as each learns the times of all elements: so changes of different parts go together
by the numbers of their ticks. The ticks themselves, also those at which nothing changes, come from one of the parts.
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
    """How changes of `width` columns find the parts of the next stage: by the values in the columns `by`. None: to the one."""

    width: int
    by: tuple[int, ...]
    parts: int

    def owners(self, delta: Delta) -> npt.NDArray[np.int64]:
        if not self.by:
            return np.zeros(len(delta), np.int64)
        return owner_of_rows(delta.columns[list(self.by)], self.parts)


@dataclass(frozen=True, slots=True)
class Changes:
    """What one part gets from one part of the stage before. `ticks`: None from all but one of them."""

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
    """What each part of the next stage gets of the changes of one part."""
    owners = exchange.owners(changelog.delta)
    found = []
    for part in range(exchange.parts):
        mine = changelog.delta.take(owners == part)
        terms = texts_of(mine.columns.reshape(-1), dictionary)
        found.append(Changes(changelog.ticks if with_ticks else None, mine, *terms))
    return found


def received(parts: Sequence[Changes], width: int, dictionary: Dictionary) -> Changelog:
    """The changes of all parts by tick, those of one part in their order, with their terms in the part's dictionary."""
    for changes in parts:
        learn(changes.ids, changes.texts, changes.offsets, dictionary)
    (ticks,) = (changes.ticks for changes in parts if changes.ticks is not None)
    together = concatenate([changes.delta for changes in parts], width)
    return Changelog(ticks, together.take(np.argsort(together.tick, kind="stable")))
