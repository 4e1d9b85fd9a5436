"""Warnings about rules that say less than they seem to."""

from __future__ import annotations

import pytest

import cqels_py as cqels


def warnings(rules: str, state: str = "?m a :Hot") -> tuple[str, ...]:
    text = f"PREFIX : <http://ex.org/> RULES ON :s {{ {rules} }} SELECT ?m WHERE {{ STATE {{ {state} }} }}"
    return cqels.Engine().register(text).warnings


READS = "RULE { ?m a :Hot } FOR [0s, 5s] WHERE { ?m :temperature ?t FILTER(?t > 24) }"


def test_a_misspelt_class_in_state() -> None:
    (warning,) = warnings(READS, "?m a :Hott")
    assert "<http://ex.org/Hott>, which no rule derives or reads" in warning
    assert warning.endswith("did you mean a <http://ex.org/Hot>?")
    (warning,) = warnings(READS, "?m a :Hot ; :colour ?c")
    assert warning.startswith("STATE asks for <http://ex.org/colour>")
    assert "mean" not in warning


@pytest.mark.parametrize("state", ["?m a :Hot", "?m a :Hot ; :temperature ?t"])
def test_what_rules_derive_or_read_may_be_asked_for(state: str) -> None:
    assert warnings(READS, state) == ()


@pytest.mark.parametrize(
    "body",
    [
        "ALWAYS [0s, 5s] { ?m :temperature ?t }",
        "SOMETIME [0s, 1s] { ALWAYS [0s, 5s] { ?m :temperature ?t FILTER(?t > 3) } }",
        "ALWAYS [0s, 5s] { SOMETIME [2s] { ?m a :Warm } }",
        "{ ALWAYS [0s, 5s] { ?m a :Warm } } SINCE [0s, 1s] { ?m a :Warm }",
    ],
)
def test_always_of_points(body: str) -> None:
    (warning,) = warnings(f"RULE {{ ?m a :Warm }} WHERE {{ ?m :t ?x }} RULE {{ ?m a :Hot }} WHERE {{ {body} }}")
    assert "never holds for triples of streams" in warning


@pytest.mark.parametrize(
    "rules",
    [
        "RULE { ?m a :Hot } WHERE { ALWAYS [0s, 5s] { SOMETIME [0s, 2s] { ?m :temperature ?t } } }",
        "RULE { ?m a :Hot } WHERE { ALWAYS [2s] { ?m :temperature ?t } }",
        "RULE { ?m a :Warm } FOR [0s, 5s] WHERE { ?m :t ?x } RULE { ?m a :Mild } WHERE { ?m a :Warm } "
        "RULE { ?m a :Hot } WHERE { ALWAYS [0s, 5s] { ?m a :Mild ; :near ?n } }",
        "RULE { ?m a :Warm } UNTIL REPLACED BY ?m WHERE { ?m :t ?x } RULE { ?m a :Hot } WHERE { ALWAYS [0s, 5s] { ?m a :Warm } }",
    ],
)
def test_always_of_what_may_last(rules: str) -> None:
    assert warnings(rules) == ()


def test_how_long_a_head_holds_stands_before_where() -> None:
    with pytest.raises(cqels.QuerySyntaxError, match="stands in front of WHERE: RULE"):
        warnings("RULE { ?m a :Hot } WHERE { ?m :t ?x } FOR [0s, 5s]")
