"""The kernels that a plan needs: all that its query calls are compiled before it runs."""

from __future__ import annotations

import json

import pytest

from cqels_py.dataflow.kernel_calls import _ONLY_FOR, calls_of
from cqels_py.engine.compile import compile_query
from cqels_py.kernels.compiler.manifest import RECORD_AGAIN, manifest
from tests.support.record_kernels import calls_in, reported_by

PREFIX = "PREFIX : <http://ex.org/> "


def kernels_of(text: str) -> set[str]:
    return {call.kernel for call in calls_of(compile_query(PREFIX + text).plan)}


@pytest.mark.parametrize("cases", ["query", "format", "tasks"])
def test_what_is_compiled_before_a_run_is_all_that_it_calls(cases: str) -> None:
    lines, status = reported_by("-m", f"tests.support.calls_by_{cases}")
    assert status == 0
    called: list[str] = []
    beyond = []
    for line in lines:
        report = json.loads(line)
        if "case" in report:
            absent = set(map(str, calls_in(called))).difference(report["needs"])
            beyond += [f"{call} is called by {report['case']}" for call in sorted(absent)]
            called = []
        else:
            called.append(line)
    assert beyond == [], RECORD_AGAIN


def test_kernels_of_operators_that_the_plan_does_not_have_are_left_out() -> None:
    plain = kernels_of("SELECT ?a { STREAM :s [RANGE 1s] { ?a :p ?b } }")
    star = kernels_of("SELECT ?a { STREAM :s [RANGE 1s] { ?a :p ?b . ?b :q ?c } }")
    path = kernels_of("SELECT ?a { STREAM :s [RANGE 1s] { ?a :p ?b . ?b :q ?c . ?c :r ?d } }")
    assert star > plain
    assert {each for each in star - plain if each.startswith("steps.")} == {"steps.joins.join"}
    joins = {"joins.multiway.step", "joins.star.step"}
    assert [joins & each for each in (plain, star, path)] == [set(), {"joins.star.step"}, {"joins.multiway.step"}]


def test_an_order_of_results_needs_the_kernels_of_sorting() -> None:
    text = (
        "REGISTER RSTREAM :o AS SELECT ?a FROM NAMED WINDOW :w ON :s [RANGE PT3S STEP PT1S] { WINDOW :w { ?a :v ?v } }"
    )
    assert "rows.top.take" not in kernels_of(text)
    assert "rows.top.take" in kernels_of(text + " ORDER BY ?v")
    match = "SELECT ?a { MATCH WITHIN 1s { EVENT ON :s { ?a :v ?v } } }"
    assert "rows.top.take" not in kernels_of(match)
    assert "rows.top.take" in kernels_of(match.replace("MATCH", "MATCH LATEST"))


@pytest.mark.parametrize(
    ("aggregates", "by", "expected"),
    [
        ("(SUM(?v) AS ?x)", "?a", {"group"}),
        ("(MAX(?v) AS ?x) (SUM(?v) AS ?y)", "?a", {"group_terms"}),
        ("(COUNT(*) AS ?x)", "", {"group", "open_group"}),
    ],
)
def test_of_the_entries_of_aggregation_those_are_needed_that_the_operator_calls(
    aggregates: str, by: str, expected: set[str]
) -> None:
    group = f"GROUP BY {by}" if by else ""
    kernels = kernels_of(f"SELECT {aggregates} {{ STREAM :s [RANGE 1s] {{ ?a :v ?v }} }} {group}")
    entries = {each.removeprefix("aggregates.group_by.") for each in kernels if "group_by" in each}
    assert entries - {"tags_of_arguments"} == expected
    assert not any("factorised.put" in each for each in kernels)


def test_callers_are_modules_that_call_kernels() -> None:
    assert _ONLY_FOR.keys() - {call.caller for call in manifest()} == set(), RECORD_AGAIN
