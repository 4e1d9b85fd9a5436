"""An unknown function is refused at its place in the text, though the planner finds it."""

from __future__ import annotations

import pytest

from cqels_py.engine.compile import compile_query
from cqels_py.errors import UnsupportedQuery

PREFIX = "PREFIX : <http://ex.org/> BASE <http://other.org/>\n"


@pytest.mark.parametrize(
    ("text", "function", "line", "column"),
    [
        ("SELECT ?s { STREAM :s [NOW] { ?s :f ?x } FILTER(:f(?x) > 3) }", "http://ex.org/f", 2, 49),
        ("SELECT ?y {\n STREAM :s [NOW] { ?s :v ?x }\n BIND(<g> (?x) AS ?y) }", "http://other.org/g", 4, 7),
        ("SELECT (SUM(:f(?x)) AS ?n) { # :f(?x)\n STREAM :s [NOW] { ?s :v ?x } }", "http://ex.org/f", 2, 13),
        ("SELECT ?s { STREAM :s [NOW] { ?s :v ?x } } ORDER BY <http://ex.org/f>(?x) LIMIT 1", "http://ex.org/f", 2, 53),
    ],
)
def test_the_place_of_a_call(text: str, function: str, line: int, column: int) -> None:
    with pytest.raises(UnsupportedQuery, match=f"q.rq:{line}:{column}: unknown function {function}: ") as caught:
        compile_query(PREFIX + text, source="q.rq")
    assert caught.value.function == function


def test_a_function_of_an_endpoint_is_its_own() -> None:
    text = "SELECT ?s { SERVICE :e { ?s :v ?x FILTER(:f(?x)) }\n STREAM :s [NOW] { ?s :v ?x FILTER(:f(?x)) } }"
    with pytest.raises(UnsupportedQuery, match=":3:36: unknown function"):
        compile_query(PREFIX + text, ask=lambda *_, **_more: [])
