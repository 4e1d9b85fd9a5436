"""The template of connectors, found by its entry points as an installed package would be, and checked as authors check theirs."""

from __future__ import annotations

import re
import sqlite3
import sys
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import cqels_py as cqels
from cqels_py.cli.main import app
from cqels_py.connections import schemes
from cqels_py.connections.location import Location
from cqels_py.sinks.urls import sink_of
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_sink, check_source
from tests.support.live_runs import run_committed

TEMPLATE = Path(__file__).parents[2] / "examples" / "mailbox"
STREAM = "http://example.org/readings"
QUERY = "SELECT ?s ?v WHERE { STREAM <http://example.org/readings> [RANGE 10s] { ?s <http://example.org/v> ?v } }"
ELEMENTS = [(1_000_000 * n, [(f"<http://example.org/s{n}>", "<http://example.org/v>", f'"{n}"')]) for n in range(1, 6)]


@pytest.fixture(autouse=True)
def installed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """The template as an installed package: its module, and its entry points in a .dist-info folder."""
    points = tomllib.loads((TEMPLATE / "pyproject.toml").read_text())["project"]["entry-points"]
    folder = tmp_path / "site" / "cqels_mailbox-0.1.0.dist-info"
    folder.mkdir(parents=True)
    points["cqels_py.sources"]["broken"] = "cqels_no_such_module:source"
    groups = [
        f"[{group}]\n" + "".join(f"{name} = {at}\n" for name, at in named.items()) for group, named in points.items()
    ]
    (folder / "entry_points.txt").write_text("\n".join(groups))
    (folder / "METADATA").write_text("Metadata-Version: 2.1\nName: cqels-mailbox\nVersion: 0.1.0\n")
    monkeypatch.setattr(sys, "path", [str(tmp_path / "site"), str(TEMPLATE), *sys.path])
    schemes._found.cache_clear()
    yield
    schemes._found.cache_clear()


def filled(file: Path, elements: list[Any] = ELEMENTS, wrong: bool = False) -> Path:
    database = sqlite3.connect(file)
    database.execute("CREATE TABLE inbox (number INTEGER PRIMARY KEY, time, body)")
    for time, triples in elements:
        body = "\n".join(f"{' '.join(triple)} ." for triple in triples)
        database.execute("INSERT INTO inbox (time, body) VALUES (?, ?)", (time, body))
        if wrong and time == 2_000_000:
            database.execute("INSERT INTO inbox (time, body) VALUES (3, 'nonsense')")
    database.commit()
    database.close()
    return file


def test_the_source_keeps_the_protocol(tmp_path: Path) -> None:
    file = filled(tmp_path / "mail.db")
    check_source(lambda: source_of(f"mailbox:{file}"), ELEMENTS, resumes=True)


def test_the_source_tells_malformed_input(tmp_path: Path) -> None:
    right, wrong = filled(tmp_path / "right.db"), filled(tmp_path / "wrong.db", wrong=True)
    check_source(lambda: source_of(f"mailbox:{right}"), ELEMENTS, malformed=lambda: source_of(f"mailbox:{wrong}"))


def test_the_sink_keeps_the_protocol(tmp_path: Path) -> None:
    file = tmp_path / "mail.db"

    def rows() -> list[tuple[Any, Any]]:
        return sqlite3.connect(file).execute("SELECT a, b FROM outbox ORDER BY rowid").fetchall()

    check_sink(lambda: sink_of(f"mailbox:{file}"), rows, exactly_once=True)


def test_in_a_program(tmp_path: Path) -> None:
    file = filled(tmp_path / "mail.db")

    engine = cqels.Engine()
    query = engine.register(QUERY)
    query.write_to(f"mailbox:{file}?table=out")
    run_committed(engine, {STREAM: f"mailbox:{file}"}, len(ELEMENTS))
    engine.close()
    found = sqlite3.connect(file).execute("SELECT s, v FROM out").fetchall()
    assert found == [(f"<http://example.org/s{n}>", f'"{n}"') for n in range(1, 6)]


def test_on_the_command_line(tmp_path: Path, cqels_command: Any) -> None:
    file = filled(tmp_path / "mail.db")
    cqels_command("run", "-q", QUERY, "--stream", f"{STREAM}=mailbox:{file}", "-o", f"mailbox:{file}", "--limit", "5")
    assert sqlite3.connect(file).execute("SELECT count(*) FROM outbox").fetchone() == (5,)


@pytest.fixture
def cqels_command() -> Any:
    from click.testing import CliRunner

    def run(*arguments: str, status: int = 0) -> str:
        result = CliRunner().invoke(app, list(arguments))
        assert result.exit_code == status, result.output
        return result.output

    return run


@pytest.mark.parametrize(
    ("url", "message"),
    [
        ("mailbx:x.db", r"there is no file mailbx:x.db"),
        ("mailbx://x.db", r"no connector for mailbx:// as a source.*did you mean mailbox"),
        ("sqlite:x.db#rooms", r"sqlite:x.db#rooms is no source: a table is static data"),
        ("mailbox:x.db?tabel=a", r"there is no option 'tabel'; there are table; did you mean table"),
        ("mailbox:x.db?table=a&table=b", r"the option 'table' is given twice"),
        ("mailbox:${NO_SUCH_VARIABLE}", r"the environment has no variable NO_SUCH_VARIABLE"),
        ("mailbox://host:0/x", r"the port is an integer from 1 to 65535"),
        ("broken:x", r"its connector, of the package cqels-mailbox, cannot be loaded: No module named"),
    ],
)
def test_what_is_wrong_is_said(url: str, message: str, cqels_command: Any) -> None:
    output = cqels_command("run", "-q", QUERY, "--stream", f"{STREAM}={url}", status=1)
    assert re.search(message, output), output


def test_passwords_are_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("SECRET", "hidden")
    location = Location.of("x-y://me:open@[::1]:5/a%20b/#?k=v&password=pw")
    assert (location.user, location.password, location.host, location.port) == ("me", "open", "::1", 5)
    assert (location.path, location.fragment, location.options.text("k")) == ("a b/", "", "v")
    assert location.shown == "x-y://me:…@[::1]:5/a%20b/#?k=v&password=…"
    assert Location.of("x-y://me:${SECRET}@h/d#t").password == "hidden"
    assert Location.of("x-y://h/d?k=v#t").fragment == "t"
