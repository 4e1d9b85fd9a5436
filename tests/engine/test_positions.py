"""An engine with a checkpoint over sources that can be read from a position: each element is taken in once, wherever it stops."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError
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


class Stop(Exception):
    """The process ends here."""


@pytest.mark.parametrize("seed", range(12))
def test_each_element_is_taken_in_once(seed: int, tmp_path: Path) -> None:
    """It stops between two parts, and between an element's record and that of the position."""
    random = Random(seed)
    times = sorted(random.sample(range(200), 60))
    messages = [[(time, random.choice("ab"), time) for time in times[start::2]] for start in (0, 1)]

    def sources() -> dict[str, Queue]:
        return {
            iri: Queue(each, lambda: random.randrange(4)) for iri, each in zip((STREAM, OTHER), messages, strict=True)
        }

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

        def stop(places: Any) -> None:
            nonlocal left
            left -= 1
            if left < 0 and random.random() < 0.5:
                raise Stop
            reached(places)  # noqa: B023

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
