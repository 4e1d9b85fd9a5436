"""With a second thread that reads ahead, all is as with one: results, errors, reports, and their order."""

from __future__ import annotations

import random
import threading
from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.batches.rearrange import empty_elements
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.engine.query import Result
from cqels_py.errors import CqelsError, DataError, UsageError
from cqels_py.runners import local
from cqels_py.sources import opened
from cqels_py.sources import read_ahead as ahead
from cqels_py.sources.files import open_source

ONE, TWO = "http://ex.org/one", "http://ex.org/two"
QUERIES = (
    "SELECT ?s ?v ?w { STREAM :one [RANGE 40us] { ?s :v ?v } STREAM :two [COUNT 5] { ?s :v ?w } }",
    # Texts that nobody has read: the evaluating thread enters terms too.
    'SELECT ?s (CONCAT(STR(?v), "!", STR(?s)) AS ?t) { STREAM :one [RANGE 10us] { ?s :v ?v } STREAM :two [NOW] { ?o :v ?w } }',
    'SELECT ?s (GROUP_CONCAT(?v; SEPARATOR="-") AS ?all) { STREAM :one [COUNT 20] { ?s :v ?v } '
    "STREAM :two [RANGE 90us] { ?s :v ?w } } GROUP BY ?s",
)
TIME = '<http://ex.org/g{0}> <http://www.w3.org/ns/prov#generatedAtTime> "{0}"^^<http://www.w3.org/2001/XMLSchema#integer> .'


def write(path: Path, rng: random.Random, elements: int, malformed: float) -> str:
    """Event graphs with ever new literals, and lines that are none."""
    lines, time = [], 0
    for _ in range(elements):
        time += rng.choice((1, 1, 2, 30))
        lines.append(TIME.format(time))
        for _ in range(rng.choice((1, 1, 2))):
            value = f'<http://ex.org/v> "value {rng.randrange(10**6)} that is long enough to be hashed"'
            lines.append(f"<http://ex.org/s{rng.randrange(4)}> {value} <http://ex.org/g{time}> .")
        if rng.random() < malformed:
            lines.append("this is no statement")
    path.write_text("\n".join(lines) + "\n")
    return str(path)


def story(query: str, sources: dict[str, str], threads: int, on_error: str) -> list[object]:
    """Everything that happens, in order."""
    told: list[object] = []
    engine = Engine(on_error=on_error, report=lambda error: told.append(str(error)))
    asked = engine.register(f"PREFIX : <http://ex.org/>\n{query}", changelog=True)
    asked.subscribe(lambda each: told.append((each.time, each.sign, each.bindings)))
    try:
        told.append(engine.run(sources, threads=threads))
    except DataError as error:
        told += [str(error), engine.statistics]
    return told


def readers() -> list[threading.Thread]:
    return [thread for thread in threading.enumerate() if thread.name == "cqels reader"]


@pytest.mark.parametrize("query", QUERIES)
@pytest.mark.parametrize(("on_error", "malformed"), [("stop", 0.0), ("skip", 0.05), ("stop", 0.002)])
def test_everything_happens_as_with_one_thread(
    query: str, on_error: str, malformed: float, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    rng = random.Random(f"{query} {on_error} {malformed}")
    sources = {iri: write(tmp_path / f"{number}.nq", rng, 400, malformed) for number, iri in enumerate((ONE, TWO))}
    # Terms are released again and again, while others are being read.
    monkeypatch.setattr(local, "_COLLECT_FROM", 40)
    chunk = rng.randrange(200, 3_000)
    monkeypatch.setattr(opened, "open_source", partial(open_source, chunk_bytes=chunk))
    expected = story(query, sources, 1, on_error)
    assert len(expected) > 50
    assert story(query, sources, 2, on_error) == expected
    assert not readers()


def test_a_third_thread_reads_results_while_terms_come_and_are_released(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The dictionary's arrays are replaced, by the reader that enters terms and by the engine that releases them."""
    monkeypatch.setattr(local, "_COLLECT_FROM", 40)
    text = "PREFIX : <http://ex.org/> SELECT ?s ?v { STREAM :one [COUNT 3] { ?s :v ?v } }"
    sources = {ONE: write(tmp_path / "a.nq", random.Random(3), 3_000, 0)}
    expected = Engine(batch=7)
    alone = expected.register(text)
    expected.run(sources, threads=1)
    engine = Engine(batch=7)
    query = engine.register(text)
    ended, found = threading.Event(), list[Result]()

    def read() -> None:
        while not ended.is_set():
            found.extend(query.results())
        found.extend(query.results())

    third = threading.Thread(target=read)
    third.start()
    try:
        engine.run(sources, threads=2)
    finally:
        ended.set()
        third.join()
    assert [str(result) for result in found] == [str(result) for result in alone.results()]


def test_a_subscriber_that_raises_ends_the_reader(tmp_path: Path) -> None:
    sources = {ONE: write(tmp_path / "a.nq", random.Random(1), 300, 0)}
    engine = Engine(batch=7)
    query = engine.register("PREFIX : <http://ex.org/> SELECT ?s { STREAM :one [NOW] { ?s :v ?v } }")

    def stop(result: object) -> None:
        raise StopAsyncIteration

    query.subscribe(stop)
    with pytest.raises(StopAsyncIteration):
        engine.run(sources, threads=2)
    assert engine.statistics.elements == 7
    assert not readers()


def test_it_reads_two_batches_ahead_and_no_more() -> None:
    read: list[int] = []
    third = threading.Event()

    def batches() -> Iterator[ElementBatch]:
        for number in range(9):
            read.append(number)
            if number == 2:
                third.set()
            yield empty_elements()

    reader = ahead.ReadAhead(Dictionary(), lambda error: None)
    taken = reader.read(batches())
    next(taken)
    # The current batch, and two ahead of it.
    assert third.wait(10)
    reader.close()
    assert read == [0, 1, 2]


def test_only_large_files_are_read_ahead_unasked(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    file = tmp_path / "a.nq"
    file.write_bytes(b"x" * 100)
    monkeypatch.setattr(ahead, "_processors", lambda: 2)
    assert not ahead.pays([file])
    monkeypatch.setattr(ahead, "LARGE", 100)
    assert ahead.pays([str(file)])
    assert not ahead.pays([file, "-"])
    assert not ahead.pays([file, [empty_elements()]])
    monkeypatch.setattr(ahead, "_processors", lambda: 1)
    assert not ahead.pays([file])


@pytest.mark.parametrize("threads", [0, 3])
def test_threads_are_one_or_two(threads: int) -> None:
    with pytest.raises(UsageError, match="threads is 1 or 2"):
        Engine().run({}, threads=threads)


def test_what_is_no_file_cannot_be_read_ahead() -> None:
    engine = Engine()
    engine.register("PREFIX : <http://ex.org/> SELECT ?s { STREAM :one [NOW] { ?s :v ?v } }")
    with pytest.raises(CqelsError, match="only read files ahead"):
        engine.run({ONE: "-"}, threads=2)
