from __future__ import annotations

import pickle

import pytest
from rdflib import XSD, Literal, URIRef, Variable

from cqels_py.algebra.nodes import Call, Constant, Expression, VariableRef
from cqels_py.errors import UnsupportedQuery
from cqels_py.functions.program import evaluate_program
from cqels_py.functions.table import FUNCTIONS
from cqels_py.functions.terms import iri, literal, parse_term
from cqels_py.kernels.values.interpreter import OPERATIONS
from cqels_py.planner.expressions import ARITIES, compile_expression

X, Y = VariableRef(Variable("x")), VariableRef(Variable("y"))
FIVE = Constant(Literal("5", datatype=XSD.integer))
FIVE_TEXT = '"5"^^<http://www.w3.org/2001/XMLSchema#integer>'


def test_arguments_come_before_their_function() -> None:
    program = compile_expression(Call("&&", (Call(">", (X, FIVE)), Call("<", (Y, X)))))
    assert program.instructions == (
        ("variable", 0),
        ("constant", FIVE_TEXT),
        (">", 2),
        ("variable", 1),
        ("variable", 0),
        ("<", 2),
        ("&&", 2),
    )
    assert program.inputs == ("x", "y")
    assert program.deterministic
    assert pickle.loads(pickle.dumps(program)) == program


def test_now_depends_on_the_tick() -> None:
    program = compile_expression(Call("YEAR", (Call("NOW", ()),)))
    assert program.instructions == (("now", 0), ("YEAR", 1))
    assert not program.deterministic


def test_bound_asks_for_the_input() -> None:
    assert compile_expression(Call("BOUND", (X,))).instructions == (("bound", 0),)


def test_a_program_without_inputs() -> None:
    program = compile_expression(Call("IN", (FIVE,)))
    assert program.inputs == ()
    assert program.instructions == (("constant", FIVE_TEXT), ("IN", 1))


@pytest.mark.parametrize(
    "term",
    [
        Literal('a"b\\c\nd'),
        Literal("two\n\nlines\t"),
        Literal("x", lang="en"),
        Literal("05", datatype=XSD.integer, normalize=False),
        Literal("a", datatype=XSD.string),
        Literal("é\U0001f600"),
    ],
)
def test_constants_keep_their_text(term: Literal) -> None:
    ((_, text),) = compile_expression(Constant(term)).instructions
    parsed = parse_term(str(text))
    assert parsed.text == str(term)
    assert parsed.language == (term.language or "")
    assert parsed.datatype == str(term.datatype or parsed.datatype)
    assert "\n" not in str(text)


def test_iris_are_constants() -> None:
    ((_, text),) = compile_expression(Constant(URIRef("urn:a"))).instructions
    assert parse_term(str(text)) == iri("urn:a")


@pytest.mark.parametrize(
    ("expression", "message"),
    [
        (Call("RAND", ()), "RAND gives another value each time"),
        (Call("+", (FIVE, Call("STRUUID", ()))), "STRUUID gives another value"),
        (Call("UUID", ()), "UUID gives"),
        (Call("BNODE", (X,)), "BNODE gives"),
        (Call("http://example.org/distance", (X, Y)), "unknown function http://example.org/distance: .*STRLEN"),
        (Call("http://www.w3.org/2005/xpath-functions#upper-case", (X,)), "#upper-case: write UCASE"),
        (Call("http://www.w3.org/2001/XMLSchema#byte", (X,)), "XMLSchema#byte: .* xsd:integer"),
        (Call("FROBNICATE", (X,)), "unknown function FROBNICATE"),
        (Call("SUBSTR", (X,)), "SUBSTR takes 2 to 3 arguments, not 1"),
        (Call(str(XSD.integer), (X, Y)), "integer takes 1 arguments, not 2"),
        (Call("BOUND", (FIVE,)), "BOUND takes a variable"),
    ],
)
def test_what_cannot_be_evaluated_is_refused_by_name(expression: Expression, message: str) -> None:
    with pytest.raises(UnsupportedQuery, match=message):
        compile_expression(expression)


def test_every_function_accepted_can_be_evaluated() -> None:
    """The planner, the slow path and the kernel agree on names."""
    apart = {"||", "&&", "IN", "NOT-IN", "IF", "COALESCE", "BOUND", "NOW"}
    assert set(FUNCTIONS) == set(ARITIES) - apart
    assert {name: (f.least, f.most) for name, f in FUNCTIONS.items()} == {name: ARITIES[name] for name in FUNCTIONS}
    assert set(OPERATIONS) <= set(ARITIES)


def test_a_compiled_program_gives_the_value() -> None:
    program = compile_expression(Call("CONCAT", (X, Call("STR", (FIVE,)))))
    assert evaluate_program(program.instructions, [literal("a")], None) == literal("a5")
