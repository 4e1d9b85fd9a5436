"""The process that measures one query: `python -m cqels_py.suites.child TASK [again]`, where TASK is a task's JSON
file.

It reports on standard output, one JSON object per line: `{"phase": …, "done": triples}`, `{"measured": …}`,
`{"checked": …}`, `{"error": …}`. If kernels had to be compiled, which costs time and memory, it ends with the status
COMPILED and is started `again`.
"""

from __future__ import annotations

import json
import os
import sys
from dataclasses import asdict
from pathlib import Path
from typing import IO, Any, Final

from cqels_py.errors import CqelsError
from cqels_py.suites.task import Measured, Task

AGAIN: Final = "again"
COMPILED: Final = 75


def main(path: str, *options: str) -> int:
    """Measure, and check if the task asks for it. Returns the exit status."""
    say = _Messages(os.fdopen(os.dup(1), "w", encoding="utf-8"))
    # Output of anything else must not be read as a message.
    os.dup2(2, 1)
    task = Task(**json.loads(Path(path).read_text(encoding="utf-8")))
    try:
        return _measure(task, say, again=AGAIN in options)
    except CqelsError as error:
        say.error(str(error))
        return 1
    except Exception as error:
        say.error(f"{type(error).__name__}: {error}".partition("\n")[0])
        raise


class _Messages:
    def __init__(self, file: IO[str]) -> None:
        self._file = file

    def __call__(self, **message: Any) -> None:
        self._file.write(json.dumps(message) + "\n")
        self._file.flush()

    def phase(self, phase: str, done: int) -> None:
        self(phase=phase, done=done)

    def measured(self, kind: str, measured: Measured) -> None:
        self(**{kind: asdict(measured)})

    def error(self, message: str) -> None:
        self(error=message)


def _measure(task: Task, say: _Messages, *, again: bool) -> int:
    from cqels_py.kernels.compiler.progress import announced
    from cqels_py.suites import latency, throughput
    from cqels_py.suites.running import session_of

    with session_of(task) as session:
        with announced(lambda message: say.phase("compiling", 0)) as watcher:
            say.phase("warming up", 0)
            throughput.warm_up(task, session)
            measured = throughput.measure(task, session, say.phase)
        if watcher.kernels and not again:
            return COMPILED
        if session is None:
            say.phase("latency", measured.triples)
            latency.measure(task, measured)
        say.measured("measured", measured)
        if task.check:
            from cqels_py.suites import check

            say.phase("checking", measured.triples)
            check.check(task, measured, session, say.phase)
            say.measured("checked", measured)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
