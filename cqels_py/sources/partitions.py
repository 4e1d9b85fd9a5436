"""A stream in several partitions, each in its own order: its watermark is the lowest over them.

Elements of a partition wait until all others have reached their time, except those that are silent: so none is late because another
partition was read faster.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, empty_elements, slice_elements, take_elements
from cqels_py.sources.malformed import HeldReports

_BEFORE_ALL = np.iinfo(np.int64).min
_AT_ONCE = 16_384
_NONE = np.empty(0, np.int64)

PartitionedPosition: TypeAlias = Sequence[Sequence[int]]
"""By partition its number, an offset, and how many elements of the messages from there on have been taken."""

NamedPosition: TypeAlias = Mapping[str, Any]
"""That of a source which knows its elements by numbers: those that have been taken behind it are its `taken`."""

Decode = Callable[[Sequence[bytes], Sequence[int], Sequence[int]], ElementBatch]
"""The elements of messages, of each of which there are the body, the time of arrival and the offset."""


class Partition:
    """Messages that have come, and elements of the first of them, which wait for other partitions.

    `next`: the offset of the message that will come next; `end`: up to which offset the partition was read to its end. `keys`: the
    greatest time so far, element by element, of the elements that wait: one out of order keeps its place behind its predecessors.
    `greatest`: the last of all. `silent_since`: seconds of a clock.

    `_count` elements of the messages from offset `_base` on have been taken, or will be skipped (`_to_skip`) as they come; the
    elements that wait are of messages before offset `_ahead`. `_reports`: those of the decoding, which are told when the elements
    beside them have been taken, as the position is behind them only then.
    """

    def __init__(
        self,
        number: int,
        offset: int,
        decode: Decode,
        *,
        skip: int = 0,
        silent_since: float = 0.0,
        reports: HeldReports | None = None,
    ) -> None:
        """Begin at an offset; the first `skip` elements from there have been taken already."""
        self.number = number
        self.next = offset
        self.end = -1
        self.greatest = _BEFORE_ALL
        self.silent_since = silent_since
        self.bytes = 0
        self.keys = _NONE
        self._decode = decode
        self._reports = reports
        self._bodies: list[bytes] = []
        self._arrived: list[int] = []
        self._offsets: list[int] = []
        self._waiting = empty_elements()
        self._base, self._ahead = offset, offset
        self._count = self._to_skip = skip

    def put(
        self, bodies: Sequence[bytes], arrived: Sequence[int], offsets: Sequence[int], after: int, now: float
    ) -> None:
        """Messages have come; the next one will have the offset `after` or a greater one."""
        self._bodies += bodies
        self._arrived += arrived
        self._offsets += offsets
        self.bytes += sum(map(len, bodies))
        self.next = after
        self.silent_since = now

    @property
    def at_end(self) -> bool:
        """Has everything been put that the partition had when it was asked last?"""
        return self.end >= self.next

    @property
    def messages(self) -> int:
        """So many messages have not been decoded."""
        return len(self._bodies)

    @property
    def is_empty(self) -> bool:
        """Has it neither messages nor elements?"""
        return not self._bodies and not len(self.keys)

    @property
    def can_decode(self) -> bool:
        return bool(self._bodies) and not len(self.keys)

    def decode(self) -> None:
        """Decode the next messages, once all elements of those before have been taken."""
        if not self.can_decode:
            return
        bodies, arrived, offsets = self._bodies[:_AT_ONCE], self._arrived[:_AT_ONCE], self._offsets[:_AT_ONCE]
        del self._bodies[:_AT_ONCE], self._arrived[:_AT_ONCE], self._offsets[:_AT_ONCE]
        self.bytes -= sum(map(len, bodies))
        batch = self._decode(bodies, arrived, offsets)
        skipped = min(self._to_skip, len(batch))
        self._to_skip -= skipped
        self._ahead = offsets[-1] + 1
        self._waiting = slice_elements(batch, skipped, len(batch))
        if not len(self._waiting):
            self._base, self._count = self._ahead, self._to_skip
            self._tell()
            return
        self._count = skipped
        self.keys = np.maximum.accumulate(np.maximum(self._waiting.time, self.greatest))
        self.greatest = self.keys.item(-1)

    def take(self, frontier: int | None) -> tuple[ElementBatch, npt.NDArray[np.int64]]:
        """Elements with keys up to the frontier, and their keys; all of them if it is None."""
        cut = len(self.keys) if frontier is None else int(np.searchsorted(self.keys, frontier, side="right"))
        taken, keys = slice_elements(self._waiting, 0, cut), self.keys[:cut]
        self._waiting, self.keys = slice_elements(self._waiting, cut, len(self.keys)), self.keys[cut:]
        if cut:
            self._base, self._count = (self._base, self._count + cut) if len(self.keys) else (self._ahead, 0)
            if not len(self.keys):
                self._tell()
        return taken, keys

    def _tell(self) -> None:
        if self._reports is not None:
            self._reports.tell()

    def position(self) -> tuple[int, int, int]:
        """Its number, an offset, and how many elements of the messages from there on have been taken."""
        return self.number, max(self.next, self.end) if self.is_empty else self._base, self._count

    def live_ids(self) -> Iterator[Ids]:
        yield from self._waiting.live_ids()


@dataclass(frozen=True, slots=True)
class Returned:
    """Elements that a poll has returned. `before`: the position where they begin; `numbers`: of their partitions, in their order.
    With a `NamedPosition` each element has a number of its own.

    The order is that of one reading: another one, in which partitions are read at other paces, may return them in another.
    """

    before: PartitionedPosition | NamedPosition
    numbers: Sequence[int]

    def followed_by(self, other: Returned) -> Returned:
        """These elements, then those of a later poll, before which there may be further partitions."""
        if isinstance(self.before, Mapping) or isinstance(other.before, Mapping):
            return Returned(self.before, [*self.numbers, *other.numbers])
        known = {number for number, *_ in self.before}
        new = [each for each in other.before if each[0] not in known]
        return Returned([*self.before, *new], [*self.numbers, *other.numbers])


def position_behind(
    before: PartitionedPosition | NamedPosition, numbers: Sequence[int]
) -> PartitionedPosition | NamedPosition:
    """The position behind elements of partitions with these numbers, which were returned from the position `before` on.

    >>> position_behind([(0, 7, 0), (1, 3, 2)], [1, 0, 1])
    [(0, 7, 1), (1, 3, 4)]
    """
    if isinstance(before, Mapping):
        return {**before, "taken": [*before.get("taken", ()), *numbers]}
    counts = Counter(numbers)
    return [(number, offset, taken + counts[number]) for number, offset, taken in before]


class PartitionMerge:
    """Returns the elements of partitions in one order of time. `returned`: those of the last `take`, of several partitions.

    `idle`: after so many silent seconds of the `clock`, a partition no longer holds up others. `is_logged`: somebody keeps the
    elements that were returned; otherwise `returned` is None.
    """

    def __init__(
        self, partitions: Sequence[Partition], idle: float, clock: Callable[[], float], *, is_logged: bool = True
    ) -> None:
        self.partitions = {each.number: each for each in partitions}
        self._idle = idle
        self._clock = clock
        self._is_logged = is_logged
        self.returned: Returned | None = None

    @property
    def idle(self) -> bool:
        """Are all partitions silent?"""
        now = self._clock()
        return all(self._is_silent(each, now) for each in self.partitions.values())

    def _is_silent(self, partition: Partition, now: float) -> bool:
        return partition.is_empty and now - partition.silent_since >= self._idle

    @property
    def at_end(self) -> bool:
        """Has everything been decoded that the partitions had?"""
        return all(each.at_end and not each.messages for each in self.partitions.values())

    @property
    def can_decode(self) -> bool:
        return any(each.can_decode for each in self.partitions.values())

    def take(self) -> ElementBatch:
        """The elements that no other partition holds up any more; none if there are none."""
        # Before messages without elements, of which malformed ones are told behind those that are taken.
        before = self.position() if self._is_logged else ()
        for each in self.partitions.values():
            each.decode()
        now = self._clock()
        frontiers = [each.greatest for each in self.partitions.values() if not self._is_silent(each, now)]
        frontier = min(frontiers) if frontiers and len(self.partitions) > 1 else None
        taken = [(number, *each.take(frontier)) for number, each in self.partitions.items()]
        order = np.argsort(np.concatenate([keys for _, _, keys in taken]), kind="stable")
        if self._is_logged:
            numbers = np.repeat([number for number, _, _ in taken], [len(keys) for _, _, keys in taken])
            self.returned = Returned(before, numbers[order].tolist()) if len(taken) > 1 else None
        batches = [batch for _, batch, _ in taken if len(batch)]
        return (
            take_elements(concatenate_elements(batches), order) if len(batches) > 1 else concatenate_elements(batches)
        )

    def advance(self, time: int) -> None:
        """The partitions that were read to their end have no element before `time`: others do not wait for them."""
        for each in self.partitions.values():
            if each.at_end and each.is_empty:
                each.greatest = max(each.greatest, time)

    def holds_before(self, time: int) -> bool:
        """Do elements of before `time` wait?"""
        return any(len(each.keys) and each.keys.item(0) < time for each in self.partitions.values())

    def position(self) -> tuple[tuple[int, int, int], ...]:
        """Where the elements that were taken end, by partition."""
        return tuple(self.partitions[number].position() for number in sorted(self.partitions))

    def live_ids(self) -> Iterator[Ids]:
        """Ids of elements that wait."""
        for each in self.partitions.values():
            yield from each.live_ids()
