"""Elements that wait for the boundary of STEP windows.

Where every window of every query has a STEP in time, nothing changes between two boundaries: elements up to the next boundary can
wait, to be processed together with the first one behind it. A push of a single element then costs its encoding alone. Results are
the same, and come at the same push, because results do not depend on how elements are divided into batches. Where few elements come
between two boundaries, a step for each of them as one compiled call takes less time than one for all of them by calls.

Time moves on for a query with the elements of its own streams, so each set of streams has its own next boundary.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

import numpy as np

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.batches.rearrange import concatenate_elements
from cqels_py.event_time.windows import NEVER, Bounds

MOST_WAITING = 1 << 16
"""The most elements that wait."""
MOST_UNENCODED = 1_000
"""The most elements that wait as texts, whose terms have not been looked up."""
MOST_SINGLY = 30
"""With more elements between two boundaries they wait: single steps would take longer together."""
_BEFORE_ALL = np.iinfo(np.int64).min


class WaitingElements:
    """Elements in order of time, none behind the next boundary of a window that could take it in.

    `bounds`: those of the windows of all queries, by the streams of the query. Without any, or with a window that changes between
    boundaries of time (no STEP, or counted in elements), none waits.
    """

    def __init__(self, bounds: Mapping[tuple[int, ...], Sequence[Bounds]]) -> None:
        self._bounds = [(list(streams), tuple(set(each))) for streams, each in bounds.items()]
        self.may_wait = bool(bounds) and all(b.of_time and not b.eager for each in bounds.values() for b in each)
        streams = 1 + max((stream for each in bounds for stream in each), default=0)
        # By stream: until when its elements wait, and the time of its last element that does not wait. The last place is for all
        # streams that no query reads any longer, whose elements wait as long as others do.
        self._unread = streams
        self._boundary = np.full(streams + 1, _BEFORE_ALL)
        self._boundary[self._unread] = NEVER
        self._last = np.full(streams + 1, _BEFORE_ALL)
        self._waiting: list[ElementBatch] = []
        self._count = 0
        self._bytes = self._most_bytes = 0
        self.singly = False
        """Have so few elements come since the last boundary, or between the two before it, that they need not wait?"""
        self._passed = 0

    def add(self, batch: ElementBatch) -> ElementBatch | None:
        """The elements to be processed now: all that wait, and those of the batch; None: all of them wait.

        The batch is not empty, in order of time and not earlier than those before it.
        """
        if not self.may_wait:
            return batch
        in_time = self._is_in_time(batch)
        if in_time and self._count + len(batch.time) < MOST_WAITING:
            self._waiting.append(batch)
            self._count += len(batch.time)
            self._bytes += batch.nbytes
            return None
        taken = self.take(batch)
        if not in_time:
            self._move_on(taken)
            # The last one is behind the boundary.
            self.singly = self._passed + len(taken.time) - 1 <= MOST_SINGLY
            self._passed = 0
        return taken

    def lets_pass(self) -> bool:
        """May a single element be processed now, which is not earlier than those before it? `pass_by` is to follow then."""
        return self.singly and not self._count

    def pass_by(self, stream: int, time: int) -> None:
        """A single element has been processed."""
        place = stream if stream < self._unread else self._unread
        if time > self._boundary.item(place):
            self._last[place], self._passed = time, 0
            self._find_boundaries()
        self._passed += 1
        if self._passed > MOST_SINGLY:
            self.singly = False

    def takes(self, stream: int, time: int) -> bool:
        """May an element wait, which is not earlier than those before it?"""
        return (
            self.may_wait
            and not self.lets_pass()
            and time <= self._boundary.item(stream if stream < self._unread else self._unread)
            and self._count < MOST_WAITING - MOST_UNENCODED
        )

    def keep(self, batch: ElementBatch) -> None:
        """Let elements wait that `takes` has admitted one by one."""
        self._waiting.append(batch)
        self._count += len(batch.time)
        self._bytes += batch.nbytes

    def take(self, *more: ElementBatch) -> ElementBatch:
        """Remove and return the elements that wait, with `more` after them."""
        taken, self._waiting, self._count = [*self._waiting, *more], [], 0
        self._bytes, self._most_bytes = 0, self.nbytes
        return concatenate_elements(taken)

    @property
    def batches(self) -> list[ElementBatch]:
        """The waiting elements."""
        return self._waiting

    def __len__(self) -> int:
        return self._count

    @property
    def nbytes(self) -> int:
        """Bytes of the most elements that have ever waited: freed memory stays with the process, for the next ones."""
        return max(self._most_bytes, self._bytes)

    def live_ids(self) -> Iterator[Ids]:
        """Ids of the waiting elements."""
        for batch in self._waiting:
            yield from batch.live_ids()

    def _is_in_time(self, batch: ElementBatch) -> bool:
        if len(batch.time) == 1:
            return bool(batch.time[0] <= self._boundary[min(batch.stream[0], self._unread)])
        return bool((batch.time <= self._boundary[np.minimum(batch.stream, self._unread)]).all())

    def _move_on(self, taken: ElementBatch) -> None:
        # Of several elements of a stream the last one counts: they are in order of time.
        self._last[np.minimum(taken.stream, self._unread)] = taken.time
        self._find_boundaries()

    def _find_boundaries(self) -> None:
        self._boundary[:] = NEVER
        for streams, bounds in self._bounds:
            last = self._last[streams].max(keepdims=True)
            boundary = _BEFORE_ALL if last.item() == _BEFORE_ALL else min(each.boundary(last).item() for each in bounds)
            self._boundary[streams] = np.minimum(self._boundary[streams], boundary)
