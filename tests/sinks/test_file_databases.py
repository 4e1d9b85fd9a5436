"""The sinks of SQLite and DuckDB files."""

from __future__ import annotations

import logging
import sqlite3
import sys
import threading
import time
from collections import Counter
from pathlib import Path
from typing import Any
from urllib.parse import quote

import pytest
from hypothesis import Phase, given, settings

from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import CqelsError, RunError, UsageError
from cqels_py.sinks.protocol import SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.sinks.test_postgresql import ALL_ROWS, BY_ROOM, EVENTS, batch, number, opening, push, shown
from tests.support.servers import needed_module

SCHEMES = ("sqlite", "duckdb")


@pytest.fixture(autouse=True)
def package() -> None:
    needed_module("duckdb", "duckdb")


def execute(scheme: str, file: Path, *statements: str) -> list[Any]:
    """The rows of the last statement. (Within one process, DuckDB takes one configuration for a file.)"""
    if scheme == "sqlite":
        connection: Any = sqlite3.connect(file, isolation_level=None)
    else:
        import duckdb

        connection = duckdb.connect(str(file), config={"enable_external_access": "false"})
    try:
        for statement in statements:
            found = connection.execute(statement).fetchall()
        return list(found)
    finally:
        connection.close()


def repeated(rows: list[Any]) -> list[Any]:
    return [row[:-1] for row in rows for _ in range(row[-1])]


@pytest.mark.parametrize("mode", ["append", "upsert"])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_it_keeps_the_protocol(scheme: str, mode: str, tmp_path: Path) -> None:
    file = tmp_path / "results.db"

    def rows() -> list[Any]:
        if mode == "append":
            return execute(scheme, file, 'SELECT a, b FROM "Alerts of" ORDER BY _number')
        return repeated(execute(scheme, file, 'SELECT a, b, _count FROM "Alerts of"'))

    check_sink(lambda: sink_of(f"{scheme}:{file}#Alerts%20of?mode={mode}"), rows, shown=shown, exactly_once=True)


@given(events=EVENTS)
@settings(max_examples=8, deadline=None, phases=[Phase.explicit, Phase.generate])
@pytest.mark.parametrize("text", [BY_ROOM, ALL_ROWS])
@pytest.mark.parametrize("scheme", SCHEMES)
def test_the_table_equals_the_answer_after_each_element(
    tmp_path_factory: Any, scheme: str, text: str, events: list[Any]
) -> None:
    """The sum of the changelog is the answer, by definition; it is taken by a subscriber."""
    file = tmp_path_factory.mktemp("db") / "results.db"
    engine = Engine()
    query = engine.register(text, changelog=True)
    query.write_to(f"{scheme}:{file}#answer?mode=upsert")
    answer: Counter[tuple[str | None, ...]] = Counter()

    def add(result: Any) -> None:
        row = tuple(str(result.bindings[name]) if name in result.bindings else None for name in query.variables)
        answer[row] += result.sign

    query.subscribe(add)
    now = 1_700_000_000_000_000
    columns = ", ".join(query.variables) + (", 1" if text == BY_ROOM else ", _count")
    for pause, sensor, value, room in events:
        now += pause
        push(engine, now, sensor, value, room)
        found = Counter(repeated(execute(scheme, file, f"SELECT {columns} FROM answer")))
        assert found == +answer
    engine.advance(now + 60_000_000)
    assert execute(scheme, file, "SELECT * FROM answer") == []
    engine.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_rows_that_are_refused(scheme: str, tmp_path: Path) -> None:
    """They are reported, and the others are written; of two with one key the first is."""
    file, dictionary, reports = tmp_path / "results.db", Dictionary(), list[RunError]()
    execute(scheme, file, "CREATE TABLE alerts (v INTEGER CHECK (v < 100), s TEXT PRIMARY KEY, _time TEXT)")
    sink = sink_of(f"{scheme}:{file}#alerts").open(opening(dictionary, report=reports.append))
    rows = [
        ("<http://e/a>", number(7)),
        ("<http://e/c>", number(200)),
        ("<http://e/a>", number(8)),
        ("<http://e/d>", number(9)),
    ]
    sink.write(batch(dictionary, rows))
    assert sink.commit() == 4
    sink.close()  # type: ignore[attr-defined]
    assert execute(scheme, file, "SELECT s, v * 2, substr(_time, 1, 4) FROM alerts ORDER BY s") == [
        ("http://e/a", 14, "1970"),
        ("http://e/d", 18, "1970"),
    ]
    assert len(reports) == 2
    assert all("refuses a row" in str(report) for report in reports)
    unheard = sink_of(f"{scheme}:{file}#alerts").open(opening(dictionary))
    unheard.write(batch(dictionary, rows[1:2]))
    with pytest.raises(RunError, match="refuses a row"):
        unheard.flush()
    unheard.close()  # type: ignore[attr-defined]


def test_a_file_that_another_process_writes_is_waited_for(tmp_path: Path, caplog: pytest.LogCaptureFixture) -> None:
    file, dictionary = tmp_path / "results.db", Dictionary()
    sink: Any = sink_of(f"sqlite:{file}#alerts").open(opening(dictionary))
    other = sqlite3.connect(file, isolation_level=None, check_same_thread=False)
    other.execute("BEGIN IMMEDIATE")
    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    with caplog.at_level(logging.WARNING, "cqels_py"):
        flushing = threading.Thread(target=sink.flush)
        flushing.start()
        time.sleep(0.5)
        assert flushing.is_alive()
        other.execute("ROLLBACK")
        flushing.join(30)
    assert "database is locked; trying again for 300 s" in caplog.text
    assert execute("sqlite", file, "SELECT v FROM alerts") == [("1",)]
    sink.close()
    impatient: Any = sink_of(f"sqlite:{file}#alerts?retry=100ms").open(opening(dictionary))
    other.execute("BEGIN IMMEDIATE")
    impatient.write(batch(dictionary, [("<http://e/a>", number(1))]))
    with pytest.raises(RunError, match=r"no success within 0\.1 s"):
        impatient.flush()
    other.close()
    impatient.close()


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_rows_that_could_not_be_written_are_written_later(tmp_path: Path, mode: str) -> None:
    """The program goes on after the error: the next number would say that the table has them."""
    file, dictionary = tmp_path / "results.db", Dictionary()
    sink: Any = sink_of(f"sqlite:{file}#alerts?retry=0s&mode={mode}").open(opening(dictionary))
    other = sqlite3.connect(file, isolation_level=None)
    other.execute("BEGIN IMMEDIATE")
    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    for action in (sink.flush, sink.commit):
        with pytest.raises(RunError, match=r"no success within 0 s"):
            action()
    other.execute("ROLLBACK")
    other.close()
    sink.write(batch(dictionary, [("<http://e/b>", number(2))]))
    assert sink.commit() == 2
    sink.close()
    assert execute("sqlite", file, "SELECT s, v FROM alerts ORDER BY v") == [("http://e/a", "1"), ("http://e/b", "2")]


def test_two_runs_do_not_write_into_one_table(tmp_path: Path) -> None:
    dictionary = Dictionary()
    url = f"sqlite:{tmp_path / 'results.db'}#t"
    first: Any = sink_of(url).open(opening(dictionary))
    second: Any = sink_of(url).open(opening(dictionary))
    first.write(batch(dictionary, [("<http://e/a>", number(1))]))
    with pytest.raises(RunError, match="another run writes into the table now"):
        first.flush()
    first.close()
    second.close()


@pytest.mark.parametrize("scheme", SCHEMES)
def test_names_are_quoted(scheme: str, tmp_path: Path) -> None:
    """A name is a name, whatever stands in it."""
    file, dictionary = tmp_path / "results.db", Dictionary()
    execute(scheme, file, "CREATE TABLE kept (x int)")
    name = 'x"; DROP TABLE kept; --{table}'
    sink: Any = sink_of(f"{scheme}:{file}#{quote(name)}").open(opening(dictionary))
    sink.write(batch(dictionary, [("<http://e/a>", '"\'); DROP TABLE kept; --"')]))
    sink.commit()
    sink.close()
    quoted = '"' + name.replace('"', '""') + '"'
    assert execute(scheme, file, f"SELECT s, v FROM {quoted}") == [("http://e/a", "'); DROP TABLE kept; --")]
    assert execute(scheme, file, "SELECT * FROM kept") == []


def test_a_schema_of_duckdb(tmp_path: Path) -> None:
    file, dictionary = tmp_path / "results.db", Dictionary()
    execute("duckdb", file, 'CREATE SCHEMA "a b"')
    sink: Any = sink_of(f"duckdb:{file}#a%20b.alerts?mode=upsert").open(opening(dictionary, changelog=True))
    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    sink.commit()
    sink.close()
    assert execute("duckdb", file, 'SELECT * FROM "a b".alerts') == [("http://e/a", "1", 1)]


@pytest.mark.parametrize("scheme", SCHEMES)
def test_what_is_wrong_is_said(scheme: str, tmp_path: Path) -> None:
    file = tmp_path / "results.db"
    for url, message in [
        (f"{scheme}:{file}", f"names no table: put it behind the file, {scheme}:weather.db#alerts"),
        (f"{scheme}:#t", "names no file"),
        (f"{scheme}://host/x#t", "names no file"),
        (f"{scheme}:{file}#t?mode=replace", "the option mode is one of append, upsert, not 'replace'"),
        (f"{scheme}:{file}#t?moed=upsert", "there is no option 'moed'.*did you mean mode"),
    ]:
        with pytest.raises(UsageError, match=message):
            sink_of(url)
    with pytest.raises(RunError, match=r"no.results.db"):
        sink_of(f"{scheme}:{tmp_path / 'no' / 'no.results.db'}#t").open(opening(Dictionary()))
    execute(scheme, file, "CREATE TABLE narrow (s text)")
    with pytest.raises(UsageError, match=r'the table has no column v; it should be like CREATE TABLE "narrow"'):
        sink_of(f"{scheme}:{file}#narrow").open(opening(Dictionary()))
    with pytest.raises(UsageError, match="needs retractions too: register the query with changelog=True"):
        Engine().register(ALL_ROWS).write_to(f"{scheme}:{file}#t?mode=upsert")
    with pytest.raises(UsageError, match="a table holds the results of SELECT and ASK"):
        sink_of(f"{scheme}:{file}#t").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=("s",)))
    execute(scheme, file, "CREATE TABLE mine (s text, v text, _count int)", "INSERT INTO mine VALUES ('a', 'b', 1)")
    with pytest.raises(UsageError, match="the table has rows of others, and mode=upsert would remove them"):
        sink_of(f"{scheme}:{file}#mine?mode=upsert").open(opening(Dictionary(), changelog=True))
    assert execute(scheme, file, "SELECT s FROM mine") == [("a",)]


def test_without_the_package(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "duckdb", None)
    with pytest.raises(CqelsError, match=r"needs the package duckdb: pip install 'cqels_py\[duckdb\]'"):
        sink_of("duckdb:x.db#t")
