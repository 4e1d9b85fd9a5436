"""One run of a query from files to rendered results: counts and memory."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

from cqels_py.runners.statistics import Statistics
from cqels_py.suites import data, memory, throughput
from cqels_py.suites.task import Task
from tests.suites.rides import RIDES


def silent(phase: str, done: int) -> None:
    pass


def test_a_run_counts_elements_and_results(tmp_path: Path) -> None:
    files = data.prepared(RIDES, 900, 1, tmp_path)
    streams = {iri: str(path) for iri, path in files.streams.items()}
    text = (
        "SELECT ?r { STREAM <http://cqels.example/taxi/rides> [NOW] { ?r <http://cqels.example/taxi/terms#tip> ?t } }"
    )
    measured = throughput.measure(Task("1", text, "?", streams, str(files.static)), None, silent)
    assert (measured.triples, measured.elements, measured.results) == (900, 100, 100)
    assert measured.seconds is not None and measured.seconds > 0
    assert measured.triples_per_second == 900 / measured.seconds
    assert measured.memory[-1][1] == 900
    assert measured.peak_rss_mb is not None and measured.peak_rss_mb > 50


def test_samples_stay_few(monkeypatch) -> None:  # type: ignore[no-untyped-def]
    now = 0.0
    monkeypatch.setattr(throughput.time, "perf_counter", lambda: now)
    samples = throughput._Samples(silent, all_processes=False)
    samples.start()
    for number in range(100_000):
        now = number * 0.001
        samples.look(Statistics(triples=number))
    assert throughput.SAMPLES / 2 <= len(samples.kept) <= throughput.SAMPLES
    seconds = [second for second, _, _ in samples.kept]
    assert seconds == sorted(seconds)
    assert seconds[0] == 0
    assert seconds[-1] > 90


def test_the_peak_is_the_process_own() -> None:
    """Whatever the one has that started it."""
    ballast = bytearray(b"x") * (300 << 20)
    code = "from cqels_py.suites import memory; print(memory.peak())"
    said = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert memory.peak() > len(ballast) / 2**20
    assert 1 < float(said) < 300


def test_all_processes_are_more_than_one() -> None:
    with subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE) as other:
        alone, both = memory.now(), memory.of_all()
        other.communicate(b"\n")
    assert memory.now(other.pid) == 0
    assert both > alone > 1
