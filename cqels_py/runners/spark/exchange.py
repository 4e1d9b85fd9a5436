"""The exchange between stages: changes, with their ticks and the texts of their terms, from all partitions of one stage
to those of the next.

All partitions of a stage have the same ticks, where each gets the times of all elements. So changes of different
partitions are combined by the numbers of their ticks. The ticks themselves, also those without changes, come from one
of the partitions. Where partitions get their own elements, and where rules have ticks of their own, after all others of
their instants, all partitions send theirs, and the n-th ticks of an instant are one.
"""

from __future__ import annotations

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
from cqels_py.runners.spark.packing import packed, unpacked
from cqels_py.runners.spark.routing import learn, texts_of
from cqels_py.state.named_values import Array, Plain


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
    """The input of one partition from one partition of the stage before. `ticks`: None where another one sends the same."""

    ticks: Ticks | None
    delta: Delta
    ids: Ids
    texts: npt.NDArray[np.uint8]
    offsets: Ids

    def pack(self) -> bytes:
        delta, ticks = self.delta, self.ticks
        arrays: dict[str, Array | None] = {
            "tick": delta.tick,
            "sign": delta.sign,
            "columns": delta.columns.reshape(-1),
            "ids": self.ids,
            "texts": self.texts,
            "offsets": self.offsets,
            "times": None if ticks is None else ticks.time,
        }
        told: list[Plain] | None = None if ticks is None else [ticks.first, int(ticks.known_through)]
        return packed(arrays, {"width": len(delta.columns), "ticks": told})

    @staticmethod
    def unpack(data: bytes) -> Changes:
        arrays, plain = unpacked(data)
        ticks = None if plain["ticks"] is None else Ticks(arrays["times"], *plain["ticks"])
        columns = arrays["columns"].reshape(plain["width"], len(arrays["tick"]))
        delta = Delta(arrays["tick"], arrays["sign"], columns)
        return Changes(ticks, delta, arrays["ids"], arrays["texts"], arrays["offsets"])


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
    ticks, *others = (changes.ticks for changes in parts if changes.ticks is not None)
    deltas = [changes.delta for changes in parts]
    if others:
        ticks, deltas = _with_common_ticks(parts)
    together = concatenate(deltas, width)
    return Changelog(ticks, together.take(np.argsort(together.tick, kind="stable")))


def _with_common_ticks(parts: Sequence[Changes]) -> tuple[Ticks, list[Delta]]:
    """The ticks of all partitions, and the changes of each at these. Every partition has sent its ticks."""
    ticks = [changes.ticks for changes in parts if changes.ticks is not None]
    assert len(ticks) == len(parts)
    ranks = [np.arange(len(each)) - np.searchsorted(each.time, each.time) for each in ticks]
    times, ranked = np.concatenate([each.time for each in ticks]), np.concatenate(ranks)
    order = np.lexsort((ranked, times))
    times, ranked = times[order], ranked[order]
    new = np.ones(len(times), np.bool_)
    new[1:] = (np.diff(times) != 0) | (np.diff(ranked) != 0)
    times = times[new]
    deltas = []
    for changes, own, rank in zip(parts, ticks, ranks, strict=True):
        place = (np.searchsorted(times, own.time) + rank).astype(np.int32)
        deltas.append(Delta(place[changes.delta.tick], changes.delta.sign, changes.delta.columns))
    return Ticks(times, any(each.first for each in ticks), max(each.known_through for each in ticks)), deltas
