"""`cqels run` from end to end: results on standard output only, everything else on standard error."""

from __future__ import annotations

import gzip
import json
import subprocess
import sys
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cqels_py.cli import execution
from cqels_py.cli.main import main
from cqels_py.kernels.compiler import prepare
from tests.cli.conftest import HEADER, QUERY, STREAM, Cqels, Finished, row, without_compiling
from tests.support.servers import needed_module


def results(text: str) -> list[tuple[str, str, str, str]]:
    """(time, sign, last part of ?s, ?v) of each JSON line."""
    found = []
    for line in text.splitlines():
        result = json.loads(line)
        bindings = result["bindings"]
        subject = bindings["s"]["value"].rsplit("/", 1)[-1]
        found.append((result["time"], result["sign"], subject, bindings["v"]["value"]))
    return found


def test_json_lines_are_the_default_off_a_terminal(cqels: Cqels, stream: Path) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}")
    assert finished.status == 0
    assert results(finished.out) == [
        ("1970-01-01T00:00:01Z", "+", "a", "10"),
        ("1970-01-01T00:00:02Z", "+", "b", "20"),
        ("1970-01-01T00:00:03Z", "+", "a", "30"),
    ]
    assert finished.err == ""


def test_a_changelog_has_what_ceases_to_be(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(1, "a", "10") + row(12, "b", "20"))
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={path}", "--changelog")
    assert [line[:3] for line in results(finished.out)] == [
        ("1970-01-01T00:00:01Z", "+", "a"),
        ("1970-01-01T00:00:11Z", "-", "a"),
        ("1970-01-01T00:00:12Z", "+", "b"),
    ]


def test_the_batch_size_changes_nothing(cqels: Cqels, stream: Path) -> None:
    outputs = {cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--batch", n).out for n in (1, 2, 1000)}
    assert len(outputs) == 1
    assert len(results(outputs.pop())) == 3


def test_limit_ends_the_run_after_so_many_results(cqels: Cqels, stream: Path) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--limit", 2)
    assert finished.status == 0
    assert [line[2] for line in results(finished.out)] == ["a", "b"]


def test_statistics_go_to_standard_error(cqels: Cqels, stream: Path) -> None:
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--stats")
    assert len(results(finished.out)) == 3
    counted = {line[:22].strip(): line[22:].strip() for line in finished.err.splitlines()}
    assert (counted["elements"], counted["results"], counted["late elements dropped"]) == ("3", "3", "0")


@pytest.mark.parametrize(("time", "shown"), [(4 * 10**17, "14645-06-30"), (-7 * 10**16, "-0249-10-15")])
def test_times_of_any_year_are_shown(cqels: Cqels, tmp_path: Path, time: int, shown: str) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + f"{time},,<http://ex.org/a>,<http://ex.org/v>,<http://ex.org/b>\n")
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={path}", "--stats")
    assert finished.status == 0
    assert [result[0].partition("T")[0] for result in results(finished.out)] == [shown]
    assert ["event", "time", shown] in [line.split()[:3] for line in finished.err.splitlines()]


def test_output_to_a_file(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    target = tmp_path / "out.json"
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--output", target)
    assert (finished.status, finished.out) == (0, "")
    assert len(results(target.read_text())) == 3


@pytest.mark.parametrize(
    ("name", "begin"),
    [
        ("out.json", '{"time":'),
        ("out.jsonl", '{"time":'),
        ("out.NDJSON", '{"time":'),
        ("out.csv", "time,sign,s,v\n"),
        ("out.tsv", "time\tsign\t?s\t?v\n"),
        ("out", '{"time":'),
    ],
)
def test_the_ending_of_the_output_says_its_format(
    cqels: Cqels, stream: Path, tmp_path: Path, name: str, begin: str
) -> None:
    common = ("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "-o", tmp_path / name)
    assert cqels(*common).status == 0
    assert (tmp_path / name).read_text().startswith(begin)
    assert cqels(*common, "--format", "tsv").status == 0
    assert (tmp_path / name).read_text().startswith("time\tsign")


@pytest.mark.parametrize(
    ("name", "begin"), [("out.nq", "<urn:"), ("out.ttl", "# result 0 at "), ("out.trig", "<urn:"), ("out", "<urn:")]
)
def test_the_ending_of_an_output_of_triples_says_its_format(
    cqels: Cqels, stream: Path, tmp_path: Path, name: str, begin: str
) -> None:
    text = "CONSTRUCT { ?s <http://ex.org/w> ?v } WHERE { STREAM <http://ex.org/s> [NOW] { ?s <http://ex.org/v> ?v } }"
    assert cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "-o", tmp_path / name).status == 0
    written = (tmp_path / name).read_text()
    assert written.startswith(begin)
    assert (" {\n" in written) == (name == "out.trig")


def test_graphs_in_jelly_are_read_as_a_stream_again(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    needed_module("pyjelly", "jelly")
    text = "CONSTRUCT { ?s <http://ex.org/v> ?v } WHERE { STREAM <http://ex.org/s> [NOW] { ?s <http://ex.org/v> ?v } }"
    made = tmp_path / "out.jelly"
    assert cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "-o", made).status == 0
    from_text, from_jelly = (
        cqels("run", "-q", text, "--stream", f"{STREAM}={source}", "--format", "nquads") for source in (stream, made)
    )
    assert from_jelly.out.strip()
    assert from_jelly.out == from_text.out
    anew = tmp_path / "again.jelly"
    assert cqels("run", "-q", text, "--stream", f"{STREAM}={made}", "-o", anew).status == 0
    assert anew.read_bytes() == made.read_bytes()


@pytest.mark.parametrize("format_", ["csv", "tsv"])
def test_tabular_formats_have_a_heading_and_a_line_a_result(cqels: Cqels, stream: Path, format_: str) -> None:
    lines = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--format", format_).out.splitlines()
    assert len(lines) == 4
    assert "v" in lines[0]
    assert "30" in lines[3]


def test_a_table_off_a_terminal_is_the_last_answer(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(1, "gone", "111") + row(12, "kept", "222"))
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={path}", "--format", "table")
    assert "222" in finished.out
    assert "111" not in finished.out


def test_a_construct_gives_nquads(cqels: Cqels, stream: Path) -> None:
    text = "CONSTRUCT { ?s <http://ex.org/w> ?v } WHERE { STREAM <http://ex.org/s> [NOW] { ?s <http://ex.org/v> ?v } }"
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}")
    assert finished.status == 0
    assert finished.out.count("<http://ex.org/w>") == 3
    assert finished.out.count("generatedAtTime") == 3


def test_an_ask_answers_when_its_answer_changes(cqels: Cqels, stream: Path) -> None:
    text = "ASK { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> 30 } }"
    lines = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}").out.splitlines()
    assert [json.loads(line)["boolean"] for line in lines] == [False, True]


def test_static_data_joins(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    static = tmp_path / "names.ttl"
    static.write_text('<http://ex.org/a> <http://ex.org/name> "Anna" .')
    text = (
        "SELECT ?s ?v WHERE { STREAM <http://ex.org/s> [NOW] { ?x <http://ex.org/v> ?v } ?x <http://ex.org/name> ?s }"
    )
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "--static", static)
    assert [line[2:] for line in results(finished.out)] == [("Anna", "10"), ("Anna", "30")]


def test_two_streams_are_merged_by_time(cqels: Cqels, stream: Path, tmp_path: Path) -> None:
    other = tmp_path / "other.csv"
    other.write_text(HEADER + row(1.5, "a", "7"))
    text = (
        "SELECT ?s ?v WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } "
        "STREAM <http://ex.org/t> [RANGE 10s] { ?s <http://ex.org/v> 7 } }"
    )
    finished = cqels("run", "-q", text, "--stream", f"{STREAM}={stream}", "--stream", f"http://ex.org/t={other}")
    assert [v for *_, v in results(finished.out)] == ["10", "30"]
    assert results(finished.out)[0][0].startswith("1970-01-01T00:00:01.5")


def test_standard_input_is_a_source(stream: Path) -> None:
    quads = (
        "<http://ex.org/g> <http://www.w3.org/ns/prov#generatedAtTime> "
        '"1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        '<http://ex.org/a> <http://ex.org/v> "10" <http://ex.org/g> .\n'
    )
    command = [sys.executable, "-m", "cqels_py", "run", "-q", QUERY, "--stream", f"{STREAM}=-"]
    finished = subprocess.run(command, input=quads, capture_output=True, text=True, check=True)
    assert [line[2:] for line in results(finished.stdout)] == [("a", "10")]


def test_what_is_compiled_is_said_once_where_nobody_watches(
    cqels: Cqels, stream: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    run = execution.Execution.run

    def run_compiling(job: execution.Execution) -> None:
        for _ in range(2):
            prepare._reporter.begin(120)
            prepare._reporter.add(120, 11.5)
        run(job)

    monkeypatch.setattr(execution.Execution, "run", run_compiling)
    assert main(["run", "-q", QUERY, "--stream", f"{STREAM}={stream}"]) == 0
    said = capfd.readouterr().err
    assert said.startswith("compiling kernels for this machine")
    assert len(said.splitlines()) == 1
    assert isinstance(prepare._reporter, prepare._Log)


def test_a_warning_is_given_once(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER)
    text = (
        "SELECT * WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?a <http://ex.org/v> ?b . ?c <http://ex.org/w> ?d } }"
    )
    explained = cqels("explain", "-q", text)
    assert explained.status == 0
    assert (explained.out.count("cross product"), explained.err) == (1, "")
    run = cqels("run", "-q", text, "--stream", f"{STREAM}={path}")
    assert run.err.count("cross product") == 1


MATCHED = "SELECT ?a { MATCH WITHIN 5m { EVENT ON <http://ex.org/s> { ?a ?b ?c } } }"


def test_explain_draws_automata(cqels: Cqels, monkeypatch: pytest.MonkeyPatch) -> None:
    assert cqels("explain", "-q", MATCHED, "--format", "dot").out.startswith("digraph automata {\n")
    assert cqels("explain", "-q", QUERY, "--format", "dot").out.startswith("digraph plan {\n")
    assert json.loads(cqels("explain", "-q", QUERY, "--format", "json").out)["form"] == "SELECT"
    monkeypatch.setenv("PATH", "/nowhere")
    assert cqels("explain", "-q", QUERY, "--format", "svg").out.startswith("<svg ")
    finished = cqels("explain", "-q", MATCHED, "--format", "svg")
    assert (finished.status, finished.out) == (2, "")
    assert "install graphviz" in finished.err


def test_explain_names_windows_and_streams(cqels: Cqels) -> None:
    finished = cqels("explain", "-q", QUERY)
    assert finished.status == 0
    assert STREAM in finished.out


# --- bad input: a clear error, the rest unharmed -----------------------------------------------------------------


def run_lines(cqels: Cqels, tmp_path: Path, *lines: str, options: tuple[object, ...] = ()) -> Finished:
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + "".join(lines))
    return cqels("run", "-q", QUERY, "--stream", f"{STREAM}={path}", *options)


BAD_LINES = [
    pytest.param("2000000,,<http://ex.org/a>\n", id="too few columns"),
    pytest.param('yesterday,,<http://ex.org/a>,<http://ex.org/v>,"1"\n', id="no time"),
    pytest.param(row(2, "a", "<http://ex.org/unclosed"), id="unclosed IRI"),
    pytest.param(row(2, "a", '"unclosed'), id="unclosed literal"),
    pytest.param(row(2, "a", "bare words"), id="no term"),
]


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_malformed_line_stops_the_run_and_is_named(cqels: Cqels, tmp_path: Path, bad: str) -> None:
    finished = run_lines(cqels, tmp_path, row(1, "a", "10"), bad, row(3, "a", "30"))
    assert finished.status == 1
    assert "stream.csv:3" in finished.err


@pytest.mark.parametrize("bad", BAD_LINES)
def test_a_malformed_line_is_skipped_and_counted_where_asked(cqels: Cqels, tmp_path: Path, bad: str) -> None:
    options = ("--on-error", "skip")
    finished = run_lines(cqels, tmp_path, row(1, "a", "10"), bad, row(3, "a", "30"), options=options)
    assert finished.status == 0
    assert [line[3] for line in results(finished.out)] == ["10", "30"]
    assert "stream.csv:3" in finished.err
    assert "in all, 1 malformed skipped" in finished.err


@pytest.mark.parametrize("end", ["", "\n"])
def test_a_file_that_ends_within_quotes(cqels: Cqels, tmp_path: Path, end: str) -> None:
    lines = (row(1, "a", "10"), row(2, "b", "20"), '3000000,,<http://ex.org/a>,<http://ex.org/v>,"""30' + end)
    stopped = run_lines(cqels, tmp_path, *lines)
    assert stopped.status == 1
    assert "stream.csv:4: a quoted value does not end on this line" in stopped.err
    skipped = run_lines(cqels, tmp_path, *lines, options=("--on-error", "skip"))
    assert (skipped.status, [line[3] for line in results(skipped.out)]) == (0, ["10", "20"])
    assert "in all, 1 malformed skipped" in skipped.err


def test_late_elements_are_counted_and_reported(cqels: Cqels, tmp_path: Path) -> None:
    lines = (row(1, "a", "10"), row(5, "b", "20"), row(2, "c", "30"))
    finished = run_lines(cqels, tmp_path, *lines)
    assert [line[3] for line in results(finished.out)] == ["10", "20"]
    assert "in all, 1 late element dropped" in finished.err
    waited = run_lines(cqels, tmp_path, *lines, options=("--lateness", "3s"))
    assert [line[3] for line in results(waited.out)] == ["10", "30", "20"]
    assert waited.err == ""
    of_stream = run_lines(cqels, tmp_path, *lines, options=("--lateness", "1s", "--lateness", f"{STREAM}=3s"))
    assert (of_stream.out, of_stream.err) == (waited.out, "")


def test_wrong_clocks_are_dropped_where_asked(cqels: Cqels, tmp_path: Path) -> None:
    lines = (row(1, "a", "10"), row(4_000_000_000, "b", "20"), row(2, "c", "30"))
    finished = run_lines(cqels, tmp_path, *lines, options=("--ahead", "1h"))
    assert [line[3] for line in results(finished.out)] == ["10", "30"]
    assert "in all, 1 element too far ahead dropped" in finished.err
    warned = run_lines(cqels, tmp_path, *lines)
    assert [line[3] for line in results(warned.out)] == ["10", "20"]
    assert "jumped by more than a year" in warned.err


def test_time_goes_on_to_an_instant_at_the_end(cqels: Cqels, tmp_path: Path) -> None:
    lines = (row(1, "a", "10"), row(5, "b", "20"))
    told = {}
    for until in (None, "1970-01-01T00:00:12Z", "3000000"):
        options = ("--changelog", *(() if until is None else ("--until", until)))
        finished = run_lines(cqels, tmp_path, *lines, options=options)
        assert (finished.status, finished.err) == (0, "")
        told[until] = [(line[0], line[1], line[3]) for line in results(finished.out)]
    assert told["3000000"] == told[None]
    assert told["1970-01-01T00:00:12Z"] == [*told[None], ("1970-01-01T00:00:11Z", "-", "10")]


def test_an_empty_file_has_no_results(cqels: Cqels, tmp_path: Path) -> None:
    for name in ("empty.csv", "empty.nq"):
        (tmp_path / name).write_text("")
        finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={tmp_path / name}")
        assert finished.out == ""
        assert finished.status in (0, 1)
        assert finished.status == 0 or name in finished.err


def test_a_truncated_gzip_is_a_failure_not_a_short_answer(cqels: Cqels, tmp_path: Path) -> None:
    whole = gzip.compress((HEADER + "".join(row(n, f"a{n}", str(n * 7919)) for n in range(5000))).encode())
    path = tmp_path / "stream.csv.gz"
    path.write_bytes(whole[: len(whole) // 2])
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={path}")
    assert finished.status == 1
    assert "stream.csv.gz" in finished.err


def test_a_number_with_a_million_digits_is_a_term_like_any_other(cqels: Cqels, tmp_path: Path) -> None:
    digits = "7" * 1_000_000
    finished = run_lines(cqels, tmp_path, row(1, "a", digits))
    assert finished.status == 0
    assert results(finished.out)[0][3] == digits


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="no device that is always full")
def test_a_full_disk_is_a_failure_that_says_so(stream: Path) -> None:
    command = ["run", "-q", QUERY, "--stream", f"{STREAM}={stream}"]
    full = "No space left on device\n"
    assert on_a_full_disk(*command) == f"error: cannot write standard output: {full}"
    assert on_a_full_disk(*command, "--output", "/dev/full") == f"error: cannot write /dev/full: {full}"
    assert on_a_full_disk("run", "--help") == f"error: {full}"


def on_a_full_disk(*command: str) -> str:
    """What a command that fails says if its standard output cannot be written."""
    with open("/dev/full", "wb") as full:
        finished = subprocess.run(
            [sys.executable, "-m", "cqels_py", *command], stdout=full, stderr=subprocess.PIPE, text=True
        )
    assert finished.returncode == 1
    return without_compiling(finished.stderr)


def test_nobody_reads_the_results(stream: Path, tmp_path: Path) -> None:
    long = tmp_path / "long.csv"
    long.write_text(HEADER + "".join(row(1_700_000_000 + n, f"a{n}", str(n)) for n in range(20_000)))
    command = f"'{sys.executable}' -m cqels_py run -q '{QUERY}' --stream '{STREAM}={long}' | head -n 1"
    finished = subprocess.run(
        ["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False, timeout=120
    )
    assert finished.returncode == 0
    assert len(finished.stdout.splitlines()) == 1
    assert without_compiling(finished.stderr) == ""


@pytest.mark.parametrize(("form", "needed"), [("nq", []), ("csv", ["pyarrow"]), ("parquet", ["pyarrow"])])
def test_what_a_small_query_does_not_need_is_not_imported(form: str, needed: list[str], tmp_path: Path) -> None:
    path = tmp_path / f"stream.{form}"
    if form == "nq":
        path.write_text(
            "<http://ex.org/e> <http://www.w3.org/ns/prov#generatedAtTime>"
            ' "2026-01-01T00:00:00Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
            '<http://ex.org/a> <http://ex.org/v> "10" <http://ex.org/e> .\n'
        )
    elif form == "csv":
        path.write_text(HEADER + row(1, "a", "10"))
    else:
        columns = {"subject": ["<http://ex.org/a>"], "predicate": ["<http://ex.org/v>"], "object": ['"10"']}
        pq.write_table(pa.table({"time": pa.array([1], pa.timestamp("us", tz="UTC")), **columns}), path)
    code = (
        "import sys; from cqels_py.cli.main import main; status = main(sys.argv[1:]);"
        "print(status, [name for name in ('pandas', 'pyarrow', 'pyspark', 'rich') if name in sys.modules], file=sys.stderr)"
    )
    command = [sys.executable, "-c", code, "run", "-q", QUERY, "--stream", f"{STREAM}={path}"]
    finished = subprocess.run(command, capture_output=True, text=True, check=True)
    assert len(finished.stdout.splitlines()) == 1
    # Above it may stand that kernels are compiled.
    assert finished.stderr.splitlines()[-1] == f"0 {needed}"


# --- what files are ---------------------------------------------------------------------------------------------------

NESTED = """@prefix : <http://ex.org/> .
:o1 :at 1 ; :s [ :v "a" ] . :o2 :at 2 ; :s _:shared . :o3 :at 3 . _:shared :v "b" ; :at 3 .
"""
OF_NESTED = """PREFIX : <http://ex.org/> SELECT ?o ?v WHERE {
  STREAM <http://ex.org/s> [ALL] { ?o :s ?n } STREAM <http://ex.org/s> [ALL] { ?n :v ?v }
}"""


def test_where_a_label_is_one_node_is_an_option(cqels: Cqels, tmp_path: Path) -> None:
    path = tmp_path / "stream.ttl"
    path.write_bytes(b"\xef\xbb\xbf" + NESTED.encode())
    options = [
        "-q",
        OF_NESTED,
        "--stream",
        f"{STREAM}={path}",
        "--time-predicate",
        "http://ex.org/at",
        "--format",
        "csv",
    ]
    first, second = (
        "1970-01-01T00:00:00.000001Z,+,http://ex.org/o1,a",
        "1970-01-01T00:00:00.000003Z,+,http://ex.org/o2,b",
    )
    assert cqels("run", *options).out.splitlines()[1:] == [first, second]
    assert cqels("run", *options, "--blank-nodes", "source", "--threads", "2").out.splitlines()[1:] == [first, second]
    assert cqels("run", *options, "--blank-nodes", "element").out.splitlines()[1:] == [first]
    assert "one node within its source" in cqels("explain", "-q", OF_NESTED).out
    assert "one node within its element" in cqels("explain", "-q", OF_NESTED, "--blank-nodes", "element").out


def test_a_context_by_iri_is_an_option(cqels: Cqels, tmp_path: Path) -> None:
    path, context = tmp_path / "stream.json", tmp_path / "context.jsonld"
    context.write_text('{"@context": {"@vocab": "http://ex.org/", "at": "http://www.w3.org/ns/prov#generatedAtTime"}}')
    path.write_text('{"@context": "urn:x:c", "@id": "http://ex.org/a", "at": 1, "v": 5}\n' * 2)
    options = ["-q", QUERY, "--stream", f"{STREAM}={path}"]
    refused = cqels("run", *options)
    assert (refused.status, refused.out) == (1, "")
    assert "stream.json:1: the context <urn:x:c> is named by its IRI" in refused.err
    assert "--context urn:x:c=FILE" in refused.err
    assert [each[2:] for each in results(cqels("run", *options, "--context", f"urn:x:c={context}").out)] == [
        ("a", "5")
    ] * 2
    missing = cqels("run", *options, "--context", f"urn:x:c={tmp_path}/none")
    assert (missing.status, missing.out) == (2, "")
    assert "the context <urn:x:c>: cannot read" in missing.err
    overwritten = cqels("run", *options, "--context", f"urn:x:c={context}", "-o", context)
    assert overwritten.status == 2


def test_a_plan_is_explained_without_the_static_data_that_the_query_names(cqels: Cqels, tmp_path: Path) -> None:
    text = (
        "SELECT * FROM <http://ex.org/rooms> FROM NAMED <http://ex.org/kinds> WHERE { "
        "STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } ?s <http://ex.org/in> ?room "
        "GRAPH <http://ex.org/kinds> { ?s a ?kind } }"
    )
    (tmp_path / "kinds.ttl").write_text("<http://ex.org/a> a <http://ex.org/K> .")
    explained = cqels("explain", "-q", text)
    assert explained.status == 0 and "join of" in explained.out
    assert explained.out.splitlines()[-1] == (
        "absent: static data of <http://ex.org/rooms> <http://ex.org/kinds>, taken for empty here; cqels run needs it: "
        "--static-graph http://ex.org/rooms=FILE"
    )
    given = [f"--static-graph=http://ex.org/{name}={tmp_path}/kinds.ttl" for name in ("rooms", "kinds")]
    assert "<http://ex.org/rooms>," in cqels("explain", "-q", text, given[1]).out.splitlines()[-1]
    assert "absent" not in cqels("explain", "-q", text, *given).out
    run = cqels("run", "-q", text, "--stream", f"{STREAM}={tmp_path}/none.csv")
    assert run.status == 2


def test_explain_analyze_runs_the_query_and_shows_what_operators_have_done(cqels: Cqels, stream: Path) -> None:
    given = ("explain", "--analyze", "-q", QUERY, "--stream", f"http://ex.org/s={stream}")
    expected = cqels("run", "-q", QUERY, "--stream", f"http://ex.org/s={stream}", "--format", "json")
    results = len(expected.out.splitlines())
    values = json.loads(cqels(*given, "--format", "json").out)
    assert results > 0
    assert values["operators"][0]["rows_out"] == results
    shown = cqels(*given).out
    assert "results, delivered as ISTREAM" in shown
    assert cqels(*given, "--format", "dot").out.startswith("digraph plan {")
    limited = json.loads(cqels(*given, "--limit", "1", "--format", "json").out)
    assert limited["operators"][0]["rows_out"] >= 1


@pytest.mark.parametrize(
    ("arguments", "expected"),
    [
        (("--stream", "http://ex.org/s=-"), "--stream is for --analyze"),
        (("--limit", "3"), "--limit is for --analyze"),
        (("--analyze", "--runner", "spark"), "--analyze is for the local runner"),
    ],
)
def test_options_of_analyze_that_would_do_nothing_are_refused(
    cqels: Cqels, arguments: tuple[str, ...], expected: str
) -> None:
    finished = cqels("explain", "-q", QUERY, *arguments)
    assert finished.status == 2
    assert expected in finished.err
