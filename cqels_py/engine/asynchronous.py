"""Results and pushes in programs of asyncio."""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from cqels_py.engine.result import Result
from cqels_py.engine.waiting import WaitingResults
from cqels_py.errors import UsageError

if TYPE_CHECKING:
    import asyncio
    from concurrent.futures import ThreadPoolExecutor

Answer = TypeVar("Answer")
_AT_ONCE = 64
"""So many results are given without letting other tasks run."""


class ResultStream:
    """The results of a query as they come: an asynchronous iterator, which ends with the query or its engine.

    Results that wait are given first, and each to one iterator alone. It belongs to the event loop in which it is first asked, and
    ends with it.
    """

    def __init__(self, waiting: WaitingResults) -> None:
        self._waiting = waiting
        self._loop: asyncio.AbstractEventLoop | None = None
        self._added: asyncio.Event | None = None
        self._given = 0
        self._closed = False

    def __aiter__(self) -> ResultStream:
        return self

    async def __anext__(self) -> Result:
        # Not at the top: an engine without event loops starts sooner.
        import asyncio

        if self._closed:
            raise StopAsyncIteration
        if self._loop is None:
            self._loop, self._added = asyncio.get_running_loop(), asyncio.Event()
            self._waiting.listen(self._wake)
        assert self._added is not None
        self._given += 1
        if not self._given % _AT_ONCE:
            await asyncio.sleep(0)
        while not self._closed:
            self._added.clear()
            ended = self._waiting.ended
            result = self._waiting.next()
            if result is not None:
                return result
            if ended:
                self._close()
                break
            await self._added.wait()
        raise StopAsyncIteration

    async def __aenter__(self) -> ResultStream:
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.aclose()

    async def aclose(self) -> None:
        """Give no more results, also to a task that waits for one; those that wait can be taken otherwise."""
        self._close()
        if self._loop is not None:
            self._wake()

    def _close(self) -> None:
        # Once: another stream may have begun since then.
        if not self._closed:
            self._closed = True
            self._waiting.end_stream(self._wake)

    def _wake(self) -> None:
        """Called by any thread when there are results, or will be no more."""
        assert self._loop is not None
        assert self._added is not None
        try:
            self._loop.call_soon_threadsafe(self._added.set)
        except RuntimeError:
            # The loop is closed, perhaps just now: nobody can ask for results any more.
            self._close()


class PushingThread:
    """The thread in which an engine is called for the tasks of event loops: the calls of all come one after the other."""

    def __init__(self) -> None:
        self._executor: ThreadPoolExecutor | None = None

    async def call(self, method: Callable[..., Answer], *given: Any, **named: Any) -> Answer:
        """The method's answer, or its exception. A task that is cancelled does not undo a step that has begun."""
        import asyncio
        from concurrent.futures import ThreadPoolExecutor

        if self._executor is None:
            self._executor = ThreadPoolExecutor(1, "cqels push")
        return await asyncio.get_running_loop().run_in_executor(self._executor, partial(method, *given, **named))

    def stop(self) -> None:
        """No more calls."""
        if self._executor is not None:
            self._executor.shutdown(wait=False)


def has_event_loop() -> bool:
    """Does the current thread run an event loop, which must not wait?"""
    module = sys.modules.get("asyncio")
    return module is not None and module._get_running_loop() is not None


def check_plain(callback: Callable[..., object]) -> None:
    """UsageError for a coroutine function: nobody would await its coroutines."""
    if inspect.iscoroutinefunction(callback) or inspect.iscoroutinefunction(type(callback).__call__):
        raise _never_awaited()


def check_no_coroutine(answer: object) -> None:
    """UsageError for the coroutine that a callback has returned, which nobody would await."""
    if inspect.iscoroutine(answer):
        answer.close()
        raise _never_awaited()


def _never_awaited() -> UsageError:
    return UsageError(
        "a subscriber is called as a plain function, and this one would have to be awaited: "
        "write async for result in query.stream(): await …"
    )
