"""The facts that the keys of rules leave to a part are enough for what is asked of its values."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction

import pytest

from cqels_py.distribution.rule_keys import FactKeys, fact_keys, fact_patterns, given_predicates
from cqels_py.engine.compile import compile_query
from cqels_py.plan.temporal_rules import RuleProgram
from cqels_py.plan.traverse import states_of
from tests.oracle.naive_rules import Model
from tests.rules.test_queries_against_oracle import EX, PREFIX, asked, is_refused
from tests.support.drawn_rules import CONSTANTS, DrawnProgram, draw_keyed, draw_with_negation
from tests.support.generators import SOAKING

Change = tuple[int, int, tuple[str, ...]]


def heads(program: DrawnProgram) -> set[tuple[str, int]]:
    atoms = [rule.split(":-")[0].rpartition(")")[0].rpartition("(") for rule in program.rules]
    return {(name[-1], terms.count(",") + 1) for name, _, terms in atoms}


def keys_of(program: RuleProgram, column: int) -> FactKeys | str:
    (answer,) = program.answers
    return fact_keys(program, {answer: column})


def is_needed(fact: str, value: str, program: RuleProgram, keys: FactKeys) -> bool:
    name, _, rest = fact.partition("@")[0].partition("(")
    terms = rest.removesuffix(")").split(",")
    names = {each.name: number for number, each in enumerate(program.predicates)}
    number = names.get(f"a {EX}{name}" if len(terms) == 1 else EX + name)
    return number is not None and (
        number in keys.everywhere or any(terms[column] == value for column in keys.columns[number])
    )


def changes(program: DrawnProgram, facts: Sequence[str], name: str) -> list[Change]:
    model = Model(program.rules, facts, Fraction(program.until))
    return [(time, sign, terms) for time, sign, (head, terms) in model.changes() if head == name]


@pytest.mark.parametrize("draw", [draw_keyed, draw_with_negation])
def test_each_value_follows_from_its_own_facts(draw) -> None:
    """By the oracle, with a part for each value."""
    divided = told = 0
    for seed in range(400 if SOAKING else 8):
        program = draw(seed)
        if is_refused(program):
            continue
        for name, width in sorted(heads(program)):
            rules = compile_query(asked(program, name, width)).plan.rules
            assert rules is not None
            all_changes = changes(program, program.facts, name)
            for column in range(width):
                keys = keys_of(rules.program, column)
                if isinstance(keys, str):
                    continue
                divided += 1
                for value in CONSTANTS:
                    facts = [fact for fact in program.facts if is_needed(fact, value, rules.program, keys)]
                    expected = [each for each in all_changes if each[2][column] == value]
                    assert [each for each in changes(program, facts, name) if each[2][column] == value] == expected
                    told += len(expected)
    assert divided > 5
    assert told > 5


def test_facts_are_patterns_of_each_stream_and_place() -> None:
    text = f"""{PREFIX} RULES ON :s, :t {{
      RULE {{ ?x :friend ?y }} WHERE {{ ?x :knows ?y . SOMETIME [0s, 5s] {{ ?y :knows ?x }} }} }}
      SELECT * {{ STATE {{ ?x :friend ?y }} }}"""
    plan = compile_query(text).plan
    assert plan.rules is not None
    names = [plan.rules.program.predicates[number].name for number in given_predicates(plan.rules.program)]
    assert sorted(names) == [f"{EX}friend", f"{EX}knows"]
    found = fact_patterns(plan.rules, states_of(plan.root), ["x", "y"])
    assert {(each.stream, each.pattern[1], each.keys) for each in found} == {
        (stream, f"<{EX}{name}>", (("x", x), ("y", y)))
        for stream in (0, 1)
        for name, places in (("friend", [(0, 2)]), ("knows", [(0, 0), (0, 2), (2, 0), (2, 2)]))
        for x, y in places
    }
