"""Run queries with kernels as plain Python, which report their calls: `python -m tests.support.calls_by_query`.

After the calls of each query a line follows with the part of the manifest that its plan needs.
"""

from __future__ import annotations

import json
import os

from cqels_py.dataflow.kernel_calls import calls_of
from cqels_py.engine.compile import compile_query
from cqels_py.kernels.compiler.recording import _RECORDER, RECORDING
from tests.test_compilation import QUERIES, _run

_JOIN = "STREAM :s [RANGE 2s] { ?a :p ?b } STREAM :s [RANGE 3s] { ?b :v ?v }"
MORE = (
    *(
        f"SELECT {keys} {' '.join(f'({each} AS ?x{i})' for i, each in enumerate(aggregates))} WHERE {{ {pattern} }} {by}"
        for pattern in ("STREAM :s [RANGE 2s] { ?a :p ?b ; :v ?v }", _JOIN)
        for keys, by in (("", ""), ("?a", "GROUP BY ?a"), ("?b", "GROUP BY ?b"))
        for aggregates in (("SUM(?v)",), ("MIN(?v)",), ("AVG(?v)", "MAX(?v)", "COUNT(*)"))
    ),
    "SELECT ?a (MIN(?v) AS ?m) (AVG(?v) AS ?n) WHERE { STREAM :s [RANGE 2s] { ?a :p ?b } STREAM :s [RANGE 3s] { ?a :v ?v } } "
    "GROUP BY ?a",
    "SELECT ?a ?v WHERE { STREAM :s [SESSION 1s] { ?a :v ?v } }",
    "SELECT ?a ?v WHERE { STREAM :s [COUNT 2 PARTITION BY ?a] { ?a :v ?v } }",
    "SELECT ?a (COUNT(*) AS ?n) WHERE { STREAM :s [SESSION 1s PARTITION BY ?a] { ?a :v ?v } } GROUP BY ?a",
    "SELECT ?k { MATCH WITHIN 4s { EVENT ON :s { ?k :v ?x } SEQ EVENT ON :s { ?k :v ?y } } FILTER(?x <= ?y) }",
)


def main() -> None:
    """Report for all queries."""
    for text in (*QUERIES, *MORE):
        _RECORDER._seen.clear()
        for batch in (1, 4, 100):
            _run(text, batch)
        plan = compile_query("PREFIX : <http://ex.org/>\n" + text).plan
        line = {"caller": __name__, "case": text, "needs": list(map(str, calls_of(plan)))}
        os.write(int(os.environ[RECORDING]), json.dumps(line).encode() + b"\n")


if __name__ == "__main__":
    main()
