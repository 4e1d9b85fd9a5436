"""`cqels run --rejects PATH`."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tests.cli.conftest import HEADER, QUERY, STREAM, Cqels, row


@pytest.fixture
def wrong_stream(tmp_path: Path) -> Path:
    """An element, a malformed line, and a late element."""
    path = tmp_path / "wrong.csv"
    path.write_text(HEADER + row(5, "a", "10") + "nonsense\n" + row(2, "b", "20"))
    return path


def test_late_and_malformed_elements_are_kept(cqels: Cqels, tmp_path: Path, wrong_stream: Path) -> None:
    rejects = tmp_path / "rejects.json"
    options = ("--on-error", "skip", "--rejects", rejects, "--stats")
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={wrong_stream}", *options)
    assert finished.status == 0
    malformed, late = (json.loads(line) for line in rejects.read_text().splitlines())
    assert malformed == {
        "stream": STREAM,
        "position": f"{wrong_stream}:3",
        "reason": "malformed",
        "message": "1 values where 5 are expected",
        "element": "nonsense",
    }
    integer = "http://www.w3.org/2001/XMLSchema#integer"
    assert late == {
        "stream": STREAM,
        "position": 2,
        "reason": "late",
        "time": 2_000_000,
        "element": f'<http://ex.org/b> <http://ex.org/v> "20"^^<{integer}> .\n',
    }
    assert [line.split() for line in finished.err.splitlines() if STREAM in line and "in <" in line] == [
        ["malformed", "in", f"<{STREAM}>", "1"],
        ["late", "in", f"<{STREAM}>", "1"],
    ]


@pytest.mark.parametrize("option", ["--stream", "--output"])
def test_the_file_of_rejects_is_no_other_file(cqels: Cqels, tmp_path: Path, stream: Path, option: str) -> None:
    output = tmp_path / "output.json"
    content = stream.read_text()
    rejects = stream if option == "--stream" else output
    finished = cqels("run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--output", output, "--rejects", rejects)
    assert finished.status == 2
    assert f"--rejects: {rejects} is also the file of {option}" in finished.err
    assert stream.read_text() == content


def test_spark_keeps_no_rejects(cqels: Cqels, tmp_path: Path, stream: Path) -> None:
    finished = cqels(
        "run", "-q", QUERY, "--stream", f"{STREAM}={stream}", "--runner", "spark", "--rejects", tmp_path / "rejects"
    )
    assert finished.status == 2
    assert "--rejects is for the local runner" in finished.err
