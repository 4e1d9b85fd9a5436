"""The common part of the cases: an engine with a query, and cqels as a process."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from cqels_py.engine.engine import Engine

EX = "http://ex.org/"
FOLDER = "CQELS_HOSTILE_FOLDER"
"""The environment variable with the folder for a case's files."""


def iri(name: str) -> str:
    return f"<{EX}{name}>"


def integer(number: int) -> str:
    return f'"{number}"^^<http://www.w3.org/2001/XMLSchema#integer>'


def folder() -> Path:
    return Path(os.environ[FOLDER])


def write_lines(name: str, lines: Iterable[str]) -> Path:
    path = folder() / name
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


class Answers:
    """A query over one window of all elements, and the number of its results so far."""

    def __init__(
        self, pattern: str, rest: str = "", *, engine: Engine | None = None, static: Sequence[Any] = ()
    ) -> None:
        self._engine = engine or Engine()
        text = f"PREFIX : <{EX}> SELECT * WHERE {{ STREAM :s [ALL] {{ {pattern} }} {rest} }}"
        query = self._engine.register(text, static=static)
        self.count = 0
        self.state = "registered"
        self._time = 0
        query.subscribe_batches(self._take, ids=True)

    def _take(self, batch: Any) -> None:
        self.count += len(batch)

    def push(self, *values: tuple[str, str]) -> None:
        """An element with these properties and values; each has its own subject."""
        self._time += 1_000_000
        triples = [(iri(f"s{self._time}"), iri(name), value) for name, value in values]
        self._engine.push(f"{EX}s", triples, time=self._time)


def cqels_run(*arguments: str, **options: Any) -> subprocess.CompletedProcess[str]:
    """`cqels run` with these arguments, to its end."""
    command = [sys.executable, "-m", "cqels_py", "run", *arguments]
    return subprocess.run(command, capture_output=True, text=True, check=False, **options)
