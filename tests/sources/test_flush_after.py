"""The last element of a live input: complete when nothing comes for a time, at a line's end."""

from __future__ import annotations

import json
import os
import threading
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest

from cqels_py.batches.elements import ElementBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import UsageError
from cqels_py.formats.input_wait import InputWait
from cqels_py.mappings.context import read_map
from cqels_py.sources.opened import opened
from cqels_py.sources.protocol import Opening, Source

STREAM = "http://ex.org/s"
QUERY = "PREFIX : <http://ex.org/> SELECT ?o { STREAM :s [RANGE 5s] { ?s :p ?o } }"
PATIENCE = 30


def graph(number: int, *values: str) -> str:
    time = f'"2024-01-01T00:00:0{number}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    quads = "".join(f'<http://ex.org/x> <http://ex.org/p> "{v}" <http://ex.org/g{number}> .\n' for v in values)
    return f"<http://ex.org/g{number}> <http://www.w3.org/ns/prov#generatedAtTime> {time} .\n{quads}"


def subject(number: int, *values: str) -> str:
    time = f'"2024-01-01T00:00:0{number}Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return f"<http://ex.org/x{number}> <http://ex.org/time> {time} .\n" + "".join(
        f'<http://ex.org/x{number}> <http://ex.org/p> "{value}" .\n' for value in values
    )


class Piped:
    """A run over a named pipe, which gets text while the results are watched."""

    def __init__(self, folder: Path, ending: str, flush_after: int, time_predicate: str | None = None) -> None:
        self.path = folder / f"pipe.{ending}"
        os.mkfifo(self.path)
        self.rejects = folder / "rejects"
        self.found: list[str] = []
        self._came = threading.Condition()
        self.engine = Engine(flush_after=flush_after, rejects=self.rejects, report=lambda _: None)
        self.engine.register(QUERY).subscribe(self._take)
        predicates = None if time_predicate is None else {STREAM: time_predicate}
        self._thread = threading.Thread(
            target=self.engine.run, args=({STREAM: str(self.path)},), kwargs={"time_predicates": predicates}
        )
        self._thread.start()
        self._writer = self.path.open("w", buffering=1)

    def _take(self, result: object) -> None:
        with self._came:
            self.found.append(str(result.bindings["o"]))  # type: ignore[attr-defined]
            self._came.notify()

    def write(self, text: str) -> None:
        self._writer.write(text)
        self._writer.flush()

    def wait_for(self, count: int) -> list[str]:
        with self._came:
            assert self._came.wait_for(lambda: len(self.found) >= count, PATIENCE), self.found
            return list(self.found)

    def end(self) -> list[str]:
        self._writer.close()
        self._thread.join(PATIENCE)
        assert not self._thread.is_alive()
        self.engine.close()
        return self.found


Start = Callable[..., Piped]


@pytest.fixture
def piped(tmp_path: Path) -> Iterator[Start]:
    started: list[Piped] = []

    def start(ending: str = "nq", flush_after: int = 20_000, time_predicate: str | None = None) -> Piped:
        started.append(Piped(tmp_path, ending, flush_after, time_predicate))
        return started[-1]

    yield start
    for each in started:
        each.end()


def test_the_last_element_is_not_withheld(piped: Start) -> None:
    run = piped()
    run.write(graph(1, "a", "b"))
    assert run.wait_for(2) == ["a", "b"]
    run.write(graph(2, "c"))
    assert run.wait_for(3)[2:] == ["c"]
    run.write(graph(3, "d") + graph(4, "e"))
    assert run.end() == ["a", "b", "c", "d", "e"]
    assert run.engine.statistics.rejected == {}
    assert run.engine.statistics.elements == 4


def test_later_quads_of_the_graph_are_rejects(piped: Start) -> None:
    run = piped()
    run.write(graph(1, "a"))
    run.wait_for(1)
    run.write('<http://ex.org/y> <http://ex.org/p> "split" <http://ex.org/g1> .\n' + graph(2, "b"))
    run.wait_for(2)
    # A time of its own makes it another element.
    run.write(graph(2, "c"))
    assert run.end() == ["a", "b", "c"]
    assert run.engine.statistics.rejected == {(STREAM, "split element"): 1}
    (reject,) = map(json.loads, run.rejects.read_text().splitlines())
    assert (reject["reason"], reject["element"]) == (
        "split element",
        '<http://ex.org/y> <http://ex.org/p> "split" .\n',
    )


def test_only_at_the_end_of_a_line(piped: Start) -> None:
    run = piped()
    whole = graph(1, "a", "b")
    run.write(whole[:-20])
    # An element of which a line is unfinished is not told, but one before it is.
    assert not run.found
    run.write(whole[-20:] + graph(2, "c"))
    assert run.wait_for(3) == ["a", "b", "c"]
    assert run.end() == ["a", "b", "c"]
    assert run.engine.statistics.rejected == {}


def test_triples_of_one_subject(piped: Start) -> None:
    run = piped("nt", time_predicate="http://ex.org/time")
    run.write(subject(1, "a"))
    assert run.wait_for(1) == ["a"]
    run.write(subject(2, "b") + subject(3, "c"))
    assert run.wait_for(3) == ["a", "b", "c"]
    assert run.end() == ["a", "b", "c"]


def test_an_element_without_its_time_waits_for_it(piped: Start) -> None:
    run = piped("nt", time_predicate="http://ex.org/time")
    run.write(subject(1, "a"))
    run.wait_for(1)
    time, *rest = subject(2, "b").splitlines(keepends=True)
    run.write("".join(rest))
    threading.Event().wait(0.1)
    run.write(time)
    assert run.wait_for(2) == ["a", "b"]
    assert run.end() == ["a", "b"]
    assert run.engine.statistics.rejected == {}


def test_zero_waits_for_the_next_element(piped: Start) -> None:
    run = piped(flush_after=0)
    run.write(graph(1, "a") + graph(2, "b"))
    run.wait_for(1)
    threading.Event().wait(0.1)
    assert run.found == ["a"]
    assert run.end() == ["a", "b"]


@pytest.mark.parametrize("given", [-1, 0.5])
def test_a_time_that_cannot_be_is_refused(given: int) -> None:
    with pytest.raises(UsageError, match="flush_after is"):
        Engine(flush_after=given)


def row(number: int, value: str) -> str:
    return f'{number}000000,<http://ex.org/g{number}>,<http://ex.org/x>,<http://ex.org/p>,"""{value}"""\n'


def test_rows_of_a_table(piped: Start) -> None:
    run = piped("csv")
    run.write("time,graph,subject,predicate,object\n" + row(1, "1") + row(1, "2"))
    assert run.wait_for(2) == ["1", "2"]
    run.write(row(1, "3") + row(2, "4"))
    run.wait_for(3)
    assert run.end() == ["1", "2", "4"]
    assert run.engine.statistics.rejected == {(STREAM, "split element"): 1}
    (reject,) = map(json.loads, run.rejects.read_text().splitlines())
    assert reject["element"].split("\t")[-1] == '"3"'


def test_rows_between_which_nothing_comes(piped: Start) -> None:
    """Each has been flushed when the next comes: one of another time is another element."""
    run = piped("csv")
    run.write("time,subject,predicate,object\n")
    for number in range(1, 5):
        run.write(f'{number},<http://ex.org/x>,<http://ex.org/p>,"""{number}"""\n')
        run.wait_for(number)
    assert run.end() == ["1", "2", "3", "4"]
    assert run.engine.statistics.rejected == {}


SENSOR = "PREFIX : <http://ex.org/> CONSTRUCT { :x :p ?v } { }"
LINES = {
    "nq": graph(1, "a") + graph(2, "b"),
    "nt": subject(1, "a") + subject(2, "b"),
    "ndjson": '{"@id": "http://ex.org/x", "http://ex.org/time": 1, "http://ex.org/p": 1}\n',
    "csv": "time,subject,predicate,object\n" + "1,<http://ex.org/x>,<http://ex.org/p>,<http://ex.org/y>\n",
    "tsv": "time\tsubject\tpredicate\tobject\n" + "1\t<http://ex.org/x>\t<http://ex.org/p>\t<http://ex.org/y>\n",
}
MAPPED = {"ndjson": '{"v": 1, "time": 1}\n', "csv": "v,time\n1,1\n", "tsv": "v\ttime\n1\t1\n"}


@pytest.mark.parametrize(("ending", "mapped"), [*((each, False) for each in LINES), *((each, True) for each in MAPPED)])
def test_a_pipe_in_which_nothing_comes_holds_up_nobody(tmp_path: Path, ending: str, mapped: bool) -> None:
    """Its polls return, so that other sources are read and time goes on with the clock."""
    path, mapping = tmp_path / f"pipe.{ending}", tmp_path / "map.rq"
    os.mkfifo(path)
    mapping.write_text(SENSOR)
    predicate = "http://ex.org/time" if ending in ("nt", "ndjson") and not mapped else None
    opening = Opening(
        stream=STREAM,
        number=0,
        dictionary=Dictionary(),
        time_predicate=predicate,
        map=read_map(mapping) if mapped else None,
        wait=InputWait(flush_after=0.01, idle_after=0.01, interval=0.01),
    )
    writer = os.open(path, os.O_RDWR)
    try:
        source = opened(str(path), opening)
        assert len(polled(source)) == 0
        os.write(writer, (MAPPED if mapped else LINES)[ending].encode())
        elements = 0
        while not elements:
            elements += len(polled(source))
        while not source.idle:
            assert len(polled(source)) < 2
    finally:
        os.close(writer)
    source.close()


def polled(source: Source) -> ElementBatch:
    found = source.poll()
    assert found is not None
    return found
