"""Kernels are compiled before they are called, by other processes, once."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from cqels_py.kernels.compiler.manifest import KernelCall, manifest, parse
from cqels_py.kernels.compiler.prepare import only_when_called, prepare

MIX = KernelCall("cqels_py.dataflow.router", "structures.hashing.mix", ("int64",))
PREPARE = """
from numba.core import event
from cqels_py.kernels.compiler import prepare as module
from tests.kernels.compiler.test_prepare import MIX

class Compiled(event.Listener):
    count = 0
    def on_start(self, event):
        Compiled.count += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
prepared = module.prepare([MIX, MIX])
MIX.dispatcher(7)
print(prepared, Compiled.count)
"""
compiling = pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")


def prepared_in(folder: Path) -> str:
    """Kernels that were missing, and those that the process itself compiled, before the call or in it."""
    finished = subprocess.run(
        [sys.executable, "-c", PREPARE],
        capture_output=True, text=True, check=True, env={**os.environ, "CQELS_CACHE_DIR": str(folder)},
    )  # fmt: skip
    return finished.stdout.strip()


@compiling
def test_missing_kernels_are_compiled_by_other_processes_and_once(tmp_path: Path) -> None:
    assert prepared_in(tmp_path) == "1 0"
    assert prepared_in(tmp_path) == "0 0"


@compiling
def test_a_manifest_that_is_out_of_date_is_a_warning_with_the_command_that_records_it(
    caplog: pytest.LogCaptureFixture,
) -> None:
    gone, other = (KernelCall("a", f"structures.hashing.{name}", ("int64",) * 2) for name in ("gone", "mix"))
    with only_when_called():
        assert prepare([gone, other]) == 0
    assert caplog.records == []
    for _ in range(2):
        prepare([gone, other])
    warnings = [message for message in caplog.messages if "scripts/record_kernels" in message]
    assert [message.partition("(")[0] for message in warnings] == [
        str(call).partition("(")[0] for call in (gone, other)
    ]


def test_a_line_that_is_no_call_names_the_command_that_records_it() -> None:
    with pytest.raises(ValueError, match=r"'<<<<<<< HEAD'.*scripts/record_kernels"):
        parse("<<<<<<< HEAD")


def test_the_manifest_is_sorted_and_names_kernels_with_their_parameters() -> None:
    assert list(manifest()) == sorted(set(manifest()))
    for call in manifest():
        kernel = getattr(call.dispatcher, "py_func", call.dispatcher)
        assert kernel.__code__.co_argcount == len(call.types), f"{call}: scripts/record_kernels"
