"""Bodies on their way to the engine: those that come while others are being taken in are taken in together, with one sync.

requests ─ waiting ┬ worker: in its turn ─ sync ─ results ─ answers
                   └ worker: … in its turn while the other one waits for the disk
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass
from queue import Empty, SimpleQueue

from cqels_py.engine.documents import Taken
from cqels_py.errors import CqelsError
from cqels_py.service.service import Pushed

_WORKERS = 2
_MOST_TOGETHER = 64
_MOST_BYTES = 1 << 20
"""Of bodies that are taken in together: others wait for their turn meanwhile."""
Answer = Taken | BaseException


@dataclass(frozen=True, slots=True)
class _Waiting:
    pushed: Pushed
    answer: asyncio.Future[Taken]


class Pushing:
    """Gives bodies of requests to `take`, in threads of its own."""

    def __init__(self, take: Callable[[Sequence[Pushed]], Sequence[Taken | CqelsError]]) -> None:
        self._take = take
        self._queue: SimpleQueue[_Waiting | None] = SimpleQueue()
        self._workers = [
            threading.Thread(target=self._work, name=f"cqels push {n}", daemon=True) for n in range(_WORKERS)
        ]
        for worker in self._workers:
            worker.start()

    async def push(self, pushed: Pushed) -> Taken:
        """Take in a body; returns when it is durable. CqelsError."""
        answer: asyncio.Future[Taken] = asyncio.get_running_loop().create_future()
        self._queue.put(_Waiting(pushed, answer))
        return await answer

    def close(self) -> None:
        """Wait until all that has come is taken in."""
        for _ in self._workers:
            self._queue.put(None)
        for worker in self._workers:
            worker.join()

    def _work(self) -> None:
        while (group := self._next_group()) is not None:
            try:
                answers: Sequence[Answer] = self._take([each.pushed for each in group])
            except BaseException as error:
                answers = [error] * len(group)
            with suppress(RuntimeError):
                # The loop may be closed already.
                group[0].answer.get_loop().call_soon_threadsafe(_answer, group, answers)

    def _next_group(self) -> list[_Waiting] | None:
        """Those that wait, one at least; None at the end."""
        first = self._queue.get()
        if first is None:
            return None
        group, size = [first], len(first.pushed.document.body)
        while len(group) < _MOST_TOGETHER and size < _MOST_BYTES:
            try:
                following = self._queue.get_nowait()
            except Empty:
                break
            if following is None:
                # For this worker, once it has done these.
                self._queue.put(None)
                break
            group.append(following)
            size += len(following.pushed.document.body)
        return group


def _answer(group: Sequence[_Waiting], answers: Sequence[Answer]) -> None:
    for waiting, answer in zip(group, answers, strict=True):
        if waiting.answer.done():
            # Its client has gone.
            continue
        if isinstance(answer, BaseException):
            waiting.answer.set_exception(answer)
        else:
            waiting.answer.set_result(answer)
