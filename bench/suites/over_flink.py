"""Flink as a contender: SQL over a stream of rows, whose answer Flink keeps up to date.

PyFlink needs other versions of libraries than this project, and Java. It has an environment of its own, whose Python
runs flink_job.py. Rows are sent through a socket, and changes of the answer come back through a pipe.
"""

from __future__ import annotations

import json
import os
import select
import socket
import subprocess
import tempfile
import time
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.suites.contenders import Question, Reevaluation, Row
from bench.suites.stepping import Answers

VARIABLE = "CQELS_BENCH_FLINK"
"""The environment variable with the path of the Python that has PyFlink."""

_JOB = Path(__file__).with_name("flink_job.py")
_HOW = "python3.11 -m venv FOLDER; FOLDER/bin/pip install apache-flink; with a Java"
_ASK_VERSION = "from importlib.metadata import version; print(version('apache-flink'))"
_PATIENCE = 90.0
"""Seconds to wait for an answer."""
OPTIONS = {"execution.buffer-timeout.interval": "0 ms", "table.optimizer.multi-join.enabled": "true"}
"""Mini-batches would not help at any step, and keep Flink busy during the turns of others."""


class Absent(Exception):
    """PyFlink is not available; the message says why."""


class _Prepared(NamedTuple):
    lines: bytes
    observations: int


def version() -> str:
    """The version of PyFlink. Absent if there is none."""
    python = os.environ.get(VARIABLE)
    if not python:
        raise Absent(f"{VARIABLE} names no Python that has it ({_HOW})")
    try:
        asked = subprocess.run([python, "-c", _ASK_VERSION], capture_output=True, text=True, check=False)
    except OSError as error:
        raise Absent(f"cannot run {python}, which {VARIABLE} names: {error.strerror}") from None
    if asked.returncode:
        raise Absent(f"{python} has no apache-flink ({_HOW})")
    return asked.stdout.strip()


class Flink(Reevaluation):
    """The newest observations by ROW_NUMBER, a join of five and a GROUP BY; a step is over when its whole answer has
    arrived.

    Flink does not report the end of a step. The answers of sensors therefore include the number of their observations
    and the sum of the observations' numbers. The answer is complete when these agree with the window.
    """

    name = "PyFlink, SQL"

    def __init__(self, question: Question, step: int) -> None:
        super().__init__(question, step)
        self._taken = 0
        self._answer: dict[int, tuple[float, int, int]] = {}
        self._known = (0, 0)
        self._said = tempfile.TemporaryFile()  # noqa: SIM115
        with socket.create_server(("localhost", 0)) as server:
            server.settimeout(_PATIENCE)
            asked = {"port": server.getsockname()[1], "options": OPTIONS, "statements": statements(question)}
            self._process = subprocess.Popen(
                [os.environ[VARIABLE], str(_JOB), json.dumps(asked)],
                stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=self._said,
            )  # fmt: skip
            self._rows_in = self._accepted(server)
        assert self._process.stdout is not None
        self._out = self._process.stdout.fileno()
        self._rest = b""

    def _accepted(self, server: socket.socket) -> socket.socket:
        give_up = time.monotonic() + _PATIENCE
        server.settimeout(0.2)
        while time.monotonic() < give_up:
            try:
                return server.accept()[0]
            except TimeoutError:
                if self._process.poll() is not None:
                    break
        raise self._failed()

    def prepare(self, first: int, count: int) -> _Prepared:
        numbers = np.arange(first, first + count)
        objects = [each.codes(numbers).tolist() for each in self.question.properties]
        rows = (
            f"{o},{p},{v}\n"
            for o, mine in zip(numbers.tolist(), zip(*objects, strict=True), strict=True)
            for p, v in enumerate(mine)
        )
        return _Prepared("".join(rows).encode(), count)

    def update(self, prepared: _Prepared) -> None:
        self._taken += prepared.observations
        expected = min(self._taken, self.question.window)
        numbers = (2 * self._taken - expected - 1) * expected // 2
        self._rows_in.sendall(prepared.lines)
        while self._known != (expected, numbers):
            for line in self._lines():
                self._change(line)

    def _lines(self) -> Iterator[bytes]:
        """The whole lines received so far."""
        if not select.select([self._out], [], [], _PATIENCE)[0] or not (read := os.read(self._out, 1 << 16)):
            raise self._failed()
        *lines, self._rest = (self._rest + read).split(b"\n")
        yield from lines

    def _change(self, line: bytes) -> None:
        """One of `+I[sensor, value, count, sum]`, `-U[…]`, `+U[…]` and `-D[…]`."""
        if line[:2] not in (b"+I", b"+U", b"-U", b"-D"):
            return
        sensor, value, count, numbers = line[3:-1].split(b", ")
        _, old_count, old_numbers = self._answer.pop(int(sensor), (0, 0, 0))
        known_count, known_numbers = self._known[0] - old_count, self._known[1] - old_numbers
        if line[:1] == b"+":
            self._answer[int(sensor)] = float(value), int(count), int(numbers)
            known_count, known_numbers = known_count + int(count), known_numbers + int(numbers)
        self._known = known_count, known_numbers

    def rows(self) -> list[Row]:
        return [(str(sensor), str(value)) for sensor, (value, _, _) in self._answer.items()]

    def answers(self) -> Answers:
        self._end()
        return super().answers()

    def _end(self) -> None:
        self._rows_in.close()
        try:
            self._process.communicate(timeout=_PATIENCE)
        finally:
            self._process.kill()
            self._said.close()

    def _failed(self) -> Exception:
        self._process.kill()
        self._process.wait()
        self._said.seek(0)
        said = self._said.read().decode(errors="replace").strip().splitlines()
        return RuntimeError(f"Flink gave no answer: {said[-1] if said else 'it said nothing'}")


def statements(question: Question) -> list[str]:
    """The answers as a Flink table, and the query that fills it."""
    numbers = range(len(question.properties))
    values = {each.name: f"t{number}.v" for number, each in enumerate(question.properties)}
    joined = "t0" + "".join(f" JOIN t{number} ON t{number}.o = t0.o" for number in numbers[1:])
    newest = ", ".join(
        f"t{number} AS (SELECT o, v FROM (SELECT o, v, ROW_NUMBER() OVER (ORDER BY o DESC) AS place FROM triples "
        f"WHERE p = {number}) WHERE place <= {question.window})"
        for number in numbers
    )
    columns = ", ".join(f"CAST(SPLIT_INDEX(line, ',', {at}) AS BIGINT) AS {name}" for at, name in enumerate("opv"))
    value = f"CAST({question.aggregate}(CAST({values['result']} AS DOUBLE)) AS DOUBLE)"
    return [
        "CREATE TEMPORARY TABLE answers (sensor BIGINT, answer DOUBLE, observations BIGINT, numbers BIGINT) "
        "WITH ('connector' = 'print')",
        f"INSERT INTO answers WITH triples AS (SELECT {columns} FROM lines), {newest} "
        f"SELECT {values['sensor']}, {value}, COUNT(*), SUM(t0.o) FROM {joined} GROUP BY {values['sensor']}",
    ]
