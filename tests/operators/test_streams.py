"""Relation to stream: differences and answers of random bags at every tick; ASK."""

from __future__ import annotations

import random
from collections import Counter
from collections.abc import Iterable, Sequence
from itertools import pairwise

import numpy as np
import pytest

from cqels_py.batches.delta import Delta, by_whole_ticks
from cqels_py.batches.results import ResultBatch
from cqels_py.event_time.clock import Ticks
from cqels_py.operators.r2s import streams
from cqels_py.operators.r2s.ask import Ask
from cqels_py.operators.r2s.streams import Answers, Changes
from cqels_py.terms.layout import FALSE, TRUE
from tests.operators.deltas import Port, Row, Seen, Step, chunks_of, delta, difference, random_steps

NAMES = ("a", "b", "c")
OPERATORS = {"ISTREAM": (True, False), "DSTREAM": (False, True), "CHANGELOG": (True, True)}

Results = Counter[tuple[int, int, Row]]
"""Time, sign, row."""


def results(batches: Iterable[ResultBatch]) -> Results:
    found: Results = Counter()
    last = -1, 0
    for batch in batches:
        rows = np.stack([np.empty(len(batch), np.int64), *batch.columns])[1:].T.tolist()
        for time, sign, row in zip(batch.time.tolist(), batch.sign.tolist(), rows, strict=True):
            assert (time, sign) >= last, "within a tick retractions come first"
            last = time, sign
            found[time, sign, tuple(row)] += 1
    return found


def ticks_of(step: Step, number: int) -> Ticks:
    """Ticks ten microseconds apart, all through the run."""
    return Ticks(np.arange(len(step.live), dtype=np.int64) * 10 + 10_000 * number, first=number == 0)


def answers(steps: Sequence[Step]) -> list[list[Counter[Seen]]]:
    return [[Counter(live[0]) for live in step.live] for step in steps]


@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [0, 1, 3])
@pytest.mark.parametrize("name", OPERATORS)
def test_changes_are_the_difference_of_bags(name: str, width: int, seed: int) -> None:
    insertions, deletions = OPERATORS[name]
    stream = Changes(NAMES[:width], insertions=insertions, deletions=deletions)
    before: Counter[Seen] = Counter()
    for number, step in enumerate(random_steps(seed, [Port(width, False)], 20, 8, 10)):
        ticks = ticks_of(step, number)
        found = results(stream.process(ticks, chunks_of(step.inputs[0], width, seed)))
        wanted: Results = Counter()
        for tick, live in enumerate(step.live):
            after: Counter[Seen] = Counter(live[0])
            for row, count in difference(after, before).items():
                if insertions if count > 0 else deletions:
                    wanted[int(ticks.time[tick]), 1 if count > 0 else -1, row] = abs(count)  # type: ignore[index]
            before = after
        assert found == wanted


@pytest.mark.parametrize("room", [1, 5, 1000])
@pytest.mark.parametrize("seed", range(3))
@pytest.mark.parametrize("width", [0, 1, 3])
def test_rstream_has_the_whole_answer_at_every_tick(
    width: int, seed: int, room: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    for limit in ("_FEWEST_CHANGES", "_FEWEST_ROWS", "_MOST_ROWS"):
        monkeypatch.setattr(streams, limit, room)
    stream = Answers(NAMES[:width])
    for number, step in enumerate(random_steps(seed, [Port(width, False)], 20, 8, 10)):
        ticks = ticks_of(step, number)
        found = results(stream.process(ticks, chunks_of(step.inputs[0], width, seed)))
        wanted = Counter(
            (int(time), 1, row) for time, live in zip(ticks.time, step.live, strict=True) for row in live[0]
        )
        assert found == wanted


def test_rstream_repeats_its_answer_at_ticks_without_a_change() -> None:
    stream = Answers(("a",))
    three = Ticks(np.array([1, 2, 3]), first=True)
    found = results(stream.process(three, [delta([(1, 1, (7,))], 1)]))
    assert found == {(2, 1, (7,)): 1, (3, 1, (7,)): 1}
    assert results(stream.process(Ticks(np.array([4]), first=False), [])) == {(4, 1, (7,)): 1}


def test_ticks_are_reported_together() -> None:
    ticks = Ticks(np.arange(500) * 10, first=True)
    (batch,) = Answers(("a",)).process(ticks, [delta([(100, 1, (7,)), (300, -1, (7,))], 1)])
    assert batch.tick is not None
    assert batch.tick.tolist() == list(range(100, 300))
    assert batch.time.tolist() == list(range(1000, 3000, 10))


def test_the_state_of_rstream_follows_its_answer() -> None:
    """However many changes a step has."""
    stream = Answers(("a",))
    size = stream.nbytes
    for step in range(10):
        values = range(1000 * step, 1000 * (step + 1))
        changes = [(k, sign, (v,)) for k, n in enumerate(values) for sign, v in ((-1, n - 1), (1, n)) if v >= 0]
        found = list(stream.process(Ticks(np.array(values), first=step == 0), [delta(changes, 1)]))
        assert np.concatenate([batch.columns[0] for batch in found]).tolist() == list(values)
    assert stream.nbytes < 10 * size


def test_a_changelog_retracts_before_it_inserts() -> None:
    """So a consumer that keeps one row per key ends with the new one."""
    stream = Changes(("a",), insertions=True, deletions=True)
    (batch,) = stream.process(Ticks(np.array([1]), first=True), [delta([(0, -1, (1,)), (0, 1, (2,))], 1)])
    assert batch.sign.tolist() == [-1, 1]


@pytest.mark.parametrize("seed", range(5))
@pytest.mark.parametrize("name", [*OPERATORS, "RSTREAM"])
def test_ask_delivers_changes_of_its_answer(name: str, seed: int) -> None:
    every = name == "RSTREAM"
    insertions, deletions = OPERATORS.get(name, (False, False))
    ask = Ask(("boolean",), insertions=insertions, deletions=deletions, every_tick=every)
    rng = random.Random(seed)
    before: int | None = None
    for number, step in enumerate(random_steps(seed, [Port(0)], 30, rng.randrange(1, 5), 2)):
        ticks = ticks_of(step, number)
        found = results(ask.process(ticks, chunks_of(step.inputs[0], 0, 0)))
        wanted: Results = Counter()
        for time, live in zip(ticks.time.tolist(), step.live, strict=True):
            answer = TRUE if live[0] else FALSE
            if every or (insertions and answer != before):
                wanted[time, 1, (answer,)] += 1
            if deletions and answer != before and before is not None:
                wanted[time, -1, (before,)] += 1
            before = answer
        assert found == wanted


@pytest.mark.parametrize("rows", [1, 4, 100])
def test_chunks_are_combined_by_whole_ticks(rows: int) -> None:
    rng = np.random.default_rng(rows)
    tick = np.sort(rng.integers(0, 12, 60)).astype(np.int32)
    number = np.arange(60)
    cuts = [0, *sorted(rng.integers(0, 61, 9).tolist()), 60]
    chunks = [Delta(tick[a:b], np.ones(b - a, np.int8), number[np.newaxis, a:b]) for a, b in pairwise(cuts)]
    found = list(by_whole_ticks(chunks, 1, rows))
    assert np.concatenate([delta.columns[0] for delta in found]).tolist() == number.tolist()
    ends = [(int(before.tick[-1]), int(after.tick[0])) for before, after in pairwise(found)]
    assert all(last < first for last, first in ends)
    assert len(found) == (1 if rows == 100 else len(ends) + 1)
    assert rows == 100 or len(found) > 2
