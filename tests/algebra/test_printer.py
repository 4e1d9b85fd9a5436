"""Expressions print as SPARQL that reads back the same; patterns as a tree."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, Literal, URIRef, Variable
from rdflib.plugins.sparql.parser import parseQuery

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import Call, Constant, Exists, Expression, VariableRef
from cqels_py.algebra.printer import (
    aggregate_text,
    algebra_text,
    expression_text,
    extent_text,
    path_text,
    pattern_text,
    term_text,
)

EX = "http://ex.org/"
X, Y, Z = (VariableRef(Variable(name)) for name in "xyz")
P, Q = URIRef(EX + "p"), URIRef(EX + "q")

ONE_TRIPLE = nodes.BGP((nodes.TriplePattern(Variable("x"), P, Variable("_:b")),))


def number(lexical: str, datatype: URIRef = XSD.integer) -> Constant:
    return Constant(Literal(lexical, datatype=datatype, normalize=False))


@pytest.mark.parametrize(
    ("expression", "text"),
    [
        (Call("+", (Call("+", (X, Y)), Z)), "?x + ?y + ?z"),
        (Call("+", (X, Call("+", (Y, Z)))), "?x + (?y + ?z)"),
        (Call("-", (X, Call("-", (Y, Z)))), "?x - (?y - ?z)"),
        (Call("*", (Call("+", (X, Y)), Z)), "(?x + ?y) * ?z"),
        (Call("/", (X, Call("*", (Y, Z)))), "?x / (?y * ?z)"),
        (Call("&&", (Call("||", (X, Y)), Z)), "(?x || ?y) && ?z"),
        (Call("||", (Call("&&", (X, Y)), Z)), "?x && ?y || ?z"),
        (Call("=", (Call("=", (X, Y)), Z)), "(?x = ?y) = ?z"),
        (Call("!", (Call("=", (X, Y)),)), "!(?x = ?y)"),
        (Call("!", (Call("!", (X,)),)), "!(!?x)"),
        (Call("unary-", (X,)), "-?x"),
        (Call("unary-", (number("5"),)), "- 5"),
        (Call("unary+", (number("-5"),)), "+ -5"),
        (Call("-", (X, number("-5"))), "?x - -5"),
        (Call("IN", (X, number("1"), Y)), "?x IN (1, ?y)"),
        (Call("NOT-IN", (Call("+", (X, Y)),)), "?x + ?y NOT IN ()"),
        (Call("!", (Call("IN", (X, Y)),)), "!(?x IN (?y))"),
        (Call("REGEX", (X, Constant(Literal("a\n\"b'\\")), Y)), 'REGEX(?x, "a\\n\\"b\'\\\\", ?y)'),
        (Call(str(XSD.integer), (X,)), f"<{XSD.integer}>(?x)"),
        (Call("NOW", ()), "NOW()"),
        (Exists(ONE_TRIPLE, True), f"NOT EXISTS {{ ?x <{P}> _:b }}"),
    ],
)  # fmt: skip
def test_expressions(expression: Expression, text: str) -> None:
    assert expression_text(expression) == text


@pytest.mark.parametrize(
    ("term", "text"),
    [
        (URIRef(EX), f"<{EX}>"),
        (Variable("x"), "?x"),
        (Variable("_:b1"), "_:b1"),
        (Literal("a"), '"a"'),
        (Literal("a", lang="en-GB"), '"a"@en-GB'),
        (Literal("a", datatype=XSD.string), '"a"'),
        (Literal("1.50", datatype=XSD.decimal, normalize=False), "1.50"),
        (Literal("1.", datatype=XSD.decimal, normalize=False), f'"1."^^<{XSD.decimal}>'),
        (Literal("1e3", datatype=XSD.double, normalize=False), "1e3"),
        (Literal("1.5", datatype=XSD.double, normalize=False), f'"1.5"^^<{XSD.double}>'),
        (Literal("1", datatype=XSD.boolean, normalize=False), f'"1"^^<{XSD.boolean}>'),
        (Literal("true", datatype=XSD.boolean), "true"),
        (Literal("x", datatype=XSD.integer), f'"x"^^<{XSD.integer}>'),
    ],
)
def test_terms(term: nodes.TermOrVariable, text: str) -> None:
    assert term_text(term) == text


@pytest.mark.parametrize(
    ("path", "text"),
    [
        (nodes.PathSequence((P, nodes.PathInverse(Q))), f"<{P}>/(^<{Q}>)"),
        (nodes.PathRepeat(nodes.PathAlternative((P, Q)), 0, True), f"(<{P}>|<{Q}>)*"),
        (nodes.PathRepeat(P, 1, True), f"<{P}>+"),
        (nodes.PathRepeat(P, 0, False), f"<{P}>?"),
        (nodes.PathInverse(nodes.PathRepeat(P, 0, False)), f"^(<{P}>?)"),
        (nodes.PathNegated((P,), (Q,)), f"!(<{P}>|^<{Q}>)"),
    ],
)
def test_paths(path: nodes.Path, text: str) -> None:
    assert path_text(path) == text


@pytest.mark.parametrize(
    ("extent", "text"),
    [
        (nodes.TimeRange(1), "[RANGE 1us]"),
        (nodes.TimeRange(5_400_000_000, 86_400_000_000), "[RANGE 90m STEP 1d]"),
        (nodes.TimeRange(1_500_000, 1_500_000, 7), "[RANGE 1500ms STEP 1500ms START 7]"),
        (nodes.ElementCount(5), "[COUNT 5]"),
        (nodes.ElementCount(5, 2), "[COUNT 5 STEP 2]"),
        (nodes.TripleCount(3), "[TRIPLES 3]"),
        (nodes.Everything(), "[ALL]"),
    ],
)
def test_extents(extent: nodes.Extent, text: str) -> None:
    assert extent_text(extent) == text


def test_aggregates() -> None:
    assert aggregate_text(nodes.AggregateCall("COUNT", None, True)) == "COUNT(DISTINCT *)"
    assert (
        aggregate_text(nodes.AggregateCall("GROUP_CONCAT", X, separator=", ")) == 'GROUP_CONCAT(?x; SEPARATOR = ", ")'
    )


_CONSTANTS = st.sampled_from(
    [
        number("1"),
        number("-1"),
        number("+2.50", XSD.decimal),
        number("-1e3", XSD.double),
        Constant(Literal("a")),
        Constant(P),
    ]
)
_OPERATORS = ["||", "&&", "=", "!=", "<", ">", "<=", ">=", "+", "-", "*", "/", "IN", "NOT-IN"]


def _larger(children: st.SearchStrategy[Expression]) -> st.SearchStrategy[Expression]:
    return st.one_of(
        st.builds(lambda f, a, b: Call(f, (a, b)), st.sampled_from(_OPERATORS), children, children),
        st.builds(
            lambda f, a: Call(f, (a,)), st.sampled_from(["!", "unary-", "unary+", "STR", str(XSD.double)]), children
        ),
    )


EXPRESSIONS = st.recursive(st.one_of(st.sampled_from([X, Y]), _CONSTANTS), _larger, max_leaves=6)


@given(EXPRESSIONS)
def test_every_expression_is_sparql(expression: Expression) -> None:
    parseQuery(f"ASK {{ FILTER({expression_text(expression)}) }}")


def test_a_query_as_a_tree() -> None:
    pattern = nodes.Project(
        nodes.Filter(
            nodes.LeftJoin(
                nodes.Window((URIRef("urn:w"),), nodes.BGP((nodes.TriplePattern(Variable("x"), P, Variable("y")),))),
                nodes.Values((Variable("y"),), ((Literal("a"),), (None,))),
                Call("<", (X, Y)),
            ),
            Call("BOUND", (X,)),
        ),
        (Variable("x"),),
    )
    query = nodes.ContinuousQuery(
        "SELECT", pattern, (Variable("x"),),
        (nodes.WindowDefinition(URIRef("urn:w"), URIRef("urn:s"), nodes.Everything(), P),),
        nodes.Output.ISTREAM, nodes.Dialect.CQELS_QL, True,
    )  # fmt: skip
    assert algebra_text(query).splitlines() == [
        "SELECT ISTREAM in CQELS-QL, windows are bags",
        "variables ?x",
        f"window <urn:w> on <urn:s> [ALL] @ <{P}>",
        "project ?x",
        "  filter BOUND(?x)",
        "    left join on ?x < ?y",
        "      window <urn:w>",
        "        bgp",
        f"          ?x <{P}> ?y",
        '      VALUES (?y) { ("a") (UNDEF) }',
    ]


def test_modifiers_and_groups() -> None:
    counted = nodes.Group(nodes.BGP(()), (), ((Variable("n"), nodes.AggregateCall("COUNT", None)),))
    ordered = nodes.OrderBy(counted, ((X, True), (Y, False)))
    assert pattern_text(nodes.Slice(nodes.Distinct(ordered), 2, 5)).splitlines() == [
        "slice offset 2 limit 5",
        "  distinct",
        "    order by DESC(?x) ASC(?y)",
        "      group by (): ?n = COUNT(*)",
        "        bgp",
    ]
