"""Commands that are ended by a signal, as processes of their own."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import IO

import pytest

from tests.cli.conftest import HEADER, STREAM, row, without_compiling

COUNTS = f"SELECT (COUNT(*) AS ?n) WHERE {{ STREAM <{STREAM}> [RANGE 10s STEP 10s] {{ ?s <http://ex.org/v> ?v }} }}"
PROGRAM = "from cqels_py.__main__ import run; run()"
SAID = {"SIGINT": "interrupted", "SIGTERM": "terminated", "SIGHUP": "ended: the terminal was closed (SIGHUP)"}
STATUS = {"SIGINT": 130, "SIGTERM": 143, "SIGHUP": 129}


def test_an_interrupt_while_the_command_line_is_imported_ends_the_process_silently() -> None:
    program = """if True:
        import builtins, signal
        signal.signal(signal.SIGINT, signal.default_int_handler)
        real = builtins.__import__
        def interrupted(name, *given):
            if name == "click":
                signal.raise_signal(signal.SIGINT)
            return real(name, *given)
        builtins.__import__ = interrupted
        from cqels_py.__main__ import run
        run()
    """
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (finished.returncode, finished.stdout, finished.stderr) == (-signal.SIGINT, "", "")


def test_an_interrupt_before_a_command_begins_is_no_traceback() -> None:
    # A process that a shell starts in the background ignores SIGINT.
    program = """if True:
        import signal
        from cqels_py.cli import main
        signal.signal(signal.SIGINT, signal.default_int_handler)
        main.main = lambda: signal.raise_signal(signal.SIGINT)
        main.run()
    """
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)
    assert (finished.returncode, finished.stderr) == (130, "interrupted\n")


class Command:
    """`cqels run` over a live stream; `writer` is where its elements are written."""

    def __init__(self, process: subprocess.Popen[str], writer: IO[str]) -> None:
        self.process = process
        self.writer = writer

    def write(self, *rows: str) -> None:
        self.writer.write("".join(rows))
        self.writer.flush()

    def line(self) -> str:
        assert self.process.stdout is not None
        return self.process.stdout.readline()

    def ended_by(self, name: str) -> tuple[str, str]:
        """What it says after the signal, on standard output and error."""
        self.process.send_signal(getattr(signal, name))
        status = self.process.wait(120)
        assert self.process.stdout is not None
        assert self.process.stderr is not None
        out, err = self.process.stdout.read(), without_compiling(self.process.stderr.read())
        assert status == STATUS[name], err
        return out, err


@contextmanager
def command(place: str, folder: Path, query: str, *options: str, ignored: str | None = None) -> Iterator[Command]:
    """Its stream comes by "standard input", or through a "named pipe"."""
    pipe = folder / "stream.csv"
    if place == "named pipe":
        os.mkfifo(pipe)
    source = str(pipe) if place == "named pipe" else "-"
    given = [
        sys.executable,
        "-c",
        PROGRAM,
        "run",
        "-q",
        query,
        "--stream",
        f"{STREAM}={source}",
        "--format",
        "csv",
        *options,
    ]

    def set_signals() -> None:
        # Those who run the tests in the background may have had them ignored.
        for name in STATUS:
            signal.signal(getattr(signal, name), signal.SIG_IGN if name == ignored else signal.SIG_DFL)

    with subprocess.Popen(
        given,
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        text=True,
        preexec_fn=set_signals,
    ) as process:
        assert process.stdin is not None
        writer = pipe.open("w") if place == "named pipe" else process.stdin
        try:
            yield Command(process, writer)
        finally:
            process.kill()
            writer.close()


def nquads(seconds: int, name: str) -> str:
    at = f"2024-01-01T00:00:{seconds:02}Z"
    return (
        f'<http://ex.org/g{seconds}> <http://www.w3.org/ns/prov#generatedAtTime> '
        f'"{at}"^^<http://www.w3.org/2001/XMLSchema#dateTime> .\n'
        f'<http://ex.org/{name}> <http://ex.org/v> "1" <http://ex.org/g{seconds}> .\n'
    )  # fmt: skip


@pytest.mark.parametrize("name", STATUS)
@pytest.mark.parametrize("place", ["standard input", "named pipe"])
def test_what_is_due_is_told_and_no_further_boundary(place: str, name: str, tmp_path: Path) -> None:
    with command(place, tmp_path, COUNTS) as running:
        if place == "named pipe":
            running.write(HEADER, *(row(seconds, "a", "1", f"g{seconds}") for seconds in (1, 2, 11, 12)))
        else:
            running.write(*(nquads(seconds, "a") for seconds in (1, 2, 11, 12)))
        assert running.line() == "time,sign,n\n"
        assert running.line().endswith("0Z,+,2\n")
        assert running.ended_by(name) == ("", SAID[name] + "\n")


def test_results_in_a_file_are_whole(tmp_path: Path) -> None:
    out = tmp_path / "out.csv"
    query = f"SELECT ?s WHERE {{ STREAM <{STREAM}> [NOW] {{ ?s <http://ex.org/v> ?v }} }}"
    with command("standard input", tmp_path, query, "-o", str(out), "--flush-after", "0s") as running:
        running.write(*(nquads(seconds, "a") for seconds in range(5)))
        while not out.exists() or out.read_text().count("\n") < 5:
            assert running.process.poll() is None
        running.ended_by("SIGTERM")
    assert out.read_text().splitlines()[1:] == [f"2024-01-01T00:00:0{n}Z,+,http://ex.org/a" for n in range(4)]


def test_a_signal_that_was_to_be_ignored_is(tmp_path: Path) -> None:
    with command("standard input", tmp_path, COUNTS, ignored="SIGHUP") as running:
        running.write(nquads(1, "a"))
        running.write(nquads(2, "a"))
        running.line()
        running.process.send_signal(signal.SIGHUP)
        _, err = running.ended_by("SIGTERM")
    assert err == "terminated\n"
