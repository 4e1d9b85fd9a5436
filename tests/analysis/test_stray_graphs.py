"""A static graph with the name of a stream causes a warning that shows how to query the stream's window."""

from __future__ import annotations

import pytest

from cqels_py.analysis.stray_graphs import stray_graphs
from cqels_py.parser import parse

PREFIX = "PREFIX : <http://ex.org/> "


@pytest.mark.parametrize(
    ("text", "instead"),
    [
        (
            "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } GRAPH :s { ?b :q ?c } }",
            "STREAM <http://ex.org/s> [RANGE 10s]",
        ),
        (
            "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } FILTER NOT EXISTS { GRAPH :s { ?b :q ?c } } }",
            "STREAM <http://ex.org/s> [RANGE 10s]",
        ),
        (
            "REGISTER QUERY q AS SELECT * FROM STREAM :s [RANGE 5s STEP 1s] { ?a :p ?b GRAPH :s { ?b :q ?c } }",
            "FROM NAMED STREAM <http://ex.org/s> [RANGE 10s STEP 1s]",
        ),
        (
            "REGISTER RSTREAM <o> AS SELECT * FROM NAMED WINDOW :w ON :s [RANGE PT5S STEP PT1S] "
            "{ WINDOW :w { ?a :p ?b } GRAPH :s { ?b :q ?c } }",
            "FROM NAMED WINDOW <w> ON <http://ex.org/s>",
        ),
    ],
)
def test_a_stream_that_is_asked_as_a_graph_is_told_of(text: str, instead: str) -> None:
    (warning,) = stray_graphs(parse(PREFIX + text))
    assert warning.startswith("GRAPH <http://ex.org/s> reads static data of that name")
    assert instead in warning


@pytest.mark.parametrize(
    "text",
    [
        "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } GRAPH :t { ?b :q ?c } }",
        "SELECT * { STREAM :s [RANGE 5s] { ?a :p ?b } GRAPH ?g { ?b :q ?c } }",
        "REGISTER QUERY q AS SELECT * FROM NAMED STREAM :s [RANGE 5s STEP 1s] { GRAPH :s { ?a :p ?b } }",
    ],
)
def test_other_graphs_are_not(text: str) -> None:
    assert stray_graphs(parse(PREFIX + text)) == ()
