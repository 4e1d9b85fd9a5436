"""Details of parsing: durations, numbers, names, defaults, thread safety."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
import rdflib
from hypothesis import given
from hypothesis import strategies as st
from rdflib import XSD, Literal, URIRef, Variable

from cqels_py.algebra import nodes
from cqels_py.algebra.nodes import Call, Dialect, Expression, Output
from cqels_py.errors import QueryError
from cqels_py.parser import parse
from tests.support.generators import FEATURES, FEW, RSP_QL_WINDOWS, WINDOWS, Scenario, scenarios

BLOCK = "STREAM <s> [NOW] { ?x ?p ?y }"


def extent(window: str, dialect: Dialect = Dialect.CQELS_QL) -> nodes.Extent:
    text = f"ASK {{ STREAM <s> [{window}] {{ ?s ?p ?o }} }}"
    if dialect is Dialect.RSP_QL:
        text = f"ASK FROM NAMED WINDOW <w> ON <s> [{window}] {{ WINDOW <w> {{ ?s ?p ?o }} }}"
    (definition,) = parse(text).windows
    return definition.extent


@pytest.mark.parametrize(
    ("duration", "microseconds"),
    [
        ("5s", 5_000_000),
        ("5 s", 5_000_000),
        ("1.5s", 1_500_000),
        ("1h30m", 5_400_000_000),
        ("2min", 120_000_000),
        ("500ms", 500_000),
        ("1d", 86_400_000_000),
        ("7us", 7),
        ("7µs", 7),
        ("3000ns", 3),
        ("5S", 5_000_000),
        ("PT10S", 10_000_000),
        ("pt0.25s", 250_000),
        ("PT1H30M", 5_400_000_000),
        ("P1DT2H", 93_600_000_000),
        ("P1W", 604_800_000_000),
    ],
)
def test_durations(duration: str, microseconds: int) -> None:
    assert extent(f"RANGE {duration} STEP {duration}") == nodes.TimeRange(microseconds, microseconds)


def test_a_bare_number_is_one_of_milliseconds_in_rsp_ql() -> None:
    assert extent("RANGE 1500 STEP 1s", Dialect.RSP_QL) == nodes.TimeRange(1_500_000, 1_000_000)


@pytest.mark.parametrize(
    ("start", "microseconds"),
    [
        ("START 2024-01-01T00:00:00Z", 1_704_067_200_000_000),
        ("START AT 2024-01-01T01:00:00+01:00", 1_704_067_200_000_000),
        ("STARTING AT '2024-01-01T00:00:00'^^<http://www.w3.org/2001/XMLSchema#dateTime>", 1_704_067_200_000_000),
        ("START -2000000", -2_000_000),
        ('START "2000000"^^<http://www.w3.org/2001/XMLSchema#integer>', 2_000_000),
        ("START 0", 0),
    ],
)
def test_starts(start: str, microseconds: int) -> None:
    assert extent(f"RANGE 5s STEP 1s {start}") == nodes.TimeRange(5_000_000, 1_000_000, microseconds)
    milliseconds = start.replace("2000000", "2000")
    assert extent(f"RANGE 5s STEP 1s {milliseconds}", Dialect.RSP_QL).start == microseconds


def condition(text: str) -> Expression:
    pattern = parse(f"ASK {{ {BLOCK} FILTER({text}) }}").pattern
    assert isinstance(pattern, nodes.Filter)
    return pattern.condition


@pytest.mark.parametrize("lexical", ["-2.25", "-1.50e-3", "+1.0", "007", "1.50", ".5", "1.e3"])
def test_numbers_keep_how_they_are_written(lexical: str) -> None:
    found = condition(f"?x = {lexical}")
    assert isinstance(found, Call)
    constant = found.arguments[1]
    assert isinstance(constant, nodes.Constant)
    assert str(constant.term) == lexical


def test_a_sign_belongs_to_the_number_it_touches_but_subtracts_behind_an_operand() -> None:
    x, one = nodes.VariableRef(Variable("x")), nodes.Constant(Literal("1", datatype=XSD.integer))
    assert condition("?x -1") == Call("-", (x, one))
    assert condition("?x - - 1") == Call("-", (x, Call("unary-", (one,))))
    assert condition("-1 * 2 -1 / ?x") == condition("((-1) * 2) - (1 / ?x)")


def test_rdflib_is_left_as_it_was() -> None:
    before = rdflib.NORMALIZE_LITERALS
    condition("?x = 007")
    assert rdflib.NORMALIZE_LITERALS is before
    assert str(rdflib.Graph().query("SELECT (01 AS ?x) {}").bindings[0][Variable("x")]) == "1"


def test_queries_are_read_in_many_threads() -> None:
    texts = [f"SELECT ?x {{ STREAM <s> [RANGE {n}s] {{ ?x <urn:p> {n} }} }}" for n in range(1, 9)]
    with ThreadPoolExecutor(4) as pool:
        assert list(pool.map(parse, texts)) == [parse(text) for text in texts]


def test_defaults_of_the_dialects() -> None:
    cqels = parse(f"ASK {{ {BLOCK} }}")
    rsp = parse("ASK FROM NAMED WINDOW <w> ON <s> [RANGE PT1S] { WINDOW <w> { ?x ?p ?y } }")
    merged = "ASK FROM STREAM <s> [RANGE 1s] { ?x ?p ?y }"
    assert (cqels.output, cqels.bag_windows) == (Output.ISTREAM, True)
    assert (rsp.output, rsp.bag_windows) == (Output.ISTREAM, False)
    assert (parse(merged).output, parse(merged).bag_windows) == (Output.RSTREAM, False)
    second = parse(merged, dialect=Dialect.CQELS_QL)
    assert (second.dialect, second.output, second.bag_windows) == (Dialect.CQELS_QL, Output.ISTREAM, True)


def test_what_is_delivered_is_said_in_front_of_distinct_or_behind() -> None:
    in_front = parse(f"REGISTER RSTREAM <q> AS SELECT DISTINCT ?x {{ {BLOCK} }}")
    for words in ("RSTREAM DISTINCT", "DISTINCT RSTREAM"):
        inside = parse(f"SELECT {words} ?x {{ {BLOCK} }}")
        assert (inside.output, inside.pattern) == (Output.RSTREAM, in_front.pattern)


def test_a_base_is_given_or_written() -> None:
    assert parse(f"ASK {{ {BLOCK} }}").windows[0].stream == URIRef("s")
    assert parse(f"ASK {{ {BLOCK} }}", base="http://ex.org/a/b").windows[0].stream == URIRef("http://ex.org/a/s")
    assert parse(f"BASE <c/> ASK {{ {BLOCK} }}", base="http://ex.org/a/b").windows[0].stream == URIRef(
        "http://ex.org/a/c/s"
    )


def test_the_function_iri_gets_the_base() -> None:
    def expression(prologue: str) -> object:
        pattern = parse(f"{prologue} SELECT (IRI(?x) AS ?iri) {{ {BLOCK} }}").pattern
        assert isinstance(pattern, nodes.Project)
        assert isinstance(pattern.pattern, nodes.Extend)
        return pattern.pattern.expression

    variable = nodes.VariableRef(Variable("x"))
    assert expression("") == nodes.Call("IRI", (variable,))
    assert expression("BASE <http://ex.org/>") == nodes.Call(
        "IRI", (variable, nodes.Constant(URIRef("http://ex.org/")))
    )


def test_values_may_have_no_variable() -> None:
    def rows(data: str) -> object:
        pattern = parse(f"SELECT * {{ {BLOCK} VALUES () {{ {data} }} }}").pattern
        assert isinstance(pattern, nodes.Project)
        assert isinstance(pattern.pattern, nodes.Join)
        return pattern.pattern.right

    assert rows("") == nodes.Values((), ())
    assert rows("() ()") == nodes.Values((), ((), ()))


def test_prefixes_may_share_a_namespace_and_be_declared_again() -> None:
    query = parse("PREFIX a: <u:1> PREFIX b: <u:1> PREFIX a: <u:2> ASK { STREAM a:s [NOW] { ?x b:p a:o } }")
    assert query.windows[0].stream == URIRef("u:2s")
    assert query.pattern == nodes.Window(
        (query.windows[0].name,),
        nodes.BGP((nodes.TriplePattern(Variable("x"), URIRef("u:1p"), URIRef("u:2o")),)),
    )


@FEW
@given(scenarios(FEATURES, WINDOWS & RSP_QL_WINDOWS))
def test_the_dialects_say_the_same(scenario: Scenario) -> None:
    """CQELS-QL and RSP-QL differ in the names of windows, no more."""
    cqels, rsp = parse(scenario.texts[Dialect.CQELS_QL]), parse(scenario.texts[Dialect.RSP_QL])
    assert (cqels.form, cqels.variables, cqels.output) == (rsp.form, rsp.variables, rsp.output)
    assert _shape(cqels.pattern) == _shape(rsp.pattern)
    asked = {(window.stream, window.extent) for window in cqels.windows}
    assert asked == {(window.stream, window.extent) for window in rsp.windows}


def _shape(node: object) -> object:
    """A tree without the names of windows."""
    if isinstance(node, nodes.Window):
        return ("window", _shape(node.pattern))
    if isinstance(node, tuple):
        return tuple(_shape(each) for each in node)
    if hasattr(node, "__dataclass_fields__"):
        return (type(node), *(_shape(getattr(node, name)) for name in node.__dataclass_fields__))
    return node


_PIECES = """SELECT ASK WHERE { } { } ( ) [ ] . ; , STREAM WINDOW FROM NAMED GRAPH <s> :p ?x ?y * + - ! ^ / | = < > && || "a" 'b
    1 -2.5 1e3 a @en ^^ @ [NOW] [RANGE 5s] RANGE 5s STEP COUNT TRIPLES ALL FILTER EXISTS NOT OPTIONAL UNION MINUS BIND AS VALUES
    UNDEF GROUP BY HAVING ORDER LIMIT DISTINCT COUNT(*) SUM(?x) REGISTER QUERY q PREFIX BASE IN STR( _:b () REDUCED SERVICE #
    \\u0041 \\ CONSTRUCT DESCRIBE COMPUTED EVERY ISTREAM \n""".replace("\n", " ").split(" ")


@FEW
@given(st.lists(st.sampled_from(_PIECES), max_size=8).map(" ".join))
def test_any_text_is_read_or_refused_at_a_place(text: str) -> None:
    for whole in (text, f"SELECT ?x {{ {BLOCK} {text} }}", f"SELECT ?x {{ STREAM <s> [{text}] {{ ?x ?p ?o }} }}"):
        try:
            parse(whole)
        except QueryError as error:
            assert error.place is not None
