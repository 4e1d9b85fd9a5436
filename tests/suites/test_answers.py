"""Which answers of two engines are the same."""

from __future__ import annotations

from collections import Counter

import pytest

from cqels_py.suites.answers import Row, difference, read_terms

XSD = "http://www.w3.org/2001/XMLSchema#"


def typed(lexical: str, datatype: str) -> str:
    return f'"{lexical}"^^<{XSD}{datatype}>'


def row(*terms: str | None) -> Row:
    return tuple(read_terms(terms))


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (typed("05", "int"), typed("5", "integer")),
        (typed("5.50", "decimal"), typed("5.5", "decimal")),
        (typed("2.3333333333333333", "decimal"), typed("2.333333333333333333", "decimal")),
        (typed("71.20001", "float"), typed("71.2", "float")),
        (typed("NaN", "double"), typed("NaN", "double")),
        (typed("2024-01-01T00:00:00.500Z", "dateTime"), typed("2024-01-01T00:00:00.5+00:00", "dateTime")),
        (typed("2024-01-01T00:00:00.000Z", "dateTime"), typed("2024-01-01T00:00:00Z", "dateTime")),
        (typed("1", "boolean"), typed("true", "boolean")),
        ('"a"@EN', '"a"@en'),
        ("_:a", "_:b"),
        (None, None),
    ],
)
def test_the_same_values(one: str | None, other: str | None) -> None:
    assert difference(Counter([row(one)]), Counter([row(other)])) == ([], [])


@pytest.mark.parametrize(
    ("one", "other"),
    [
        (typed("5", "integer"), typed("6", "integer")),
        (typed("5", "integer"), typed("5", "decimal")),
        (typed("2.33", "decimal"), typed("2.34", "decimal")),
        (typed("71.2", "float"), typed("72", "float")),
        (typed("10", "integer"), '"10"'),
        ('"a"@en', '"a"'),
        ("<x:a>", "<x:b>"),
        ("<x:a>", None),
        (typed("10", "integer"), typed("1", "integer")),
        (typed("2024-01-01T00:00:10Z", "dateTime"), typed("2024-01-01T00:00:01Z", "dateTime")),
    ],
)
def test_other_values(one: str, other: str | None) -> None:
    assert difference(Counter([row(one)]), Counter([row(other)])) == ([row(one)], [row(other)])


def test_bags_are_compared_as_bags() -> None:
    a, b = row("<x:a>"), row("<x:b>")
    assert difference(Counter([a, a, b]), Counter([a, b])) == ([a], [])


def test_rows_that_differ_a_little_are_paired_whatever_their_order() -> None:
    ours = [
        row(typed("5.00001", "float"), typed("7", "integer")),
        row(typed("5.00002", "float"), typed("3", "integer")),
    ]
    theirs = [
        row(typed("5.00001", "float"), typed("3", "integer")),
        row(typed("5.00003", "float"), typed("7", "integer")),
    ]
    assert difference(Counter(ours), Counter(theirs)) == ([], [])
    assert difference(Counter(ours), Counter(theirs[:1] * 2)) == (ours[:1], theirs[:1])
