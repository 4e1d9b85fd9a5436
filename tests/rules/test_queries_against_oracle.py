"""RULES and STATE against the oracle: random programs, every change at its microsecond, for several batch sizes."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from fractions import Fraction
from functools import partial
from typing import Any

import pytest
from rdflib import RDF, URIRef, Variable

from cqels_py.algebra.nodes import Output
from cqels_py.dataflow import running_rules
from cqels_py.errors import QuerySyntaxError
from cqels_py.state.temporal_rules import RuleState
from tests.oracle.naive import Element, Static, Triple
from tests.oracle.naive_rules import Ground, Model
from tests.support.drawn_rules import DrawnProgram, as_rules, draw_with_negation
from tests.support.generators import SOAKING
from tests.support.harness import compiled, parse, run_engine

EX = "http://ex.org/"
PREFIX = f"PREFIX : <{EX}>\n"
COLUMNS = ("x", "y")


def elements_of(program: DrawnProgram) -> list[Element]:
    """The facts as elements of one triple, and a last one that says nothing."""
    found = []
    for fact in program.facts:
        atom, _, interval = fact.partition("@")
        name, _, rest = atom.partition("(")
        terms = [URIRef(EX + term) for term in rest.removesuffix(")").split(",")]
        triple = (terms[0], URIRef(EX + name), terms[1]) if len(terms) > 1 else (terms[0], RDF.type, URIRef(EX + name))
        found.append(Element(int(Fraction(interval[1:].split(",")[0]) * 1_000_000), URIRef(EX + "s"), (triple,)))
    nothing = (URIRef(EX + "clock"), URIRef(EX + "says"), URIRef(EX + "tick"))
    found.append(Element(program.until * 1_000_000, URIRef(EX + "s"), (nothing,)))
    return sorted(found, key=lambda element: element.time)


def asked(program: DrawnProgram, name: str, width: int) -> str:
    pattern = f"?x a :{name}" if width == 1 else f"?x :{name} ?y"
    return f"{PREFIX}{as_rules(program)}\nSELECT * WHERE {{ STATE {{ {pattern} }} }}"


def is_refused(program: DrawnProgram) -> bool:
    """A variable that only left sides of SINCE have, one of them at distance zero."""
    try:
        parse(asked(program, "P", 1))
    except QuerySyntaxError as error:
        return "is not bound" in error.message
    return False


def compare(seed: int, batches: Sequence[int | None], always: int = 0) -> None:
    """`always`: so many of the facts are static."""
    program = draw_with_negation(seed)
    if is_refused(program):
        return
    elements = elements_of(program)
    static = Static([triple for element in elements[:always] for triple in element.triples])
    facts = [f"{_fact_text(triple)}@(-inf,inf)" for triple in static.default]
    model = Model(program.rules, [*program.facts, *facts], Fraction(program.until))
    expected: dict[tuple[str, int], Counter[Any]] = {}
    for time, sign, (name, terms) in _told_from(elements[0].time, model):
        row = frozenset((Variable(v), URIRef(EX + term)) for v, term in zip(COLUMNS, terms, strict=False))
        expected.setdefault((name, len(terms)), Counter())[time, sign, row] += time < program.until * 1_000_000
    for (name, width), changes in sorted(expected.items()):
        if name in "AB":
            continue
        query = compiled(asked(program, name, width), Output.CHANGELOG)
        for batch in batches:
            found = run_engine(query, elements, static, batch, Output.CHANGELOG)
            told = Counter((r.time, r.sign, r.mapping) for r in found if r.time < program.until * 1_000_000)
            assert told == +changes, (seed, name, batch)
            assert [r.time for r in found] == sorted(r.time for r in found)


def _fact_text(triple: Triple) -> str:
    subject, predicate, object_ = (str(term).removeprefix(EX) for term in triple)
    return f"{object_}({subject})" if predicate == str(RDF.type) else f"{predicate}({subject},{object_})"


def _told_from(first: int, model: Model) -> list[tuple[int, int, Ground]]:
    """The changes of a model, with what has held before the first element at its instant."""
    before: Counter[Ground] = Counter()
    changes = []
    for time, sign, ground in model.changes():
        if time <= first:
            before[ground] += sign
        else:
            changes.append((time, sign, ground))
    return [*((first, 1, ground) for ground, holds in before.items() if holds), *changes]


def test_random_programs() -> None:
    for seed in range(2_000 if SOAKING else 60):
        compare(seed, (1, 4, None))


def test_random_programs_over_facts_that_always_hold() -> None:
    for seed in range(2_000, 4_000 if SOAKING else 2_050):
        compare(seed, (1, None), always=1 + seed % 2)


def test_random_programs_with_sweeps_at_each_instant(monkeypatch: pytest.MonkeyPatch) -> None:
    """Entries are freed and reused as often as possible."""
    monkeypatch.setattr(running_rules, "RuleState", partial(RuleState, sweep_least=1))
    for seed in range(1_000, 1_030):
        compare(seed, (1, None))
