"""Batches follow the load: all available data is taken at once, without waiting."""

from __future__ import annotations

import os
import sys
import threading
from pathlib import Path

import pytest

from cqels_py.engine.engine import Engine, Statistics
from cqels_py.formats.compression import read_chunks
from tests.formats.reading import ahead, iri

STREAM = "http://ex.org/s"


def event(number: int) -> str:
    graph = iri(f"g{number}")
    return ahead(graph, number % 60) + f"{iri('a')} {iri('p')} {iri(f'b{number}')} {graph} .\n"


@pytest.mark.skipif(sys.platform != "linux", reason="pipes grow on Linux alone")
def test_a_batch_is_what_came_meanwhile(monkeypatch: pytest.MonkeyPatch) -> None:
    numbers = iter(range(10_000))
    # An element is complete when the next one begins. 2,000 are more than a pipe holds unless it is widened.
    lots = [2, 1, 1, 2_000, 3, 1]
    reading, writing = os.pipe()

    def write_a_lot() -> None:
        count = lots.pop(0)
        text = "".join(event(next(numbers)) for _ in range(count)).encode()
        assert os.write(writing, text) == len(text)

    taken: list[int] = []

    def progress(statistics: Statistics) -> None:
        taken.append(statistics.elements - sum(taken))
        if lots:
            write_a_lot()
        elif len(taken) == 6:
            os.close(writing)

    engine = Engine(lateness=1 << 50)
    engine.register(f"SELECT ?o {{ STREAM <{STREAM}> [COUNT 5] {{ ?s ?p ?o }} }}")
    write_a_lot()
    with os.fdopen(reading) as stdin:
        monkeypatch.setattr(sys, "stdin", stdin)
        engine.run({STREAM: "-"}, progress=progress)
    assert taken == [1, 1, 1, 2_000, 3, 1, 1]


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="there are no named pipes here")
def test_named_pipes_are_read_as_they_are_written(tmp_path: Path) -> None:
    path = tmp_path / "s.nq"
    os.mkfifo(path)
    go_on = threading.Event()

    def write() -> None:
        with path.open("wb", buffering=0) as file:
            file.write(b"first\n")
            assert go_on.wait(10)
            file.write(b"second\n")

    writer = threading.Thread(target=write)
    writer.start()
    chunks = read_chunks(str(path))
    assert next(chunks) == b"first\n"
    go_on.set()
    assert list(chunks) == [b"second\n"]
    writer.join()
