"""Subscribers of results: each reads the store from its own number on, as fast as it can.

There is no queue for each of them: one that is slow finds the results that it has not read on the disk, until that is no longer
kept. Then it is cut off, and told the number of its last result.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Sequence
from contextlib import suppress
from dataclasses import dataclass
from weakref import WeakKeyDictionary

from cqels_py.service.limits import Limits
from cqels_py.service.result_store import NotKept, ResultStore
from cqels_py.service.service import ServedQuery

AT_ONCE = 1_000
"""Results that are sent together."""


class Wakes:
    """Wakes the tasks of an event loop that wait for results of a store. Any thread may call `wake`."""

    def __init__(self, loop: asyncio.AbstractEventLoop) -> None:
        self._loop = loop
        self._asked = False
        self._waiting: set[asyncio.Future[None]] = set()

    def wake(self) -> None:
        """Wake all that wait now."""
        if not self._asked:
            self._asked = True
            with suppress(RuntimeError):
                # The loop may be closed already.
                self._loop.call_soon_threadsafe(self._wake)

    def future(self) -> asyncio.Future[None]:
        """Done at the next call of `wake`."""
        future = self._loop.create_future()
        self._waiting.add(future)
        return future

    def leave(self, future: asyncio.Future[None]) -> None:
        """Nobody waits for this one any more."""
        self._waiting.discard(future)

    def _wake(self) -> None:
        self._asked = False
        waiting, self._waiting = self._waiting, set()
        for future in waiting:
            if not future.done():
                future.set_result(None)


@dataclass(frozen=True, slots=True)
class Cut:
    """The end of a subscription. `last`: the number of its last result; `reason`: for its reader."""

    last: int
    reason: str


class Hub:
    """The subscribers of all queries."""

    def __init__(self, limits: Limits) -> None:
        self._limits = limits
        # Not those of queries that are removed, whichever way.
        self._wakes: WeakKeyDictionary[ResultStore, Wakes] = WeakKeyDictionary()
        self.count = 0
        self.ending = False
        """Does the server stop?"""

    def end(self) -> None:
        """All subscriptions end."""
        self.ending = True
        for wakes in list(self._wakes.values()):
            wakes.wake()

    def wakes_of(self, store: ResultStore) -> Wakes:
        """Those of a store."""
        found = self._wakes.get(store)
        if found is None:
            found = self._wakes[store] = Wakes(asyncio.get_running_loop())
            store.listen(found.wake)
        return found

    async def follow(self, query: ServedQuery, number: int) -> AsyncIterator[tuple[int, Sequence[bytes]] | Cut]:
        """The results from this number on: the number of the first, and their lines; none as a sign of life."""
        store = query.store
        wakes = self.wakes_of(store)
        while True:
            future = wakes.future()
            try:
                if self.ending:
                    yield Cut(number - 1, "the server stops")
                    return
                if query.removed:
                    yield Cut(number - 1, "the query was removed")
                    return
                lines: Sequence[bytes] = ()
                if not query.kept.paused:
                    try:
                        if store.is_in_memory(number):
                            lines = store.read(number, AT_ONCE)
                        else:
                            lines = await asyncio.to_thread(store.read, number, AT_ONCE)
                    except NotKept as error:
                        yield Cut(number - 1, error.reason)
                        return
                if lines:
                    yield number, lines
                    number += len(lines)
                    continue
                if query.failure is not None and not (query.kept.paused and number <= store.last):
                    # Nothing more comes. Results that a pause holds back are still to be sent.
                    yield Cut(number - 1, f"the query has stopped: {query.failure}")
                    return
                try:
                    await asyncio.wait_for(future, self._limits.silence)
                except TimeoutError:
                    yield number, ()
            finally:
                wakes.leave(future)
