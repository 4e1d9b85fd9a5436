"""Random programs in MeTeoR's syntax: the engine derives the same maximal intervals as the oracle."""

from __future__ import annotations

from fractions import Fraction
from functools import partial

import pytest

from cqels_py.engine import temporal_rules
from cqels_py.engine.temporal_rules import derived_facts
from cqels_py.state.temporal_rules import RuleState
from tests.oracle.naive_rules import Model
from tests.support.drawn_rules import draw_program


def compare(seed: int) -> None:
    drawn = draw_program(seed)
    expected = Model(drawn.rules, drawn.facts, Fraction(drawn.until)).lines()
    assert derived_facts("\n".join(drawn.rules), drawn.facts, drawn.until * 1_000_000) == expected, f"seed {seed}"


def test_random_programs() -> None:
    for seed in range(100):
        compare(seed)


def test_random_programs_with_sweeps_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are freed and reused, and chains rebuilt, as often as possible."""
    monkeypatch.setattr(temporal_rules, "RuleState", partial(RuleState, sweep_least=1))
    for seed in range(100, 160):
        compare(seed)
