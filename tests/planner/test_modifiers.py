"""Plans of slices, orders, aggregates over any term and NOW() as golden text; which of them are refused, and why."""

from __future__ import annotations

import os
from dataclasses import replace

import pytest

from cqels_py.distribution.stages import stages_of
from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery
from cqels_py.plan.nodes import ExtendRows, FilterRows, Node, Once, ReportOrder, Scan, inputs_of
from tests.planner.test_plans import GOLDEN, WINDOW, plan_text

QUERIES = {
    "limit": f"SELECT ?a ?c {{ {WINDOW} {{ ?a ?b ?c }} }} LIMIT 3",
    "offset": f"SELECT ?a {{ {WINDOW} {{ ?a ?b ?c }} }} ORDER BY DESC(?c) OFFSET 3",
    "order-of-changes": f"SELECT ?a {{ {WINDOW} {{ ?a ?b ?c }} }} ORDER BY DESC(STR(?c))",
    "order-of-reports": (
        "REGISTER RSTREAM <urn:o> AS SELECT DISTINCT ?a FROM NAMED WINDOW <urn:w> ON <urn:s> [RANGE PT10S STEP PT1S] "
        "{ WINDOW <urn:w> { ?a ?b ?c } } ORDER BY DESC(STR(?c))"
    ),
    "reduced": f"SELECT REDUCED ?a {{ {WINDOW} {{ ?a ?b ?c }} }}",
    "samples": (
        "SELECT ?b (SAMPLE(?a) AS ?x) (GROUP_CONCAT(DISTINCT ?c; SEPARATOR=', ') AS ?y) (COUNT(DISTINCT *) AS ?z) "
        f"{{ {WINDOW} {{ ?a ?b ?c }} }} GROUP BY ?b"
    ),
    "time": (
        f"SELECT ?a (NOW() AS ?t) {{ {WINDOW} {{ ?a ?b ?c FILTER(?c < NOW()) }} "
        "{ ?a <urn:p> ?d FILTER(?d < NOW()) } { ?a <urn:p> ?e } }"
    ),
}


@pytest.mark.parametrize("name", QUERIES)
def test_plans_stay_what_they_are(name: str) -> None:
    golden = GOLDEN / f"modifiers-{name}.txt"
    found = plan_text(QUERIES[name])
    if os.environ.get("CQELS_UPDATE_GOLDEN"):
        golden.write_text(found, encoding="utf-8")
    assert found == golden.read_text(encoding="utf-8")


def _nodes(node: Node) -> list[Node]:
    return [node, *(found for child in inputs_of(node) for found in _nodes(child))]


def test_what_asks_for_the_time_is_tested_neither_at_arrival_nor_once() -> None:
    found = _nodes(compile_query(QUERIES["time"]).plan.root)
    timed = [node for node in found if isinstance(node, FilterRows | ExtendRows)]
    assert len(timed) == 3
    assert all(not scan.conditions for scan in found if isinstance(scan, Scan))
    answered_once = [inner for node in found if isinstance(node, Once) for inner in _nodes(node.input)]
    assert answered_once
    assert not [node for node in answered_once if node in timed]


def test_an_order_has_a_warning_where_it_makes_no_difference() -> None:
    (warning,) = compile_query(QUERIES["order-of-changes"]).warnings
    assert "ORDER BY without LIMIT has no effect here" in warning
    assert "ORDER BY" in plan_text(QUERIES["order-of-changes"])
    plan = compile_query(QUERIES["order-of-reports"]).plan
    assert plan.warnings == ()
    assert plan.order == ReportOrder((("_:order1", True),), distinct=True)


def test_the_state_of_an_order_is_in_one_place() -> None:
    text = QUERIES["order-of-reports"].replace("DISTINCT ", "")
    plan = compile_query(text).plan
    assert stages_of(plan, 4)[-1].parts == 1
    assert "ORDER BY" in stages_of(plan, 4)[-1].reason
    (whole,) = stages_of(replace(plan, order=None), 4)
    assert whole.shares is not None
    assert whole.shares.axes == (("a", 4),)


@pytest.mark.parametrize("call", ["RAND()", "UUID()", "STRUUID()", "BNODE()", "BNODE('a')"])
@pytest.mark.parametrize("clause", ["BIND({} AS ?n)", "FILTER({} = 1)", "{{ ?a <urn:p> ?d BIND({} AS ?n) }}"])
def test_functions_that_cannot_be_evaluated_again_are_refused(call: str, clause: str) -> None:
    text = f"SELECT * {{ {WINDOW} {{ ?a ?b ?c }} {clause.format(call)} }}"
    with pytest.raises(UnsupportedQuery, match=call.split("(", maxsplit=1)[0] + " gives another value each time"):
        compile_query(text)
