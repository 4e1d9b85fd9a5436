"""Elements that come again, as brokers deliver some at least once: only the first one is taken in."""

from __future__ import annotations

from collections.abc import Collection
from typing import cast

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.state.named_values import NamedValues
from cqels_py.terms.layout import TAG_BLANK, TAG_SHIFT

_LEAST_PRUNED = 1024
_HASHES, _TIMES = "duplicates.hashes", "duplicates.times"
Words = npt.NDArray[np.uint64]
_30, _27, _31 = np.uint64(30), np.uint64(27), np.uint64(31)
_FIRST, _SECOND = np.uint64(0xBF58476D1CE4E5B9), np.uint64(0x94D049BB133111EB)
_SEEDS: Words = np.array([[0x9E3779B97F4A7C15], [0xC2B2AE3D27D4EB4F]], np.uint64)
Mask = npt.NDArray[np.bool_]


class Duplicates:
    """Remembers the elements of `streams` that are not late yet: an element that has one's graph, time and triples is a duplicate.

    Later ones need not be remembered, as they are late. What is remembered is a hash of 128 bits, of ids that do not change when the
    dictionary releases terms. Blank nodes, whose scope is their element, are equal where they stand at the same places.
    """

    def __init__(self, streams: Collection[int]) -> None:
        self.streams = streams
        self._times: dict[bytes, int] = {}
        self._prune_at = _LEAST_PRUNED

    def admit(self, batch: ElementBatch, since: int) -> Mask | None:
        """Which of the arriving elements (n) have not come before; None: all of them. Those before `since` come no more."""
        if not self.streams or not len(batch):
            return None
        mine = [at for at, stream in enumerate(batch.stream.tolist()) if stream in self.streams]
        if not mine:
            return None
        hashes, known = _hashes(batch), self._times
        admitted = np.ones(len(batch), np.bool_)
        for at, each, time in zip(mine, hashes[mine].tolist(), batch.time[mine].tolist(), strict=True):
            if each in known:
                admitted[at] = False
            else:
                known[each] = time
        self._forget_before(since)
        return None if admitted.all() else admitted

    def take_over(self, others: Duplicates) -> None:
        """Remember what others do, too."""
        self._times.update(others._times)

    def _forget_before(self, since: int) -> None:
        if len(self._times) >= self._prune_at:
            self._times = {each: time for each, time in self._times.items() if time >= since}
            self._prune_at = max(_LEAST_PRUNED, 2 * len(self._times))

    def state(self) -> NamedValues:
        """What is remembered, as arrays; nothing where there is nothing."""
        if not self._times:
            return {}
        hashes = np.frombuffer(b"".join(self._times), np.int64)
        return {_HASHES: hashes, _TIMES: np.fromiter(self._times.values(), np.int64, len(self._times))}

    def restore(self, state: NamedValues) -> None:
        """Go on with this state."""
        if _HASHES in state:
            hashes, times = cast(Ids, state[_HASHES]), cast(Ids, state[_TIMES])
            self._times = dict(zip(np.array(hashes).view("V16").tolist(), times.tolist(), strict=True))


def _hashes(batch: ElementBatch) -> npt.NDArray[np.void]:
    """128 bits for each element (n), of its stream, time, graph and triples in any order."""
    graph = np.zeros_like(batch.subject) if batch.graph is None else batch.graph
    start, first = batch.first[0], batch.first - batch.first[0]
    columns = np.array([batch.subject, batch.predicate, batch.object, graph])[:, start : batch.first[-1]]
    words: Words = _SEEDS
    for column in _with_numbered_blanks(columns, first).view(np.uint64):
        words = _mixed(words ^ column)
    ends = np.zeros((len(_SEEDS), columns.shape[1] + 1), np.uint64)
    np.cumsum(words, axis=1, out=ends[:, 1:])
    words = ends[:, first[1:]] - ends[:, first[:-1]]
    for value in (batch.stream.astype(np.uint64), batch.time.view(np.uint64)):
        words = _mixed(words + _SEEDS ^ value)
    return np.ascontiguousarray(words.T).view("V16").ravel()


def _with_numbered_blanks(columns: Ids, first: Ids) -> Ids:
    """Terms (4, m) of the triples first[e] to first[e + 1] of elements e, with blank nodes numbered by their first places within
    the element.
    """
    flat = columns.T.ravel()
    places = np.flatnonzero(flat >> TAG_SHIFT == TAG_BLANK)
    if not len(places):
        return columns
    element = np.repeat(np.arange(len(first) - 1), np.diff(first))
    owner = element[places // len(columns)]
    pairs = np.stack([owner, flat[places]], axis=1)
    _, seen, which = np.unique(pairs, axis=0, return_index=True, return_inverse=True)
    # By their first places, which are in the order of elements: the number within the element follows.
    order = np.argsort(seen)
    owners = owner[seen[order]]
    numbers = np.empty(len(seen), np.int64)
    numbers[order] = np.arange(len(seen)) - np.searchsorted(owners, owners)
    numbered = flat.copy()
    numbered[places] = (TAG_BLANK << TAG_SHIFT) + numbers[which.ravel()]
    return np.ascontiguousarray(numbered.reshape(columns.shape[::-1]).T)


def _mixed(words: Words) -> Words:
    """The finalizer of splitmix64, of each word."""
    words = (words ^ (words >> _30)) * _FIRST
    words = (words ^ (words >> _27)) * _SECOND
    return words ^ (words >> _31)
