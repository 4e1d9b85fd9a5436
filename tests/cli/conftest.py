"""Command lines in this process, with what they print; small streams to run them over."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path

import pytest

from cqels_py.cli.main import main

STREAM = "http://ex.org/s"
QUERY = "SELECT ?s ?v WHERE { STREAM <http://ex.org/s> [RANGE 10s] { ?s <http://ex.org/v> ?v } }"
HEADER = "time,graph,subject,predicate,object\n"


@dataclass(frozen=True)
class Finished:
    """A command that has ended."""

    status: int
    out: str
    err: str


Cqels = Callable[..., Finished]


@pytest.fixture
def cqels(capfd: pytest.CaptureFixture[str]) -> Cqels:
    def run(*arguments: object) -> Finished:
        status = main([str(argument) for argument in arguments])
        captured = capfd.readouterr()
        assert "Traceback" not in captured.err
        return Finished(status, captured.out, without_compiling(captured.err))

    return run


def without_compiling(said: str) -> str:
    """What was said, whether or not this is the first use on this machine."""
    return "".join(
        line for line in said.splitlines(keepends=True) if not line.startswith("compiling kernels for this machine")
    )


def row(seconds: float, subject: str, value: str, graph: str = "") -> str:
    """A line of a .csv stream; the value is an integer's digits, or any term."""
    term = f'"{value}"^^<http://www.w3.org/2001/XMLSchema#integer>' if value.lstrip("-").isdigit() else value
    quoted = '"' + term.replace('"', '""') + '"'
    return f"{round(seconds * 1_000_000)},{graph},<http://ex.org/{subject}>,<http://ex.org/v>,{quoted}\n"


@pytest.fixture
def stream(tmp_path: Path) -> Path:
    """Three elements in three seconds."""
    path = tmp_path / "stream.csv"
    path.write_text(HEADER + row(1, "a", "10") + row(2, "b", "20") + row(3, "a", "30"))
    return path
