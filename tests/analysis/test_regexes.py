"""Registration warns of constant regular expressions that are invalid."""

from __future__ import annotations

import pytest

from cqels_py.analysis.regexes import invalid_regexes
from cqels_py.engine.compile import compile_query
from cqels_py.parser import parse

_QUERY = "SELECT ?s {{ STREAM <http://ex.org/s> [RANGE 1s] {{ ?s <http://ex.org/p> ?o }} {} }}"


@pytest.mark.parametrize(
    ("clause", "expected"),
    [
        (
            'FILTER(REGEX(?o, "(a"))',
            "REGEX is an error for every argument: the regular expression '(a': a group is",
        ),
        ('FILTER(!REGEX(STR(?o), "a", "w"))', "REGEX is an error for every argument: unknown flags 'w'"),
        (
            'BIND(REPLACE(?o, "a**", "b") AS ?x)',
            "REPLACE is an error for every argument: the regular expression 'a**'",
        ),
        ('FILTER EXISTS { ?s ?p ?x FILTER REGEX(?x, "[") }', "REGEX is an error for every argument: the regular"),
    ],
)
def test_what_is_no_regular_expression_is_told(clause: str, expected: str) -> None:
    text = _QUERY.format(clause)
    (warning,) = invalid_regexes(parse(text))
    assert warning.startswith(expected)
    assert warning in compile_query(text).warnings


@pytest.mark.parametrize(
    "clause",
    [
        'FILTER(REGEX(?o, "a(b|c)*", "i"))',
        'FILTER(REGEX(?o, "(a", "q"))',
        "FILTER(REGEX(?o, ?s))",
        'FILTER(REGEX(?o, "(a", ?s))',
        'BIND(REPLACE(?o, "a", "(") AS ?x)',
        'FILTER(CONTAINS(?o, "(a"))',
    ],
)
def test_others_pass_without_a_word(clause: str) -> None:
    assert invalid_regexes(parse(_QUERY.format(clause))) == ()
