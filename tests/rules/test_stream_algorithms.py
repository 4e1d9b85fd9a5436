"""The paper's stream reasoning algorithms derive what the product derives, and Examples 8 and 9 in numbers of our own."""

from __future__ import annotations

import json
import os
import re
from fractions import Fraction
from itertools import product
from pathlib import Path

import pytest

from cqels_py.engine import temporal_rules
from cqels_py.engine.temporal_rules import derived_facts
from cqels_py.state.temporal_rules import RuleState
from tests.oracle.naive_rules import Ground, read_fact, read_rule
from tests.oracle.naive_stream_rules import (
    Cells,
    Facts,
    StreamReasoner,
    cells,
    narrowed,
    normal_rules,
    reasoner,
    shifted,
)
from tests.support.drawn_rules import DrawnProgram, draw_program
from tests.support.generators import SOAKING

DATA = Path(os.environ.get("CQELS_SHARED_DATA", Path(__file__).parents[3] / "shared" / "data"))
EXAMPLE = DATA / "seeds" / "rules" / "example8_9.json"
NUMBER = re.compile(r"[\d.]+")
PUNCTUAL = re.compile(r"[\[(](\d+)(?:,\1)?[\])]")


def drawn(seed: int, *, punctual: bool) -> DrawnProgram:
    """A drawn program without SINCE, and facts at points."""
    program = draw_program(seed)
    rules = tuple(
        rule
        for rule in program.rules
        if "Since" not in rule and (punctual or not PUNCTUAL.search(rule.replace("()", "")))
    )
    points = (fact.partition("@")[::2] for fact in program.facts)
    facts = [f"{atom}@{NUMBER.findall(interval)[0]}" for atom, interval in points]
    return DrawnProgram(rules, tuple(facts), program.until)


def compare(seed: int, *, often: bool) -> None:
    program = drawn(seed, punctual=not often)
    if not program.rules:
        return
    expected = derived_facts("\n".join(program.rules), program.facts, program.until * 1_000_000)
    for step in (Fraction(1, 2), Fraction(3)):
        _, found = reasoner(program.rules, program.facts, program.until, step, often=often)
        assert found == expected, (seed, step)


def test_algorithm_1() -> None:
    for seed in range(1_000 if SOAKING else 60):
        compare(seed, often=False)


def test_algorithm_6() -> None:
    for seed in range(1_000 if SOAKING else 60):
        compare(seed, often=True)


NETWORK = ["Flag(X,Z):-Monit(X,Z),Boxminus[0,4]Diamondminus[0,2]Signal(Z)", "Boxplus[0,3]Monit(X,Z):-Flag(X,Z)"]


def test_denser_facts_fill_the_window_of_algorithm_1_only(monkeypatch: pytest.MonkeyPatch) -> None:
    peaks = []
    for gap in (Fraction(1), Fraction(1, 8)):
        facts = [f"Signal(s)@{float(number * gap):g}" for number in range(int(8 / gap) + 1)] + ["Monit(a,s)@4"]
        states: list[RuleState] = []

        def noted(*arguments: object, states: list[RuleState] = states) -> RuleState:
            states.append(RuleState(*arguments))  # type: ignore[arg-type]
            return states[-1]

        monkeypatch.setattr(temporal_rules, "RuleState", noted)
        expected = derived_facts("\n".join(NETWORK), facts, 8_000_000)
        one, lines = reasoner(NETWORK, facts, 8, Fraction(1), often=False)
        six, same = reasoner(NETWORK, facts, 8, Fraction(1), often=True)
        assert lines == same == expected
        assert "Flag(a,s)@[4,8]" in expected
        peaks.append((one.peak, six.peak, states[0].peak_intervals))
    (first, sixth, product_), (denser, sixth_denser, product_denser) = peaks
    assert denser > 3 * first
    assert sixth == sixth_denser >= product_ == product_denser


@pytest.mark.parametrize(("left", "right", "low", "high"), list(product("[(", "])", "[(", "])")))
def test_intervals_of_all_brackets(left: str, right: str, low: str, high: str) -> None:
    """The sums of section 2 of the paper, and by the definition, for t at all cells."""
    held = cells((Fraction(0), left == "[", Fraction(10), right == "]"), Fraction(1))
    distance = cells((Fraction(2), low == "[", Fraction(4), high == "]"), Fraction(1))
    if (left, right, low, high) == ("[", "]", "[", "]"):
        assert (shifted(held, distance), narrowed(held, distance)) == ((4, 28), (8, 24)), "[2,14] and [4,12]"
    tenths, distances = [Fraction(n, 10) for n in range(-10, 161)], [Fraction(n, 20) for n in range(101)]

    def within(value: Fraction, interval: Cells) -> bool:
        return interval[0] <= 2 * (value // 1) + (value % 1 > 0) <= interval[1]

    sums, narrow = shifted(held, distance), narrowed(held, distance)
    for time in tenths:
        looked = [within(time - each, held) for each in distances if within(each, distance)]
        assert sums is not None
        assert narrow is not None
        # All ends are whole numbers; at these the brackets decide, below.
        if time % 1:
            assert any(looked) == within(time, sums), time
            assert all(looked) == within(time, narrow), time
    closed_sum = ((left, low) == ("[", "["), (right, high) == ("]", "]"))
    assert sums == (4 + (not closed_sum[0]), 28 - (not closed_sum[1]))
    closed = (left == "[" or high == ")", right == "]" or low == "(")
    assert narrow == (8 + (not closed[0]), 24 - (not closed[1]))


PROGRAM = ["Seen(Z):-Diamondminus[0,3]Ping(Z)", "Steady(Z):-Boxminus[0,6]Seen(Z)", "Report(X,Z):-Watch(X,Z),Steady(Z)"]


def turn(
    program: list[str], before: list[str], now: int, to: int
) -> tuple[set[tuple[Ground, Cells]], set[tuple[Ground, Cells]], set[Ground]]:
    """What Algorithm 2 adds between two instants, the window after Algorithm 3, and the history; in tenths."""
    unit = Fraction(1, 10)
    facts = [read_fact(line) for line in before]
    # The operators are in one rule each: the predicates that the normal form adds are none of the paper's.
    rules = normal_rules(map(read_rule, program), unit)
    algorithm = StreamReasoner(rules, ["n", "s1"], now * 10)
    window = Facts()
    for ground, interval in facts:
        window.add(ground, cells(interval, unit))
    algorithm.window = window
    algorithm.step(to * 10)

    def shown(found: list[tuple[Ground, Cells]]) -> set[tuple[Ground, Cells]]:
        return {(ground, interval) for ground, interval in found if "'" not in ground[0]}

    after = shown([(ground, each) for ground, known in algorithm.window.held.items() for each in known])
    return shown(algorithm.log), after, {ground for ground in algorithm.history if "'" not in ground[0]}


def facts_of(lines: list[str]) -> set[tuple[Ground, Cells]]:
    return {(ground, cells(interval, Fraction(1, 10))) for ground, interval in map(read_fact, lines)}


def test_one_turn_as_in_examples_8_and_9() -> None:
    before = ["Ping(s1)@194.5", "Ping(s1)@197", "Ping(s1)@200", "Seen(s1)@[196,200]", "Watch(n,s1)@202"]
    added, after, history = turn(PROGRAM, before, 200, 202)
    assert added == facts_of(["Seen(s1)@(200,202]", "Seen(s1)@[196,202]", "Steady(s1)@202", "Report(n,s1)@202"])
    kept = [
        "Ping(s1)@197",
        "Ping(s1)@200",
        "Seen(s1)@[196,202]",
        "Watch(n,s1)@202",
        "Steady(s1)@202",
        "Report(n,s1)@202",
    ]
    assert after == facts_of(kept)
    assert history == {("Ping", ("s1",))}


def test_the_product_says_the_same_of_that_turn() -> None:
    lines = derived_facts(
        "\n".join(PROGRAM), [f"Ping(s1)@{time}" for time in (194.5, 197, 200)] + ["Watch(n,s1)@202"], 202_000_000
    )
    assert "Seen(s1)@[194.5,202]" in lines
    assert "Report(n,s1)@[202,202]" in lines


@pytest.mark.skipif(not EXAMPLE.exists(), reason="set CQELS_SHARED_DATA to the folder with seeds/rules")
def test_examples_8_and_9() -> None:
    example = json.loads(EXAMPLE.read_text())
    added, after, history = turn(example["program"], example["window_before"], 100, 101)
    assert added == facts_of(example["added"])
    assert after == facts_of(example["window_after_forget"])
    assert history == {read_fact(f"{atom}@0")[0] for atom in example["history"]}
