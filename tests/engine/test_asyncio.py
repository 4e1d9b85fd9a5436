"""Streams of results, pushes of tasks, and what happens when results come faster than they are read."""

from __future__ import annotations

import asyncio
import threading
from functools import partial
from typing import Any

import pytest

from cqels_py import Engine, RunError, UsageError
from cqels_py.engine import waiting
from cqels_py.engine.waiting import WaitingResults

S = "http://ex.org/s"
QUERY = f"SELECT ?n {{ STREAM <{S}> [RANGE 1h] {{ ?s <urn:p> ?n }} }}"


CONSTRUCTED = (
    f"REGISTER STREAM <urn:c> AS CONSTRUCT {{ ?s <urn:p> ?n }} {{ STREAM <{S}> [RANGE 1h] {{ ?s <urn:p> ?n }} }}"
)


def triples(number: int) -> list[Any]:
    return [("urn:a", "urn:p", number)]


def number(result: Any) -> int:
    return int(result.bindings["n"])


def test_results_come_as_they_are_pushed_and_end_with_the_engine() -> None:
    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        await engine.apush(S, triples(0), time=0)

        async def producer() -> None:
            for n in range(1, 300):
                await engine.apush(S, triples(n), time=n)
            engine.finish()

        task = asyncio.create_task(producer())
        found = [number(result) async for result in query.stream(most=7)]
        await task
        assert query.dropped == 0
        return found

    assert asyncio.run(main()) == list(range(300))


def test_another_thread_waits_for_room() -> None:
    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        stream = query.stream(most=3)
        pushed: list[int] = []

        def produce() -> None:
            for n in range(20):
                engine.push(S, triples(n), time=n)
                pushed.append(n)
            engine.finish()

        thread = threading.Thread(target=produce)
        thread.start()
        found = []
        async for result in stream:
            # No more than wait, are in one step, or have been read.
            assert len(pushed) <= len(found) + 3 + 2
            found.append(number(result))
        thread.join()
        return found

    assert asyncio.run(main()) == list(range(20))


def test_a_run_waits_for_room(tmp_path: Any) -> None:
    lines = "".join(f"{n},<urn:a>,<urn:p>,<urn:{n}>\n" for n in range(500))
    (tmp_path / "s.csv").write_text("time,subject,predicate,object\n" + lines)

    async def main() -> int:
        engine = Engine(batch=10)
        query = engine.register(QUERY)
        stream = query.stream(most=20)
        task = asyncio.create_task(engine.arun({S: tmp_path / "s.csv"}))
        count = 0
        while count < 500:
            assert query.waiting <= 20 + 10
            await anext(stream)
            count += 1
        assert (await task).elements == 500
        engine.close()
        return count + len([result async for result in stream])

    assert asyncio.run(main()) == 500


def test_older_results_are_dropped_and_counted() -> None:
    async def main() -> tuple[list[int], int]:
        engine = Engine()
        query = engine.register(QUERY)
        stream = query.stream(most=5, full="drop")
        for n in range(12):
            engine.push(S, triples(n), time=n)
        engine.finish()
        return [number(result) async for result in stream], query.dropped

    assert asyncio.run(main()) == ([7, 8, 9, 10, 11], 7)


def test_older_results_are_dropped_also_when_other_queries_come_and_go() -> None:
    async def main() -> tuple[list[int], int, int]:
        engine = Engine()
        query = engine.register(CONSTRUCTED)
        stream = query.stream(most=5, full="drop")
        reader = engine.register(QUERY.replace(S, "urn:c"))
        engine.unregister(reader)
        for n in range(12):
            engine.push(S, triples(n), time=n)
        found = [number(await anext(stream)) for _ in range(5)]
        engine.register(QUERY.replace(S, "urn:c"))
        await stream.aclose()
        return found, query.dropped, query.waiting

    assert asyncio.run(main()) == ([7, 8, 9, 10, 11], 7, 0)


@pytest.mark.parametrize("full", ["fail", "wait"])
def test_the_engine_takes_in_nothing_more_where_nobody_can_wait(full: str) -> None:
    """In an event loop a push that waits would hold up the task that reads."""

    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        stream = query.stream(most=2, full=full)
        with pytest.raises(RunError, match=r"more than 2 results .* await engine.apush"):
            for n in range(12):
                engine.push(S, triples(n), time=n)
        found = [number(await anext(stream)) for _ in range(3)]
        engine.push(S, triples(3), time=3)
        return [*found, number(await anext(stream))]

    assert asyncio.run(main()) == [0, 1, 2, 3]


def test_a_closed_stream_holds_up_nobody() -> None:
    async def main() -> int:
        engine = Engine()
        query = engine.register(QUERY)
        async with query.stream(most=1) as stream:
            task = asyncio.create_task(fill(engine))
            await anext(stream)
        await task
        query.subscribe(lambda _: None)
        return query.waiting

    async def fill(engine: Engine) -> None:
        for n in range(50):
            await engine.apush(S, triples(n), time=n)

    assert asyncio.run(main()) == 0


def test_a_stream_that_is_closed_again_leaves_the_next_one_alone() -> None:
    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        first = query.stream()
        engine.push(S, triples(0), time=0)
        assert number(await anext(first)) == 0
        await first.aclose()
        second = query.stream(most=2, full="drop")
        await first.aclose()
        with pytest.raises(UsageError, match="has a stream"):
            query.stream()
        for n in range(1, 6):
            engine.push(S, triples(n), time=n)
        with pytest.raises(StopAsyncIteration):
            await anext(first)
        engine.finish()
        return [number(result) async for result in second]

    assert asyncio.run(main()) == [4, 5]


def test_a_task_that_waits_ends_when_another_one_closes_its_stream() -> None:
    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        stream = query.stream()
        came = asyncio.Event()

        async def read() -> list[int]:
            found = []
            async for result in stream:
                found.append(number(result))
                came.set()
            return found

        task = asyncio.create_task(read())
        engine.push(S, triples(0), time=0)
        await came.wait()
        await stream.aclose()
        return await asyncio.wait_for(task, 60)

    assert asyncio.run(main()) == [0]


def test_a_stream_ends_with_its_event_loop() -> None:
    engine = Engine()
    query = engine.register(QUERY)

    async def first() -> int:
        return number(await anext(query.stream(most=2)))

    engine.push(S, triples(0), time=0)
    assert asyncio.run(first()) == 0
    pushing = threading.Thread(target=lambda: [engine.push(S, triples(n), time=n) for n in range(1, 9)], daemon=True)
    pushing.start()
    pushing.join(60)
    assert not pushing.is_alive()
    assert list(map(number, query.results())) == list(range(1, 9))
    query.subscribe(lambda _: None)


def test_who_waits_for_room_goes_on_when_the_event_loop_is_closed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(waiting, "BETWEEN_LOOKS", 0.01)
    engine = Engine()
    query = engine.register(QUERY)
    check, waits = WaitingResults.wait_for_room, threading.Event()

    def wait_for_room(results: WaitingResults) -> bool:
        waits.set()
        return check(results)

    monkeypatch.setattr(WaitingResults, "wait_for_room", wait_for_room)
    engine.push(S, triples(0), time=0)
    pushing = threading.Thread(target=lambda: [engine.push(S, triples(n), time=n) for n in range(1, 9)], daemon=True)

    async def main() -> None:
        await anext(query.stream(most=2))
        pushing.start()
        await asyncio.to_thread(waits.wait, 60)

    asyncio.run(main())
    pushing.join(60)
    assert not pushing.is_alive()
    assert list(map(number, query.results())) == list(range(1, 9))


def test_a_query_is_unregistered_while_a_push_waits_for_room(monkeypatch: pytest.MonkeyPatch) -> None:
    check, waits = WaitingResults.wait_for_room, threading.Event()

    def wait_for_room(results: WaitingResults) -> bool:
        waits.set()
        return check(results)

    monkeypatch.setattr(WaitingResults, "wait_for_room", wait_for_room)
    engine = Engine()
    query, other = engine.register(QUERY), engine.register(QUERY)
    other.subscribe(lambda _: None)
    stream = query.stream(most=1)
    pushing = threading.Thread(target=lambda: [engine.push(S, triples(n), time=n) for n in range(4)], daemon=True)
    pushing.start()
    assert waits.wait(60)
    unregistering = threading.Thread(target=engine.unregister, args=(query,), daemon=True)
    unregistering.start()
    unregistering.join(60)
    assert not unregistering.is_alive()
    pushing.join(60)
    assert engine.statistics.elements == 4
    asyncio.run(stream.aclose())


def test_an_unregistered_query_ends_its_stream() -> None:
    async def main() -> list[int]:
        engine = Engine()
        query = engine.register(QUERY)
        stream = query.stream()
        engine.push(S, triples(0), time=0)
        asyncio.get_running_loop().call_later(0.01, engine.unregister, query)
        return [number(result) async for result in stream]

    assert asyncio.run(main()) == [0]


def test_errors_of_pushes_are_those_of_the_task() -> None:
    async def main() -> None:
        engine = Engine()
        engine.register(QUERY)
        with pytest.raises(UsageError, match="no registered query reads"):
            await engine.apush("urn:other", triples(0), time=0)

    asyncio.run(main())


async def coroutine(_: Any) -> None: ...


class Callable:
    async def __call__(self, _: Any) -> None: ...


@pytest.mark.parametrize("callback", [coroutine, Callable()])
def test_coroutine_functions_are_refused(callback: Any) -> None:
    engine = Engine()
    query = engine.register(QUERY)
    for subscribe in (query.subscribe, query.subscribe_batches, partial(query.subscribe_batches, ids=True)):
        with pytest.raises(UsageError, match=r"async for result in query.stream\(\)"):
            subscribe(callback)


def test_a_coroutine_that_a_callback_returns_is_an_error() -> None:
    engine = Engine()
    engine.register(QUERY).subscribe(lambda result: coroutine(result))
    with pytest.raises(UsageError, match="would have to be awaited"):
        engine.push(S, triples(0), time=0)


WRONG: list[tuple[dict[str, Any], str]] = [
    ({"most": 0}, "most is 1 or more results, not 0"),
    ({"most": "x"}, "most is an integer of results"),
    ({"full": "block"}, "full is 'wait', 'drop' or 'fail', not 'block'"),
]


@pytest.mark.parametrize(("how", "message"), WRONG)
def test_wrong_arguments(how: dict[str, Any], message: str) -> None:
    query = Engine().register(QUERY)
    with pytest.raises(UsageError, match=message):
        query.stream(**how)
    query.stream()
    with pytest.raises(UsageError, match="this query has a stream"):
        query.stream()
    with pytest.raises(UsageError, match="either subscribe"):
        query.subscribe(print)
