"""Elements of running queries do not wait for kernels that are loaded, nor while the whole process is looked through for garbage."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

_PROGRAM = """
import gc
from cqels_py import Engine
from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.compile import compile_query
from cqels_py.service.server import settle

FIRST = "SELECT ?x { STREAM <urn:s> [RANGE 1s] { ?x <urn:p> ?y } }"
LATER = "SELECT ?y (COUNT(*) AS ?n) { STREAM <urn:s> [RANGE 1s] { ?x <urn:p> ?y } } GROUP BY ?y"

def absent():
    calls = calls_of(compile_query(LATER).plan)
    return sum(call.numba_types not in call.dispatcher.overloads for call in calls)

engine = Engine()
engine.register(FIRST)
before = absent()
engine.register(LATER)
settle()
print(before > 0, absent(), gc.get_freeze_count() > 100_000)
"""


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_kernels_are_loaded_and_what_is_there_is_no_garbage() -> None:
    finished = subprocess.run([sys.executable, "-c", _PROGRAM], capture_output=True, text=True, check=True)
    assert finished.stdout.split() == ["True", "0", "True"]
