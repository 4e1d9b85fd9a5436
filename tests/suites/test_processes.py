"""Queries in processes of their own: outcomes and failures."""

from __future__ import annotations

import sys
from pathlib import Path

import pytest

from cqels_py.suites import child, data, processes
from cqels_py.suites.task import Task
from tests.suites.rides import RIDES


def task_for(text: str, folder: Path) -> Task:
    files = data.prepared(RIDES, 1_800, 1, folder)
    streams = {iri: str(path) for iri, path in files.streams.items()}
    return Task("1", text, "?", streams, str(files.static), files.marks, 1_800)


def test_a_query_is_measured(tmp_path: Path) -> None:
    told: list[tuple[str, int]] = []
    task = task_for(RIDES.queries()["tips-by-area"], tmp_path)
    found = processes.measured(task, lambda phase, done: told.append((phase, done)))
    assert (found.error, found.triples, found.equal) == (None, 1_800, None)
    assert found.latency_p99_us is not None
    assert {"warming up", "running", "latency"} <= {phase for phase, _ in told}
    assert ("running", 1_800) in told


def test_a_query_that_cannot_be_registered(tmp_path: Path) -> None:
    found = processes.measured(
        task_for("SELECT ?s { STREAM <http://s> [RANGE bananas] { ?s ?p ?o } }", tmp_path), print
    )
    assert "1.rq:1:38" in (found.error or "")
    assert found.seconds is None


@pytest.fixture
def scripted(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A program in the child's place: this file."""
    program = tmp_path / "program.py"

    def popen(command: list[str], **options: object) -> object:
        return original([sys.executable, str(program), *command[3:]], **options)  # type: ignore[call-overload]

    original = processes.subprocess.Popen
    monkeypatch.setattr(processes.subprocess, "Popen", popen)
    return program


MEASURED = 'print(\'{"measured": {"id": "1", "triples": 5}}\', flush=True)\n'
CHECKING = 'print(\'{"phase": "checking", "done": 5}\', flush=True)\n'


@pytest.mark.parametrize(
    ("program", "error"),
    [
        ("import sys; sys.exit('no space left')", "no space left"),
        ("import os; os.kill(os.getpid(), 9)", "the process was ended by signal 9"),
        ("raise SystemExit(3)", "the process ended with status 3"),
        ('print(\'{"error": "no such thing"}\')', "no such thing"),
    ],
)
def test_a_process_that_fails_is_an_error_of_its_query(scripted: Path, program: str, error: str) -> None:
    scripted.write_text(program)
    assert processes.measured(Task("1", "", "?", {}, ""), lambda phase, done: None).error == error


def test_measurements_are_kept_when_the_check_fails(scripted: Path) -> None:
    scripted.write_text(MEASURED + CHECKING + 'print(\'{"error": "a bad comparison"}\')')
    found = processes.measured(Task("1", "", "?", {}, "", check=True), lambda phase, done: None)
    assert (found.triples, found.error, found.check_error) == (5, None, "a bad comparison")


def test_a_check_that_never_ends_is_ended(scripted: Path) -> None:
    scripted.write_text(MEASURED + CHECKING + "import time; time.sleep(600)")
    found = processes.measured(Task("1", "", "?", {}, "", check=True), lambda phase, done: None, check_seconds=0.3)
    assert (found.triples, found.equal) == (5, None)
    assert "pyoxigraph needed more than" in (found.note or "")


def test_a_process_that_compiled_is_started_again(scripted: Path) -> None:
    scripted.write_text(f"import sys\nif sys.argv[2:] != ['{child.AGAIN}']: sys.exit({child.COMPILED})\n" + MEASURED)
    assert processes.measured(Task("1", "", "?", {}, ""), lambda phase, done: None).triples == 5
