"""Runs each query in a process of its own, one after another, so that no query affects the next."""

from __future__ import annotations

import json
import os
import selectors
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator
from dataclasses import asdict
from pathlib import Path
from typing import Any

from cqels_py.suites import child
from cqels_py.suites.task import Measured, Task

CHECK_SECONDS = 180.0
"""Seconds that a check may be silent: pyoxigraph cannot be interrupted."""

Tell = Callable[[str, int], None]
"""Called with the phase ("running", "latency" …) and the number of triples so far."""

_DYING_SECONDS = 30
_TOO_LONG = f"pyoxigraph needed more than {CHECK_SECONDS:.0f} s for an answer"


def measured(task: Task, tell: Tell, *, check_seconds: float = CHECK_SECONDS) -> Measured:
    """The outcome of a task. If it fails, its message is in `error`."""
    found = _attempt(task, tell, check_seconds, ())
    if found is None:
        # Kernels have been compiled and are now cached (unless the cache cannot be written).
        found = _attempt(task, tell, check_seconds, (child.AGAIN,))
    assert found is not None
    return found


def _attempt(task: Task, tell: Tell, check_seconds: float, options: tuple[str, ...]) -> Measured | None:
    """None if the process has to be started again."""
    with tempfile.TemporaryDirectory(prefix="cqels-task-") as folder:
        path = Path(folder) / "task.json"
        path.write_text(json.dumps(asdict(task)), encoding="utf-8")
        with (Path(folder) / "said").open("w+", encoding="utf-8", errors="replace") as said:
            process = subprocess.Popen(
                [sys.executable, "-m", child.__name__, str(path), *options],
                stdin=subprocess.DEVNULL, stdout=subprocess.PIPE, stderr=said,
            )  # fmt: skip
            try:
                found = _listen(process, task, tell, check_seconds)
                if found is None:
                    # The process prints the reason of its end last.
                    process.wait(_DYING_SECONDS)
            except subprocess.TimeoutExpired:
                pass
            finally:
                process.kill()
                process.wait()
            if found is None and process.returncode == child.COMPILED:
                return None
            said.seek(0)
            return found or Measured(task.id, task.title, error=_last_words(said.read(), process.returncode))


def _listen(process: subprocess.Popen[bytes], task: Task, tell: Tell, check_seconds: float) -> Measured | None:
    """The last results that the process sent, if any."""
    found: Measured | None = None
    for message in _messages(process, check_seconds):
        if message is None:
            assert found is not None
            found.note = _TOO_LONG
            break
        if "phase" in message:
            tell(message["phase"], message["done"])
        elif "error" in message:
            if found is None:
                return Measured(task.id, task.title, error=message["error"])
            found.check_error = message["error"]
        else:
            found = Measured(**(message.get("checked") or message["measured"]))
    return found


def _messages(process: subprocess.Popen[bytes], check_seconds: float) -> Iterator[dict[str, Any] | None]:
    """The messages of a process; None when it has been silent for too long during its check."""
    assert process.stdout is not None
    pending = b""
    checking = False
    with selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        while selector.select(check_seconds if checking else None):
            chunk = os.read(process.stdout.fileno(), 1 << 16)
            if not chunk:
                return
            *lines, pending = (pending + chunk).split(b"\n")
            for message in map(json.loads, lines):
                checking = message.get("phase") == "checking"
                yield message
    yield None


def _last_words(said: str, status: int) -> str:
    lines = [line for line in said.splitlines() if line.strip()]
    if status < 0:
        return f"the process was ended by signal {-status}" + (f": {lines[-1]}" if lines else "")
    return lines[-1] if lines else f"the process ended with status {status}"
