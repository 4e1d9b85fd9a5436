"""Run queries as Spark's tasks would, with kernels as plain Python, which report them: `python -m tests.support.calls_by_tasks`.

After the calls of each query a line follows with the part of the manifest that is compiled for it.
"""

from __future__ import annotations

import json
import os

from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.kernels.compiler.recording import _RECORDER, RECORDING
from cqels_py.runners.spark.warming import calls_of_tasks
from tests.oracle.naive import Static
from tests.runners.spark import simulation
from tests.runners.spark.test_simulated import DIVIDED, EX, drawn
from tests.runners.spark.test_stages import MERGED

NAMES = ("having", "not exists", "three patterns", "count step", "top", "texts of groups", "counts of groups")
NO_STATIC = Static(default=(), named={})
"""The driver reads it."""
PARTS = 2


def main() -> None:
    """Report for all queries."""
    queries = {**DIVIDED, **MERGED}
    for name in NAMES:
        text = f"PREFIX : <{EX}> {queries[name]}"
        _RECORDER._seen.clear()
        simulation.run(text, drawn(3), NO_STATIC, changelog=True, cuts=[9, 30], tasks=2, parts=PARTS, chance=0)
        plan = compile_query(text, changelog=True).plan
        needs = list(map(str, calls_of_tasks(plan, stages_of(plan, PARTS))))
        line = {"caller": __name__, "case": name, "needs": needs}
        os.write(int(os.environ[RECORDING]), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
