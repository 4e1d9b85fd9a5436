"""The sink of PostgreSQL, against a real server."""

from __future__ import annotations

import json
import logging
import shutil
from collections import Counter
from contextlib import closing
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from cqels_py.batches.results import ResultBatch
from cqels_py.dictionary import Dictionary
from cqels_py.engine.engine import Engine
from cqels_py.errors import RunError, UsageError
from cqels_py.formats.values import value_of
from cqels_py.sinks.protocol import Sink, SinkOpening
from cqels_py.sinks.urls import sink_of
from cqels_py.testing import check_sink
from tests.support.outages import away, waits_until_back
from tests.support.servers import PostgresServer

STREAM = "http://example.org/readings"
PREFIX = "PREFIX : <http://example.org/> "
BY_ROOM = (
    PREFIX + "SELECT ?room (COUNT(*) AS ?n) (MAX(?t) AS ?most) "
    "WHERE { STREAM :readings [RANGE 10s] { ?s :t ?t OPTIONAL { ?s :room ?room } } } GROUP BY ?room"
)
ALL_ROWS = PREFIX + "SELECT ?room ?t WHERE { STREAM :readings [RANGE 10s] { ?s :t ?t OPTIONAL { ?s :room ?room } } }"


@pytest.fixture
def url(postgresql: PostgresServer) -> str:
    return postgresql.emptied()


def shown(term: str | None) -> str | None:
    return None if term is None else value_of(term)


@pytest.mark.parametrize("mode", ["append", "upsert"])
def test_it_keeps_the_protocol(postgresql: PostgresServer, url: str, mode: str) -> None:
    def rows() -> list[Any]:
        if mode == "append":
            return postgresql.execute('SELECT a, b FROM "Alerts of" ORDER BY _number')
        return postgresql.execute('SELECT a, b FROM "Alerts of", generate_series(1, _count)')

    check_sink(lambda: sink_of(f"{url}#Alerts%20of?mode={mode}"), rows, shown=shown, exactly_once=True)


def push(engine: Engine, time: int, sensor: str, value: int, room: str | None) -> None:
    triples = [
        (
            f"<http://example.org/{sensor}>",
            "<http://example.org/t>",
            f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>',
        )
    ]
    if room is not None:
        triples.append((triples[0][0], "<http://example.org/room>", f'"{room}"'))
    engine.push(STREAM, triples, time=time)


EVENTS = st.lists(
    st.tuples(st.integers(0, 4_000_000), st.sampled_from("abc"), st.integers(0, 3), st.sampled_from(["r1", "r'2\\t", None])),
    min_size=1, max_size=12,
)  # fmt: skip


@given(events=EVENTS)
@settings(max_examples=12)
@pytest.mark.parametrize("text", [BY_ROOM, ALL_ROWS])
def test_the_table_equals_the_answer_after_each_element(
    postgresql: PostgresServer, text: str, events: list[Any]
) -> None:
    """The sum of the changelog is the answer, by definition; it is taken by a subscriber."""
    postgresql.execute("DROP TABLE IF EXISTS answer, _cqels_progress")
    engine = Engine()
    try:
        compare_after_each_element(postgresql, engine, text, events)
    finally:
        engine.close()


def compare_after_each_element(postgresql: PostgresServer, engine: Engine, text: str, events: list[Any]) -> None:
    query = engine.register(text, changelog=True)
    query.write_to(f"{postgresql.url}#answer?mode=upsert")
    answer: Counter[tuple[str | None, ...]] = Counter()

    def add(result: Any) -> None:
        row = tuple(str(result.bindings[name]) if name in result.bindings else None for name in query.variables)
        answer[row] += result.sign

    query.subscribe(add)
    counted = "answer" if text == BY_ROOM else "answer, generate_series(1, _count)"
    now = 1_700_000_000_000_000
    for pause, sensor, value, room in events:
        now += pause
        push(engine, now, sensor, value, room)
        found = Counter(postgresql.execute(f"SELECT {', '.join(query.variables)} FROM {counted}"))
        assert found == +answer
    engine.advance(now + 60_000_000)
    assert postgresql.execute("SELECT * FROM answer") == []


def opening(dictionary: Dictionary, **more: Any) -> SinkOpening:
    return SinkOpening(dictionary=dictionary, form="SELECT", variables=("s", "v"), **more)


def batch(dictionary: Dictionary, rows: list[tuple[str, str]], time: int = 1_000_000) -> ResultBatch:
    columns = tuple(dictionary.encode(list(column)) for column in zip(*rows, strict=True))
    return ResultBatch(("s", "v"), np.full(len(rows), time), np.ones(len(rows), np.int8), columns)


def number(value: object) -> str:
    return f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_a_table_of_ones_own_with_types(postgresql: PostgresServer, url: str) -> None:
    postgresql.execute("CREATE TABLE alerts (v numeric CHECK (v < 100), s text, _time timestamptz)")
    dictionary, reports = Dictionary(), list[RunError]()
    sink = sink_of(f"{url}#public.alerts").open(opening(dictionary, report=reports.append))
    sink.write(
        batch(dictionary, [("<http://e/a>", number(7)), ("<http://e/b>", '"seven"'), ("<http://e/c>", number(200))])
    )
    sink.flush()
    found = postgresql.execute("SELECT s, v * 2, extract(epoch FROM _time)::int FROM alerts")
    assert found == [("http://e/a", 14, 1)]
    said = [str(report).partition("refuses a row: ")[2] for report in reports]
    assert len(said) == 2
    assert said[0].startswith('invalid input syntax for type numeric: "seven"')
    assert said[1].startswith('new row for relation "alerts" violates check constraint "alerts_v_check"')
    sink.close()


def test_a_refused_row_without_anybody_to_report_it_to_is_an_error(postgresql: PostgresServer, url: str) -> None:
    dictionary = Dictionary()
    postgresql.execute("CREATE TABLE alerts (s text, v int)")
    sink = sink_of(f"{url}#alerts").open(opening(dictionary))
    sink.write(batch(dictionary, [("<http://e/a>", '"x"')]))
    with pytest.raises(RunError, match="refuses a row: invalid input syntax for type integer"):
        sink.flush()
    sink.close()


def test_a_server_that_goes_away_and_comes_back(
    postgresql: PostgresServer, url: str, caplog: pytest.LogCaptureFixture
) -> None:
    dictionary = Dictionary()
    sink = sink_of(f"{url}#alerts").open(opening(dictionary))
    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    sink.flush()
    postgresql.stop()
    sink.write(batch(dictionary, [("<http://e/b>", number(2))]))
    with caplog.at_level(logging.WARNING, "cqels_py"), waits_until_back(postgresql, sink.flush):
        pass
    sink.write(batch(dictionary, [("<http://e/c>", number(3))]))
    assert sink.commit() == 3
    assert postgresql.execute("SELECT v, _number FROM alerts ORDER BY _number") == [("1", 1), ("2", 2), ("3", 3)]
    said = [record.getMessage() for record in caplog.records]
    assert len(said) == 2
    assert "trying again for 300 s" in said[0]
    assert said[1].endswith("connected again")
    sink.close()


@pytest.mark.parametrize("lost", [False, True], ids=["connected", "connected again"])
@pytest.mark.parametrize("gone", ["DELETE FROM _cqels_progress", "DROP TABLE _cqels_progress", "DROP TABLE alerts"])
def test_a_table_or_its_number_that_is_gone_is_no_new_beginning(
    gone: str, lost: bool, postgresql: PostgresServer, url: str
) -> None:
    """A table that lacks the results of before is not written on without a word."""
    dictionary = Dictionary()
    sink = sink_of(f"{url}#alerts").open(opening(dictionary))
    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    sink.flush()
    postgresql.execute(gone)
    if lost:
        postgresql.execute("SELECT pg_terminate_backend(pid) FROM pg_stat_activity WHERE application_name = 'cqels'")
    sink.write(batch(dictionary, [("<http://e/b>", number(2))]))
    with closing(sink), pytest.raises((RunError, UsageError), match=r"does not exist|result any more, so nobody knows"):
        sink.flush()
    if gone != "DROP TABLE alerts":
        assert postgresql.execute("SELECT v FROM alerts") == [("1",)]


def test_a_server_that_stays_away(postgresql: PostgresServer, url: str) -> None:
    dictionary = Dictionary()
    sink = sink_of(f"{url}#alerts?retry=500ms").open(opening(dictionary))
    with away(postgresql), closing(sink):
        sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
        with pytest.raises(RunError, match=r"no success within 0\.5 s"):
            sink.flush()


def test_a_transaction_whose_commit_was_lost_is_not_repeated(
    postgresql: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The server commits, and the connection breaks before it can say so."""
    import psycopg

    dictionary = Dictionary()
    sink: Any = sink_of(f"{url}#alerts").open(opening(dictionary))
    transaction = sink._transaction

    def broken() -> None:
        monkeypatch.setattr(sink, "_transaction", transaction)
        held = sink._held
        transaction()
        sink._held = held
        raise psycopg.OperationalError("the connection was lost")

    sink.write(batch(dictionary, [("<http://e/a>", number(1))]))
    monkeypatch.setattr(sink, "_transaction", broken)
    calls: list[int] = []

    def again() -> None:
        calls.append(1)
        (broken if len(calls) == 1 else transaction)()

    sink._patiently(again)
    assert len(calls) == 2
    assert postgresql.execute("SELECT count(*) FROM alerts") == [(1,)]
    sink.close()


def test_a_refused_row_of_a_transaction_that_is_made_again_is_reported_once(
    postgresql: PostgresServer, url: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    import psycopg

    postgresql.execute("CREATE TABLE alerts (s text, v int)")
    dictionary, reports = Dictionary(), list[RunError]()
    sink: Any = sink_of(f"{url}#alerts").open(opening(dictionary, report=reports.append))
    tried: list[int] = []

    def note(number: int) -> None:
        tried.append(number)
        raise psycopg.OperationalError("the connection was lost")

    sink.write(batch(dictionary, [("<http://e/a>", '"x"'), ("<http://e/b>", number(2)), ("<http://e/c>", '"y"')]))
    monkeypatch.setattr(sink._table, "note", note)
    sink.flush()
    assert tried == [3]
    assert postgresql.execute("SELECT s, v FROM alerts") == [("http://e/b", 2)]
    assert [str(report).partition("the row is ")[2] for report in reports] == [
        "('http://e/a', 'x')",
        "('http://e/c', 'y')",
    ]
    sink.write(batch(dictionary, [("<http://e/d>", '"z"')]))
    sink.flush()
    assert len(reports) == 3
    sink.close()


def opened(url: str, **more: Any) -> Sink:
    return sink_of(url).open(opening(Dictionary(), **more))


def test_what_is_wrong_is_said(postgresql: PostgresServer, url: str) -> None:
    with pytest.raises(
        UsageError, match=r"names no table: put it behind the database, postgresql://127.0.0.1/postgres#alerts"
    ):
        sink_of(url)
    with pytest.raises(UsageError, match="the option mode is one of append, upsert, not 'replace'"):
        sink_of(f"{url}#t?mode=replace")
    with pytest.raises(UsageError, match='invalid connection option "moed"; the options here are mode, retry'):
        sink_of(f"{url}#t?moed=upsert")
    with pytest.raises(RunError, match='database "nowhere" does not exist'):
        opened(f"postgresql://postgres@127.0.0.1:{postgresql.port}/nowhere#t")
    postgresql.execute("CREATE TABLE narrow (s text)")
    with pytest.raises(
        UsageError, match=r'the table has no column v; it should be like CREATE TABLE "public"."narrow"'
    ):
        opened(f"{url}#narrow")
    with pytest.raises(UsageError, match="needs retractions too: register the query with changelog=True"):
        Engine().register(ALL_ROWS).write_to(f"{url}#t?mode=upsert")
    with pytest.raises(UsageError, match="a table holds the results of SELECT and ASK"):
        sink_of(f"{url}#t").open(SinkOpening(dictionary=Dictionary(), form="CONSTRUCT", variables=("s",)))


def test_rows_of_others_are_not_removed(postgresql: PostgresServer, url: str) -> None:
    postgresql.execute("CREATE TABLE mine (s text, v text, _count bigint)")
    postgresql.execute("INSERT INTO mine VALUES ('a', 'b', 1)")
    with pytest.raises(UsageError, match="the table has rows of others, and mode=upsert would remove them"):
        opened(f"{url}#mine?mode=upsert", changelog=True)
    assert postgresql.execute("SELECT s FROM mine") == [("a",)]


def test_two_runs_do_not_write_into_one_table(postgresql: PostgresServer, url: str) -> None:
    first: Any = opened(f"{url}#t?mode=upsert", changelog=True)
    with pytest.raises(RunError, match=r"another run writes into the table public\.t"):
        opened(f"{url}#t?mode=upsert", changelog=True)
    first.close()
    second: Any = opened(f"{url}#t?mode=upsert", changelog=True)
    second.close()


def test_names_are_quoted(postgresql: PostgresServer, url: str) -> None:
    """A name is a name, whatever stands in it."""
    postgresql.execute("CREATE TABLE kept (x int)")
    postgresql.execute('CREATE SCHEMA "a b"')
    name = 'x"; DROP TABLE kept; --{table}'
    from urllib.parse import quote

    sink: Any = opened(f"{url}#a%20b.{quote(name)}")
    sink.close()
    found = postgresql.execute(
        "SELECT table_schema, table_name FROM information_schema.tables WHERE table_name LIKE 'x%'"
    )
    assert found == [("a b", name)]
    assert postgresql.execute("SELECT * FROM kept") == []


def test_a_program_that_goes_on_writes_each_result_once(postgresql: PostgresServer, url: str, tmp_path: Path) -> None:
    """Without a snapshot in between, each process makes all results again."""
    for first in (0, 3, 6):
        engine = Engine(checkpoint=tmp_path / "state")
        query = engine.register(ALL_ROWS, name="rows")
        query.write_to(f"{url}#rows")
        for second in range(first, first + 3):
            push(engine, 1_000_000 * second, f"s{second}", second, "r1")
        engine.close()
    assert postgresql.execute("SELECT _number, t FROM rows ORDER BY 1") == [(n + 1, str(n)) for n in range(9)]


def prepared(postgresql: PostgresServer) -> None:
    postgresql.execute("DROP TABLE IF EXISTS rows, _cqels_progress")
    postgresql.execute("CREATE TABLE rows (_number bigint, room text, t text)")


def test_a_table_that_does_not_fit_the_checkpoint_is_refused(
    postgresql: PostgresServer, url: str, tmp_path: Path
) -> None:
    prepared(postgresql)

    def process(folder: str, *seconds: int, save: bool = False) -> None:
        engine = Engine(checkpoint=tmp_path / folder)
        try:
            engine.register(ALL_ROWS, name="rows").write_to(f"{url}#rows")
            for second in seconds:
                push(engine, 1_000_000 * second, f"s{second}", second, "r1")
            if save:
                engine.checkpoint()
        finally:
            engine.close()

    process("state", 1, 2, save=True)
    shutil.copytree(tmp_path / "state", tmp_path / "copy")
    process("state", 3)
    with pytest.raises(UsageError, match=r"results up to number 3, and the checkpoint leads to number 2 only"):
        process("copy", 4)
    postgresql.execute("UPDATE _cqels_progress SET number = 1")
    with pytest.raises(UsageError, match=r"results up to number 1 only, and the checkpoint has none before number 3"):
        process("state", 4)
    prepared(postgresql)
    with pytest.raises(UsageError, match=r"no results of this run, and the checkpoint has none before number 3"):
        process("state", 4)
    # Another run begins anew.
    process("new", 5)
    assert postgresql.execute("SELECT _number, t FROM rows") == [(1, "5")]


def test_a_refused_row_is_one_of_the_rejects(postgresql: PostgresServer, url: str, tmp_path: Path) -> None:
    postgresql.execute("CREATE TABLE rows (room text, t int CHECK (t < 3))")
    reports: list[Any] = []
    engine = Engine(rejects=tmp_path / "rejects", report=reports.append)
    engine.register(ALL_ROWS).write_to(f"{url}#rows")
    for second in range(5):
        push(engine, 1_000_000 * second, f"s{second}", second, "r1")
    engine.close()
    found = [json.loads(line) for line in (tmp_path / "rejects").read_text().splitlines()]
    assert [(each["reason"], each["number"], each["result"]) for each in found] == [
        ("refused", 4, {"room": "r1", "t": "3"}),
        ("refused", 5, {"room": "r1", "t": "4"}),
    ]
    assert engine.statistics.subscriber_errors == len(reports) == 2
