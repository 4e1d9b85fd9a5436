"""`cqels map` shows what a map makes of a file, and `cqels run --map` reads a file through it."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import STREAM, Cqels

QUERY = f"SELECT ?s ?v {{ STREAM <{STREAM}> [RANGE 10s] {{ ?s <http://ex.org/v> ?v }} }}"
CONSTRUCT = 'CONSTRUCT { ?s <http://ex.org/v> ?value } WHERE { BIND(IRI(CONCAT("http://ex.org/", ?name)) AS ?s) }'
VALUE = '"10"^^<http://www.w3.org/2001/XMLSchema#integer>'


@pytest.fixture
def map_file(tmp_path: Path) -> Path:
    path = tmp_path / "map.rq"
    path.write_text(CONSTRUCT)
    return path


@pytest.fixture
def rows(tmp_path: Path) -> Path:
    path = tmp_path / "rows.csv"
    path.write_text("time,name,value\n1000000,a,10\n2000000,b,\n3000000,a,30\n")
    return path


def test_elements_are_graphs_with_their_times(cqels: Cqels, map_file: Path, rows: Path) -> None:
    finished = cqels("map", rows, "--map", map_file, "--on-error", "skip", "--limit", 1)
    assert finished.status == 0
    time, opening, triple, closing = finished.out.splitlines()
    assert time.endswith('generatedAtTime> "1970-01-01T00:00:01Z"^^<http://www.w3.org/2001/XMLSchema#dateTime> .')
    assert opening.endswith("{")
    assert triple == f"  <http://ex.org/a> <http://ex.org/v> {VALUE} ."
    assert closing == "}"


def test_what_it_writes_as_n_quads_is_a_stream(cqels: Cqels, map_file: Path, rows: Path, tmp_path: Path) -> None:
    written = cqels("map", rows, "--map", map_file, "--on-error", "skip", "--format", "nquads")
    assert "?value is unbound" in written.err
    (tmp_path / "rows.nq").write_text(written.out)
    mapped = ("--map", f"{STREAM}={map_file}", "--on-error", "skip")
    through = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={rows}", *mapped)
    assert through.status == 0
    assert through.out == cqels("run", "-q", QUERY, "--stream", f"{STREAM}={tmp_path / 'rows.nq'}").out
    assert [json.loads(line)["bindings"]["v"]["value"] for line in through.out.splitlines()] == ["10", "30"]


def test_a_malformed_row_ends_it_with_its_line(cqels: Cqels, map_file: Path, rows: Path) -> None:
    finished = cqels("map", rows, "--map", map_file)
    assert finished.status == 1
    assert "rows.csv:3: the mapping makes no triple of it" in finished.err


RUN = ("run", "-q", QUERY, "--stream", f"{STREAM}={{rows}}")
BAD = {
    "no map": (("map", "{rows}", "--map", "{none}"), "none.rq"),
    "no sample": (("map", "{none}", "--map", "{map}"), "none.rq"),
    "no mapping": (("map", "{rows}", "--map", "{rows}"), "rows.csv:1:1"),
    "another stream": ((*RUN, "--map", "http://ex.org/x={map}"), "--map <http://ex.org/x>"),
    "on Spark": ((*RUN, "--map", f"{STREAM}={{map}}", "--runner", "spark"), "local runner"),
    "without a stream": ((*RUN, "--map", "{map}"), "expected IRI=FILE"),
}


@pytest.mark.parametrize("case", BAD)
def test_bad_usage(case: str, cqels: Cqels, map_file: Path, rows: Path, tmp_path: Path) -> None:
    command, expected = BAD[case]
    named = {"rows": str(rows), "map": str(map_file), "none": str(tmp_path / "none.rq")}
    arguments = command
    for name, path in named.items():
        arguments = tuple(each.replace(f"{{{name}}}", path) for each in arguments)
    finished = cqels(*arguments)
    assert finished.status == 2
    assert expected in finished.err
    assert finished.out == ""
