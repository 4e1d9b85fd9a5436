"""Bad usage and bad queries: status 2, one message with the place and what would be right, no results."""

from __future__ import annotations

import os
import shlex
import subprocess
import sys
from itertools import pairwise
from pathlib import Path

import click
import pytest

from cqels_py.cli.examples import EXAMPLES
from cqels_py.cli.main import app
from tests.cli.conftest import HEADER, QUERY, STREAM, Cqels, Finished, row

GOOD_WINDOW = "STREAM <http://ex.org/s> [RANGE 10s] { ?s ?p ?v }"


def assert_bad_usage(finished: Finished, *expected: str) -> None:
    assert finished.status == 2, finished
    assert finished.out == ""
    for text in expected:
        assert text in finished.err


def test_help_of_every_command(cqels: Cqels) -> None:
    for command in ("run", "explain", "demo", "bench", "compile"):
        finished = cqels(command, "--help")
        assert finished.status == 0
        assert f"cqels {command}" in finished.out or "Usage" in finished.out


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_examples_of_the_help_are_commands(name: str) -> None:
    context, command = click.Context(app, info_name="cqels"), app
    for part in name.split():
        assert isinstance(command, click.Group)
        command = command.commands[part]  # type: ignore[assignment]
    for line in EXAMPLES[name]:
        words = shlex.split(line.rpartition("| ")[2].partition(" >")[0])
        assert words[: 1 + len(name.split())] == ["cqels", *name.split()]
        # Wrong options and values are errors.
        command.make_context(name, words[1 + len(name.split()) :], parent=context)


@pytest.mark.parametrize("columns", ["40", "200"])
def test_help_fits_narrow_and_wide_terminals(columns: str) -> None:
    for name in ("run", "bench", "checkpoint"):
        shown = [
            subprocess.run(
                [sys.executable, "-m", "cqels_py", name, option], env={**os.environ, "COLUMNS": columns},
                capture_output=True, text=True, check=True,
            ).stdout
            for option in ("-h", "--help")
        ]  # fmt: skip
        assert shown[0] == shown[1]
        options = shown[0].partition("Examples:")[0]
        assert max(map(len, options.splitlines())) <= max(int(columns), 60)


def test_completion_knows_commands_and_options() -> None:
    found = subprocess.run(
        [sys.executable, "-m", "cqels_py"],
        env={**os.environ, "_CQELS_COMPLETE": "bash_complete", "COMP_WORDS": "cqels explain --form", "COMP_CWORD": "2"},
        capture_output=True, text=True, check=False,
    )  # fmt: skip
    assert found.stdout.splitlines() == ["plain,--format"]


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
        (["--lateness", "soon"], "--lateness 'soon'"),
        (["--lateness", "http://ex.org/s=soon"], "--lateness 'soon'"),
        (["--until", "soon"], "--until 'soon' is not a time; write one like 2024-05-01T12:00:00Z"),
        (["--ahead", "soon"], "--ahead 'soon'"),
        (["--runner", "spark", "--until", "5"], "--until is for the local runner"),
        (["--runner", "spark", "--ahead", "1h"], "--ahead is for the local runner"),
        (["--runner", "spark", "--clock", "wall"], "--clock wall is for the local runner"),
        (["--clock", "sun"], "sun"),
        (["--max-state", "much"], "--max-state 'much' is not a size; write one like 500MB"),
        (["--max-state", "0"], "--max-state '0' is not a size"),
        (["--runner", "spark", "--max-state", "1GB"], "--max-state is for the local runner"),
        (["--clock-delay", "soon"], "--clock-delay 'soon'"),
        (["--idle", "soon"], "--idle 'soon'"),
        (["--flush-after", "soon"], "--flush-after 'soon'"),
        (["--service-timeout", "soon"], "--service-timeout 'soon'"),
        (["--time-predicate", "not an iri"], "--time-predicate 'not an iri'"),
        (["--stream", "no-equals-sign"], "expected IRI=SOURCE"),
        (["--stream", f"{STREAM}=missing.nq"], "there is no file missing.nq"),
        (["--static", "missing.ttl"], "there is no file missing.ttl"),
        (["--static-graph", "http://g=missing.ttl"], "there is no file missing.ttl"),
        (["--on-error", "panic"], "panic"),
        (["--partitions", "4"], "one part"),
        (["--heavy", "s=<http://ex.org/a>"], "one part"),
        (["--runner", "spark", "--heavy", "s"], "expected VARIABLE=TERM"),
        (["--master", "spark://host:7077"], "--master, --remote and --state are for Spark: add --runner spark"),
        (["--state", "s3a://bucket/state"], "--master, --remote and --state are for Spark: add --runner spark"),
        (["--archives", __file__], "environment of a cluster's workers: add --runner spark"),
        (["--master", "spark://host:7077", "--archives", __file__], "is not a .tar.gz"),
        (["--runner", "spark", "--master", "spark://host:7077"], "needs --state: a folder that all workers reach"),
        (["--remote", "sc://host"], "--master, --remote and --state are for Spark: add --runner spark"),
        (["--runner", "spark", "--remote", "sc://host"], "--remote sc://host needs --state: a folder that all workers"),
        (["--runner", "spark", "--remote", "host", "--state", "s"], "--remote 'host' is no Spark Connect server"),
        (["--runner", "spark", "--remote", "sc://host", "--master", "local[2]"], "give one of them"),
        (["--threads", "3"], "--threads"),
        (["--threads", "2", "--runner", "spark"], "local runner"),
        (["--threads", "2", "--stream", f"{STREAM}=-"], "only read files ahead"),
    ],
)
def test_bad_options(cqels: Cqels, arguments: list[str], expected: str) -> None:
    assert_bad_usage(cqels("run", "-q", QUERY, *arguments), expected)


@pytest.mark.parametrize(
    ("text", "place"),
    [
        ("SELECT ?s WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s ex:v ?v } }", "query.rq:1"),
        ("SELECT ?s\nWHERE {\n  STREAM <http://ex.org/s> [RANGE 10 bananas] { ?s ?p ?v }\n}", "query.rq:3:"),
        (f"SELECT ?s WHERE {{ STREAM <http://ex.org/s> [RANGE {'7' * 5000}s] {{ ?s ?p ?v }} }}", "query.rq:1:51:"),
        ("SELECT ?s WHERE { STREAM <http://ex.org/s> [RANGE \u0661\u0660s] { ?s ?p ?v } }", "query.rq:1:51:"),
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


def test_a_lateness_of_a_stream_without_a_source(cqels: Cqels, stream: Path) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--lateness", "http://ex.org/other=5s")
    assert_bad_usage(finished, "--lateness <http://ex.org/other>: there is no --stream http://ex.org/other=SOURCE")


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


@pytest.mark.parametrize(
    ("text", "name", "expected"),
    [
        (QUERY, "out.ttl", ("turtle", "SELECT", "json, csv, tsv")),
        ("ASK { " + GOOD_WINDOW + " }", "out.nq", ("nquads", "ASK", "json, csv, tsv")),
        ("CONSTRUCT { ?s ?p ?v } WHERE { " + GOOD_WINDOW + " }", "out.csv", ("csv", "CONSTRUCT", "nquads, turtle")),
        (f"SELECT (?s AS ?time) {{ {GOOD_WINDOW} }}", "out.csv", ("csv cannot hold ?time",)),
        (QUERY, "out.parquet", ("written by URL, --output parquet:", "/out")),
        (QUERY, "out.json.gz", ("'.gz'", "not known", ".json, .jsonl", "--format of table, json")),
        ("CONSTRUCT { ?s ?p ?v } WHERE { " + GOOD_WINDOW + " }", "out.txt", ("'.txt'", ".nq, ", "nquads, turtle")),
    ],
)
def test_an_ending_whose_format_cannot_hold_the_results(
    cqels: Cqels, stream: Path, tmp_path: Path, text: str, name: str, expected: tuple[str, ...]
) -> None:
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "-o", tmp_path / name)
    assert_bad_usage(finished, *expected)
    assert not (tmp_path / name).exists()


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
    assert_bad_usage(cqels("demo", "trains"), "flights, taxi, patterns, rules")
    assert_bad_usage(cqels("demo", "taxi", "--query", "nope"), "'nope'", "three-windows")


def test_demo_list(cqels: Cqels) -> None:
    finished = cqels("demo", "--list")
    assert finished.status == 0
    assert "delay-by-carrier" in finished.out
    assert "three-windows" in finished.out


# --- files ------------------------------------------------------------------------------------------------------------


@pytest.fixture
def files(tmp_path: Path, stream: Path) -> dict[str, Path]:
    """A file of each kind that a command reads, by what names it."""
    query, static, graph = tmp_path / "query.rq", tmp_path / "names.nt", tmp_path / "graph.nt"
    query.write_text(QUERY)
    for path in (static, graph):
        path.write_text("<http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n")
    return {"the query": query, "--static": static, "--static-graph": graph, "--stream": stream}


@pytest.mark.parametrize("what", ["the query", "--static", "--static-graph", "--stream"])
@pytest.mark.parametrize("link", [False, True])
def test_an_output_that_is_also_an_input(
    cqels: Cqels, files: dict[str, Path], tmp_path: Path, what: str, link: bool
) -> None:
    before = files[what].read_text()
    output = tmp_path / "link" if link else files[what]
    if link:
        output.symlink_to(files[what])
    finished = cqels(
        "run", files["the query"], "--stream", f"{STREAM}={files['--stream']}", "--static", files["--static"],
        "--static-graph", f"http://ex.org/g={files['--static-graph']}", "-o", output,
    )  # fmt: skip
    assert_bad_usage(finished, "--output", str(output), what, "another file")
    assert files[what].read_text() == before


def test_an_output_that_is_also_standard_input(tmp_path: Path) -> None:
    path = tmp_path / "both.nq"
    path.write_text("# kept\n")
    command = [sys.executable, "-m", "cqels_py", "run", "-q", QUERY, "--stream", f"{STREAM}=-", "-o", str(path)]
    with path.open() as given:
        finished = subprocess.run(command, stdin=given, capture_output=True, text=True, check=False)
    assert finished.returncode == 2
    assert "standard input" in finished.stderr
    assert path.read_text() == "# kept\n"


def test_an_output_that_is_a_device_is_no_input(cqels: Cqels, stream: Path) -> None:
    assert cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "-o", "/dev/null").status == 0


def test_an_output_stays_as_it_is_where_an_input_cannot_be_read(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    output = tmp_path / "out.json"
    output.write_text("kept")
    unknown = tmp_path / "stream.docx"
    unknown.write_text("hello")
    closed = tmp_path / "closed.csv"
    closed.write_text("")
    closed.chmod(0)
    sources = [unknown, "carrier://broker/topic"] + ([] if os.access(closed, os.R_OK) else [closed])
    for source in sources:
        finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={source}", "-o", output)
        assert_bad_usage(finished, str(source).partition(":")[0])
        assert output.read_text() == "kept"


def test_standard_input_feeds_one_stream(cqels: Cqels) -> None:
    text = "SELECT * WHERE { STREAM <http://a> [NOW] { ?s ?p ?o } STREAM <http://b> [NOW] { ?s ?q ?r } }"
    finished = cqels("run", "-q", text, "--stream", "http://a=-", "--stream", "http://b=-")
    assert_bad_usage(finished, "standard input can feed one stream", "<http://a> and <http://b>")


@pytest.mark.parametrize("option", ["--stream", "--static"])
def test_a_folder_is_no_file(cqels: Cqels, tmp_path: Path, option: str) -> None:
    value = f"{STREAM}={tmp_path}" if option == "--stream" else tmp_path
    assert_bad_usage(cqels("run", "-q", QUERY, option, value), f"{option}: {tmp_path} is a folder, not a file")


def test_a_device_is_no_file(cqels: Cqels) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}=/dev/null")
    assert_bad_usage(finished, "--stream: /dev/null is a device", "- for standard input")


def test_a_query_file_may_begin_with_a_byte_order_mark(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    path = tmp_path / "query.rq"
    path.write_text(QUERY, encoding="utf-8-sig")
    finished = cqels("run", path, "--stream", f"{STREAM}={stream}")
    assert (finished.status, len(finished.out.splitlines())) == (0, 3)
    path.write_text("SELEKT", encoding="utf-8-sig")
    assert_bad_usage(cqels("explain", path), "query.rq:1:1:")


@pytest.mark.parametrize("text", [QUERY, QUERY.replace(" ", "\n"), QUERY + " " * 5_000])
def test_a_query_in_the_place_of_its_file(cqels: Cqels, text: str) -> None:
    assert_bad_usage(cqels("run", text), "put -q before it")


# --- signs ------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("begin", ["CONSTRUCT {} {{ ?s ?p ?v }}", "DESCRIBE {} ?s"])
@pytest.mark.parametrize(("operator", "options"), [("DSTREAM", ()), ("", ("--changelog",))])
def test_triples_have_no_sign(
    cqels: Cqels, stream: Path, tmp_path: Path, begin: str, operator: str, options: tuple[str, ...]
) -> None:
    output = tmp_path / "out.nq"
    text = f"{begin.format(operator)} WHERE {{ {GOOD_WINDOW} }}"
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "-o", output, *options)
    assert_bad_usage(finished, operator or "--changelog", begin.split()[0], "have no sign", "use SELECT")
    assert not output.exists()


@pytest.mark.parametrize(("operator", "options"), [("DSTREAM", ()), ("", ("--changelog",))])
def test_answers_of_ask_have_a_sign(cqels: Cqels, tmp_path: Path, operator: str, options: tuple[str, ...]) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(1, "a", "10") + row(12, "b", "20"))
    text = f"ASK {operator} {{ {GOOD_WINDOW} }}"
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={path}", *options)
    assert finished.status == 0
    assert '"1970-01-01T00:00:11Z","sign":"-","boolean":true' in finished.out
