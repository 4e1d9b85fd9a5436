"""Random programs in MeTeoR's syntax: the engine derives the same maximal intervals as the oracle."""

from __future__ import annotations

import json
import os
from fractions import Fraction
from functools import partial
from pathlib import Path

import pytest

from cqels_py.engine import temporal_rules
from cqels_py.engine.temporal_rules import derived_facts
from cqels_py.state.temporal_rules import RuleState
from tests.oracle.naive_rules import Model
from tests.support.drawn_rules import draw_program
from tests.support.generators import SOAKING

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLES = DATA / "seeds" / "rules" / "vectors.json"
"""Programs with their derived facts, which are not part of the repository."""


def compare(seed: int) -> None:
    drawn = draw_program(seed)
    expected = Model(drawn.rules, drawn.facts, Fraction(drawn.until)).lines()
    assert derived_facts("\n".join(drawn.rules), drawn.facts, drawn.until * 1_000_000) == expected, f"seed {seed}"


def test_random_programs() -> None:
    for seed in range(5_000 if SOAKING else 100):
        compare(seed)


def test_random_programs_with_sweeps_at_each_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are freed and reused, and chains rebuilt, as often as possible."""
    monkeypatch.setattr(temporal_rules, "RuleState", partial(RuleState, sweep_least=1))
    for seed in range(100, 160):
        compare(seed)


@pytest.mark.skipif(not EXAMPLES.exists(), reason="set CQELS_SHARED_DATA to the folder with seeds/rules")
def test_published_examples() -> None:
    for example in json.loads(EXAMPLES.read_text()):
        until = int(Fraction(example["horizon"]) * 1_000_000)
        found = derived_facts(example["program"], example["facts"], until)
        for predicate, expected in example["derived"].items():
            assert [line for line in found if line.startswith(f"{predicate}(")] == sorted(expected), example["name"]
