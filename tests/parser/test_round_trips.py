"""Expressions printed as text are parsed as the same expressions."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import Call, Constant, Exists, Expression, VariableRef
from cqels_py.algebra.printer import expression_text
from cqels_py.parser import parse

X, Y = VariableRef(Variable("x")), VariableRef(Variable("y"))
P = URIRef("http://ex.org/p")


def read(text: str) -> Expression:
    query = parse(f"SELECT * {{ STREAM <http://ex.org/s> [NOW] {{ ?x ?p ?y }} FILTER({text}) }}")
    match query.pattern:
        case nodes.Project(nodes.Filter(_, condition)):
            return condition
    raise AssertionError(query.pattern)


def typed(lexical: str, datatype: URIRef) -> Constant:
    return Constant(Literal(lexical, datatype=datatype, normalize=False))


NUMBERS = st.sampled_from(
    [
        *(typed(text, XSD.integer) for text in ("0", "007", "-7", "+7")),
        *(typed(text, XSD.decimal) for text in ("1.50", "-1.50", ".5", "+0.0")),
        *(typed(text, XSD.double) for text in ("1e3", "-1.0E-3", "2.5e+0", ".5e1")),
    ]
)
TEXTS = st.text(st.characters(exclude_categories=["Cs"], max_codepoint=0x1F600), max_size=6)
CONSTANTS = st.one_of(
    NUMBERS,
    TEXTS.map(lambda text: Constant(Literal(text))),
    st.sampled_from(["en", "de-AT"]).map(lambda tag: Constant(Literal("a", lang=tag))),
    st.sampled_from([typed("1.", XSD.decimal), typed("abc", P), typed("1", XSD.boolean), typed("true", XSD.boolean)]),
    st.sampled_from([Constant(P), Constant(URIRef("urn:x:y#z"))]),
)
ONE = ("!", "unary-", "unary+", "STR", "LANG", "ISIRI", "ISBLANK", "ENCODE_FOR_URI", "SHA256", "HOURS", "TZ", "URI")
TWO = ("||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "SAMETERM", "STRDT", "LANGMATCHES", "STRBEFORE")


def larger(inner: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    def call(names: tuple[str, ...], least: int, most: int) -> st.SearchStrategy[Expression]:
        arguments = st.lists(inner, min_size=least, max_size=most).map(tuple)
        return st.builds(Call, st.sampled_from(names), arguments)

    return st.one_of(
        call(ONE, 1, 1),
        call(TWO, 2, 2),
        call(("IF",), 3, 3),
        call(("SUBSTR", "REGEX"), 2, 3),
        call(("REPLACE",), 3, 4),
        call(("IN", "NOT-IN"), 1, 3),
        call(("COALESCE", "CONCAT", str(XSD.double), str(P)), 0, 3),
        call(("NOW", "RAND", "BNODE"), 0, 0),
    )


EXPRESSIONS = st.recursive(st.one_of(st.sampled_from([X, Y, Call("BOUND", (X,))]), CONSTANTS), larger, max_leaves=8)


@given(EXPRESSIONS)
def test_expressions_read_back(expression: Expression) -> None:
    assert read(expression_text(expression)) == expression


TRIPLE = nodes.BGP((nodes.TriplePattern(Variable("x"), P, Variable("z")),))
OTHER = nodes.BGP((nodes.TriplePattern(Variable("z"), P, Literal("a")),))


@pytest.mark.parametrize(
    "pattern",
    [
        TRIPLE,
        nodes.PathPattern(Variable("x"), nodes.PathRepeat(nodes.PathAlternative((P, nodes.PathInverse(P))), 1, True), X.variable),
        nodes.PathPattern(Variable("x"), nodes.PathNegated((P,), (P,)), Variable("z")),
        nodes.Filter(TRIPLE, Call("=", (X, VariableRef(Variable("z"))))),
        nodes.Graph(P, TRIPLE),
        nodes.Graph(Variable("g"), nodes.Filter(TRIPLE, Call("<", (X, Y)))),
        nodes.Union((TRIPLE, OTHER, TRIPLE)),
        nodes.LeftJoin(TRIPLE, OTHER, None),
        nodes.LeftJoin(TRIPLE, OTHER, Call("<", (X, Y))),
        nodes.Minus(TRIPLE, nodes.Graph(P, OTHER)),
        nodes.Extend(TRIPLE, Variable("w"), Call("STR", (X,))),
        nodes.Join(TRIPLE, nodes.Values((Variable("x"), Variable("w")), ((P, None), (Literal("a"), Literal("b"))))),
        nodes.Filter(TRIPLE, Exists(OTHER, True)),
    ],
)  # fmt: skip
@pytest.mark.parametrize("negated", [True, False])
def test_exists_reads_back(pattern: nodes.Pattern, negated: bool) -> None:
    test = Call("||", (Exists(pattern, negated), X))
    assert read(expression_text(test)) == test


@pytest.mark.parametrize("length", [16, 17, 33, 300])
def test_long_chains_are_not_deep_and_read_back(length: int) -> None:
    expression = read(" || ".join(f"?x = {number}" for number in range(length)))
    assert read(expression_text(expression)) == expression
    assert _depth(expression) < 25
    assert _operands(expression) == [str(number) for number in range(length)]


def _depth(expression: Expression) -> int:
    return 1 + max(map(_depth, expression.arguments)) if isinstance(expression, Call) else 1


def _operands(expression: Expression) -> list[str]:
    """The right sides of the comparisons, in order."""
    match expression:
        case Call("||", (left, right)):
            return _operands(left) + _operands(right)
        case Call("=", (_, Constant(term))):
            return [str(term)]
    raise AssertionError(expression)


@pytest.mark.parametrize(
    ("text", "expression"),
    [
        ("false", typed("false", XSD.boolean)),
        ("0", typed("0", XSD.integer)),
        ("''", Constant(Literal(""))),
        ("?x -1", Call("-", (X, typed("1", XSD.integer)))),
        ("?x - -1", Call("-", (X, typed("-1", XSD.integer)))),
        ("?x-1-2", Call("-", (Call("-", (X, typed("1", XSD.integer))), typed("2", XSD.integer)))),
        ("-?x", Call("unary-", (X,))),
        ("-1", typed("-1", XSD.integer)),
        ("- 1", Call("unary-", (typed("1", XSD.integer),))),
        ("?x*-1.50", Call("*", (X, typed("-1.50", XSD.decimal)))),
        ("?x IN ()", Call("IN", (X,))),
        ("?x IN (<http://www.w3.org/1999/02/22-rdf-syntax-ns#nil>)",
         Call("IN", (X, Constant(URIRef("http://www.w3.org/1999/02/22-rdf-syntax-ns#nil"))))),
        ("?x not in (?y)", Call("NOT-IN", (X, Y))),
        ("(((?x)))", X),
        ("?x && ?y || !?x", Call("||", (Call("&&", (X, Y)), Call("!", (X,))))),
        ("?x = ?y + 1 * 2", Call("=", (X, Call("+", (Y, Call("*", (typed("1", XSD.integer), typed("2", XSD.integer)))))))),
        ("regex(?x, 'a')", Call("REGEX", (X, Constant(Literal("a"))))),
        ("Replace(?x, 'a', 'b', 'i')",
         Call("REPLACE", (X, *(Constant(Literal(letter)) for letter in "abi")))),
        ("substr(?x, 1, 2)", Call("SUBSTR", (X, typed("1", XSD.integer), typed("2", XSD.integer)))),
        ("'a'^^<http://www.w3.org/2001/XMLSchema#string>", Constant(Literal("a"))),
        (r""" 'it\"s "\t\\' """, Constant(Literal('it"s "\t\\'))),
        (r''' "it\'s" ''', Constant(Literal("it's"))),
        ("'''a'b\n\tc'''", Constant(Literal("a'b\n\tc"))),
        (r"'\u0041\\u0041'", Constant(Literal(r"A\u0041"))),
        (r"'\U0001F600x'", Constant(Literal("\U0001f600x"))),
        (r"'\u00e9beef'", Constant(Literal("ébeef"))),
    ],
)  # fmt: skip
def test_expressions_as_sparql_has_them(text: str, expression: Expression) -> None:
    assert read(text) == expression


def test_an_ill_typed_literal_is_a_term_like_others(caplog: pytest.LogCaptureFixture) -> None:
    found = read(f"?x = 'abc'^^<{XSD.integer}>")
    assert caplog.records == []
    assert expression_text(found) == f'?x = "abc"^^<{XSD.integer}>'
