"""Tables of databases as static data, and their refresh."""

from __future__ import annotations

import logging
import re
import sqlite3
import sys
from pathlib import Path
from typing import Any

import pytest

from cqels_py.cli.main import app
from cqels_py.engine.engine import Engine, Query
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.sources import static_tables
from cqels_py.sources.static_tables import StaticTable
from tests.sinks.test_file_databases import execute
from tests.support.live_runs import run_until
from tests.support.servers import PostgresServer, needed_module

STREAM = "http://example.org/readings"
PREFIX = "PREFIX : <http://example.org/> "
QUERY = (
    PREFIX + "SELECT ?s ?room ?floor WHERE { STREAM :readings [RANGE 60s] { ?s :t ?t } ?s :room ?room ; :floor ?floor }"
)
MAP = (
    PREFIX + "CONSTRUCT { ?s :room ?room ; :floor ?floor } "
    "WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) FILTER(?floor < 9) }"
)
ROWS = "INSERT INTO rooms VALUES ('s1', 'kit''chen \"1\"', 0), ('s2', NULL, 1), ('s3', 'attic', 10), ('s4', 'hall', 2)"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"


class Database:
    """A database with a table rooms."""

    def __init__(self, scheme: str, folder: Path, postgresql: PostgresServer | None) -> None:
        self.scheme, self._file, self._server = scheme, folder / "weather.db", postgresql
        self.map = folder / "rooms.rq"
        self.map.write_text(MAP)
        self.execute("DROP TABLE IF EXISTS rooms")
        self.execute("CREATE TABLE rooms (sensor text, room text, floor int)")

    def execute(self, statement: str) -> None:
        if self._server is None:
            execute(self.scheme, self._file, statement)
        else:
            self._server.execute(statement)

    def url(self, options: str = "", table: str = "rooms") -> str:
        before = self._server.url if self._server is not None else f"{self.scheme}:{self._file}"
        return f"{before}?map={self.map}{options}#{table}"


@pytest.fixture(params=["sqlite", "duckdb", "postgresql"])
def database(request: Any, tmp_path: Path) -> Database:
    if request.param == "duckdb":
        needed_module("duckdb", "duckdb")
    return Database(
        request.param, tmp_path, request.getfixturevalue("postgresql") if request.param == "postgresql" else None
    )


@pytest.fixture
def sqlite(tmp_path: Path) -> Database:
    return Database("sqlite", tmp_path, None)


def push(engine: Engine, time: int, *sensors: str) -> None:
    for sensor in sensors:
        engine.push(STREAM, [(f"<http://example.org/{sensor}>", "<http://example.org/t>", '"1"')], time=time)


def answers(query: Query) -> set[tuple[str, int]]:
    return {(str(result.bindings["room"]), int(result.bindings["floor"])) for result in query.results()}


def test_rows_are_triples(database: Database) -> None:
    database.execute(ROWS)
    engine = Engine()
    query = engine.register(QUERY, static=[database.url()])
    push(engine, 1, "s1", "s2", "s3", "s4")
    assert answers(query) == {('kit\'chen "1"', 0), ("hall", 2)}
    engine.close()


def test_a_graph_of_its_own(sqlite: Database) -> None:
    sqlite.execute(ROWS)
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?g ?room WHERE { STREAM :readings [RANGE 60s] { ?s :t ?t } GRAPH ?g { ?s :room ?room } }",
        static_graphs={"http://example.org/rooms": sqlite.url()},
    )
    push(engine, 1, "s4")
    assert [(str(each.bindings["g"]), str(each.bindings["room"])) for each in query.results()] == [
        ("http://example.org/rooms", "hall")
    ]
    engine.close()


def test_typed_columns(database: Database) -> None:
    """The same terms as of columns of Arrow; a column `time` is one like others."""
    kinds = {
        "sqlite": "(time text, n int, x real)",
        "duckdb": "(time timestamp, n bigint, x double, d decimal(9, 2), b boolean, day date)",
        "postgresql": "(time timestamptz, n bigint, x float8, d numeric, b boolean, day date)",
    }[database.scheme]
    database.execute("DROP TABLE IF EXISTS typed")
    database.execute(f"CREATE TABLE typed {kinds}")
    more = "" if database.scheme == "sqlite" else ", 1.50, true, '2024-02-29'"
    database.execute(f"INSERT INTO typed VALUES ('2024-05-01 12:00:00.5+00', 7, 0.5{more})")
    columns = ["time", "n", "x", *(["d", "b", "day"] if more else [])]
    triples = " ; ".join(f":{name} ?{name}" for name in columns)
    database.map.write_text(PREFIX + f"CONSTRUCT {{ :row {triples} }} WHERE {{ }}")
    engine = Engine()
    query = engine.register(
        PREFIX + "SELECT ?p ?o WHERE { STREAM :readings [RANGE 60s] { ?s :t ?t } :row ?p ?o }",
        static=database.url(table="typed"),
    )
    push(engine, 1, "s1")
    found = {str(each.bindings["p"])[-3:]: each.bindings["o"].n3() for each in query.results()}
    xsd = "^^<http://www.w3.org/2001/XMLSchema#"
    time = {
        "sqlite": '"2024-05-01 12:00:00.5+00"',
        "duckdb": f'"2024-05-01T12:00:00.5"{xsd}dateTime>',
        "postgresql": f'"2024-05-01T12:00:00.5Z"{xsd}dateTime>',
    }[database.scheme]
    expected = {"ime": time, "g/n": f'"7"{INTEGER}', "g/x": f'"0.5"{xsd}double>'}
    if more:
        expected |= {"g/d": f'"1.50"{xsd}decimal>', "g/b": f'"true"{xsd}boolean>', "day": f'"2024-02-29"{xsd}date>'}
    for name, term in found.items():
        assert term in (expected[name], expected[name].replace("1.50", "1.5")), name
    assert found.keys() == expected.keys()
    engine.close()


def test_refresh_applies_what_has_changed(database: Database, caplog: pytest.LogCaptureFixture) -> None:
    database.execute(ROWS)
    engine = Engine()
    query = engine.register(QUERY, static=[database.url("&refresh=1h")], changelog=True)
    push(engine, 1, "s1", "s2", "s4")
    assert len(answers(query)) == 2
    engine.refresh_static()
    assert list(query.results()) == []
    database.execute("UPDATE rooms SET room = 'cellar' WHERE sensor = 's2'")
    database.execute("DELETE FROM rooms WHERE sensor = 's4'")
    engine.refresh_static()
    assert {(each.sign, str(each.bindings["room"])) for each in query.results()} == {(1, "cellar"), (-1, "hall")}
    database.execute("ALTER TABLE rooms RENAME TO moved")
    with caplog.at_level(logging.WARNING, "cqels_py"):
        engine.refresh_static()
        engine.refresh_static()
    if database.scheme == "postgresql":
        database.execute("ALTER TABLE moved RENAME TO rooms")
    engine.close()


def test_a_database_that_goes_away_and_comes_back(sqlite: Database, caplog: pytest.LogCaptureFixture) -> None:
    """The former data is kept, with one warning."""
    sqlite.execute(ROWS)
    engine = Engine()
    query = engine.register(QUERY, static=sqlite.url("&refresh=1h"), changelog=True)
    push(engine, 1, "s1")
    assert len(list(query.results())) == 1
    lock = sqlite3.connect(sqlite._file, isolation_level=None)
    sqlite._file.rename(f"{sqlite._file}.away")
    with caplog.at_level(logging.WARNING, "cqels_py"):
        engine.refresh_static()
        engine.refresh_static()
        assert list(query.results()) == []
        assert caplog.text.count("static data is not refreshed, the former is kept") == 1
        Path(f"{sqlite._file}.away").rename(sqlite._file)
        lock.close()
        sqlite.execute("UPDATE rooms SET floor = 1 WHERE sensor = 's1'")
        engine.refresh_static()
    assert [(each.sign, int(each.bindings["floor"])) for each in query.results()] == [(-1, 0), (1, 1)]
    assert "static data is refreshed again" in caplog.text
    engine.close()


def test_a_run_refreshes_by_itself(sqlite: Database, tmp_path: Path) -> None:
    sqlite.execute(ROWS)
    engine = Engine()
    query = engine.register(QUERY, static=[sqlite.url("&refresh=1ms")], changelog=True)
    found: list[tuple[int, int]] = []
    query.subscribe(lambda result: found.append((result.sign, int(result.bindings["floor"]))))
    file = tmp_path / "readings.nq"
    file.write_text(
        '<g:1> <http://www.w3.org/ns/prov#generatedAtTime> "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        '<http://example.org/s1> <http://example.org/t> "1" <g:1> .\n'
    )

    def is_enough(_: object) -> bool:
        if found == [(1, 0)]:
            sqlite.execute("UPDATE rooms SET floor = 5 WHERE sensor = 's1'")
        return len(found) >= 3

    run_until(engine, {STREAM: f"tail:{file}"}, is_enough)
    assert found == [(1, 0), (-1, 0), (1, 5)]
    engine.close()


def test_a_checkpoint_has_the_data_that_was_read_last(sqlite: Database, tmp_path: Path) -> None:
    """After a restart the answer is that of then, until the table is read again."""
    sqlite.execute(ROWS)
    url = sqlite.url("&refresh=1h")
    engine = Engine(checkpoint=tmp_path / "checkpoint")
    query = engine.register(QUERY, static=[url], changelog=True)
    push(engine, 1, "s1")
    sqlite.execute("UPDATE rooms SET floor = 5 WHERE sensor = 's1'")
    engine.refresh_static()
    assert [(each.sign, int(each.bindings["floor"])) for each in query.results()] == [(1, 0), (-1, 0), (1, 5)]
    engine.close()
    sqlite.execute("UPDATE rooms SET floor = 6 WHERE sensor = 's1'")
    engine = Engine(checkpoint=tmp_path / "checkpoint")
    query = engine.register(QUERY, static=[url], changelog=True)
    list(query.results())
    engine.refresh_static()
    assert [(each.sign, int(each.bindings["floor"])) for each in query.results()] == [(-1, 5), (1, 6)]
    engine.close()


def test_on_the_command_line(sqlite: Database, tmp_path: Path) -> None:
    from click.testing import CliRunner

    sqlite.execute(ROWS)
    file = tmp_path / "readings.csv"
    file.write_text(
        'time,subject,predicate,object\n1970-01-01T00:00:01Z,<http://example.org/s4>,<http://example.org/t>,"""1"""\n'
    )
    command = ["run", "-q", QUERY, "--stream", f"{STREAM}={file}", "--static", sqlite.url(), "--format", "csv"]
    result = CliRunner().invoke(app, command)
    assert result.output == "time,sign,s,room,floor\n1970-01-01T00:00:01Z,+,http://example.org/s4,hall,2\n"
    result = CliRunner().invoke(app, [*command, "--checkpoint", str(tmp_path / "c"), "-o", str(tmp_path / "out.csv")])
    assert "cannot tell whether a table of --static has changed" in result.output
    assert result.exit_code == 1


def register(url: str, query: str = QUERY) -> Query:
    return Engine().register(query, static=[url])


def test_what_is_wrong_is_said(database: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    database.execute(ROWS)
    with pytest.raises((UsageError, RunError), match=r"there is no table (main\.)?nowhere"):
        register(database.url(table="nowhere"))
    with pytest.raises(UsageError, match=r"there is no option 'refres|invalid connection option"):
        register(database.url("&refres=1s"))
    database.map.write_text(PREFIX + "CONSTRUCT { ?s :room ?roof } WHERE { BIND(IRI(?sensor) AS ?s) }")
    with pytest.raises(UsageError, match=r"the mapping reads \?roof, and there is no such column; .*\?sensor, \?room"):
        register(database.url())
    database.map.write_text(PREFIX + "CONSTRUCT { [ :room ?room ] :of ?sensor } WHERE { }")
    with pytest.raises(UsageError, match="blank nodes of a map are new at each reading"):
        register(database.url("&refresh=1s"))
    monkeypatch.setattr(static_tables, "MOST_ROWS", 2)
    with pytest.raises(RunError, match="the table has more than 2 rows"):
        register(database.url())


def test_what_is_wrong_with_a_url_is_said(sqlite: Database, tmp_path: Path) -> None:
    for url, message in [
        (f"sqlite:{tmp_path}/no.db?map={sqlite.map}#rooms", "there is no file"),
        ("sqlite:weather.db#rooms", "map=FILE is missing, a CONSTRUCT"),
        (f"sqlite:weather.db?map={sqlite.map}", "names no table of a file: one is written like sqlite:weather.db"),
        (f"postgresql://h/d?map={sqlite.map}", "names no table: put it behind the database"),
        (f"sqlite:weather.db?map={sqlite.map}&refresh=soon#rooms", "the option refresh is a duration"),
        (f"sqlite:weather.db?map={sqlite.map}&refresh=0s#rooms", "the option refresh is a time between two readings"),
        (f"sqlite:weather.db?map={tmp_path}/no.rq#rooms", "the mapping .* cannot be read"),
    ]:
        with pytest.raises(UsageError, match=message):
            register(url)
    sqlite.execute("INSERT INTO rooms VALUES ('s1', x'00ff', 1)")
    with pytest.raises(DataError, match=re.escape("the column of ?room: a term is an rdflib term")):
        register(sqlite.url())


def test_names_are_quoted(database: Database) -> None:
    """A name is a name, whatever stands in it."""
    from urllib.parse import quote

    database.execute('CREATE TABLE "x""; DROP TABLE rooms; --" (sensor text, room text, "floor" int)')
    register(database.url(table=quote('x"; DROP TABLE rooms; --')))
    register(database.url())
    database.execute('DROP TABLE "x""; DROP TABLE rooms; --"')


def test_duckdb_reads_no_other_files(tmp_path: Path) -> None:
    """A view that reads a file, or the network, is refused."""
    duckdb = needed_module("duckdb", "duckdb")
    (tmp_path / "secret.csv").write_text("sensor,room,floor\ns1,kitchen,1\n")
    database = Database("duckdb", tmp_path, None)
    with duckdb.connect(str(tmp_path / "weather.db")) as connection:
        connection.execute(f"CREATE VIEW outside AS SELECT * FROM read_csv('{tmp_path}/secret.csv')")
    with pytest.raises(RunError, match="file system operations are disabled"):
        register(database.url(table="outside"))


def test_events_outside_of_match_keep_their_data(sqlite: Database) -> None:
    text = PREFIX + "SELECT ?v WHERE { EVENT ON :readings { ?s :t ?v } ?s :room ?room }"
    engine = Engine()
    with pytest.raises(UsageError, match="cannot be replaced: leave refresh= of its tables out"):
        engine.register(text, static=[sqlite.url("&refresh=1s")])
    assert engine.register(text, static=[sqlite.url()]) is not None


def test_data_that_rules_read_is_not_refreshed(sqlite: Database) -> None:
    engine = Engine()
    asked = engine.register_rules("P(X):-Q(X)")
    with pytest.raises(UsageError, match="rules cannot be replaced: leave refresh= of its tables out"):
        asked.state("P", static=[sqlite.url("&refresh=1s")])
    assert engine.queries == ()
    engine.refresh_static()


def test_without_the_package(sqlite: Database, monkeypatch: pytest.MonkeyPatch) -> None:
    for url, module, extra in [
        ("duckdb:x.db", "duckdb", "duckdb"),
        ("postgresql://h/d", "psycopg", "postgres"),
    ]:
        monkeypatch.setitem(sys.modules, module, None)
        with pytest.raises(CqelsError, match=rf"pip install 'cqels_py\[{extra}\]'"):
            StaticTable.of(f"{url}?map={sqlite.map}#t")
