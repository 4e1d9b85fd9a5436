"""Values that SUM and AVG cannot add: counted as they come, and the first one of a query is reported."""

from __future__ import annotations

import pytest

from cqels_py import Engine
from cqels_py.engine.compile import compile_query
from cqels_py.errors import CqelsError
from cqels_py.plan.nodes import FactorisedGroups, Node, inputs_of

EX = "http://ex.org/"
XSD = "http://www.w3.org/2001/XMLSchema#"
PREFIX = f"PREFIX : <{EX}> "
ALONE = "SELECT ?k (SUM(?v) AS ?y) WHERE { STREAM :s [COUNT 6] { ?k :p ?v } } GROUP BY ?k"
BY_KEY = (
    "SELECT ?k (SUM(?v) AS ?y) WHERE { STREAM :s [COUNT 6] { ?k :p ?v } STREAM :s [COUNT 90] { ?k :q ?w } } GROUP BY ?k"
)
BY_VARIABLE = (
    "SELECT ?w (SUM(?v) AS ?y) WHERE { STREAM :s [COUNT 6] { ?k :p ?v } STREAM :s [COUNT 90] { ?k :q ?w } } GROUP BY ?w"
)
AS_ONE = "SELECT (AVG(?v) AS ?y) (SUM(?v) AS ?z) WHERE { STREAM :s [COUNT 6] { ?k :p ?v } STREAM :s [COUNT 90] { ?k :q ?w } }"
BELOW_A_JOIN = [BY_KEY, BY_VARIABLE, AS_ONE]
BATCHES = [1, 3, 1000]


def typed(text: str, kind: str) -> str:
    return f'"{text}"^^<{XSD}{kind}>'


ONE = typed("1", "integer")
DATES = [typed("2020-01-01", "date"), *(typed(f"2020-01-01T00:00:00{rest}Z", "dateTime") for rest in ("", ".123456"))]
OTHERS = [typed("true", "boolean"), typed("5 km", "integer"), typed("PT1S", "duration")]
NO_NUMBERS = ["<http://ex.org/off>", "_:off", '"off"', '"five"@en', *DATES, *OTHERS]
INTEGERS = [ONE, typed("+5", "integer"), typed("9" * 18, "integer"), typed("7", "byte")]
DECIMALS = [typed("0.50", "decimal"), typed("21.33333333333333333", "decimal")]
REALS = [typed(text, kind) for kind in ("double", "float") for text in ("1.5", "2.5E7", "NaN", "INF")]
NUMBERS = [*INTEGERS, *DECIMALS, *REALS]


class Run:
    """An engine that processes so many elements at once, and its reports."""

    def __init__(self, batch: int) -> None:
        self.reports: list[CqelsError] = []
        self.engine = Engine(batch=batch, report=self.reports.append)
        self._time = 0

    def push(self, predicate: str, *values: str) -> None:
        """An element for each value."""
        for value in values:
            self._time += 1
            self.engine.push(f"{EX}s", [(f"<{EX}k>", f"<{EX}{predicate}>", value)], time=self._time)


def factorised(node: Node) -> bool:
    return isinstance(node, FactorisedGroups) or any(map(factorised, inputs_of(node)))


@pytest.mark.parametrize("query", BELOW_A_JOIN)
def test_these_are_summed_below_their_joins(query: str) -> None:
    assert factorised(compile_query(PREFIX + query).plan.root)
    assert not factorised(compile_query(PREFIX + ALONE).plan.root)


@pytest.mark.parametrize("batch", BATCHES)
@pytest.mark.parametrize("query", [ALONE, *BELOW_A_JOIN])
def test_they_are_counted_as_they_come_and_the_first_is_reported_once(query: str, batch: int) -> None:
    run = Run(batch)
    registered = run.engine.register(PREFIX + query)
    run.push("q", ONE)
    run.push("p", ONE, '"off"', ONE, f"<{EX}broken>", '"off"')
    # The last of them leaves the window.
    run.push("p", *[ONE] * 7)
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 3
    (report,) = run.reports
    assert str(report).startswith(f'a query over <{EX}s>: SUM and AVG add numbers, and "off" is not a number: ')
    values = [result.bindings.get("y") for result in registered.results()]
    assert None in values
    assert values[-1] is not None


@pytest.mark.parametrize("query", [ALONE, BY_KEY])
@pytest.mark.parametrize("value", NO_NUMBERS)
def test_every_kind_of_term_but_a_number_is_one(query: str, value: str) -> None:
    run = Run(2)
    run.engine.register(PREFIX + query)
    run.push("q", ONE)
    run.push("p", ONE, value, ONE)
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 1
    (report,) = run.reports
    assert value.startswith("_:") or value[:50] in str(report)


@pytest.mark.parametrize("query", [ALONE, BY_KEY])
def test_numbers_in_any_form_are_none_of_them(query: str) -> None:
    run = Run(2)
    run.engine.register(PREFIX + query)
    run.push("q", ONE)
    run.push("p", *NUMBERS)
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 0
    assert not run.reports


@pytest.mark.parametrize("batch", BATCHES)
def test_unbound_values_are_not_reported(batch: int) -> None:
    run = Run(batch)
    pattern = "STREAM :s [COUNT 6] { ?k :q ?w OPTIONAL { ?k :p ?v } }"
    query = run.engine.register(f"{PREFIX}SELECT (SUM(?v) AS ?y) (AVG(?v + 1) AS ?z) WHERE {{ {pattern} }}")
    run.push("q", ONE, '"off"')
    run.engine.finish()
    assert [result.bindings.get("y") for result in query.results()][-1] is None
    assert run.engine.statistics.no_numbers == 0
    assert not run.reports


def test_other_aggregates_take_any_term() -> None:
    run = Run(2)
    run.engine.register(
        f"{PREFIX}SELECT (COUNT(?v) AS ?y) (MAX(?v) AS ?z) WHERE {{ STREAM :s [COUNT 6] {{ ?k :p ?v }} }}"
    )
    run.push("p", *NO_NUMBERS)
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 0
    assert not run.reports


@pytest.mark.parametrize("select", ["(SUM(?v) AS ?y) (AVG(?v) AS ?z)", "(SUM(?v) AS ?y) (SUM(DISTINCT ?v) AS ?z)"])
@pytest.mark.parametrize("joined", ["", " STREAM :s [COUNT 90] { ?k :q ?w }"])
def test_a_value_that_several_sums_ask_for_counts_once(select: str, joined: str) -> None:
    run = Run(3)
    run.engine.register(f"{PREFIX}SELECT {select} WHERE {{ STREAM :s [COUNT 6] {{ ?k :p ?v }}{joined} }}")
    run.push("q", ONE)
    run.push("p", '"off"', ONE, '"on"')
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 2
    assert len(run.reports) == 1


def test_each_query_reports_its_own_and_a_long_value_is_cut() -> None:
    run = Run(1)
    run.engine.register(PREFIX + ALONE)
    run.engine.register(PREFIX + BY_KEY)
    run.push("q", ONE)
    run.push("p", f'"{"x" * 100}"')
    run.engine.finish()
    assert run.engine.statistics.no_numbers == 2
    assert len(run.reports) == 2
    assert all(f'and "{"x" * 49}… is not a number' in str(report) for report in run.reports)


def test_numbers_with_too_many_digits_are_counted_and_have_a_warning_of_their_own(
    caplog: pytest.LogCaptureFixture,
) -> None:
    run = Run(1)
    run.engine.register(PREFIX + ALONE)
    run.push("p", typed("9" * 50, "integer"), '"off"')
    run.engine.finish()
    assert "37 digits" in caplog.text
    assert run.engine.statistics.no_numbers == 2
    (report,) = run.reports
    assert '"off" is not a number' in str(report)
