"""Bodies that come at the same time are taken in together: all of them, each with its own answer."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

import pytest

from cqels_py import Engine
from cqels_py.engine.documents import Document, Taken
from cqels_py.errors import CqelsError, DataError
from cqels_py.service.definitions import StreamDefinition
from cqels_py.service.pushing import Pushing
from cqels_py.service.service import Pushed, ServedStream
from tests.service.support import HOT, READINGS, reading

STREAM = ServedStream("readings", StreamDefinition(READINGS), None)


def _pushed(body: bytes) -> Pushed:
    return Pushed.of(STREAM, body, "nt", None)


def test_those_that_wait_are_taken_in_together() -> None:
    groups: list[int] = []
    go_on = threading.Event()

    def take(given: Sequence[Pushed]) -> list[Taken | CqelsError]:
        assert go_on.wait(60)
        groups.append(len(given))
        answers: list[Taken | CqelsError] = []
        for each in given:
            body = each.document.body
            answers.append(DataError("wrong") if body == b"wrong" else Taken(int(body)))
        return answers

    async def push() -> list[Taken | BaseException]:
        pushing = Pushing(take)
        bodies = [*(str(number).encode() for number in range(20)), b"wrong"]
        waiting = [asyncio.create_task(pushing.push(_pushed(body))) for body in bodies]
        cancelled = asyncio.create_task(pushing.push(_pushed(b"99")))
        await asyncio.sleep(0.1)
        cancelled.cancel()
        go_on.set()
        found = await asyncio.gather(*waiting, return_exceptions=True)
        await asyncio.to_thread(pushing.close)
        return found

    *found, last = asyncio.run(push())
    assert [each.elements for each in found if isinstance(each, Taken)] == list(range(20))
    assert isinstance(last, DataError)
    assert sum(groups) == 22 and len(groups) < 22


def test_a_failure_is_the_answer_of_all() -> None:
    def take(given: Sequence[Pushed]) -> list[Taken | CqelsError]:
        raise OSError("the disk")

    async def push() -> None:
        pushing = Pushing(take)
        for _ in range(2):
            with pytest.raises(OSError, match="the disk"):
                await pushing.push(_pushed(b"1"))
        await asyncio.to_thread(pushing.close)

    asyncio.run(push())


def test_documents_together_are_as_one_after_the_other(tmp_path: Path) -> None:
    bodies = [reading("a", 31), b"<urn:a> oops\n", reading("b", 32) + reading("c", 20), reading("a", 33)]
    found: list[list[str]] = []
    for together in (False, True):
        with Engine(clock="wall", checkpoint=tmp_path / str(together), durable="batch") as engine:
            query = engine.register(HOT)
            documents = [(READINGS, Document(body, "nt")) for body in bodies]
            groups = [documents] if together else [[each] for each in documents]
            taken = [answer for group in groups for answer in engine.push_documents(group)]
            assert [type(each) for each in taken] == [Taken, DataError, Taken, Taken]
            assert [each.elements for each in taken if isinstance(each, Taken)] == [1, 2, 1]
            engine.flush()
            found.append([str(result.bindings["s"]) for result in query.results()])
    assert found[0] == found[1] and len(found[0]) == 3
