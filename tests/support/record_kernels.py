"""Record the manifest of kernels: `scripts/record_kernels [TEST…]`.

Tests run with kernels as plain Python, which report their calls. Without arguments the manifest is replaced by what the
tests of RECORDED call; with tests, their calls are added.
"""

from __future__ import annotations

import base64
import json
import os
import pickle
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator

from cqels_py.kernels.compiler.manifest import KernelCall, manifest, recorded_call, write
from cqels_py.kernels.compiler.recording import RECORDING
from tests.support.kernels_beyond_manifest import BENCHMARKS

RECORDED = (
    "tests/test_against_oracle.py",
    "tests/test_windows_against_oracle.py",
    "tests/engine/test_match.py",
    "tests/engine/test_events.py",
    "tests/formats",
)
"""Tests that, with `calls_by_query` and `calls_by_format`, call the kernels of plans and of formats in all ways."""

CASES = (("-m", "tests.support.calls_by_query"), ("-m", "tests.support.calls_by_format"))


def calls_in(lines: Iterable[str]) -> Iterator[KernelCall]:
    """Reported calls of modules of the package."""
    for line in lines:
        call = json.loads(line)
        if call["caller"].startswith("cqels_py.") and not call["caller"].startswith(BENCHMARKS):
            types = pickle.loads(base64.b64decode(call["types"]))
            yield recorded_call(call["caller"], call["module"], call["name"], types)


def reported_by(*command: str) -> tuple[list[str], int]:
    """The lines that a Python process reports, with kernels as plain Python, and its exit status."""
    with tempfile.TemporaryFile("w+", encoding="utf-8") as reports:
        number = reports.fileno()
        variables = {"NUMBA_DISABLE_JIT": "1", RECORDING: str(number), "HYPOTHESIS_PROFILE": "few"}
        finished = subprocess.run(
            [sys.executable, *command], check=False, pass_fds=(number,), env={**os.environ, **variables}
        )
        reports.seek(0)
        return reports.readlines(), finished.returncode


def main(*tests: str) -> int:
    """Record; the exit status is that of the process that failed."""
    calls = set(manifest()) if tests else set()
    pytest = ("-m", "pytest", "-q", "-p", "no:cacheprovider", *(tests or RECORDED), "-k", "not each")
    for command in (pytest, *(() if tests else CASES)):
        lines, status = reported_by(*command)
        if status:
            return status
        calls.update(calls_in(lines))
    write(calls)
    return 0


if __name__ == "__main__":
    sys.exit(main(*sys.argv[1:]))
