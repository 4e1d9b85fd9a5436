"""Once a host is warm, the tasks of a micro-batch compile nothing."""

from __future__ import annotations

import os
import subprocess
import sys
from importlib.util import find_spec

import pytest

from tests.runners.spark.conftest import ROOT
from tests.runners.spark.test_stages import MERGED

WARM = """
import sys
from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.runners.spark.warming import calls_of_tasks, compiled_here
plan = compile_query(sys.argv[1], changelog=True).plan
(told,) = compiled_here(calls_of_tasks(plan, stages_of(plan, 2)), [])
"""
"""What a task of `cqels_py.spark.warm` does."""
TASKS = """
import sys
from numba.core import event
from tests.oracle.naive import Static
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import drawn

class Compiled(event.Listener):
    names = []
    def on_start(self, event):
        Compiled.names.append(str(event.data["dispatcher"]))
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
found = simulation.run(
    sys.argv[1], drawn(3), Static(default=(), named={}), changelog=True, cuts=[9, 30], tasks=2, parts=2, chance=0
)
print(found.total(), *Compiled.names)
"""


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_tasks_compile_nothing_on_a_warm_host() -> None:
    """Two stages; states are restored in each micro-batch."""
    if find_spec("pyspark") is None:
        pytest.skip("PySpark is not installed")
    query = f"PREFIX : <http://ex.org/> {MERGED['counts of groups']}"
    _, tasks = (
        subprocess.run([sys.executable, "-c", program, query], capture_output=True, text=True, check=True, cwd=ROOT)
        for program in (WARM, TASKS)
    )
    results, *compiled = tasks.stdout.split()
    assert int(results) > 0
    assert compiled == []
