"""A FILTER that compares two events behind a choice among matches causes a warning."""

from __future__ import annotations

import pytest

import cqels_py as cqels
from cqels_py.analysis.late_comparisons import late_comparisons
from cqels_py.parser import parse

EVENTS = "{ EVENT ON :s { ?a :p ?p ; :k ?k } SEQ EVENT ON :s { ?b :r ?r ; :k ?k } }"


def warnings_of(head: str, tail: str, events: str = EVENTS) -> tuple[str, ...]:
    return late_comparisons(parse(f"PREFIX : <http://ex.org/> SELECT * {{ {head.replace('EVENTS', events)} {tail} }}"))


@pytest.mark.parametrize(
    ("head", "words"),
    [
        ("MATCH LATEST WITHIN 1h EVENTS", "LATEST"),
        ("MATCH EARLIEST WITHIN 1h EVENTS", "EARLIEST"),
        ("MATCH WITHIN 1h CONSUME EVENTS", "CONSUME"),
        ("MATCH LATEST WITHIN 1h CONSUME EVENTS", "LATEST … CONSUME"),
    ],
)
@pytest.mark.parametrize(
    "tail",
    [
        "FILTER(?r > ?p)",
        "FILTER(?k != :x && ?r - ?p > 5)",
        "BIND(?r - ?p AS ?d) FILTER(?d > 5)",
        "BIND(?p + 1 AS ?q) BIND(?r - ?q AS ?d) FILTER(?d > 5)",
        "STREAM :t [RANGE 1h] { ?k :limit ?l } FILTER(?r > ?p + ?l)",
    ],
)
def test_a_comparison_of_two_events_behind_a_choice_is_told_of(head: str, words: str, tail: str) -> None:
    (warning,) = warnings_of(head, tail)
    assert warning.startswith("FILTER(")
    assert f"behind MATCH {words}," in warning


@pytest.mark.parametrize(
    ("head", "tail"),
    [
        ("MATCH WITHIN 1h EVENTS", "FILTER(?r > ?p)"),
        ("MATCH LATEST WITHIN 1h EVENTS", "FILTER(?r > 5)"),
        ("MATCH LATEST WITHIN 1h EVENTS", "FILTER(?k != ?r)"),
        ("MATCH LATEST WITHIN 1h EVENTS", "STREAM :t [RANGE 1h] { ?k :limit ?l } FILTER(?r > ?l)"),
        ("{ SELECT * { MATCH LATEST WITHIN 1h EVENTS } }", "FILTER(?r > ?p)"),
        ("STREAM :t [RANGE 1h] { ?x :p ?p ; :r ?r FILTER(?r > ?p) } MATCH LATEST WITHIN 1h EVENTS", ""),
    ],
)
def test_others_are_not(head: str, tail: str) -> None:
    events = EVENTS if ":t" not in head else EVENTS.replace("?p ", "?y ").replace("?r ", "?z ")
    assert warnings_of(head, tail, events) == ()


def test_it_is_told_at_registration() -> None:
    text = f"PREFIX : <http://ex.org/> SELECT * {{ MATCH LATEST WITHIN 1h {EVENTS} FILTER(?r > ?p) }}"
    with cqels.Engine() as engine:
        assert any("compares events behind MATCH LATEST" in warning for warning in engine.register(text).warnings)
