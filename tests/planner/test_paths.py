"""Plans of property paths as golden text: which trees are kept, and where paths of no steps come from."""

from __future__ import annotations

import os

import pytest

from cqels_py.errors import UnsupportedQuery
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


@pytest.mark.parametrize(
    ("inner", "named"),
    [("?b :q* ?c", r"\?c .* a path of any length, zero too"), ("GRAPH ?g { ?b :q* ?d }", "in every named graph")],
)
def test_outer_values_that_lead_to_themselves_and_are_not_known_where(inner: str, named: str) -> None:
    outer = f"{WINDOW} {{ ?a :p ?b OPTIONAL {{ ?b :q ?c }} }}"
    with pytest.raises(UnsupportedQuery, match=named):
        plan_text(f"PREFIX : <http://ex.org/> SELECT * {{ {outer} FILTER EXISTS {{ {inner} }} }}")
