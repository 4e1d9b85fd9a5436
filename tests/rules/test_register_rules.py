"""Programs in MeTeoR's syntax in the engine: random ones against the oracle, and their errors."""

from __future__ import annotations

from dataclasses import replace
from fractions import Fraction
from typing import Any

import pytest

import cqels_py as cqels
from tests.oracle.naive_rules import Model, atoms_of, read_rule
from tests.support.drawn_rules import DrawnProgram, draw_program

NS = "http://ex.org/"
TYPE = "<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>"
SECOND = 1_000_000
NETWORK = (
    "Flag(X,Z):-Monit(X,Z),Boxminus[0,4]Diamondminus[0,2]Signal(Z)\nBoxplus[0,3]Monit(X,Z):-Flag(Y,Z),Connect(X,Y)\n"
)


def triple(name: str, terms: tuple[str, ...]) -> tuple[str, str, str]:
    predicate = TYPE if len(terms) == 1 else f"<{NS}{name}>"
    return f"<{NS}{terms[0]}>", predicate, f"<{NS}{name if len(terms) == 1 else terms[1]}>"


def changes_of(
    program: DrawnProgram, name: str, width: int, batch: int | None
) -> list[tuple[int, int, tuple[str, ...]]]:
    """The changes of a predicate at the end: facts of points come as triples where they can, and the others are given."""
    engine = cqels.Engine(batch=batch)
    pushed, given = [], []
    for fact in program.facts:
        atom, _, interval = fact.partition("@")
        low, _, high = interval.strip("[]").partition(",")
        terms = tuple(atom.partition("(")[2].removesuffix(")").split(","))
        if (
            interval[0] in "(-"
            or interval[-1] == ")"
            or (high or low) != low
            or not 1 <= len(terms) <= 2
            or not terms[0]
        ):
            given.append(fact)
        else:
            pushed.append((int(Fraction(low) * SECOND), triple(atom[0], terms)))
    rules = engine.register_rules("\n".join(program.rules), facts=given, streams=f"{NS}s", namespace=NS)
    query = rules.state(name, width, changelog=True)
    # A fact of the first instant, with which all begins that began before.
    engine.push(f"{NS}s", [triple("A", ("nobody",)), triple("A", ("nobody", "nobody"))], time=0)
    for time, each in sorted(pushed):
        engine.push(f"{NS}s", [each], time=time)
    engine.advance(program.until * SECOND)
    return sorted(
        (result.time, result.sign, tuple(str(result.bindings[each]).removeprefix(NS) for each in query.variables))
        for result in query.results()
    )


def with_wide_facts(program: DrawnProgram) -> DrawnProgram:
    """Facts that are too late to count, of all predicates that no triples can be: else they would be refused."""
    read = [read_rule(rule) for rule in program.rules]
    atoms = [atom for rule in read for formula in (rule.head, *rule.body) for atom in atoms_of(formula)]
    wide = {(atom.name, len(atom.terms)) for atom in atoms if not 1 <= len(atom.terms) <= 2}
    late = [f"{name}({','.join('a' * width)})@[50,50]".replace("()", "") for name, width in sorted(wide)]
    return replace(program, facts=(*program.facts, *late))


def asked_of(program: DrawnProgram) -> list[tuple[str, int]]:
    atoms = [
        atom for rule in map(read_rule, program.rules) for part in (rule.head, *rule.body) for atom in atoms_of(part)
    ]
    return sorted({(atom.name, len(atom.terms)) for atom in atoms if atom.name in "PQR" and len(atom.terms) in (1, 2)})


@pytest.mark.parametrize("seed", range(24))
def test_random_programs(seed: int) -> None:
    program = with_wide_facts(draw_program(seed))
    anyone = [f"A({','.join(('nobody',) * width)})@0" for width in (1, 2)]
    model = Model(program.rules, [*program.facts, *anyone], Fraction(program.until))
    end = program.until * SECOND
    for name, width in asked_of(program):
        expected = sorted(
            (max(time, 0), sign, terms)
            for time, sign, (predicate, terms) in model.changes()
            if predicate == name and len(terms) == width and time < end
        )
        assert changes_of(program, name, width, 1 + seed % 5) == expected, (seed, name)


def test_rules_are_those_of_state() -> None:
    """The paper's network in seconds: a signal every second, and static connections."""
    engine = cqels.Engine()
    rules = engine.register_rules(
        NETWORK, namespace=NS, streams=f"{NS}net", facts="Monit(a,s)@[0,6]\n\nConnect(b,a)@[0,inf)"
    )
    query = engine.register(
        f"PREFIX : <{NS}> SELECT ?n ?w WHERE {{ STATE {{ ?n :Flag :s }} STREAM :places [ALL] {{ ?n :at ?w }} }}",
        rules=rules,
        changelog=True,
    )
    assert query.streams == (f"{NS}places", *rules.streams)
    assert "2 facts are given with the rules" in query.explain()
    engine.push(f"{NS}places", [(f"<{NS}b>", f"<{NS}at>", f"<{NS}w>")], time=0)
    for second in range(10):
        engine.push(rules.streams[0], [triple("Signal", ("s",))], time=second * SECOND)
    engine.advance(20 * SECOND)
    assert [(r.time, r.sign, str(r.bindings["n"])) for r in query.results()] == [
        (4 * SECOND, 1, f"{NS}b"),
        (9 * SECOND + 1, -1, f"{NS}b"),
    ]


def test_names_are_iris_and_numbers_literals() -> None:
    engine = cqels.Engine()
    rules = engine.register_rules("Slow(X):-ex:speed(X,30),<http://ex.org/kind>(X,Car)\nOther(X):-at(X,2.5),b(X)")
    assert rules.iri("Slow") == "urn:meteor:Slow"
    query = rules.state("Slow")
    v, speed = "<urn:meteor:v>", '"30"^^<http://www.w3.org/2001/XMLSchema#integer>'
    engine.push("urn:meteor:facts", [(v, "<ex:speed>", speed), (v, "<http://ex.org/kind>", "<urn:meteor:x>")], time=0)
    engine.advance(1)
    assert [str(r.bindings["x"]) for r in query.results()] == ["urn:meteor:v"]


REFUSED = {
    "\n  P(X):-Q(X,Y,Z)": (2, "Q has 3 arguments, and no rule or given fact makes it"),
    "P(X):-Q(X),It": (1, "It has no arguments, and no rule or given fact makes it"),
    "P(X):-A(X)\nP(X):-<a b>(X)": (2, "unexpected"),
    "P(X):-A(X)\nP(X):-Q{1}(X)": (2, "Q{1} makes no IRI: '{' cannot stand in one"),
    "P(X):-<http://www.w3.org/1999/02/22-rdf-syntax-ns#type>(X,Y)": (
        1,
        "a class is a predicate of its own, as in Hot(X)",
    ),
    "P(X):-Q(5,X)": (1, "the subject of Q is a number: numbers stand second"),
    "P(X):-Diamondplus[0,1]Q(X)": (1, "Diamondplus looks ahead"),
    "P(X)": (1, "expected ':-'"),
}


@pytest.mark.parametrize("text", REFUSED)
def test_refusals_name_the_line(text: str) -> None:
    line, message = REFUSED[text]
    with pytest.raises(cqels.QueryError) as error:
        cqels.Engine().register_rules(text, source="program")
    assert str(error.value).startswith(f"program:{line}:")
    assert message in str(error.value)


def test_wrong_facts_name_the_line() -> None:
    for fact, message in {
        "P(1,a)@2": "is a number",
        "P(a@[0,1]": "expected",
        "P(a)@[2,1]": "ends before it begins",
    }.items():
        with pytest.raises(cqels.DataError, match=r"^facts:2:\d+: ") as error:
            cqels.Engine().register_rules(NETWORK, facts=["P(a)@1", fact], facts_source="facts")
        assert message in str(error.value)


USAGE: dict[str, dict[str, Any]] = {
    "syntax is 'meteor', not 'datalog'": {"syntax": "datalog"},
    "the namespace and the streams are IRIs": {"namespace": "a b"},
    "streams: at least one": {"streams": []},
    "there are no rules here": {"text": "\n\n"},
    "a program is a text, not 3": {"text": 3},
}


@pytest.mark.parametrize("message", USAGE)
def test_wrong_arguments(message: str) -> None:
    with pytest.raises(cqels.UsageError, match=message):
        cqels.Engine().register_rules(**{"text": NETWORK} | USAGE[message])


def test_wrong_questions() -> None:
    engine = cqels.Engine()
    rules = engine.register_rules("P(X):-P(X,Y)\nW(X,Y,Z):-P(X,Y),P(X,Z)\nQ(X):-W(X,Y,Z)")
    for arguments, message in {
        ("P",): r"say which, as in state\('P', 2\)",
        ("W",): "W has 3 arguments, and STATE asks for triples",
        ("Qq",): "no predicate Qq: it has P, Q, W",
        ("Q", 2): "no predicate Q with 2 arguments",
    }.items():
        with pytest.raises(cqels.UsageError, match=message):
            rules.state(*arguments)
    asks = "SELECT ?x { STATE { ?x a <urn:meteor:Q> } }"
    own = "RULES ON <urn:s> { RULE { ?x a <urn:P> } WHERE { ?x a <urn:Q> } } "
    for text, message in {
        own + asks: "the query has RULES of its own, and rules were given with it",
        "SELECT ?x { STREAM <urn:s> [NOW] { ?x a <urn:P> } }": "nothing asks what the given rules say",
    }.items():
        with pytest.raises(cqels.QuerySyntaxError, match=r"^<query>:1:\d+: ") as error:
            engine.register(text, rules=rules)
        assert message in str(error.value)
    with pytest.raises(cqels.UsageError, match="rules are those of register_rules"):
        engine.register(asks, rules="P(X):-Q(X)")  # type: ignore[arg-type]
    with pytest.raises(cqels.UsageError, match="not with a compiled query"):
        engine.register(engine.register(asks, rules=rules).compiled, rules=rules)
