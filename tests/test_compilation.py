"""Registering a query compiles nothing: each kernel is compiled for one layout of its arguments, whatever the query."""

from __future__ import annotations

import importlib
import pkgutil
import subprocess
import sys

import pytest

import cqels_py.kernels
from cqels_py.engine.engine import Engine
from tests.support import traces

QUERIES = (
    "SELECT ?a ?b WHERE { STREAM :s [RANGE 3s] { ?a :p ?b } }",
    "SELECT DISTINCT ?a WHERE { STREAM :s [COUNT 2] { ?a :p ?b . ?b :p ?c } FILTER(?a != ?c) }",
    "SELECT ?a (AVG(?v) AS ?m) (MIN(?v) AS ?l) (COUNT(DISTINCT ?v) AS ?n) WHERE { STREAM :s [RANGE 2s STEP 1s] "
    "{ ?a :v ?v } } GROUP BY ?a HAVING (COUNT(*) > 0)",
    "SELECT ?a ?b WHERE { STREAM :s [TRIPLES 3] { ?a :p ?b } MINUS { STREAM :s [ALL] { ?b :p ?a } } }",
    "SELECT ?a ?x WHERE { STREAM :s [NOW] { ?a :p ?b } ?b :q ?x BIND(?x AS ?y) }",
    "SELECT ?a ?v WHERE { STREAM :s [RANGE 5s] { ?a :v ?v } } ORDER BY DESC(?v) LIMIT 2",
    "SELECT ?a WHERE { { STREAM :s [RANGE 5s] { ?a :v ?v } } UNION { STREAM :s [RANGE 4s] { ?a :p ?v } } }",
    "SELECT ?a ?b ?x WHERE { STREAM :s [RANGE 2s] { ?a :p+ ?b . :a (:p|:v)* ?x } ?y !:p ?z }",
    "ASK { STREAM :s [RANGE 1s] { ?a :p ?b . ?c :v ?d } }",
    "SELECT ?a (SAMPLE(?v) AS ?x) (GROUP_CONCAT(?v) AS ?y) (COUNT(DISTINCT *) AS ?z) WHERE { STREAM :s [RANGE 2s] { ?a :v ?v } } "
    "GROUP BY ?a",
    "SELECT ?a (SUM(?v) AS ?x) (MAX(?v) AS ?y) WHERE { STREAM :s [RANGE 2s] { ?b :p ?a } STREAM :s [COUNT 3] { ?b :v ?v } } "
    "GROUP BY ?a",
    "SELECT ?a (NOW() AS ?t) WHERE { STREAM :s [RANGE 2s] { ?a :v ?v } FILTER(SECONDS(NOW()) > ?v) } LIMIT 3 OFFSET 1",
    "REGISTER RSTREAM :o AS SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT3S STEP PT1S] { WINDOW :w { ?a :v ?v } } ORDER BY ?v",
)


def _kernels() -> list[tuple[str, object]]:
    found = []
    for module in pkgutil.walk_packages(cqels_py.kernels.__path__, "cqels_py.kernels."):
        loaded = importlib.import_module(module.name)
        for name, value in vars(loaded).items():
            if hasattr(value, "signatures") and value.py_func.__module__ == loaded.__name__:
                found.append((f"{module.name.removeprefix('cqels_py.kernels.')}.{name}", value))
    return found


def _run(text: str, batch: int) -> None:
    engine = Engine(batch=batch)
    changelog = "RSTREAM" not in text
    engine.register("PREFIX : <http://ex.org/>\n" + text, static=[traces.triples("b q 7, c q 8")], changelog=changelog)
    for second in range(9):
        found = traces.triples(f"a p b, b p {'abc'[second % 3]}, a v {second % 4}, c v {second % 3}.5")
        engine.push("http://ex.org/s", found, time=second * 500_000)
    engine.finish()


def _layouts(kernel: object) -> set[tuple[str, ...]]:
    """The types of the arrays that a kernel was compiled for; numbers are typed by the kernels that call it.

    Of one that can do without some of them: all the types where there are several for the same ones.
    """
    by_given: dict[tuple[bool, ...], set[tuple[str, ...]]] = {}
    for signature in kernel.signatures:  # type: ignore[attr-defined]
        kinds = [str(kind) for kind in signature]
        arrays = tuple(kind for kind in kinds if kind.startswith("array"))
        by_given.setdefault(tuple(kind == "none" for kind in kinds), set()).add(arrays)
    return max(by_given.values(), key=len, default=set())


def _kernels_with_several_layouts() -> dict[str, set[tuple[str, ...]]]:
    for batch in (1, 4, 100):
        for text in QUERIES:
            _run(text, batch)
    several = {name: _layouts(kernel) for name, kernel in _kernels() if len(_layouts(kernel)) > 1}
    generic = ("hashing.", "key_table.", "murmur.", "heaps.", "join._", "merge.", "ring_index.", "terms.", "values.")
    return {name: found for name, found in several.items() if not name.startswith(generic)}


@pytest.mark.skipif(not _kernels(), reason="kernels run as plain Python")
def test_each_kernel_is_compiled_for_one_layout() -> None:
    # In a process of its own: other tests call kernels with arrays of their own.
    program = "from tests import test_compilation as here; print(here._kernels_with_several_layouts())"
    finished = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=False)
    assert finished.stdout.strip() == "{}", finished.stdout + finished.stderr
