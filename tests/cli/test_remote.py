"""The commands that speak to a service: what they print, their errors and exit statuses, against a real server."""

from __future__ import annotations

import io
import json
import os
import re
import subprocess
import sys
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import httpx
import pytest

from cqels_py.cli import remote, remote_output, tail
from cqels_py.cli.failures import say
from cqels_py.cli.serve import token_of
from cqels_py.cli.tail import ChangingRows, LastRows
from cqels_py.client import Client
from cqels_py.client.connection import SERVER
from tests.cli.conftest import Cqels
from tests.service.support import HOT, READINGS, reading, served

WRONG = "SELECT ?s\nWHERE [\n"


@pytest.fixture(scope="module")
def service(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("data")) as client:
        yield client


@pytest.fixture
def server(service: httpx.Client) -> str:
    """A server without queries."""
    for query in service.get("/queries").json():
        service.delete(f"/queries/{query['name']}")
    return str(service.base_url)


def test_from_submit_to_stop(cqels: Cqels, server: str, tmp_path: Path) -> None:
    query, readings = tmp_path / "hot.rq", tmp_path / "readings.nt"
    query.write_text(HOT)
    readings.write_bytes(reading("a", 31) + reading("b", 20))
    at = ("--server", server)
    sent = cqels("send", "readings", readings, "--iri", READINGS, *at)
    assert (sent.status, sent.err) == (0, "2 elements; no query reads the stream, so nothing was kept\n")
    submitted = cqels("submit", query, "--name", "hot", "--changelog", *at)
    assert (submitted.status, submitted.err) == (0, "hot runs; cqels tail hot shows its results\n")
    assert cqels("send", "readings", readings, *at).err == "2 elements\n"
    tailed = cqels("tail", "hot", "--from", "0", "--limit", "1", *at)
    [line] = tailed.out.splitlines()
    assert json.loads(line)["number"] == 1
    assert json.loads(line)["bindings"]["t"]["value"] == "31"
    shown = cqels("tail", "hot", "--from", "0", "--limit", "1", "--format", "table", *at)
    assert "31" in shown.out
    [listed] = map(json.loads, cqels("list", *at).out.splitlines())
    assert (listed["name"], listed["state"], listed["changelog"]) == ("hot", "running", True)
    assert "running" in cqels("list", "--format", "table", *at).out
    assert READINGS in cqels("list", "--streams", *at).out
    assert cqels("pause", "hot", *at).err.startswith("hot is paused")
    assert json.loads(cqels("show", "hot", *at).out)["state"] == "paused"
    shown = cqels("show", "hot", "--format", "table", *at).out
    assert "state        paused" in shown and re.search(r"created      20\d\d-\d\d-\d\d \d\d:\d\d:\d\d", shown)
    assert cqels("resume", "hot", *at).status == 0
    assert "readings" in cqels("show", "hot", "--plan", *at).out
    assert cqels("stop", "hot", *at).err == "hot is removed\n"
    gone = cqels("show", "hot", *at)
    assert (gone.status, gone.out) == (1, "")
    assert "'hot'" in gone.err


def test_a_wrong_query_is_shown_with_its_line(cqels: Cqels, server: str, tmp_path: Path) -> None:
    query = tmp_path / "hot.rq"
    query.write_text(WRONG)
    finished = cqels("submit", query, "--name", "hot", "--server", server)
    assert finished.status == 2
    assert f"error: {query}:2:7: " in finished.err
    assert "\n  WHERE [\n        ^" in finished.err


def test_wrong_elements_are_shown_with_their_line(cqels: Cqels, server: str, tmp_path: Path) -> None:
    file = tmp_path / "bad.nt"
    file.write_bytes(reading("a", 1) + b"oops\n")
    finished = cqels("send", "readings", file, "--iri", READINGS, "--server", server)
    assert (finished.status, finished.out) == (1, "")
    assert f"error: {file}:2" in finished.err


def test_a_file_of_long_ago_needs_the_clock_of_its_elements(cqels: Cqels, server: str, tmp_path: Path) -> None:
    old, query = tmp_path / "old.csv", tmp_path / "old.rq"
    old.write_text("".join(["time,subject,predicate,object\n", *(f"{at},<urn:x>,<urn:p>,<urn:o>\n" for at in (1, 2))]))
    at = ("--server", server)
    for name, clock in (("old-by-clock", ()), ("old", ("--clock", "events"))):
        query.write_text(f"SELECT ?s {{ STREAM <urn:{name}> [COUNT 2] {{ ?s <urn:p> ?o }} }}")
        assert cqels("send", name, old, "--iri", f"urn:{name}", *clock, *at).status == 0
        assert cqels("submit", query, "--name", name, *at).status == 0
        sent = cqels("send", name, old, *at)
        assert sent.status == 0
        if clock:
            assert sent.err == "2 elements\n"
        else:
            assert "2 dropped (late)" in sent.err and "--clock events" in sent.err
    assert cqels("send", "old", old, "--clock", "events", *at).status == 2


def test_a_server_that_is_not_there(cqels: Cqels) -> None:
    for command in (("list",), ("tail", "hot"), ("stop", "hot")):
        finished = cqels(*command, "--server", "http://127.0.0.1:9")
        assert finished.status == 1
        assert finished.err == (
            "error: no server answers at http://127.0.0.1:9 (is it running? `cqels serve --port 9` starts it)\n"
        )
    assert cqels("list", "--server", "nowhere").status == 2


def test_names_complete_in_the_shell(server: str, service: httpx.Client) -> None:
    service.put("/streams/readings", json={"iri": READINGS})
    service.put("/queries/hottest", content=HOT, headers={"Content-Type": "application/sparql-query"})

    def completed(*words: str) -> list[str]:
        given = {"_CQELS_COMPLETE": "bash_complete", "COMP_WORDS": " ".join(words), "COMP_CWORD": str(len(words) - 1)}
        command = [sys.executable, "-m", "cqels_py"]
        found = subprocess.run(command, env={**os.environ, **given}, capture_output=True, text=True, check=False)
        return found.stdout.splitlines()

    assert completed("cqels", "tail", "--server", server, "ho") == ["plain,hottest"]
    assert completed("cqels", "send", "--server", server, "re") == ["plain,readings"]
    assert completed("cqels", "tail", "--server", "http://127.0.0.1:9", "ho") == [""]


def test_the_table_begins_with_the_answer_and_follows_its_changes(
    server: str, service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.put("/streams/readings", json={"iri": READINGS})
    service.put("/queries/hot", json={"text": HOT, "changelog": True})
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)

    def send(sensor: str, value: float) -> None:
        service.post("/streams/readings", content=reading(sensor, value), headers={"Content-Type": "text/turtle"})

    send("a", 31)
    send("b", 55)
    with Client(server) as client:
        timer = threading.Timer(0.5, send, ("a", 77))
        timer.start()
        tail.follow(client, "hot", None, 1, "table")
        timer.join()
    rows = [line for line in out.getvalue().splitlines() if "http" in line]
    assert [[value in row for value in ("31", "55", "77")].index(True) for row in rows] == [0, 2, 1]


def test_a_text_that_replaces_the_query_has_a_table_of_its_own(
    server: str, service: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    service.put("/streams/readings", json={"iri": READINGS})
    out = io.StringIO()
    monkeypatch.setattr(sys, "stdout", out)
    monkeypatch.setattr(tail, "_CHECK_SECONDS", 0)

    def register(text: str) -> None:
        service.put("/queries/hot", json={"text": text, "changelog": True})

    def send(sensor: str, value: float) -> None:
        service.post("/streams/readings", content=reading(sensor, value), headers={"Content-Type": "text/turtle"})

    def replace() -> None:
        register(HOT.replace("30", "31"))
        send("b", 55)
        threading.Timer(0.5, send, ("c", 66)).start()

    register(HOT)
    send("a", 44)
    with Client(server) as client:
        threading.Timer(0.5, replace).start()
        tail.follow(client, "hot", None, 1, "table")
    first, _, second = out.getvalue().strip().partition("hot\n")[2].partition("hot\n")
    assert ("44" in first, "44" in second) == (True, False)
    assert "55" in second


def test_no_result_is_left_out_where_another_text_is_seen_by_a_sign_of_life(monkeypatch: pytest.MonkeyPatch) -> None:
    """Those of the new text that come between the sign of life and the figures belong to its table."""
    monkeypatch.setattr(tail, "_CHECK_SECONDS", 0)
    text = {"name": "hot", "changelog": False, "form": "SELECT", "variables": ["s"]}
    responses = iter([[[]], [[{"number": number, "time": "t", "sign": "+", "bindings": {}} for number in (3, 4)]]])
    asked: list[int | None] = []

    class Replaced:
        def show(self, name: str) -> dict[str, Any]:
            return {**text, "generation": 2, "results": 4, "first": 1}

        def tail_batches(self, name: str, start: int | None) -> Iterator[list[dict[str, Any]]]:
            asked.append(start)
            yield from next(responses)

    client: Any = Replaced()
    tail._show_table(client, {**text, "generation": 1, "results": 2, "first": 1}, None, 2)
    assert asked == [3, 3]


def test_rows_of_an_answer_and_last_rows() -> None:
    changing, last = ChangingRows(), LastRows()
    changes: list[tuple[tuple[str, ...], bool]] = [(("1",), True), (("2",), True), (("1",), True), (("2",), False)]
    for row, added in changes:
        changing.take(row, added)
        last.take(row, added)
    assert (len(changing), changing.distinct, changing.terms(None, 9)) == (2, 1, [["1"], ["1"]])
    assert (len(last), last.terms(2, 9)) == (4, [["1"], ["2"]])


def test_help_does_not_import_the_client() -> None:
    code = "import sys; from cqels_py.cli.main import main; main(['tail', '--help']); print(sorted(sys.modules))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
    assert "'click'" in found
    assert not {"'httpx'", "'rich'", "'numpy'", "'cqels_py.client'"} & set(found.replace("]", ",").split(", "))
    assert remote.SERVER == SERVER


def test_lists_and_figures_have_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    query = {"name": "hot", "text": "SELECT ?s # \x1b[2J\n{}", "failure": "\x9b2J", "streams": ["urn:[/x]"]}
    remote_output.print_list([query], ("name", "streams", "failure"), "table")
    remote_output.print_figures(query, "table")
    shown = capsys.readouterr().out
    assert "urn:[/x]" in shown and r"# \u001b[2J" in shown and r"\u009b2J" in shown
    assert not {"\x1b", "\x9b"} & set(shown)


def test_messages_have_no_escape_sequences(capsys: pytest.CaptureFixture[str]) -> None:
    say("error: line 1: \x1b]0;x\x07\n\tsecond")
    assert capsys.readouterr().err == "error: line 1: \\u001b]0;x\\u0007\n\tsecond\n"


def test_the_token_of_the_environment_has_no_spaces_around_it(monkeypatch: pytest.MonkeyPatch) -> None:
    for given, token in (("many letters\r\n", "many letters"), (" ", None), ("", None)):
        monkeypatch.setenv("CQELS_TOKEN", given)
        assert token_of(None) == token
