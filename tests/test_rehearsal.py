"""A program's first use: the recorded calls of its engine suffice for another process to call the same kernels."""

from __future__ import annotations

import gc
import logging
import os
import subprocess
import sys
import tempfile
import weakref
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pytest

from cqels_py import rehearsal
from cqels_py import script as script_module
from cqels_py.batches.elements import ElementBatch
from cqels_py.engine import engine as engine_module
from cqels_py.engine.compile import compile_query
from cqels_py.engine.delivery import Delivery
from cqels_py.engine.engine import Engine
from cqels_py.engine.services import TIMEOUT
from cqels_py.formats.triples import PushedElement
from cqels_py.kernels.compiler import parallel_build as ahead
from cqels_py.script import FIRST_ROWS, MOST_BYTES, MOST_QUERIES, Pushed, Script, Sources, Table, Told, told

load_data = engine_module.load_static_data

EX = "http://ex.org/"
STREAM = EX + "s"
DECIMAL = "http://www.w3.org/2001/XMLSchema#decimal"
QUERY = (
    "PREFIX : <http://ex.org/> SELECT ?room (AVG(?v) AS ?mean) (COUNT(*) AS ?n) WHERE "
    "{ STREAM :s [RANGE 1m] { ?k :v ?v ; :in ?room } FILTER(?v > 20) } GROUP BY ?room"
)
TIMED = "PREFIX : <http://ex.org/> SELECT ?v WHERE { STREAM :s [RANGE 1m] @ :at { ?k :v ?v } }"
STATIC = "PREFIX : <http://ex.org/> SELECT ?k ?of WHERE { STREAM :s [RANGE 1m] { ?k :v ?v } ?k :of ?of }"


def element(i: int) -> list[tuple[str, str, str]]:
    subject = f"<{EX}s{i % 20}>"
    return [(subject, f"<{EX}v>", f'"{i % 40}.5"^^<{DECIMAL}>'), (subject, f"<{EX}in>", f"<{EX}r{i % 7}>")]


def table(rows: int) -> pa.Table:
    columns: dict[str, list[Any]] = {"time": [], "subject": [], "predicate": [], "object": []}
    for i in range(rows):
        for triple in element(i):
            for name, value in zip(columns, (i * 1_000_000, *triple), strict=True):
                columns[name].append(value)
    return pa.table(columns)


@pytest.fixture
def readings(tmp_path: Path) -> Path:
    path = tmp_path / "readings.csv"
    lines = ["time,graph,subject,predicate,object"]
    for i in range(3_000):
        for s, p, o in element(i):
            term = o.replace('"', '""')
            lines.append(f'{i * 1_000_000},<{EX}g{i}>,{s},{p},"{term}"')
    path.write_text("\n".join(lines) + "\n")
    assert path.stat().st_size > 2 * MOST_BYTES
    return path


def push(engine: Engine, readings: str) -> None:
    for i in range(300):
        engine.push(STREAM, element(i), time=i * 1_000_000)


def push_batch(engine: Engine, readings: str) -> None:
    engine.push_batch(STREAM, table(2_000))


def push_reader(engine: Engine, readings: str) -> None:
    engine.push_batch(STREAM, table(2_000).to_reader())


def run_reader(engine: Engine, readings: str) -> None:
    engine.run({STREAM: table(2_000).to_reader()})


def run(engine: Engine, readings: str) -> None:
    engine.run({STREAM: readings})


def beyond_the_rehearsal(program: Callable[[Engine, str], None], readings: str) -> list[str]:
    """Run a program after everything that its rehearsal calls has been compiled or loaded; returns what it still had to
    load.
    """
    import json

    from cqels_py.kernels.compiler import build_worker as worker
    from tests.cli.test_rehearsal import _listen_only
    from tests.test_compilation import _kernels

    calls: list[dict[str, Any]] = []
    _listen_only(ahead, calls)
    occasions: list[Any] = []
    loaded: set[str] = set()
    beyond: set[str] = set()

    def there() -> set[str]:
        return {f"{name}{signature}" for name, kernel in _kernels() for signature in kernel.signatures}  # type: ignore[attr-defined]

    def missing() -> None:
        """As if each kernel were in no file."""
        if len(occasions) < 2 and [engine._script.input] != occasions:
            occasions.append(engine._script.input)
            before = len(calls)
            if before > 0:
                beyond.update(there() - loaded)
            loaded.update(there())
            ahead.compile_all((rehearsal.__name__,), 1, engine._script.as_bytes() or b"")
            for call in calls[before:]:
                worker.compile_call(json.dumps(call))
            loaded.update(there())

    from cqels_py.kernels.compiler.cache_files import KernelFiles

    load = KernelFiles.load
    KernelFiles.load = lambda self, key: (missing(), load(self, key))[1]  # type: ignore[method-assign]
    engine = Engine()
    query = engine.register(QUERY)
    program(engine, readings)
    assert len(list(query.results())) > 100
    assert occasions[0] is None and len(calls) > 5
    return sorted(beyond | (there() - loaded))


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
@pytest.mark.parametrize("program", ["push", "push_batch", "push_reader", "run", "run_reader"])
def test_a_rehearsal_foretells_all_kernels_of_a_program(program: str, readings: Path) -> None:
    # In a process of its own, where nothing has been loaded.
    code = f"from tests import test_rehearsal as t; print(t.beyond_the_rehearsal(t.{program}, {str(readings)!r}))"
    finished = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert finished.stdout.strip() == "[]", finished.stdout + finished.stderr


@pytest.fixture
def expected(monkeypatch: pytest.MonkeyPatch) -> ahead._Expected:
    """As in a new process with four cores."""
    fresh = ahead._Expected()
    monkeypatch.setattr(ahead, "_EXPECTED", fresh)
    monkeypatch.setattr(ahead, "_cores", lambda: 4)
    engine_module._announce.cache_clear()
    return fresh


@pytest.fixture
def compiled(expected: ahead._Expected, monkeypatch: pytest.MonkeyPatch) -> list[tuple[Any, bytes]]:
    asked: list[tuple[Any, bytes]] = []

    def compile_all(rehearsal: Any, workers: int, first_input: bytes) -> set[str]:
        asked.append((rehearsal, first_input))
        return set()

    monkeypatch.setattr(ahead, "compile_all", compile_all)
    monkeypatch.setattr(engine_module, "prepare", lambda calls, on_start: 0)
    return asked


def missing_three_times(engine: Engine) -> list[bool]:
    """The reaction to three missing kernels while an element is processed."""
    done: list[bool] = []
    process = engine._process

    def look(batch: ElementBatch) -> None:
        done.extend(ahead.something_is_missing() for _ in range(3))
        process(batch)

    engine._process = look  # type: ignore[method-assign]
    engine.push(STREAM, element(0), time=7)
    return done


def test_queries_are_rehearsed_when_one_is_registered_and_once_more_with_data(
    compiled: list[tuple[Any, bytes]], caplog: pytest.LogCaptureFixture, monkeypatch: pytest.MonkeyPatch
) -> None:
    load: list[bool] = []
    monkeypatch.setattr(
        engine_module,
        "load_static_data",
        lambda *given: (load.append(ahead.something_is_missing()), load_data(*given))[1],
    )
    with caplog.at_level(logging.WARNING, "cqels_py"):
        engine = Engine(lateness=5)
        engine.register(QUERY)
        assert load == [True]
        assert missing_three_times(engine) == [True, False, False]
        # Further kernels of other queries are compiled by the process itself.
        Engine().register(QUERY)
        assert load == [True, False]
    assert [record.message for record in caplog.records] == [engine_module._COMPILING]
    assert [module for module, _ in compiled] == [("cqels_py.rehearsal",)] * 2
    first, second = (told(text) for _, text in compiled)
    options = {"lateness": 5, "batch": None, "service_timeout": TIMEOUT, "blank_nodes": "source", "contexts": {}}
    assert first.options == second.options == options
    assert [query["text"].text for query in (*first.queries, *second.queries)] == [QUERY] * 2
    assert first.input == Pushed([])
    assert second.input == Pushed([(STREAM, [part.encode() for triple in element(0) for part in triple], 7, None)])


def test_an_engine_within_a_rehearsing_command_does_not_rehearse(compiled: list[tuple[Any, bytes]]) -> None:
    with ahead.rehearsing(None):
        engine = Engine()
        engine.register(QUERY)
        assert missing_three_times(engine) == [False] * 3
    assert not ahead.something_is_missing()
    assert compiled == []


@pytest.mark.parametrize("executable", ["", "/usr/bin/uwsgi"])
def test_a_program_that_is_no_python_is_not_started_again(
    executable: str, compiled: list[tuple[Any, bytes]], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(sys, "executable", executable)
    engine = Engine()
    engine.register(QUERY)
    assert missing_three_times(engine) == [False] * 3
    assert compiled == []


def script(text: str = QUERY, static: Any = (), **more: Any) -> Script:
    made = Script({})
    made.registering(compile_query(text), static, None, entailment=None)
    made.registered(1)
    for name, value in more.items():
        setattr(made, name, value)
    return made


def test_without_a_query_there_is_nothing_to_rehearse() -> None:
    assert Script({}, input=Table(STREAM, table(1))).as_bytes() is None


def test_nothing_is_rehearsed_before_standard_input_has_begun(monkeypatch: pytest.MonkeyPatch) -> None:
    come: list[bytes | None] = [None, b"<a> <b> <c> .\n"]
    monkeypatch.setattr(script_module, "_first_of_standard_input", lambda: come.pop(0))
    reading = script(input=Sources({STREAM: "-"}, {}))
    assert reading.as_bytes() is None
    assert heard(reading).input == Sources({STREAM: b"<a> <b> <c> .\n"}, {})


def test_of_static_data_the_first_lines_are_kept(tmp_path: Path) -> None:
    line = b"<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n"
    triples = iter([("<http://ex.org/a>", "<http://ex.org/b>", "<http://ex.org/c>")])
    several, alone = heard(script(static=[line * 10_000, tmp_path, triples])), heard(script(static=line))
    first, file, nothing = several.queries[0]["static"]
    assert len(line) <= len(first) <= MOST_BYTES
    assert first == line * (len(first) // len(line))
    assert (file, nothing) == (str(tmp_path), b"")
    assert alone.queries[0]["static"] == [line]
    assert len(list(triples)) == 1


def heard(script: Script) -> Told:
    text = script.as_bytes()
    assert text is not None
    return told(text)


def test_queries_that_cannot_be_pickled_are_not_rehearsed() -> None:
    assert script(options={"report": lambda error: None}, input=Table(STREAM, table(1))).as_bytes() is None


def test_of_tables_and_queries_only_the_first_are_rehearsed() -> None:
    many, compiled = script(input=Table(STREAM, table(1_000))), compile_query(QUERY)
    for i in range(100):
        many.registering(compiled, (), None)
        many.registered(i)
    found = heard(many)
    assert isinstance(found.input, Table)
    assert found.input.rows == table(1_000).slice(0, FIRST_ROWS)
    assert len(found.queries) == MOST_QUERIES


def test_a_reader_is_left_to_the_program() -> None:
    reader = table(10).to_reader()
    assert heard(script(input=Table(STREAM, reader))).input == Table(STREAM, None)
    found = heard(script(input=Sources({STREAM: reader, EX + "t": table(3), EX + "u": Path("/a.nq")}, {}))).input
    assert isinstance(found, Sources)
    assert found.sources == {STREAM: None, EX + "t": table(3), EX + "u": "/a.nq"}
    assert reader.read_all() == table(10)


def test_an_engine_keeps_no_input_longer_than_it_works_on_it(readings: Path) -> None:
    engine = Engine()
    query = engine.register(QUERY)
    engine.push_batch(STREAM, table(10))
    assert engine._script.input is None
    engine.push(STREAM, element(0), time=10_000_000)
    assert engine._script.input is None
    engine.unregister(query)
    assert engine._script.queries == {}


def test_an_engine_that_is_given_up_is_gone(expected: ahead._Expected) -> None:
    engine = Engine()
    engine.register(QUERY)
    engine.push(STREAM, element(0), time=7)
    assert expected.rehearsal is not None
    gone = weakref.ref(engine), weakref.ref(next(iter(engine._queries)))
    del engine
    gc.collect()
    assert [each() for each in gone] == [None, None]


@pytest.mark.parametrize(
    ("text", "time", "results"),
    [(QUERY, 5, 3), (TIMED, None, 4), (STATIC, 5, 1), (QUERY.replace("WHERE", f"FROM <{EX}g> WHERE"), 5, 0)],
    ids=["times", "time predicate", "static", "data missing"],
)
def test_a_rehearsal_repeats_the_registered_queries_and_more(
    text: str, time: int | None, results: int, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The room of the pushed reading is too cold for a result; that of a generated reading is warm, and twice more with others."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    file = tmp_path / "static.nt"
    file.write_text(f"<{EX}s0> <{EX}of> <{EX}maker> .\n")
    made = script(text, [file] if text == STATIC else (), input=[PushedElement(STREAM, 0, time, None, texts_of(0))])
    delivered: list[int] = []
    monkeypatch.setattr(Delivery, "deliver", lambda self, batch: delivered.append(len(batch)))
    rehearsal.rehearse(heard(made))
    assert sum(delivered) == results
    assert list(tmp_path.iterdir()) == [file]


def texts_of(i: int) -> list[bytes]:
    date = '"2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime>'
    return [part.encode() for triple in [*element(i), (f"<{EX}s{i % 20}>", f"<{EX}at>", date)] for part in triple]
