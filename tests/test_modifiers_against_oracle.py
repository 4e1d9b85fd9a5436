"""Aggregates over any term, slices, orders and NOW() where they are hardest, against the oracle at any batch size."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import groupby

import pytest
from hypothesis import given, reject
from rdflib import XSD, Literal, URIRef

from cqels_py.algebra.nodes import Dialect, Output
from tests.oracle import naive
from tests.oracle.naive import Element, Mapping, Static
from tests.support import harness, traces
from tests.support.generators import FEW, RSP_QL_WINDOWS, WINDOWS, Scenario, answerable, scenarios
from tests.support.traces import EX, STREAMS

pytestmark = pytest.mark.usefixtures("unmeasured")

PREFIX = f"PREFIX : <{EX}>\n"
WINDOWED = {
    "range": f"STREAM <{STREAMS}s> [RANGE 4s]",
    "steps": f"STREAM <{STREAMS}s> [RANGE 4s STEP 1s]",
    "count": f"STREAM <{STREAMS}s> [COUNT 3]",
}

TENTHS = traces.elements("""
    10 s a p 1, a q b
    20 s b p 2
    20 s b q c, b r 2
    30 s c p 2, c r 1
    40 s a r 1, a r 3
    55 s b p 1, c q a
    60 s a p 3
    80 s c p 3, b q b, a p 'x', a p 'y'@en
    90 s b r 3, c q a
    120 s a q a, a p 1
    125 s a r 1, a p 1.5, a p 1.0
    130 s b p 1, a q b, b r 1, b p '"'
""")
ELEMENTS = [Element(element.time * 100_000, element.stream, element.triples) for element in TENTHS]
STATIC = Static(traces.triples("a name 'A', b name 'B', a link c, b link a, b link b"))

TIES = traces.elements("""
    10 s a v 4, a r 1
    11 s b v 4.0, b r 0
    12 s c v 4.00, c r 2
    13 s d v 4e0, d r 1
    20 s e v 3, e r 9
    25 s f v 0.4e1, f r -1
    30 s g v 40e-1, g r 0.0
    44 s a v 04, b v 4.000
""")
EQUAL_VALUES = [Element(element.time * 100_000, element.stream, element.triples) for element in TIES]
"""Several terms for one number: the next key decides between them, and the terms after the last one."""

AGGREGATES = {
    "sample": "SELECT (SAMPLE(?s) AS ?a) (SAMPLE(?n) AS ?b) { %w { ?s ?p ?n } }",
    "sample by group": "SELECT ?p (SAMPLE(DISTINCT ?n) AS ?b) (MIN(?n) AS ?m) { %w { ?s ?p ?n } } GROUP BY ?p",
    "sample of errors": "SELECT (SAMPLE(1 / (?n - 1)) AS ?a) { %w { ?s :p ?n } }",
    "concat": "SELECT ?p (GROUP_CONCAT(?n) AS ?g) (GROUP_CONCAT(DISTINCT ?n) AS ?h) { %w { ?s ?p ?n } } GROUP BY ?p",
    "concat with separators": (
        "SELECT (GROUP_CONCAT(?n; SEPARATOR='') AS ?g) (GROUP_CONCAT(?s; SEPARATOR='\"\\n') AS ?h) { %w { ?s :p ?n } }"
    ),
    "concat beside others": "SELECT (GROUP_CONCAT(?n) AS ?g) (SUM(?n) AS ?t) (AVG(?n) AS ?a) { %w { ?s :r ?n } }",
    "concat of errors": "SELECT (GROUP_CONCAT(IF(?n > 1, 1 / 0, ?s)) AS ?k) { %w { ?s :p ?n } }",
    "concat of perhaps unbound": "SELECT (CONCAT(GROUP_CONCAT(?m), '!') AS ?g) { %w { ?s :p ?n OPTIONAL { ?s :r ?m } } }",
    "concat of concats": (
        "SELECT (GROUP_CONCAT(?k; SEPARATOR='|') AS ?m) "
        "{ { SELECT ?s (GROUP_CONCAT(?n) AS ?k) { %w { ?s :p ?n } } GROUP BY ?s } }"
    ),
    "concat in having": "SELECT ?p { %w { ?s ?p ?n } } GROUP BY ?p HAVING(STRLEN(GROUP_CONCAT(?n)) > 8)",
    "rows": "SELECT (COUNT(DISTINCT *) AS ?g) (COUNT(*) AS ?c) { %w { ?s ?p ?n } }",
    "rows by group": (
        "SELECT ?p (COUNT(DISTINCT *) AS ?g) (AVG(?n) AS ?c) { %w { ?s ?p [] OPTIONAL { ?s :r ?n } } } GROUP BY ?p "
        "HAVING(COUNT(DISTINCT *) > 1 || GROUP_CONCAT(?n) != '')"
    ),
    "rows without variables": "SELECT (COUNT(DISTINCT *) AS ?k) { %w { [] :p 1 } }",
    "rows of nothing": "SELECT (COUNT(DISTINCT *) AS ?k) (SAMPLE(?n) AS ?a) (GROUP_CONCAT(?n) AS ?b) { %w { ?s :none ?n } }",
}

SLICES = {
    "limit": "SELECT ?n ?s { %w { ?s ?p ?n } } LIMIT 2",
    "limit and offset": "SELECT ?n ?s { %w { ?s ?p ?n } } LIMIT 2 OFFSET 1",
    "offset": "SELECT ?n ?s { %w { ?s ?p ?n } } OFFSET 3",
    "limit of nothing": "SELECT ?n ?s { %w { ?s ?p ?n } } LIMIT 0",
    "offset of different rows": "SELECT DISTINCT ?s { %w { ?s ?p ?n } } OFFSET 1",
    "limit of reduced rows": "SELECT REDUCED ?s { %w { ?s ?p ?n } } ORDER BY ?n LIMIT 3",
    "reduced": "SELECT REDUCED ?s { %w { ?s ?p ?n } }",
    "order by what is not selected, limit": "SELECT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n) LIMIT 3",
    "order by what is not selected, offset": "SELECT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n) OFFSET 2",
    "order of different rows, offset": "SELECT DISTINCT ?s ?n { %w { ?s ?p ?n } } ORDER BY DESC(STR(?n)) OFFSET 2",
    "order of different rows by what is not selected": "SELECT DISTINCT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n) ?p LIMIT 2",
    "order of different rows by what is not selected, offset": (
        "SELECT DISTINCT ?p { %w { ?s ?p ?n } } ORDER BY DESC(?s) (STRLEN(STR(?n))) OFFSET 1"
    ),
    "order that leaves rows equal": "SELECT ?s ?o { %w { ?s ?p ?o } } ORDER BY ?s LIMIT 4",
    "a slice in a join": "SELECT ?s ?o { %w { ?s ?p ?n } { SELECT ?s ?o { %w { ?s :q ?o } } ORDER BY ?o LIMIT 2 } }",
    "an order in a join": "SELECT ?s ?o { %w { ?s ?p ?n } { SELECT ?s ?o { %w { ?s :q ?o } } ORDER BY ?o } }",
    "an offset in a join": "SELECT ?s ?o { { SELECT ?s ?o { %w { ?s :q ?o } } OFFSET 1 } %w { ?s ?p ?n } }",
    "a slice of static data": "SELECT * { { SELECT ?s ?o { ?s :link ?o } OFFSET 1 } %w { ?s ?p ?n } }",
    "the group with most": "SELECT ?s { %w { ?s ?p ?n } } GROUP BY ?s ORDER BY DESC(COUNT(*)) LIMIT 1",
}

OVER_EQUAL_VALUES = {
    "the next key": "SELECT ?s ?n { %w { ?s :v ?n } } ORDER BY DESC(?n) ?s LIMIT 2",
    "the key after that": "SELECT ?s ?n { %w { ?s :v ?n ; :r ?m } } ORDER BY ?n DESC(?m) DESC(?s) LIMIT 3 OFFSET 1",
    "the order of terms": "SELECT ?n ?s { %w { ?s :v ?n } } ORDER BY DESC(?n) LIMIT 3",
    "an expression": "SELECT ?s ?n { %w { ?s :v ?n } } ORDER BY (IF(?n < 4, ?n, ?n)) DESC(?s) LIMIT 2",
    "truth": 'SELECT ?s ?b { %w { ?s :v ?n } BIND(IF(?s < :d, ?n > 3, "1"^^xsd:boolean) AS ?b) } ORDER BY ?b DESC(?s) LIMIT 3',
    "groups": "SELECT ?n (COUNT(*) AS ?k) { %w { ?s :v ?n } } GROUP BY ?n ORDER BY DESC(?n) ?k LIMIT 2",
    "a subquery": "SELECT ?s ?m { { SELECT ?s { %w { ?s :v ?n } } ORDER BY DESC(?n) DESC(?s) LIMIT 2 } %w { ?s :r ?m } }",
    "different rows": "SELECT DISTINCT ?m { %w { ?s :v ?n ; :r ?m } } ORDER BY DESC(?n) DESC(?m) LIMIT 2",
    "extremes": "SELECT (MIN(?n) AS ?a) (MAX(?n) AS ?b) (SAMPLE(?n) AS ?c) { %w { ?s :v ?n } }",
}

TIMED = {
    "selected": "SELECT ?s ?n (SECONDS(NOW()) AS ?t) { %w { ?s :p ?n } }",
    "filter": "SELECT ?s ?n { %w { ?s :p ?n } FILTER(SECONDS(NOW()) = ?n + 1.0) }",
    "filter in a window": "SELECT ?s ?n { %w { ?s :p ?n FILTER(SECONDS(NOW()) > 4.0) . ?s :q ?o } }",
    "filter beside static data": "SELECT ?s ?n { %w { ?s :p ?n } ?s :name ?a FILTER(SECONDS(NOW()) > 4.0 && ?n > 1) }",
    "filter over static data": "SELECT ?s ?a (STR(NOW()) AS ?t) { %w { ?s :p ?n } { ?s :name ?a FILTER(SECONDS(NOW()) > 4.0) } }",
    "expression over static data": "SELECT * { { ?a :link ?b BIND(NOW() AS ?x) } %w { ?a :p ?n } }",
    "expression over nothing": "SELECT * { BIND(NOW() AS ?x) %w { ?a :p ?n } }",
    "the same twice": "SELECT (NOW() = ?x AS ?same) { %w { ?s :p ?n } BIND(NOW() AS ?x) }",
    "argument of an aggregate, and having": (
        "SELECT ?s (SUM(?n + SECONDS(NOW())) AS ?k) { %w { ?s :r ?n } } GROUP BY ?s HAVING(COUNT(*) > SECONDS(NOW()) / 4)"
    ),
    "beside a count": "SELECT (COUNT(*) AS ?x) (NOW() AS ?y) { %w { ?s :p ?n } }",
    "order": "SELECT ?s ?n { %w { ?s :r ?n } } ORDER BY (ABS(?n - SECONDS(NOW()))) ?s LIMIT 2",
    "optional": "SELECT ?s ?n ?o { %w { ?s :p ?n } OPTIONAL { %w { ?s :q ?o } FILTER(SECONDS(NOW()) > 3) } }",
    "not exists": "SELECT ?s ?n { %w { ?s :p ?n } FILTER NOT EXISTS { %w { ?s :q ?o } FILTER(SECONDS(NOW()) > 3) } }",
    "minus static data": "SELECT ?s ?n { %w { ?s :p ?n } MINUS { ?s :name ?o FILTER(SECONDS(NOW()) > 3) } }",
    "distinct": "SELECT DISTINCT (NOW() AS ?x) { %w { ?s :p ?n } }",
    "ask": "ASK { %w { ?a :p ?n } FILTER(SECONDS(NOW()) < ?n) }",
}


@pytest.mark.parametrize(
    ("text", "window"),
    [
        pytest.param(text, WINDOWED[window], id=f"{name}-{window}")
        for queries, windows in (
            (AGGREGATES, ("range", "count")),
            (SLICES, ("range", "count")),
            (TIMED, ("range", "steps")),
        )
        for name, text in queries.items()
        for window in windows
    ],
)
def test_a_query(text: str, window: str) -> None:
    output = None if text.startswith("ASK") else Output.CHANGELOG
    harness.assert_engine_right(PREFIX + text.replace("%w", window), ELEMENTS, STATIC, output)


@pytest.mark.parametrize("window", ["range", "count"])
@pytest.mark.parametrize("text", OVER_EQUAL_VALUES.values(), ids=OVER_EQUAL_VALUES.keys())
def test_a_query_over_equal_values(text: str, window: str) -> None:
    text = f"{PREFIX}PREFIX xsd: <{XSD}>\n{text.replace('%w', WINDOWED[window])}"
    harness.assert_engine_right(text, EQUAL_VALUES, STATIC, Output.CHANGELOG)


# --- reports in order -------------------------------------------------------------------------------------------------

ORDERED = {
    "by what is not selected": "SELECT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n)",
    "different rows by what is not selected": "SELECT DISTINCT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n)",
    "different rows": "SELECT DISTINCT ?s ?n { %w { ?s ?p ?n } } ORDER BY DESC(?n)",
    "reduced": "SELECT REDUCED ?n { %w { ?s ?p ?n } } ORDER BY ?s",
    "by an expression, and what may be unbound": (
        "SELECT ?s { %w { ?s ?p ?n OPTIONAL { ?n :q ?m } } } ORDER BY ?m DESC(STR(?n))"
    ),
    "groups": "SELECT ?s (COUNT(*) AS ?k) { %w { ?s ?p ?n } } GROUP BY ?s ORDER BY DESC(COUNT(*)) ?s",
    "limit": "SELECT ?s { %w { ?s ?p ?n } } ORDER BY DESC(?n) LIMIT 3",
    "offset": "SELECT ?s ?n { %w { ?s ?p ?n } } ORDER BY ?p DESC(?n) OFFSET 2",
    "time": "SELECT ?s ?n { %w { ?s :r ?n } } ORDER BY (ABS(?n - SECONDS(NOW()))) ?s",
    "exists": "SELECT ?s ?n { %w { ?s :p ?n } } ORDER BY (EXISTS { %w { ?s :q ?o } }) ?n",
}


def assert_reports_in_order(text: str, elements: Sequence[Element], static: Static, batch: int | None) -> None:
    """RSTREAM: the same rows at the same times, row by row."""
    ticks = naive.ticks(harness.parse(text), elements, static)
    expected = [(tick.time, row) for tick in ticks for row in tick.rows]
    got = [(found.time, found.mapping) for found in harness.run_engine(text, elements, static, batch)]
    assert [time for time, _ in got] == [time for time, _ in expected]
    differing = [
        (time, traces.row(one), traces.row(other))
        for (time, one), (_, other) in zip(expected, got, strict=True)
        if one != other and not harness._close(one, other)
    ]
    assert not differing, "expected and delivered rows"


@pytest.mark.parametrize("text", ORDERED.values(), ids=ORDERED.keys())
def test_reports_are_in_order(text: str) -> None:
    head, group = text.split("{", 1)
    window = f"FROM NAMED WINDOW :w ON <{STREAMS}s> [RANGE PT4S STEP PT1S]"
    text = f"{PREFIX}REGISTER RSTREAM :o AS {head} {window} {{{group.replace('%w', 'WINDOW :w')}"
    for batch in harness.BATCH_SIZES:
        assert_reports_in_order(text, ELEMENTS, STATIC, batch)


INSTANTS = [
    Element(
        i * 500_000,
        URIRef(f"{STREAMS}s"),
        (
            (URIRef(EX + name), URIRef(f"{EX}p"), Literal(text, datatype=XSD.dateTime, normalize=False)),
            (URIRef(EX + name), URIRef(f"{EX}q"), URIRef(EX + other)),
        ),
    )
    for i, (name, text, other) in enumerate(
        [
            ("a", "2024-05-01T12:00:00Z", "z"),
            ("b", "2024-05-01T14:00:00+02:00", "y"),
            ("c", "2024-05-01T12:00:00.000", "x"),
            ("d", "2024-05-01T11:59:59.9999999Z", "w"),
            ("e", "2024-05-01T12:00:00.0000000Z", "y"),
        ]
    )
]


@pytest.mark.parametrize("order", ["?n DESC(?o) ?s", "DESC(?n) ?o DESC(?s)", "?n", "DESC(?n)"])
def test_reports_of_equal_instants_are_in_order(order: str) -> None:
    head = f"REGISTER RSTREAM :o AS SELECT ?s ?n FROM NAMED WINDOW :w ON <{STREAMS}s> [RANGE PT2S STEP PT1S]"
    text = f"{PREFIX}{head} {{ WINDOW :w {{ ?s :p ?n ; :q ?o }} }} ORDER BY {order}"
    for batch in harness.BATCH_SIZES:
        assert_reports_in_order(text, INSTANTS, STATIC, batch)


@given(scenarios({"join", "union", "optional", "aggregate", "distinct", "slice"}, RSP_QL_WINDOWS, most_elements=12))
def test_drawn_reports_are_in_order(scenario: Scenario) -> None:
    text = scenario.texts[Dialect.RSP_QL].replace("REGISTER ISTREAM", "REGISTER RSTREAM")
    if "\nORDER BY" not in text:
        reject()
    with answerable():
        for batch in (1, 3, None):
            assert_reports_in_order(text, scenario.elements, scenario.static, batch)


@pytest.mark.parametrize("output", [Output.ISTREAM, Output.CHANGELOG])
def test_an_order_of_changes_is_accepted_and_makes_no_difference(output: Output) -> None:
    text = f"{PREFIX}SELECT ?s ?n {{ {WINDOWED['range']} {{ ?s :p ?n }} }} ORDER BY ?n"
    asked = None if output is Output.ISTREAM else output
    harness.assert_engine_right(text, ELEMENTS, STATIC, asked)


# --- results of slices -----------------------------------------------------------------------------------


def test_only_rows_that_enter_or_leave_the_slice_are_delivered() -> None:
    """No row goes and comes back at one tick."""
    for text in SLICES.values():
        found = harness.run_engine(
            PREFIX + text.replace("%w", WINDOWED["steps"]), ELEMENTS, STATIC, 1, Output.CHANGELOG
        )
        for _, at_tick in groupby(found, key=lambda result: result.time):
            signs: dict[Mapping, set[int]] = {}
            for result in at_tick:
                signs.setdefault(result.mapping, set()).add(result.sign)
            assert all(len(each) == 1 for each in signs.values())


# --- drawn queries ----------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("feature", ["slice", "samples", "now"])
def test_drawn_queries(feature: str) -> None:
    @FEW
    @given(
        scenarios({"join", "filter", "optional", "subquery", "distinct", "static", feature}, WINDOWS, most_elements=12)
    )
    def check(scenario: Scenario) -> None:
        with answerable():
            harness.assert_engine_right(scenario.texts[Dialect.CQELS_QL], scenario.elements, scenario.static)

    check()
