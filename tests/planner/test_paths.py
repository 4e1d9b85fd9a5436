"""Plans of property paths as golden text: which trees are kept, and where paths of no steps come from."""

from __future__ import annotations

import os

import pytest

from tests.planner.test_plans import GOLDEN, WINDOW, plan_text

PATHS = {
    "any": "?a :p+ ?b",
    "from-a-constant": ":a :p+ ?b",
    "to-a-constant": "?a :p* :b",
    "between-constants": ":a :p* :b",
    "to-itself": "?a :p+ ?a",
    "of-no-steps": "?a (:p|:q)* ?b",
    "of-no-steps-to-itself": "?a :p* ?a",
    "at-most-once": "?a (:p/:q)? ?b",
    "at-most-once-from-a-constant": ":a :p? ?b",
    "nested": "?a ((:p+/:q?)|:r*)+ ?b",
    "negated": "?a !(:p|^:q) ?b",
}


def compare(name: str, text: str) -> None:
    golden = GOLDEN / f"path-{name}.txt"
    found = plan_text(f"PREFIX : <http://ex.org/> {text}")
    if os.environ.get("CQELS_UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


@pytest.mark.parametrize(("name", "path"), PATHS.items(), ids=PATHS.keys())
def test_a_path(name: str, path: str) -> None:
    compare(name, f"SELECT * {{ {WINDOW} {{ {path} }} }}")


def test_a_path_over_a_graph_asks_for_no_distinct_triples() -> None:
    window = "FROM NAMED WINDOW :w ON <http://ex.org/s> [RANGE PT10S]"
    compare("over-a-graph", f"REGISTER ISTREAM :o AS SELECT * {window} {{ WINDOW :w {{ ?a (:p|!:q)+ ?b }} }}")


def test_a_path_over_static_data_is_answered_once() -> None:
    compare("over-static-data", f"SELECT * {{ {WINDOW} {{ ?a :q ?x }} ?a :p* ?b . GRAPH ?g {{ ?b :p+ ?c }} }}")
