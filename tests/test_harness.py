"""The comparison finds all differences, and no others."""

from __future__ import annotations

from typing import Any

import pytest
from rdflib import Literal, Variable

from tests.oracle.naive import Change, Mapping
from tests.support import harness, traces
from tests.support.harness import Result, check_equal
from tests.support.traces import term


def mapping(text: str) -> Mapping:
    """`v=term w=term`."""
    return frozenset((Variable(name), term(value)) for name, _, value in (part.partition("=") for part in text.split()))


EXPECTED = [
    Change(1, 0, 1, mapping("s=a")),
    Change(1, 0, 1, mapping("s=b")),
    Change(5, 1, -1, mapping("s=a")),
    Change(5, 2, 1, mapping("s=a")),
]
RIGHT = [Result(change.time, change.sign, change.mapping) for change in EXPECTED]


def test_order_within_a_tick_is_free() -> None:
    check_equal(EXPECTED, RIGHT)
    check_equal(EXPECTED, [RIGHT[1], RIGHT[0], *RIGHT[2:]])


@pytest.mark.parametrize(
    ("wrong", "words"),
    [
        (RIGHT[1:], "missing    \\+ s=a"),
        ([*RIGHT, RIGHT[0]], "unexpected \\+ s=a"),
        ([*RIGHT, Result(9, 1, mapping("s=c"))], "9 \\(no tick\\) unexpected \\+ s=c"),
        ([Result(1, -1, mapping("s=a")), *RIGHT[1:]], "unexpected - s=a"),
        ([*RIGHT[:2], RIGHT[3], RIGHT[2]], "tick 1"),
        ([RIGHT[2], *RIGHT[:2], RIGHT[3]], "out of order"),
        ([], "missing"),
    ],
)
def test_differences_are_shown(wrong: list[Result], words: str) -> None:
    with pytest.raises(AssertionError, match=words):
        check_equal(EXPECTED, wrong)


@pytest.mark.parametrize(
    ("one", "other", "same"),
    [
        ("2.50", "2.5", True),
        ("2", "2.0", False),
        ("1.0e0", "1.00000000000001e0", True),
        ("1.0e0", "1.001e0", False),
        ("1.00000000000001", "1.0", False),
        ("'x'", "'x'@en", False),
        ("'1'", "1", False),
        ("a", "a", True),
    ],
)
def test_equality_of_results(one: str, other: str, same: bool) -> None:
    expected = [Change(1, 0, 1, mapping(f"v={one}"))]
    actual = [Result(1, 1, mapping(f"v={other}"))]
    if same:
        check_equal(expected, actual)
    else:
        with pytest.raises(AssertionError):
            check_equal(expected, actual)


def test_plain_and_xsd_strings_are_one_term() -> None:
    typed = Literal("x", datatype="http://www.w3.org/2001/XMLSchema#string")
    check_equal([Change(1, 0, 1, mapping("v='x'"))], [Result(1, 1, frozenset({(Variable("v"), typed)}))])


def test_very_many_results_are_compared_once(monkeypatch: pytest.MonkeyPatch) -> None:
    text = "PREFIX : <http://ex.org/> SELECT * WHERE { STREAM <http://ex.org/stream/s> [RANGE 3s] { ?a :p ?b } }"
    elements = traces.elements("0 s a p b\n1 s a p c\n2 s a p a")
    sizes: list[int | None] = []
    run_engine = harness.run_engine

    def noting(*given: Any) -> list[Result]:
        sizes.append(given[3])
        return run_engine(*given)

    monkeypatch.setattr(harness, "run_engine", noting)
    harness.assert_engine_right(text, elements, batches=(1, 2, None))
    monkeypatch.setattr(harness, "MANY_RESULTS", 2)
    harness.assert_engine_right(text, elements, batches=(1, 2, None))
    assert sizes == [1, 2, None, None]
