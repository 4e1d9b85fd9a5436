"""Laws that relate the results of a program to those of a changed one, or of changed facts."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random

import pytest
from rdflib import RDF, URIRef

from cqels_py.algebra.nodes import Output
from cqels_py.engine.temporal_rules import derived_facts
from tests.oracle.naive import Element
from tests.support.drawn_rules import UNTIL, DrawnProgram, draw_program
from tests.support.harness import run_engine

EX = "http://ex.org/"
SECOND = 1_000_000
SEEDS = range(60)
_INTERVAL = re.compile(r"[\[(](?:-?[\d.]+|-inf)(?:,(?:-?[\d.]+|inf))?[\])]")


def derived(rules: tuple[str, ...] | list[str], facts: tuple[str, ...] | list[str], until: float = UNTIL) -> list[str]:
    return derived_facts("\n".join(rules), facts, int(until * SECOND))


def with_numbers(text: str, change: Callable[[float], float]) -> str:
    """A text in which the numbers of intervals, and of `@3`, are others."""

    def number(match: re.Match[str]) -> str:
        return f"{change(float(match[0])):g}"

    def interval(match: re.Match[str]) -> str:
        return re.sub(r"-?\d+(?:\.\d+)?", number, match[0])

    return re.sub(r"(?<=@)-?\d+(?:\.\d+)?", number, _INTERVAL.sub(interval, text))


def test_shifted_facts_have_shifted_consequences() -> None:
    for seed in SEEDS:
        program = draw_program(seed)
        for by in (100, -100):
            moved = [with_numbers(fact, lambda value, by=by: value + by) for fact in program.facts]
            expected = sorted(with_numbers(line, lambda value, by=by: value + by) for line in derived(*drawn(program)))
            assert derived(program.rules, moved, UNTIL + by) == expected, seed


def test_scaled_times_have_scaled_consequences() -> None:
    for seed in SEEDS:
        program = draw_program(seed)
        for factor in (0.5, 3):
            rules = [with_numbers(rule, lambda value, f=factor: value * f) for rule in program.rules]
            facts = [with_numbers(fact, lambda value, f=factor: value * f) for fact in program.facts]
            expected = sorted(
                with_numbers(line, lambda value, f=factor: value * f) for line in derived(*drawn(program))
            )
            assert derived(rules, facts, UNTIL * factor) == expected, seed


def test_facts_may_come_twice_and_in_any_order() -> None:
    for seed in SEEDS:
        program = draw_program(seed)
        facts = [*program.facts, *program.facts]
        Random(seed).shuffle(facts)
        assert derived(program.rules, facts) == derived(*drawn(program)), seed


def test_more_facts_take_nothing_away() -> None:
    for seed in SEEDS:
        program = draw_program(seed)
        whole = derived(*drawn(program))
        for line in derived(program.rules, program.facts[::2]):
            assert any(covers(other, line) for other in whole), (seed, line)


def test_facts_of_later_change_nothing_before_them() -> None:
    for seed in SEEDS:
        program = draw_program(seed)
        early = [fact for fact in program.facts if float(re.findall(r"-?[\d.]+", fact.partition("@")[2])[0]) <= 4]
        early_only = [fact for fact in early if "-inf" not in fact]
        later = [fact for fact in program.facts if fact not in early and "-inf" not in fact]
        assert derived(program.rules, early_only, 4) == [
            line for line in derived(program.rules, [*early_only, *later], 4) if not starts_after(line, 4)
        ], seed


def drawn(program: DrawnProgram) -> tuple[tuple[str, ...], tuple[str, ...]]:
    return program.rules, program.facts


def ends(line: str) -> tuple[str, tuple[float, bool], tuple[float, bool]]:
    """The atom of a line, and its ends, each with whether it is open, so that they compare as times do."""
    atom, _, interval = line.partition("@")
    low, high = map(float, interval[1:-1].split(","))
    return atom, (low, interval[0] == "("), (high, interval[-1] == "]")


def covers(line: str, other: str) -> bool:
    atom, low, high = ends(line)
    atom_of_other, low_of_other, high_of_other = ends(other)
    return atom == atom_of_other and low <= low_of_other and high >= high_of_other


def starts_after(line: str, time: float) -> bool:
    return ends(line)[1] > (time, False)


EQUAL = {
    "shifts add up": (["P(X):-Diamondminus[2,2]Diamondminus[1,1]A(X)"], ["P(X):-Diamondminus[3,3]A(X)"]),
    "SOMETIME of SOMETIME": (["P(X):-Diamondminus[0,2]Diamondminus(1,2]A(X)"], ["P(X):-Diamondminus(1,4]A(X)"]),
    "ALWAYS of ALWAYS": (["P(X):-Boxminus[0,1]Boxminus[1,2]B(X)"], ["P(X):-Boxminus[1,3]B(X)"]),
    "FOR is SOMETIME of what holds now": (
        ["Boxplus[1,3)P(X):-A(X),B(X)"],
        ["Fresh(X):-A(X),B(X)", "P(X):-Diamondminus[1,3)Fresh(X)"],
    ),
    "FOR of FOR": (["Boxplus[0,1]Boxplus(1,2]P(X):-A(X)"], ["Boxplus(1,3]P(X):-A(X)"]),
    "ALWAYS [0,0]": (["P(X):-Boxminus[0,0]B(X)"], ["P(X):-B(X)"]),
    "SOMETIME [0,0]": (["P(X):-Diamondminus[0]A(X)"], ["P(X):-A(X)"]),
    "ALWAYS of a point is SOMETIME of it": (["P(X):-Boxminus[2,2]B(X)"], ["P(X):-Diamondminus[2,2]B(X)"]),
    "SINCE of what always holds": (["P(X):-Top(X)Since[1,3]A(X)"], ["P(X):-Diamondminus[1,3]A(X),Top(X)"]),
    "ALWAYS of a conjunction": (
        ["Both(X):-A(X),B(X)", "P(X):-Boxminus[0,1]Both(X)"],
        ["P(X):-Boxminus[0,1]A(X),Boxminus[0,1]B(X)"],
    ),
    "a conjunction in any order": (["P(X):-A(X),Diamondminus[0,1]B(X)"], ["P(X):-Diamondminus[0,1]B(X),A(X)"]),
}


@pytest.mark.parametrize("name", EQUAL)
def test_programs_that_say_the_same(name: str) -> None:
    one, other = EQUAL[name]
    found = 0
    for seed in range(30):
        random = Random(seed)
        facts = ["Top(a)@[0,12]", "Top(b)@[0,12]"]
        for _ in range(random.choice((3, 8, 20))):
            low = random.randrange(18) / 2
            high = low + random.choice((0, 0, 0.5, 1, 3))
            opening, closing = ("[", "]") if low == high else (random.choice("[("), random.choice("])"))
            facts.append(f"{random.choice('AB')}({random.choice('ab')})@{opening}{low:g},{high:g}{closing}")
        said = [[line for line in derived(rules, facts, 12) if line.startswith("P(")] for rules in (one, other)]
        assert said[0] == said[1], seed
        found += len(said[0])
    assert found > 5


def test_sometime_of_a_triple_is_a_window() -> None:
    """A window of RSP-QL, a set, holds an element of time t as long as now is less than its RANGE after t."""
    for seed in range(12):
        random = Random(seed)
        length = random.choice((1, 3, 5))
        times = sorted(random.randrange(20) for _ in range(12))
        elements = [
            Element(time * SECOND, URIRef(f"{EX}s"), ((URIRef(EX + random.choice("abc")), RDF.type, URIRef(f"{EX}A")),))
            for time in times
        ]
        elements.append(
            Element(60 * SECOND, URIRef(f"{EX}s"), ((URIRef(f"{EX}clock"), URIRef(f"{EX}says"), RDF.type),))
        )
        rules = (
            f"PREFIX : <{EX}> RULES ON :s {{ RULE {{ ?x a :P }} WHERE {{ SOMETIME [0s, {length}s] {{ ?x a :A }} }} }} "
            "SELECT ?x WHERE { STATE { ?x a :P } }"
        )
        window = (
            f"PREFIX : <{EX}> SELECT DISTINCT ?x FROM NAMED WINDOW :w ON :s [RANGE {length * SECOND + 1}us] "
            "WHERE { WINDOW :w { ?x a :A } }"
        )
        for batch in (1, 5, None):
            by_rules, by_window = (
                sorted(
                    (result.time, result.sign, sorted(map(str, dict(result.mapping).values())))
                    for result in run_engine(text, elements, None, batch, Output.CHANGELOG)
                    if result.time < 60 * SECOND
                )
                for text in (rules, window)
            )
            assert by_rules == by_window, (seed, batch)
            assert by_rules
