"""A source and a sink of one's own: a class each, through what every program may call."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from typing import Any

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import DataError, UsageError
from cqels_py.sinks.protocol import Sink
from cqels_py.sources.protocol import Opening, Source
from tests.engine.test_engine import LATEST, OTHER, PREFIX, STREAM, VALUES, table, texts


class Messages:
    """A broker's messages, some at a time; empty ones are polls that found nothing."""

    def __init__(self, polls: Sequence[Sequence[tuple[int, str, int]]]) -> None:
        self._polls = iter(polls)
        self._taken = 0
        self.idle = False
        self.log: list[Any] = []

    def open(self, opening: Opening) -> Source:
        self._opening = opening
        return self

    def poll(self) -> ElementBatch | None:
        messages = next(self._polls, None)
        if messages is None:
            return None
        self.idle = not messages
        self._taken += len(messages)
        return self._opening.elements((time, [texts(subject, value)]) for time, subject, value in messages)

    def position(self) -> int:
        return self._taken

    def commit(self, position: object) -> None:
        self.log.append(("commit", position))

    def close(self) -> None:
        self.log.append("close")


class Rows:
    """A database, which has what was committed."""

    def __init__(self, dictionary: Dictionary, log: list[Any]) -> None:
        self._dictionary = dictionary
        self._open: list[str | None] = []
        self.visible: list[str | None] = []
        self.log = log

    def write(self, batch: ResultBatch) -> None:
        self._open += self._dictionary.decode(batch.columns[1])

    def flush(self) -> None:
        self.visible += self._open
        self._open = []

    def commit(self) -> int:
        self.flush()
        self.log.append(("committed", len(self.visible)))
        return len(self.visible)


def numbers(values: Sequence[str | None]) -> list[int]:
    return [int(str(value).split('"')[1]) for value in values]


def test_from_a_source_to_a_sink() -> None:
    """Results are visible after each step; they are committed before the source may forget its elements."""
    source = Messages([[(1, "a", 1), (2, "b", 2)], [], [(4, "c", 3)]])
    engine = Engine()
    query = engine.register(LATEST)
    sink = Rows(engine.dictionary, source.log)
    query.write_to(sink)
    seen: list[list[int]] = []
    statistics = engine.run({STREAM: source}, progress=lambda _: seen.append(numbers(sink.visible)))
    # Also where nothing came.
    assert seen == [[1, 2], [1, 2], [1, 2, 3]]
    assert source.log == [("committed", 3), ("commit", 3), "close"]
    assert (statistics.elements, statistics.results) == (3, 3)


def test_a_commit_after_each_delivered_batch() -> None:
    """The sink commits first, then the source, up to the elements that have been taken in; not up to those that wait."""
    source = Messages([[(1, "a", 1), (2, "b", 2)], [(4, "c", 3), (5, "d", 4)], [(9, "e", 5)]])
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?s ?v { STREAM :s [NOW] { ?s :v ?v } OPTIONAL { STREAM :t [NOW] { ?s :v ?w } } }"
    )
    sink = Rows(engine.dictionary, source.log)
    query.write_to(sink)
    later = Messages([[(3, "x", 1)], [(4, "x", 1), (7, "x", 1)], [(8, "x", 1)]])
    engine.run({STREAM: source, OTHER: later}, progress=lambda _: engine.commit())
    # Batches are cut where the other source has got: at 3 (not c, which may follow an x), at 5, at 8, and at the end.
    assert [entry for entry in source.log if entry[0] == "commit"] == [("commit", 2), ("commit", 4), ("commit", 5)]
    for before, entry in pairwise(source.log):
        assert entry[0] != "commit" or before[0] == "committed"
    assert [entry for entry in later.log if entry[0] == "commit"] == [("commit", 1), ("commit", 3), ("commit", 4)]


def test_a_source_is_closed_if_another_cannot_be_opened_or_a_subscriber_fails() -> None:
    source = Messages([[(1, "a", 1)]])
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?v { { STREAM :s [NOW] { ?s :v ?v } } UNION { STREAM :t [NOW] { ?s :v ?v } } }"
    )
    with pytest.raises(UsageError, match="no file"):
        engine.run({STREAM: source, OTHER: "no.nq"})
    assert source.log == ["close"]

    def fail(_: object) -> None:
        raise ValueError("no")

    query.subscribe(fail)
    with pytest.raises(ValueError, match="no"):
        engine.run({STREAM: source, OTHER: table([(2, "b", 2)])})
    assert source.log == ["close", "close"]


def test_other_sources_do_not_wait_for_an_idle_one() -> None:
    """Without the other's elements, those of a source that is idle would be waited for; what comes late is dropped as late."""
    idle = Messages([[(1, "a", 1)], *[[]] * 5, [(3, "late", 30), (20, "b", 20)]])
    engine = Engine(report=lambda _: None)
    query = engine.register(
        PREFIX + "SELECT ?v { { STREAM :s [NOW] { ?s :v ?v } } UNION { STREAM :t [NOW] { ?s :v ?v } } }"
    )
    busy = Messages([[(time, "x", time)] for time in (2, 4, 6, 8, 10)])
    engine.run({STREAM: idle, OTHER: busy})
    assert [int(result.bindings["v"]) for result in query.results()] == [1, 2, 4, 6, 8, 10, 20]
    assert engine.statistics.late == 1


def test_it_is_merged_with_others_by_time() -> None:
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?v { { STREAM :s [NOW] { ?s :v ?v } } UNION { STREAM :t [NOW] { ?s :v ?v } } }"
    )
    engine.run({STREAM: Messages([[(1, "a", 1)], [(3, "a", 3)]]), OTHER: table([(2, "b", 2), (4, "b", 4)])})
    assert [int(result.bindings["v"]) for result in query.results()] == [1, 2, 3, 4]


def test_pushes_are_written_too() -> None:
    engine = Engine()
    query = engine.register(VALUES)
    engine.push(STREAM, [texts("a", 1)], time=1)
    sink = Rows(engine.dictionary, [])
    query.write_to(sink)
    engine.push(STREAM, [texts("b", 2)], time=2)
    assert numbers(sink.visible) == [1, 2]
    with pytest.raises(UsageError, match="go to its subscribers"):
        query.results()
    engine.finish()
    assert sink.log == [("committed", 2)]


def test_what_a_sink_raises_comes_out_of_the_push() -> None:
    class Broken(Rows):
        def flush(self) -> None:
            raise ConnectionError("gone")

    engine = Engine()
    broken = Broken(engine.dictionary, [])
    engine.register(VALUES).write_to(broken)
    for number in (1, 2):
        with pytest.raises(ConnectionError, match="gone"):
            engine.push(STREAM, [texts("a", number)], time=number)
    assert numbers(broken._open) == [1, 2]


def test_elements_of_a_source_that_are_wrong() -> None:
    """They are left out: raised, or reported and counted."""
    wrong = (1, "a b", 1)
    engine = Engine()
    engine.register(VALUES)
    with pytest.raises(DataError, match=f"an element pushed to <{STREAM}>: .* is not a term"):
        engine.run({STREAM: Messages([[wrong]])})
    reports: list[DataError] = []
    engine = Engine(on_error="skip", report=reports.append)  # type: ignore[arg-type]
    query = engine.register(VALUES)
    engine.run({STREAM: Messages([[wrong, (2, "b", 2)]])})
    assert [int(result.bindings["v"]) for result in query.results()] == [2]
    assert engine.statistics.malformed == len(reports) == 1


@pytest.mark.parametrize("wrong", [None, [], object()])
def test_what_is_no_sink(wrong: Any) -> None:
    with pytest.raises(UsageError, match="write of a sink is a function of its arguments, not None"):
        Engine().register(VALUES).write_to(wrong)


def test_a_path_is_no_url_of_a_sink() -> None:
    with pytest.raises(UsageError, match=r"'out.json' is not the URL of a sink; one is written like postgresql://"):
        Engine().register(VALUES).write_to("out.json")


def protocols() -> Iterator[tuple[Source, Sink]]:
    """For the checker of types."""
    yield Messages([]), Rows(Dictionary(), [])
