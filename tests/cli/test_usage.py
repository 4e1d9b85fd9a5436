"""Bad usage and bad queries: status 2, one message with the place and what would be right, no results."""

from __future__ import annotations

from itertools import pairwise
from pathlib import Path

import pytest

from tests.cli.conftest import QUERY, STREAM, Cqels, Finished

GOOD_WINDOW = "STREAM <http://ex.org/s> [RANGE 10s] { ?s ?p ?v }"


def assert_bad_usage(finished: Finished, *expected: str) -> None:
    assert finished.status == 2, finished
    assert finished.out == ""
    for text in expected:
        assert text in finished.err


def test_help_of_every_command(cqels: Cqels) -> None:
    for command in ("run", "explain", "demo", "bench"):
        finished = cqels(command, "--help")
        assert finished.status == 0
        assert f"cqels {command}" in finished.out or "Usage" in finished.out


def test_no_query(cqels: Cqels, stream: Path) -> None:
    assert_bad_usage(cqels("run"), "-q")
    assert_bad_usage(cqels("run", stream, "-q", QUERY), "not both")


def test_a_query_file_that_is_not_there(cqels: Cqels, tmp_path: Path) -> None:
    assert_bad_usage(cqels("run", tmp_path / "no.rq"), "no.rq", "No such file")


def test_a_query_file_that_is_no_text(cqels: Cqels, tmp_path: Path) -> None:
    (tmp_path / "binary.rq").write_bytes(b"SELECT \xff\xfe")
    assert_bad_usage(cqels("run", tmp_path / "binary.rq"), "not UTF-8", "byte 7")


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (["--frobnicate"], "--frobnicate"),
        (["--format", "xml"], "xml"),
        (["--limit", "0"], "--limit"),
        (["--lateness", "soon"], "like 5s"),
        (["--stream", "no-equals-sign"], "expected IRI=SOURCE"),
        (["--stream", f"{STREAM}=missing.nq"], "there is no file missing.nq"),
        (["--static", "missing.ttl"], "there is no file missing.ttl"),
        (["--static-graph", "http://g=missing.ttl"], "there is no file missing.ttl"),
        (["--on-error", "panic"], "panic"),
        (["--partitions", "4"], "one part"),
        (["--threads", "3"], "--threads"),
        (["--threads", "2", "--runner", "spark"], "local runner"),
        (["--threads", "2", "--stream", f"{STREAM}=-"], "reads files ahead"),
    ],
)
def test_bad_options(cqels: Cqels, arguments: list[str], expected: str) -> None:
    assert_bad_usage(cqels("run", "-q", QUERY, *arguments), expected)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT ?s WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s ex:v ?v } }", "query.rq:1"),
        ("SELECT ?s\nWHERE {\n  STREAM <http://ex.org/s> [RANGE 10 bananas] { ?s ?p ?v }\n}", "query.rq:3:"),
        ("SELECT ?s\nWHERE {\n  STREAM <http://ex.org/s> [RANGE 10s] { ?s ?p ?v }\n", "query.rq:"),
        ("SELEKT ?s WHERE { " + GOOD_WINDOW + " }", "query.rq:1:1"),
        ("", "query.rq"),
        ("# only a comment\n", "query.rq"),
    ],
)
def test_bad_queries_are_placed(cqels: Cqels, tmp_path: Path, text: str, place: str) -> None:
    path = tmp_path / "query.rq"
    path.write_text(text)
    for command in ("run", "explain"):
        assert_bad_usage(cqels(command, path), place)


def test_the_caret_stands_below_the_offending_text(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "query.rq"
    path.write_text("SELECT ?s\nWHERE {\n\t STREAM <http://ex.org/s> [RANGE 10 bananas] { ?s ?p ?v }\n}")
    lines = cqels("run", path).err.splitlines()
    source, caret = next((a, b) for a, b in pairwise(lines) if b.strip() == "^")
    column = caret.index("^") - 2
    assert source[2:].startswith("\t STREAM")
    assert "bananas" in source[2 + column - 12 :]
    assert caret[2] == "\t"


def test_a_stream_that_the_query_does_not_read(cqels: Cqels, stream: Path) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--stream", f"http://ex.org/other={stream}")
    assert_bad_usage(finished, "<http://ex.org/other>", f"it reads <{STREAM}>")


def test_a_stream_of_the_query_without_a_source(cqels: Cqels) -> None:
    assert_bad_usage(cqels("run", "-q", QUERY), f"--stream {STREAM}=SOURCE")


@pytest.mark.parametrize(
    ("text", "format_", "fitting"),
    [
        (QUERY, "nquads", "table, json, csv, tsv"),
        ("ASK { " + GOOD_WINDOW + " }", "turtle", "table, json, csv, tsv"),
        ("CONSTRUCT { ?s ?p ?v } WHERE { " + GOOD_WINDOW + " }", "csv", "nquads, turtle"),
    ],
)
def test_a_format_that_cannot_hold_the_results(
    cqels: Cqels, stream: Path, text: str, format_: str, fitting: str
) -> None:
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "--format", format_)
    assert_bad_usage(finished, f"--format {format_}", fitting)


@pytest.mark.parametrize("columns", ["(?s AS ?time)", "?v (?s AS ?sign)"])
def test_variables_that_csv_cannot_tell_from_its_own_columns(
    cqels: Cqels, stream: Path, tmp_path: Path, columns: str
) -> None:
    target = tmp_path / "out.csv"
    text = f"SELECT {columns} {{ {GOOD_WINDOW} }}"
    common = ("run", "-q", text, "--stream", f"{STREAM}={stream}", "--output", target)
    assert_bad_usage(cqels(*common, "--format", "csv"), "csv cannot hold ?", "another name")
    assert not target.exists()
    for format_ in ("tsv", "json"):
        assert cqels(*common, "--format", format_).status == 0


def test_an_output_that_cannot_be_written(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    target = tmp_path / "no-such-folder" / "out.json"
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--output", target)
    assert_bad_usage(finished, "--output", "no-such-folder")


def test_a_source_of_unknown_form(cqels: Cqels, tmp_path: Path) -> None:
    (tmp_path / "stream.docx").write_text("hello")
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={tmp_path / 'stream.docx'}")
    assert_bad_usage(finished, "stream.docx")


def test_demo_names_what_there_is(cqels: Cqels) -> None:
    assert_bad_usage(cqels("demo", "trains"), "flights, taxi")
    assert_bad_usage(cqels("demo", "taxi", "--query", "nope"), "'nope'", "three-windows")


def test_demo_list(cqels: Cqels) -> None:
    finished = cqels("demo", "--list")
    assert finished.status == 0
    assert "delay-by-carrier" in finished.out
    assert "three-windows" in finished.out
