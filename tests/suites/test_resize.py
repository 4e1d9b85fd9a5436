"""Queries with windows of another size."""

from __future__ import annotations

import pytest

from cqels_py.algebra.nodes import ElementCount
from cqels_py.errors import UnsupportedQuery
from cqels_py.parser import parse
from cqels_py.suites.resize import with_windows_of

P = "PREFIX : <http://ex.org/>\n"


@pytest.mark.parametrize(
    "text",
    [
        P
        + "SELECT ?s { STREAM :s [RANGE 5s STEP 1s @ :time] { ?s :p ?o } STREAM <http://t> [NOW] { ?s :p [ :q ?x ] } }",
        P
        + "SELECT ?s FROM NAMED WINDOW :w ON :s [RANGE PT5S] FROM NAMED WINDOW :v ON STREAM :t [RANGE PT1S STEP PT1S] "
        "WHERE { WINDOW :w { ?s :on [] } WINDOW :v { ?s :p ?o } }",
        P + "SELECT ?s FROM STREAM <http://s> [RANGE 5s STEP 1s] { ?s :p ?o . [] :p ?s }",
    ],
)
def test_every_window_gets_the_size_and_nothing_else_changes(text: str) -> None:
    before, after = parse(text), parse(with_windows_of(text, 70))
    assert [window.extent for window in after.windows] == [ElementCount(70)] * len(before.windows)
    assert [window.time_predicate for window in after.windows] == [window.time_predicate for window in before.windows]
    assert after.pattern == before.pattern


@pytest.mark.parametrize(
    "text",
    [
        P + "SELECT ?s { STREAM :s [COUNT 5 PARTITION BY ?s] { ?s :p ?o } }",
        P + "REGISTER QUERY q COMPUTED EVERY 1m AS SELECT ?s FROM STREAM <http://s> [RANGE 5m] { ?s :p ?o }",
    ],
)
def test_windows_that_have_no_single_size(text: str) -> None:
    with pytest.raises(UnsupportedQuery, match="--window"):
        with_windows_of(text, 10)
