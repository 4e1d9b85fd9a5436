"""Watermarks on Spark: elements wait until none before them can come any more.

    stream   partition   latest   lateness
    a        0           12:07    1 min      12:06 ─┐
    a        1           12:05    1 min      12:04 ─┼─ the query's watermark: 12:04
    b        0           12:09    0          12:09 ─┘

The tasks that read the streams tell all parts how far each partition of a stream has got in the micro-batch. All parts compute the
same watermark of it, keep what is not before that, and let their time go on to it. So they drop the same elements, and all of
them hand rows on to the next stage up to the same time.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, fields
from typing import cast

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements, take_elements
from cqels_py.errors import RunError
from cqels_py.state.named_values import Array, NamedValues, Plain

IDLE = 30_000_000
"""Microseconds without an element after which a partition is not waited for, if nothing else is said."""
BEFORE_ALL = np.iinfo(np.int64).min // 2
_AFTER_ALL = np.iinfo(np.int64).max
_MOST_PARTITIONS = 100_000
_EARLY = "early."


@dataclass(frozen=True, slots=True)
class Waiting:
    """How elements wait for others. `lateness`: by stream, microseconds that its elements may be late.

    `idle`: streams and their partitions wait for each other, but for those that have been silent for longer than so many
    microseconds when Spark planned the micro-batch; None: the latest element of any stream moves the time of all. `columns`: by
    stream the column of its data frame with the partition of a row, None: it has one. `fed`: the streams with the results of another
    query, whose time they tell also where there are none; one is silent while that does not move.
    """

    lateness: tuple[int, ...]
    idle: int | None = None
    columns: tuple[str | None, ...] = ()
    fed: frozenset[int] = frozenset()

    def text(self) -> str:
        """The settings on which the state depends."""
        return f"{self.lateness} {self.idle} {self.columns}"


@dataclass(frozen=True, slots=True)
class LatestTimes:
    """How far a task's elements go: the `latest` time of each `partition` of a `stream` (n each). `now`: microseconds, when Spark
    planned the micro-batch; None where it does not matter, or the task had no rows."""

    stream: Ids
    partition: Ids
    latest: Ids
    now: int | None = None

    @staticmethod
    def of(latest: dict[tuple[int, int], int], now: int | None) -> LatestTimes:
        """From the latest times by stream and partition."""
        keys = np.array([*latest], np.int64).reshape(-1, 2)
        return LatestTimes(keys[:, 0].copy(), keys[:, 1].copy(), np.array([*latest.values()], np.int64), now)

    def arrays(self) -> Array:
        """The three columns one after another, from which `from_arrays` makes it again."""
        return np.concatenate([self.stream, self.partition, self.latest])

    @staticmethod
    def from_arrays(columns: Array, now: int | None) -> LatestTimes:
        stream, partition, latest = columns.reshape(3, -1)
        return LatestTimes(stream, partition, latest, now)


class Watermarks:
    """The watermark of a part, and the elements that wait for it. `time`: no element before this instant is accepted any more."""

    def __init__(self, waiting: Waiting) -> None:
        self._waiting = waiting
        self.time = BEFORE_ALL
        self._began: int | None = None
        self._now = 0
        # By stream and partition, the latest time, and when the micro-batch was planned that had its last element.
        self._latest: dict[tuple[int, int], int] = {}
        self._heard: dict[tuple[int, int], int] = {}
        self._early: ElementBatch | None = None

    def move(self, told: Iterable[LatestTimes], until: int | None, *, final: bool) -> None:
        """Take in how far the tasks of a micro-batch have got. `until`: no element before this instant will come; `final`: none at
        all."""
        told = list(told)
        # A micro-batch without rows does not say when it was planned.
        planned = [each.now for each in told if each.now is not None]
        now = self._now = max(planned, default=self._now)
        self._began = now if planned and self._began is None else self._began
        for each in told:
            rows = zip(each.stream.tolist(), each.partition.tolist(), each.latest.tolist(), strict=True)
            for stream, partition, latest in rows:
                key = stream, partition
                before = self._latest.get(key, BEFORE_ALL)
                self._latest[key] = max(before, latest)
                if latest > before or stream not in self._waiting.fed:
                    self._heard[key] = now
        if len(self._latest) > _MOST_PARTITIONS:
            raise RunError(
                f"the column of partitions has more than {_MOST_PARTITIONS:,} values, and the watermark is the lowest over them: "
                "give one whose values are few, such as that of Kafka's source"
            )
        self.time = _AFTER_ALL if final else max(self.time, self._reached(), BEFORE_ALL if until is None else until)

    def complete(self, batch: ElementBatch) -> ElementBatch:
        """Of those that wait and those of a micro-batch the ones before the watermark, in order of time; the others wait."""
        together = batch if self._early is None else concatenate_elements([self._early, batch])
        # Of equal times in the order of streams, wherever micro-batches end.
        order = np.lexsort((together.stream, together.time))
        cut = int(np.searchsorted(together.time[order], self.time))
        self._early = take_elements(together, order[cut:]) if cut < len(order) else None
        return take_elements(together, order[:cut])

    def _reached(self) -> int:
        """The instant before which all elements are there, but for late ones."""
        lateness, idle = self._waiting.lateness, self._waiting.idle
        if not self._latest:
            return BEFORE_ALL
        latest = max(self._latest.values()) - max(lateness)
        if idle is None:
            return latest
        silent_since = self._now - idle
        known = {stream for stream, _ in self._latest}
        if (self._began is None or self._began >= silent_since) and len(known) < len(lateness):
            # Streams that have said nothing yet.
            return BEFORE_ALL
        waited_for = [time - lateness[key[0]] for key, time in self._latest.items() if self._heard[key] >= silent_since]
        return min(waited_for, default=latest)

    def live_ids(self) -> Iterator[Ids]:
        """The terms of the elements that wait."""
        if self._early is not None:
            yield from self._early.live_ids()

    def state(self) -> NamedValues:
        """For `restore`. Arrays are no copies."""
        keys = [*self._latest]
        found: dict[str, Array | Plain] = {
            "time": self.time,
            "began": self._began,
            "now": self._now,
            "partitions": np.array([(*key, self._latest[key], self._heard[key]) for key in keys], np.int64).reshape(-1),
        }
        if self._early is not None:
            columns = {each.name: getattr(self._early, each.name) for each in fields(self._early)}
            found |= {_EARLY + name: column for name, column in columns.items() if column is not None}
        return found

    def restore(self, state: NamedValues) -> None:
        """Continue from the state of a part of a query that waits alike."""
        self.time, self._now = cast(int, state["time"]), cast(int, state["now"])
        self._began = cast("int | None", state["began"])
        rows = np.array(state["partitions"]).reshape(-1, 4).tolist()
        self._latest = {(stream, partition): latest for stream, partition, latest, _ in rows}
        self._heard = {(stream, partition): heard for stream, partition, _, heard in rows}
        early = {name.removeprefix(_EARLY): np.array(each) for name, each in state.items() if name.startswith(_EARLY)}
        self._early = ElementBatch(**early) if early else None
