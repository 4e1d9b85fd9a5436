"""On a machine that has run a query once nothing is compiled; and never inside of a push."""

from __future__ import annotations

import os
import subprocess
import sys

import pytest

PROGRAM = """
import sys
from numba.core import event
from cqels_py.engine.engine import Engine
from tests.support import traces

class Compiled(event.Listener):
    count = 0
    def on_start(self, event):
        Compiled.count += 1
    def on_end(self, event):
        pass

event.register("numba:compile", Compiled())
engine = Engine()
queries = [engine.register(text, changelog=True) for text in sys.argv[1:]]
registered = Compiled.count
for second in range(6):
    engine.push("http://ex.org/s", traces.triples(f"a p {second}"), time=second * 1_000_000)
engine.finish()
print(registered, Compiled.count - registered, *(len(list(query.results())) for query in queries))
"""
QUERIES = (
    "SELECT ?a ?b { STREAM :s [RANGE 3s] { ?a :p ?b } FILTER(?b > 1) }",
    "SELECT ?a (AVG(?b) AS ?x) (MAX(?b) AS ?y) { STREAM :s [RANGE 3s] { ?a :p ?b } FILTER(?b > 1) } GROUP BY ?a",
)


@pytest.mark.skipif("NUMBA_DISABLE_JIT" in os.environ, reason="nothing is compiled")
def test_pushes_compile_nothing_and_a_second_process_compiles_nothing_at_all() -> None:
    program = [sys.executable, "-c", PROGRAM, *(f"PREFIX : <http://ex.org/> {query}" for query in QUERIES)]
    first, second = (
        subprocess.run(program, capture_output=True, text=True, check=True).stdout.split() for _ in range(2)
    )
    # The values 2 to 5 pass the filter.
    assert first[1:] == ["0", *second[2:]]
    assert second[:2] == ["0", "0"]
    assert all(int(results) >= 4 for results in second[2:])
