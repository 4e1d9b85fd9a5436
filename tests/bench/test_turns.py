"""Competitors take turns, and every round's time is the one's whose round it was."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from types import SimpleNamespace
from typing import Any

import pytest

from bench.arrivals import Batch, Setting
from bench.contest import Chunk, Competitor, Contest, Entry, Timing

SECONDS = {"a": 1.0, "b": 2.0, "c": 4.0}
SETTING = Setting("window 30", 30, 5, batch=50)


class Watched(Competitor):
    """Writes down which batches it is given."""

    def __init__(self, name: str, taken: list[tuple[str, Batch]]) -> None:
        self._name, self._taken = name, taken

    def take(self, batch: Batch) -> Iterator[Chunk]:
        self._taken.append((self._name, batch))
        yield [(0, 1), (0, 2)]


class Stopwatch:
    """A stand-in for pytest-benchmark; every round lasts SECONDS, and is recorded."""

    def __init__(self, taken: list[tuple[str, Batch]]) -> None:
        self.extra_info: dict[str, Any] = {}
        self.stats = SimpleNamespace(stats=SimpleNamespace(data=[]))
        self.rounds: list[tuple[str, list[Batch]]] = []
        self.ahead: list[tuple[str, Batch]] = []
        self._taken = taken

    def pedantic(self, target: Callable[..., None], setup: Callable[[], tuple[Any, Any]], rounds: int) -> None:
        for _ in range(rounds):
            args, kwargs = setup()
            before = len(self._taken)
            self.ahead.append(self._taken[-1])
            target(*args, **kwargs)
            ((name, *_), *_) = timed = self._taken[before:]
            self.rounds.append((name, [batch for _, batch in timed]))
            self.stats.stats.data.append(SECONDS[name])


@pytest.fixture
def watched() -> tuple[Stopwatch, Contest]:
    taken: list[tuple[str, Batch]] = []

    def entry(name: str) -> Entry:
        return Entry(name, lambda setting: Watched(name, taken), largest=20 if name == "c" else None)

    return Stopwatch(taken), Contest("watched", [entry(name) for name in SECONDS], [SETTING], [SETTING])


def measured(watched: tuple[Stopwatch, Contest], rounds: int) -> Stopwatch:
    stopwatch, contest = watched
    (meeting,) = contest.meetings()
    meeting.measure(stopwatch, Timing(rounds, seconds=1e-3))  # type: ignore[arg-type]
    return stopwatch


def test_another_one_begins_each_turn(watched: tuple[Stopwatch, Contest]) -> None:
    """And who would not end stays out."""
    assert [name for name, _ in measured(watched, 3).rounds] == ["a", "b", "b", "a", "a", "b"]


def test_rounds_have_the_same_batches(watched: tuple[Stopwatch, Contest]) -> None:
    """One's own rounds do, and others begin with the same ones."""
    rounds = measured(watched, 3).rounds
    (_, expected), *_ = rounds
    for name, batches in rounds:
        assert all(one is other for one, other in zip(batches, expected, strict=name == "a"))


def test_a_batch_that_is_not_timed_comes_first(watched: tuple[Stopwatch, Contest]) -> None:
    stopwatch = measured(watched, 3)
    for (name, batches), (before, ahead) in zip(stopwatch.rounds, stopwatch.ahead, strict=True):
        assert before == name
        assert all(ahead is not batch for batch in batches)


def test_rates_are_of_ones_own_rounds(watched: tuple[Stopwatch, Contest]) -> None:
    stopwatch = measured(watched, 3)
    sizes = {name: sum(map(len, batches)) for name, batches in stopwatch.rounds}
    assert stopwatch.extra_info["rates"] == [
        {
            "setting": "window 30",
            "competitor": name,
            "results_per_arrival": 2 / SETTING.batch,
            "rates": [sizes[name] / SECONDS[name]] * 3,
        }
        for name in ("a", "b")
    ]
