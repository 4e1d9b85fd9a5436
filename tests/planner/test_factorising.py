"""Plans of aggregates below joins as golden text, and which joins stay."""

from __future__ import annotations

import os

import pytest

from cqels_py.engine.compile import compile_query
from cqels_py.plan.nodes import ExtendRows, FactorisedGroups, Node, Scan, inputs_of
from tests.planner.test_plans import GOLDEN, plan_text

ONE = "STREAM <urn:one> [RANGE 10s]"
TWO = "STREAM <urn:two> [COUNT 10]"
PAIR = f"{ONE} {{ ?k <urn:p> ?x }} {TWO} {{ ?k <urn:q> ?y }}"

QUERIES = {
    "by-a-variable-of-one-input": f"SELECT ?x (MIN(?y) AS ?least) {{ {PAIR} }} GROUP BY ?x",
    "by-the-key": (
        f"SELECT ?k (COUNT(*) AS ?n) (AVG(?x) AS ?a) (AVG(?z) AS ?b) {{ {PAIR} {TWO} {{ ?k <urn:r> ?z }} }} GROUP BY ?k"
    ),
    "as-one-group": f"SELECT (SUM(?y * 2) AS ?s) (COUNT(?x) AS ?n) {{ {PAIR} }}",
    "over-static-data": f"SELECT ?r (MAX(?y) AS ?m) {{ {TWO} {{ ?k <urn:q> ?y }} ?k <urn:room> ?r }} GROUP BY ?r",
    "by-the-subject": f"SELECT ?k (AVG(?x) AS ?m) {{ {ONE} {{ ?k <urn:p> ?x ; <urn:q> ?y }} }} GROUP BY ?k",
    "of-properties": f"SELECT ?x (AVG(?y) AS ?m) {{ {ONE} {{ ?k <urn:p> ?x ; <urn:q> ?y }} }} GROUP BY ?x",
    "of-both-inputs": f"SELECT ?x (SUM(?x * ?y) AS ?s) {{ {PAIR} }} GROUP BY ?x",
}


@pytest.mark.parametrize("name", QUERIES)
def test_plans_stay_what_they_are(name: str) -> None:
    golden = GOLDEN / f"factorised-{name}.txt"
    found = plan_text(QUERIES[name])
    if os.environ.get("CQELS_UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def factorised(node: Node) -> FactorisedGroups | None:
    if isinstance(node, FactorisedGroups):
        return node
    return next((found for child in inputs_of(node) if (found := factorised(child))), None)


@pytest.mark.parametrize("name", QUERIES)
def test_where_the_join_stays(name: str) -> None:
    assert (factorised(compile_query(QUERIES[name]).plan.root) is None) == (name in ("of-properties", "of-both-inputs"))


@pytest.mark.parametrize(
    "body",
    [
        pytest.param(f"(COUNT(DISTINCT ?y) AS ?n) {{ {PAIR} }}", id="distinct"),
        pytest.param(f"(GROUP_CONCAT(?y) AS ?n) {{ {PAIR} }}", id="texts"),
        pytest.param(f"?y (COUNT(*) AS ?n) {{ {PAIR} }} GROUP BY ?x ?y", id="groups of both inputs"),
        pytest.param(f"(COUNT(*) AS ?n) {{ {PAIR} FILTER(?x < ?y) }}", id="filter of both inputs"),
        pytest.param(f"(COUNT(*) AS ?n) {{ {PAIR} {ONE} {{ ?y <urn:r> ?z }} }}", id="chain"),
        pytest.param(
            f"?x (COUNT(*) AS ?n) {{ {ONE} {{ ?k <urn:p> ?x }} OPTIONAL {{ {TWO} {{ ?k <urn:q> ?y }} }} }} GROUP BY ?x",
            id="optional",
        ),
        pytest.param(
            f"(COUNT(*) AS ?n) {{ {ONE} {{ ?k <urn:p> ?x OPTIONAL {{ ?x <urn:r> ?y }} }} {TWO} {{ ?k <urn:q> ?y }} }}",
            id="shared variable that may be unbound",
        ),
        pytest.param(f"(AVG(?t) AS ?n) {{ {PAIR} BIND(NOW() AS ?t) }}", id="time"),
    ],
)
def test_where_results_are_asked_for_they_are_made(body: str) -> None:
    assert factorised(compile_query(f"SELECT {body}").plan.root) is None


def test_an_expression_is_computed_in_the_input_that_has_its_variables() -> None:
    found = factorised(compile_query(QUERIES["as-one-group"]).plan.root)
    assert found is not None
    first, second = found.inputs
    assert isinstance(first, Scan)
    assert isinstance(second, ExtendRows)
    # What leaves says what it was.
    assert first.keep_ids
    assert isinstance(second.input, Scan)
    assert second.input.keep_ids
