"""An engine with a checkpoint over sources that can be read from a position: each element is taken in once, wherever it stops."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch, Ids
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError
from cqels_py.sources.malformed import HeldReports
from cqels_py.sources.partitions import Partition, PartitionMerge, Returned
from cqels_py.sources.protocol import Opening, Source
from tests.engine.test_engine import OTHER, PREFIX, STREAM, texts

QUERY = PREFIX + "SELECT ?v ?w { STREAM :s [RANGE 3us] { ?s :v ?v } OPTIONAL { STREAM :t [COUNT 2] { ?s :v ?w } } }"


class Queue:
    """Messages of a broker that keeps them; `polls` says how many each poll finds. A position is a tuple, as Kafka's is."""

    resumes = True
    idle = False

    def __init__(self, messages: list[tuple[int, str, int]], most: Callable[[], int], kept_from: int = 0) -> None:
        self._messages = messages
        self._most = most
        self._kept_from = kept_from
        self._at = 0
        self.committed: list[Any] = []

    def open(self, opening: Opening) -> Source:
        self._opening = opening
        if opening.position is not None:
            ((_, self._at),) = opening.position  # type: ignore[misc, attr-defined]
        if self._at < self._kept_from:
            raise RunError(f"the messages from {self._at} on are no longer kept")
        return self

    def poll(self) -> ElementBatch | None:
        if self._at == len(self._messages):
            return None
        found = self._messages[self._at : self._at + self._most()]
        self._at += len(found)
        return self._opening.elements((time, [texts(subject, value)]) for time, subject, value in found)

    def position(self) -> tuple[tuple[str, int]]:
        return (("partition", self._at),)

    def commit(self, position: object) -> None:
        self.committed.append(position)

    def close(self) -> None: ...


class Topic:
    """A topic of three partitions, which each reading finds at other paces."""

    resumes = True
    idle = caught_up = False

    def __init__(self, messages: list[tuple[int, str, int]], random: Random) -> None:
        self._partitions = [messages[start::3] for start in range(3)]
        self._random = random

    def open(self, opening: Opening) -> Source:
        begin: Any = opening.position or [(number, 0, 0) for number in range(3)]

        def partition(number: int, offset: int, taken: int) -> Partition:
            reports = HeldReports(opening.report)
            held = replace(opening, report=reports.hold)

            def decode(bodies: Sequence[bytes], arrived: Sequence[int], offsets: Sequence[int]) -> ElementBatch:
                found = [json.loads(body) for body in bodies]
                return held.elements((time, [texts(subject, value)]) for time, subject, value in found)

            return Partition(number, offset, decode, skip=taken, reports=reports)

        self._merge = PartitionMerge([partition(*each) for each in begin], 1000.0, lambda: 0.0)
        return self

    def poll(self) -> ElementBatch | None:
        for each, messages in zip(self._merge.partitions.values(), self._partitions, strict=True):
            found = messages[each.next : each.next + self._random.randrange(4)]
            offsets = range(each.next, each.next + len(found))
            each.put(
                [json.dumps(one).encode() for one in found], [0] * len(found), offsets, each.next + len(found), 0.0
            )
        batch = self._merge.take()
        ended = all(
            each.next == len(own) for each, own in zip(self._merge.partitions.values(), self._partitions, strict=True)
        )
        if ended:
            # Nobody waits for what cannot come.
            for each in self._merge.partitions.values():
                each.greatest = max(each.greatest, 1_000) if each.is_empty else each.greatest
        return (
            None
            if ended and not len(batch) and all(each.is_empty for each in self._merge.partitions.values())
            else batch
        )

    @property
    def returned(self) -> Returned | None:
        return self._merge.returned

    def advance(self, time: int) -> None:
        self._merge.advance(time)

    def holds_before(self, time: int) -> bool:
        return self._merge.holds_before(time)

    def live_ids(self) -> Iterable[Ids]:
        return self._merge.live_ids()

    def position(self) -> object:
        return self._merge.position()

    def commit(self, position: object) -> None: ...

    def close(self) -> None: ...


class Stop(Exception):
    """The process ends here."""


@pytest.mark.parametrize("kind", ["queue", "partitions"])
@pytest.mark.parametrize("seed", range(12))
def test_each_element_is_taken_in_once(seed: int, kind: str, tmp_path: Path) -> None:
    """It stops between two parts, and between an element's record and that of the position."""
    random = Random(seed)
    times = sorted(random.sample(range(200), 60))
    messages = [[(time, random.choice("ab"), time) for time in times[start::2]] for start in (0, 1)]

    def sources() -> dict[str, Any]:
        by_stream = zip((STREAM, OTHER), messages, strict=True)
        if kind == "partitions":
            return {iri: Topic(each, random) for iri, each in by_stream}
        return {iri: Queue(each, lambda: random.randrange(4)) for iri, each in by_stream}

    found: dict[int, Any] = {}
    whole: dict[int, Any] = {}

    def receiver(into: dict[int, Any]) -> Callable[[Any], None]:
        def receive(result: Any) -> None:
            shown = result.time, result.sign, {name: str(term) for name, term in result.bindings.items()}
            assert into.setdefault(result.number, shown) == shown

        return receive

    engine = Engine()
    engine.register(QUERY, changelog=True).subscribe(receiver(whole))
    engine.run(sources())
    batch = random.choice([None, 1, 2])
    for _ in range(100):
        engine = Engine(checkpoint=tmp_path, batch=batch)
        engine.register(QUERY, changelog=True, name="q").subscribe(receiver(found))
        left = random.randrange(1, 12)
        inputs: Any = engine._inputs
        reached = inputs.reached

        def stop(*places: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0 and random.random() < 0.5:
                raise Stop
            reached(*places)  # noqa: B023

        def progress(_: Any) -> None:
            if left < 0:  # noqa: B023
                raise Stop
            if random.random() < 0.1:
                engine.checkpoint() if not engine._turn._is_owned() else inputs.snapshot()  # type: ignore[attr-defined]  # noqa: B023

        inputs.reached = stop
        try:
            engine.run(sources(), progress=progress)
            break
        except Stop:
            engine.close()
    assert engine.statistics.elements == 60
    assert found == whole


@pytest.mark.parametrize("seed", range(12))
def test_elements_of_one_time_in_several_partitions_are_taken_in_once(seed: int, tmp_path: Path) -> None:
    """The next reading may return them in another order."""
    random = Random(seed)
    messages = [(number // 12, "a", number) for number in range(60)]
    found: dict[int, str] = {}
    for _ in range(200):
        engine = Engine(checkpoint=tmp_path, batch=random.choice([None, 1, 3]))
        query = engine.register(PREFIX + "SELECT ?v { STREAM :s [RANGE 1us] { ?s :v ?v } }", name="q")
        query.subscribe(lambda result: found.update({result.number: str(result.bindings["v"])}))
        left = random.randrange(1, 6)
        inputs: Any = engine._inputs
        elements = inputs.elements

        def stop(batch: Any, **how: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0:
                raise Stop
            elements(batch, **how)  # noqa: B023

        inputs.elements = stop
        try:
            engine.run({STREAM: Topic(messages, random)})
            break
        except Stop:
            engine.close()
    assert engine.statistics.elements == 60
    assert sorted(found.values(), key=int) == [str(number) for number in range(60)]


def test_a_source_that_cannot_be_read_at_its_position_is_refused(tmp_path: Path) -> None:
    messages = [(time, "a", time) for time in range(5)]
    query = PREFIX + "SELECT ?v { STREAM :s [NOW] { ?s :v ?v } }"
    engine = Engine(checkpoint=tmp_path)
    engine.register(query)
    source = Queue(messages[:3], lambda: 2)
    engine.run({STREAM: source})
    # They are told as soon as the elements are logged.
    assert source.committed[0] == (("partition", 2),)
    engine.close()
    engine = Engine(checkpoint=tmp_path)
    engine.register(query)
    with pytest.raises(RunError, match="from 3 on are no longer kept"):
        engine.run({STREAM: Queue(messages, lambda: 2, kept_from=4)})
    engine.run({STREAM: Queue(messages, lambda: 2)})
    assert engine.statistics.elements == 5
    engine.close()
