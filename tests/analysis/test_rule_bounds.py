"""Bounds of rules: the paper's by hand, and measured peaks of the product and of the paper's algorithms below them."""

from __future__ import annotations

from fractions import Fraction
from random import Random

import pytest

import cqels_py as cqels
from cqels_py.analysis.rule_bounds import RuleBounds, rule_bounds
from cqels_py.engine import temporal_rules
from cqels_py.engine.temporal_rules import derived_facts
from cqels_py.parser.meteor import read_meteor_rules
from cqels_py.planner.temporal_rules.compile import compile_rules
from cqels_py.state.temporal_rules import RuleState
from tests.oracle.naive_stream_rules import reasoner

SECOND = 1_000_000
NETWORK = (
    "Flag(X,Z):-Monit(X,Z),Boxminus[0,4]Diamondminus[0,2]Signal(Z)\nBoxplus[0,3]Monit(X,Z):-Flag(Y,Z),Connect(X,Y)"
)


def bounds_of(program: str) -> RuleBounds:
    found = rule_bounds(compile_rules(read_meteor_rules(program)))
    assert found is not None
    return found


def test_bounds_of_the_network_by_hand() -> None:
    """Seven predicates, three of them hidden; five rules: three operators and two joins."""
    found = bounds_of(NETWORK)
    assert (found.greatest, found.shortest, found.least, found.unit) == (4 * SECOND, 2 * SECOND, 2 * SECOND, SECOND)
    assert (found.predicates, found.rules, found.arity) == (7, 5, 2)
    assert found.theorem_12 == (4 * ((4 + 1) // 1 + 1) ** 2 + 1) * 7
    assert found.theorem_15 == f"{9 * (2 * (4 // 2 + 2) * 5 ** ((4 + 2) // 2)) ** 2 * 7:,}"
    # SOMETIME [0,2] keeps 1 + 2, ALWAYS [0,4] 0 + 2 of facts that are known 2 s ahead, FOR [0,3] 1 + 2.
    assert found.kept == 3 + 2 + 3


def test_punctual_intervals_and_large_numbers() -> None:
    found = bounds_of("P(X):-Diamondminus[2,2]A(X),Diamondminus[0.5,1]A(X)")
    assert (found.theorem_15, found.punctual, found.shortest) == (None, (2 * SECOND,), 0)
    assert bounds_of("P(X):-Diamondminus[0,0.001]A(X)\nQ(X):-Boxminus[0,10]P(X)").theorem_15 == "10^6031"
    assert rule_bounds(compile_rules(read_meteor_rules("P(X):-A(X),B(X)"))) is None


@pytest.mark.parametrize(
    "program",
    [
        "P(X):-Diamondminus[0,2]A(X)",
        "P(X):-Diamondminus[3,4]A(X)",
        "P(X):-Diamondminus[1,2]A(X)\nQ(X):-Boxminus[2,3]P(X)",
        "P(X):-Diamondminus[2,3]A(X)\nQ(X):-Diamondminus[1,2]P(X)\nR(X):-Boxminus[0,1]Q(X)",
    ],
)
def test_peaks_stay_below_the_bounds(program: str, monkeypatch: pytest.MonkeyPatch) -> None:
    states: list[RuleState] = []

    def noted(*arguments: object) -> RuleState:
        states.append(RuleState(*arguments))  # type: ignore[arg-type]
        return states[-1]

    monkeypatch.setattr(temporal_rules, "RuleState", noted)
    bounds, most = bounds_of(program), 0
    for seed in range(12):
        random = Random(seed)
        times = sorted(random.sample(range(240), random.choice((5, 20, 60, 200))))
        facts = [f"A(a)@{time / 10:g}" for time in times]
        derived_facts(program, facts, 30 * SECOND)
        most = max(most, states[-1].peak_intervals)
        if seed < 4:
            assert bounds.shortest
            one, _ = reasoner(program.splitlines(), facts, 12, Fraction(1, 10), often=False)
            # In tenths of a second, as the data are.
            steps = bounds.greatest * 10 // SECOND + 1
            assert one.peak <= (4 * (steps + 1) ** 2 + 1) * bounds.predicates
            six, _ = reasoner(program.splitlines(), facts, 12, Fraction(1, 10), often=True)
            assert six.peak <= 9 * (2 * (bounds.greatest // bounds.shortest + 2)) ** 2 * bounds.predicates
    # One interval more: the fact that now is.
    assert bounds.kept // 3 < most <= bounds.kept + 1


def test_explain_shows_both() -> None:
    query = cqels.Engine().register_rules(NETWORK).state("Flag")
    assert "keep at most 8 intervals\n" in query.explain()
    assert "gran = 2s, P = 7 predicates, R = 5 rules, A = 2:" in query.explain()
    assert "= 1,015 · |O|^2, if all times of the data are multiples of gcd = step = 1s\n" in query.explain()
    assert "= 63,000,000 · |O|^2, for step = K = 2s\n" in query.explain()
    punctual = cqels.Engine().register_rules("P(X):-Diamondminus[2,2]A(X)").state("P").explain()
    assert "at most 0 intervals, and by [2s] one for each change of its body that is no longer ago\n" in punctual
    assert "Theorem 15: none, as it is for programs without punctual intervals\n" in punctual
