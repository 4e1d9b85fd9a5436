"""The strategies generate the data that they promise."""

from __future__ import annotations

import itertools
import re

import pytest
from hypothesis import given
from rdflib.plugins.sparql.algebra import translateQuery
from rdflib.plugins.sparql.parser import parseQuery

from cqels_py.algebra.nodes import Dialect
from tests.support.generators import C_SPARQL_WINDOWS, FEATURES, FEW, RSP_QL_WINDOWS, WINDOWS, Scenario, scenarios

_WINDOW_WORDS = (
    (r"FROM STREAM (<[^>]+>) \[[^\]]+\]", r"FROM \1"),
    (r"STREAM (<[^>]+>) \[[^\]]+\]", r"GRAPH \1"),
    (r"WINDOW (:\w+)", r"GRAPH \1"),
    (r"FROM NAMED GRAPH (:\w+) ON <[^>]+> \[[^\]]+\]", r"FROM NAMED \1"),
    (r"REGISTER \w+ \S+ AS", ""),
)


def plain_sparql(text: str) -> str:
    """The query with windows as named graphs."""
    for pattern, replacement in _WINDOW_WORDS:
        text = re.sub(pattern, replacement, text)
    return text


@pytest.mark.filterwarnings("ignore::DeprecationWarning")
@pytest.mark.parametrize(
    ("features", "windows"),
    # Of all that there is, hardly any query has a form in C-SPARQL.
    [(FEATURES, WINDOWS), (frozenset({"join", "filter", "aggregate"}), C_SPARQL_WINDOWS), (FEATURES, RSP_QL_WINDOWS)],
)
def test_every_text_is_sparql_but_for_its_windows(features: frozenset[str], windows: frozenset[str]) -> None:
    @FEW
    @given(scenarios(features, windows))
    def check(scenario: Scenario) -> None:
        assert Dialect.CQELS_QL in scenario.texts
        assert windows != RSP_QL_WINDOWS or Dialect.RSP_QL in scenario.texts
        for text in scenario.texts.values():
            translateQuery(parseQuery(plain_sparql(text)))

    check()


@given(scenarios(FEATURES, WINDOWS))
def test_elements_are_in_order_and_small(scenario: Scenario) -> None:
    assert all(a.time <= b.time for a, b in itertools.pairwise(scenario.elements))
    assert len(scenario.elements) <= 25
    assert all(1 <= len(element.triples) <= 5 for element in scenario.elements)
