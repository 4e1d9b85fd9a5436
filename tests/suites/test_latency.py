"""Latencies: paced by a clock, from the moment an element is due."""

from __future__ import annotations

import time
from pathlib import Path

import numpy as np
import pytest

from cqels_py.suites import data, latency, throughput
from cqels_py.suites.task import Task
from tests.suites.rides import RIDES


class Clock:
    """Goes on when somebody looks, sleeps, or works."""

    def __init__(self, monkeypatch: pytest.MonkeyPatch) -> None:
        self.now = 100.0
        monkeypatch.setattr(time, "sleep", self.go_on)

    def go_on(self, seconds: float) -> None:
        self.now += seconds

    def __call__(self) -> float:
        self.now += 1e-6
        return self.now


def test_no_element_is_pushed_before_it_is_due(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    due = np.array([0.0, 0.01, 0.02, 0.02, 0.05])
    pushed: list[tuple[int, int]] = []

    def push(start: int, end: int) -> None:
        assert clock.now - 100 >= due[end - 1]
        pushed.append((start, end))
        clock.go_on(0.001)

    found = latency.pace(due, push, clock)
    assert pushed == [(0, 1), (1, 2), (2, 4), (4, 5)]
    assert found == pytest.approx(0.001, abs=2e-4)


def test_latency_behind_a_slow_push_runs_from_the_due_time(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = Clock(monkeypatch)
    due = np.arange(10) * 0.01
    found = latency.pace(due, lambda start, end: clock.go_on(0.035), clock)
    # Pushed are 0 alone, then 1 to 3, 4 to 6 (or 7), …
    assert found[:4] == pytest.approx([0.035, 0.06, 0.05, 0.04], abs=1e-3)
    assert found.min() >= 0.035


def test_latencies_of_a_query(tmp_path: Path) -> None:
    files = data.prepared(RIDES, 9_000, 1, tmp_path)
    streams = {iri: str(path) for iri, path in files.streams.items()}
    task = Task("tips-by-area", RIDES.queries()["tips-by-area"], "?", streams, str(files.static), triples=9_000)
    measured = throughput.measure(task, None, lambda phase, done: None)
    latency.measure(task, measured, seconds=0.2)
    assert measured.triples_per_second is not None
    assert measured.latency_rate == pytest.approx(0.8 * measured.triples_per_second)
    quantiles = measured.latency_quantiles
    assert len(quantiles) == 101
    assert quantiles == sorted(quantiles)
    assert quantiles[0] > 0
    assert (measured.latency_p50_us, measured.latency_p99_us) == (quantiles[50], quantiles[99])


def test_the_paced_run_sees_the_elements_of_the_whole_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The elements of the fill and the pushed elements together give the results of one run."""
    files = data.prepared(RIDES, 1_800, 1, tmp_path)
    streams = {iri: str(path) for iri, path in files.streams.items()}
    task = Task("1", RIDES.queries()["three-windows"], "?", streams, str(files.static), triples=1_800)
    whole = throughput.measure(task, None, lambda phase, done: None)
    counted = []

    def measure(due: np.ndarray, push: latency.Push) -> np.ndarray:  # type: ignore[type-arg]
        for start in range(0, len(due), 7):
            push(start, min(start + 7, len(due)))
        counted.append(len(due))
        return due

    results = []
    monkeypatch.setattr(latency, "pace", measure)
    monkeypatch.setattr(latency.LocalRunner, "push", _counting(latency.LocalRunner.push, results))
    latency.measure(task, whole)
    assert counted == [100]
    assert results[-1] == whole.results


def _counting(push, results: list[int]):  # type: ignore[no-untyped-def]
    def counted(self, batch) -> None:  # type: ignore[no-untyped-def]
        push(self, batch)
        results.append(self.counters.results)

    return counted
