"""Programs in engines as they run: with a checkpoint, disorder, several queries, times of elements; equal to steps by calls."""

from __future__ import annotations

import random
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, cast

import pytest

import cqels_py as cqels
from cqels_py.dataflow.step_program import Outcome
from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.functions import table
from cqels_py.functions.table import Function
from cqels_py.kernels.values.dictionary import ARENA_FULL, TABLE_FULL
from tests.dataflow.test_step_program import (
    BEGIN,
    EX,
    FILTERED,
    GROUPED,
    INTEGER,
    MODES,
    QUERIES,
    SECOND,
    Pushed,
    elements_of,
    of_both_streams,
    readings,
)
from tests.support.harness import assert_engine_right

NAMES = (
    *("filter", "join", "optional", "average", "extremes", "joined texts", "distinct", "texts", "chain", "sequence"),
    *(
        "step and eager",
        "count",
        "count steps and time",
        "delayed",
        "groups of sessions",
        "two sessions",
        "session steps",
    ),
    *("two partitions", "partition by joined patterns", "partition steps", "groups of sessions by value"),
)
"""Of plans with each kind of state."""


class Session:
    """Engines that follow each other on one folder, each ended without a word, and all their results."""

    def __init__(self, folder: Path | None, text: str, **options: Any) -> None:
        self.found: list[Any] = []
        self._folder, self._text, self._options = folder, text, options
        self.begin()

    def begin(self) -> None:
        """A process begins."""
        self.engine = cqels.Engine(checkpoint=self._folder, durable="off", report=lambda _: None, **self._options)
        query = self.engine.register(self._text, changelog="ISTREAM" not in self._text, name="q")
        query.subscribe(
            lambda result: self.found.append((result.number, result.time, result.sign, dict(result.bindings))),
            from_number=len(self.found) + 1,
        )

    def end(self) -> None:
        """A process ends."""
        self.engine._inputs._saving.wait()
        self.engine._inputs._resources.close()

    def push(self, pushed: Sequence[Pushed]) -> None:
        """Elements, one by one."""
        for stream, triples, time in pushed:
            self.engine.push(stream, triples, time=time)


def goes_on_in_both(text: str, pushed: Sequence[Pushed], folder: Path, in_mode: Callable[[str], None]) -> bool:
    """Are the results, of which there are some, those of steps by calls, where processes go on after 30 elements each?"""
    found = []
    for mode in MODES:
        in_mode(mode)
        session = Session(folder / mode, text)
        for first in range(0, len(pushed), 30):
            session.push(pushed[first : first + 30])
            session.end()
            session.begin()
        session.engine.finish()
        found.append(session.found)
        session.end()
    return bool(found[0]) and found[0] == found[1]


def results_amid_calls(
    text: str, pushed: Sequence[Pushed], seed: int, *, late: bool, changelog: bool = False
) -> list[Any]:
    """All results, while time is moved and elements have no triples now and then, or, if `late`, wait for later ones."""
    draw = random.Random(seed)
    engine = cqels.Engine(lateness="1s" if late else 0, report=lambda _: None)
    found = taken(engine.register(text, changelog=changelog))
    for stream, triples, time in pushed:
        engine.push(stream, [] if draw.random() < 0.05 else triples, time=time)
        if draw.random() < 0.04:
            engine.advance(time + draw.choice((1, SECOND, 3 * SECOND)))
        if draw.random() < 0.03:
            engine.flush()
    engine.finish()
    return found


def taken(query: cqels.Query) -> list[Any]:
    """All results of a query from now on."""
    found: list[Any] = []
    query.subscribe(lambda result: found.append((result.time, result.sign, dict(result.bindings))))
    return found


def elements_for(text: str, count: int, seed: int) -> list[Pushed]:
    """Elements of the streams that a query reads."""
    return of_both_streams(count, seed, 3 * SECOND) if ":b" in text else [*readings(count, seed, jump=3 * SECOND)]


def disordered(pushed: Sequence[Pushed], lateness: int, seed: int) -> list[Pushed]:
    """The elements as they arrive: each up to so many microseconds behind others."""
    drawn = random.Random(seed)
    return sorted(pushed, key=lambda each: each[2] + drawn.randrange(lateness))


@pytest.mark.parametrize("name", NAMES)
def test_an_engine_with_a_checkpoint_goes_on_anywhere(
    name: str, tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = elements_for(QUERIES[name], 90, 7)
    in_mode("calls")
    lone = Session(None, QUERIES[name])
    lone.push(pushed)
    in_mode("program")
    session = Session(tmp_path, QUERIES[name])
    for part in range(0, 90, 18):
        session.push(pushed[part : part + 10])
        if part % 4:
            session.engine.checkpoint()
        session.push(pushed[part + 10 : part + 18])
        session.end()
        # What is replayed is taken in by the other way, now and then.
        in_mode("calls" if part % 3 == 1 else "program")
        session.begin()
        in_mode("program")
    session.end()
    assert session.found == lone.found
    assert outcomes.count(Outcome.COMPLETE) > 60


@pytest.mark.parametrize("name", NAMES)
def test_elements_out_of_order_are_programs_steps_once_they_are_complete(
    name: str, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    # Times that differ, as elements of one time come as they arrive.
    elements = elements_for(QUERIES[name], 120, 5)
    pushed = [(stream, triples, time + at) for at, (stream, triples, time) in enumerate(elements)]
    arriving = disordered(pushed, 2 * SECOND, 5)
    assert arriving != pushed
    found = {}
    for mode in ("calls", "program"):
        in_mode(mode)
        session = Session(None, QUERIES[name], lateness="2s")
        session.push(arriving)
        session.engine.finish()
        found[mode] = session.found
    assert found["program"] == found["calls"]
    in_mode("calls")
    ordered = Session(None, QUERIES[name])
    ordered.push(pushed)
    ordered.engine.finish()
    # With PARTITION BY, elements that are complete together are one step, and steps decide the order of results within a tick.
    partitioned = "PARTITION" in QUERIES[name]
    assert partitioned or found["program"] == ordered.found
    assert outcomes.count(Outcome.COMPLETE) > (5 if partitioned else 40)


def test_a_job_with_a_checkpoint_and_disorder(
    tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = [(stream, triples, time + at) for at, (stream, triples, time) in enumerate(of_both_streams(120, 9))]
    arriving = disordered(pushed, 2 * SECOND, 9)
    in_mode("calls")
    lone = Session(None, QUERIES["optional"], lateness="2s")
    lone.push(arriving)
    in_mode("program")
    session = Session(tmp_path, QUERIES["optional"], lateness="2s")
    for part in range(0, 120, 40):
        session.push(arriving[part : part + 40])
        session.end()
        session.begin()
    assert outcomes.count(Outcome.COMPLETE) > 60
    session.end()
    assert session.found == lone.found


def test_queries_of_other_streams_have_programs_of_their_own(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pushed = of_both_streams(200, 3)

    def run() -> list[list[Any]]:
        engine = cqels.Engine()
        texts = FILTERED, FILTERED.replace(":a", ":b"), QUERIES["join"]
        found = [taken(engine.register(text, changelog=True)) for text in texts]
        for stream, triples, time in pushed:
            engine.push(stream, triples, time=time)
        engine.finish()
        return found

    in_mode("calls")
    expected = run()
    in_mode("program")
    assert run() == expected and all(expected)
    assert outcomes.count(Outcome.COMPLETE) > 350


def test_elements_that_carry_their_times(outcomes: list[Outcome], in_mode: Callable[[str], None]) -> None:
    text = f"PREFIX : <{EX}> SELECT ?k ?x WHERE {{ STREAM :a [RANGE 10s] @ :at {{ ?k :a ?x }} }}"
    datetime = "<http://www.w3.org/2001/XMLSchema#dateTime>"

    def run() -> list[Any]:
        engine = cqels.Engine()
        found = taken(engine.register(text, changelog=True))
        for number, (stream, triples, _) in enumerate(readings(50)):
            at = f'"2024-01-01T00:{number:02}:00Z"^^{datetime}'
            engine.push(stream, [*triples, (f"<{EX}e>", f"<{EX}at>", at)])
        return found

    in_mode("calls")
    expected = run()
    in_mode("program")
    assert run() == expected and len(expected) > 50
    assert outcomes.count(Outcome.COMPLETE) > 40


def test_a_few_elements_of_a_table_are_steps_of_a_program(
    outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    pa = pytest.importorskip("pyarrow")
    pushed = [(stream, triples[:1], time) for stream, triples, time in readings(240)]
    names = "time", "subject", "predicate", "object"

    def run() -> list[Any]:
        engine = cqels.Engine()
        found = taken(engine.register(GROUPED["average"], changelog=True))
        for at in range(0, 240, 3):
            rows = [(time, *triples[0]) for _, triples, time in pushed[at : at + 3]]
            columns = dict(zip(names, map(list, zip(*rows, strict=True)), strict=True))
            engine.push_batch(f"{EX}a", pa.table(columns))
        return found

    in_mode("calls")
    expected = run()
    in_mode("program")
    assert run() == expected
    assert outcomes.count(Outcome.COMPLETE) > 180
    assert_engine_right(GROUPED["average"], elements_of(pushed[:60]), batches=(3,))


class GrowsWhenLocked:
    """A dictionary's lock, for which a thread waits in which the dictionary has grown meanwhile."""

    def __init__(self, dictionary: Dictionary) -> None:
        self._dictionary, self._lock, self.grows = dictionary, dictionary.lock, False

    def __enter__(self) -> None:
        self._lock.acquire()
        if self.grows:
            self.grows = False
            self._dictionary.grow(TABLE_FULL, 0)
            self._dictionary.grow(ARENA_FULL, 0)

    def __exit__(self, *_: object) -> None:
        self._lock.release()


@pytest.mark.parametrize("queries", [1, 2])
@pytest.mark.parametrize("saved", [False, True])
def test_a_dictionary_that_grows_before_a_program_has_its_lock(
    *, queries: int, saved: bool, tmp_path: Path, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    in_mode("program")
    engine = cqels.Engine(checkpoint=tmp_path if saved else None)
    found = list[str]()
    for number in range(queries):
        query = engine.register(QUERIES["no filter"], name=f"q{number}")
        query.subscribe(lambda result: found.append(str(result.bindings["x"])))
    lock = GrowsWhenLocked(engine.dictionary)
    engine.dictionary.lock = cast(Any, lock)
    values = [f"a text that is too long to be inline: {number}" for number in range(6)]
    for at, value in enumerate(values):
        lock.grows = at >= 3
        engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"{value}"')], time=BEGIN + at)
        assert not lock.grows
    assert found == [value for value in values for _ in range(queries)]
    # Steps whose terms have ids before are not noted.
    assert saved or outcomes[-1] is Outcome.COMPLETE


def test_a_program_that_runs_out_of_memory_ends_its_query_alone(
    monkeypatch: pytest.MonkeyPatch, outcomes: list[Outcome], in_mode: Callable[[str], None]
) -> None:
    def greedy(term: Any) -> Any:
        if term.text == "all":
            raise MemoryError
        return term

    monkeypatch.setitem(table.FUNCTIONS, "UCASE", Function(greedy, 1, 1))
    in_mode("program")
    engine = cqels.Engine()
    query = engine.register(QUERIES["no filter"].replace("?k ?x WHERE", "(UCASE(?x) AS ?y) WHERE"))
    other = engine.register(QUERIES["no filter"].replace(":a", ":b"))
    values = ("some", "more", "texts", "all")
    for at, value in enumerate(values[:3]):
        engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", f'"{value}"')], time=BEGIN + at)
    with pytest.raises(RunError, match="has run out of memory"):
        engine.push(f"{EX}a", [(f"<{EX}s>", f"<{EX}a>", '"all"')], time=BEGIN + 3)
    engine.push(f"{EX}b", [(f"<{EX}s>", f"<{EX}b>", f'"1"^^{INTEGER}')], time=BEGIN + 4)
    assert [str(result.bindings["y"]) for result in query.results()] == list(values[:3])
    assert len(list(other.results())) == 1
    assert Outcome.COMPLETE in outcomes
