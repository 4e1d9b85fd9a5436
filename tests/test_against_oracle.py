"""The first property: on random streams and queries the engine gives the oracle's results, at any batch size."""

from __future__ import annotations

import pytest
from hypothesis import given, reject

from cqels_py.algebra.nodes import Dialect, Output
from tests import test_golden
from tests.support import harness
from tests.support.generators import (
    C_SPARQL_WINDOWS,
    FEATURES,
    FEW,
    RSP_QL_WINDOWS,
    WINDOWS,
    Scenario,
    answerable,
    scenarios,
)


def agree(scenario: Scenario, dialect: Dialect, output: Output | None = Output.CHANGELOG) -> None:
    """Engine and oracle agree, or the engine refuses the query."""
    if dialect not in scenario.texts:
        reject()
    with answerable():
        harness.assert_engine_right(scenario.texts[dialect], scenario.elements, scenario.static, output)


@pytest.mark.parametrize("feature", sorted(FEATURES))
def test_each_feature(feature: str) -> None:
    @FEW
    @given(scenarios({"join", feature}, {"range", "count", "triples"}, most_elements=12))
    def check(scenario: Scenario) -> None:
        agree(scenario, Dialect.CQELS_QL)

    check()


@pytest.mark.parametrize("window", sorted(WINDOWS))
def test_each_window(window: str) -> None:
    @FEW
    @given(scenarios({"join", "aggregate"}, {window}, most_elements=12))
    def check(scenario: Scenario) -> None:
        agree(scenario, Dialect.CQELS_QL)

    check()


@given(scenarios(FEATURES, WINDOWS, most_elements=12))
def test_everything_together(scenario: Scenario) -> None:
    agree(scenario, Dialect.CQELS_QL)


@given(scenarios(FEATURES, RSP_QL_WINDOWS, most_elements=12))
def test_rsp_ql(scenario: Scenario) -> None:
    agree(scenario, Dialect.RSP_QL)


@given(scenarios({"join", "filter", "aggregate"}, C_SPARQL_WINDOWS, most_elements=12))
def test_c_sparql(scenario: Scenario) -> None:
    agree(scenario, Dialect.C_SPARQL, None)


@pytest.mark.parametrize("batch", harness.BATCH_SIZES)
def test_figure_8(batch: int | None) -> None:
    text = (test_golden.GOLDEN / "figure8.rq").read_text()
    elements = test_golden.golden_elements("figure8")
    expected = harness.expected_changes(test_golden.figure8(), elements)
    harness.check_equal(expected, harness.run_engine(text, elements, None, batch, Output.CHANGELOG))
