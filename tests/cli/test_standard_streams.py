"""Standard streams that a shell has closed, and standard output that cannot be written, for commands as processes of their own."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest

from tests.cli.conftest import QUERY, STREAM, without_compiling

PROGRAM = "from cqels_py.__main__ import run; run()"


def in_shell(arguments: str, redirections: str) -> tuple[int, str, str]:
    """Status, output and messages of a command with these redirections."""
    command = f"""exec "{sys.executable}" -c '{PROGRAM}' {arguments} {redirections}"""
    finished = subprocess.run(["sh", "-c", command], capture_output=True, text=True)
    return finished.returncode, finished.stdout, without_compiling(finished.stderr)


@pytest.mark.parametrize("redirection", [">&-", ">/dev/full"])
@pytest.mark.parametrize("arguments", ["--version", "demo --list"])
def test_an_output_that_cannot_be_written_is_reported_once(arguments: str, redirection: str) -> None:
    status, _, said = in_shell(arguments, redirection)
    reason = "Bad file descriptor" if redirection == ">&-" else "No space left on device"
    assert status == 1
    assert said in (f"error: {reason}\n", f"error: cannot write standard output: {reason}\n")


def test_messages_that_nobody_can_read_are_dropped() -> None:
    assert in_shell("run nothing.rq", "2>&-") == (2, "", "")


def test_standard_input_that_is_closed_cannot_be_read() -> None:
    assert in_shell(f"run -q '{QUERY}' --stream {STREAM}=-", "<&-") == (1, "", "error: Bad file descriptor\n")


def test_a_command_whose_results_go_to_a_file_needs_no_standard_streams(stream: Path) -> None:
    output = stream.with_name("out.csv")
    status, _, _ = in_shell(f"run -q '{QUERY}' --stream {STREAM}={stream} -o {output}", "<&- >&- 2>&-")
    assert status == 0
    assert output.read_text().splitlines()[1:] == [
        "1970-01-01T00:00:01Z,+,http://ex.org/a,10",
        "1970-01-01T00:00:02Z,+,http://ex.org/b,20",
        "1970-01-01T00:00:03Z,+,http://ex.org/a,30",
    ]
