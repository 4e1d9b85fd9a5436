"""Errors name the fault, its place, and a correct form."""

from __future__ import annotations

import pytest

from cqels_py.algebra.nodes import Dialect
from cqels_py.errors import Place, QueryError, QuerySyntaxError, UnsupportedQuery
from cqels_py.parser import parse

PREFIX = "PREFIX : <http://ex.org/>\n"
"""In front of every text below: the texts begin on line 2."""
BLOCK = "STREAM :s [NOW] { ?x :p ?v }"
DECLARED = "FROM NAMED WINDOW :w ON :s [RANGE PT5S]"


def around(window: str) -> str:
    return f"SELECT ?x {{ STREAM :s {window} {{ ?x :p ?v }} }}"


def with_filter(condition: str) -> str:
    return f"SELECT ?x {{\n {BLOCK}\n FILTER({condition})\n}}"


SYNTAX = [
    # Syntax that SPARQL itself does not have.
    ("", (1, 26), "the query ends too early; expected BASE, PREFIX, SELECT"),
    ("# a comment, no more", (2, 21), "the query ends too early"),
    ("hello", (2, 1), "unexpected 'hello'; expected BASE, PREFIX, SELECT, CONSTRUCT, DESCRIBE or ASK"),
    ("INSERT DATA { :a :p :b }", (2, 1), "unexpected 'INSERT'"),
    (f"SELECT {{ {BLOCK} }}", (2, 8), "unexpected '{'"),
    (f"SELECT ?x {{\n{BLOCK}\n", (2, 11), "'{' is never closed: expected '}'"),
    (f"SELECT ?x {{ {BLOCK} }}\n}}", (3, 1), "'}' closes nothing"),
    (f"SELECT ?x {{ {BLOCK} }} garbage", (2, 44), "unexpected 'garbage'; expected GROUP, HAVING"),
    (f"SELECT ?x {{ {BLOCK} }}\nLIMIT x", (3, 7), "unexpected 'x'; expected a number"),
    ("SELECT ?x {\n STREAM :s [RANGE 5s] {\n ?x :p ?y ?z }\n}", (4, 11), "unexpected '?z'"),
    (with_filter("?v > "), (4, 14), "unexpected ')'; expected an expression"),
    (with_filter("nosuch(?v)"), (4, 9), "there is no function nosuch: SPARQL 1.1 has BOUND"),
    (with_filter("Length(?v) > 3"), (4, 9), "there is no function Length: write STRLEN(…)"),
    (with_filter("1 + lower(?v) > 3"), (4, 13), "there is no function lower: write LCASE(…)"),
    (f"SELECT (median(?v) AS ?m) {{ {BLOCK} }}", (2, 9), "there is no function median: SPARQL 1.1 has"),
    (f"SELECT (COUNT ?x AS ?n) {{ {BLOCK} }}", (2, 15), "COUNT takes its argument in parentheses: write COUNT(?x)"),
    (f"SELECT (SUM DISTINCT ?y AS ?n) {{ {BLOCK} }}", (2, 13), "write SUM(DISTINCT ?y)"),
    (with_filter("?v > 10m"), (4, 14), "is a literal: write \"PT10M\"^^xsd:dayTimeDuration"),
    (with_filter("?v > 1500ms"), (4, 14), "\"PT1.5S\"^^xsd:dayTimeDuration"),
    (with_filter("STR ?v = 'a'"), (4, 13), "write STR(?v)"),
    (f"SELECT ?x COUNT(?y) {{ {BLOCK} }}", (2, 11), "in parentheses, with a name: write (COUNT(…) AS ?name)"),
    (f"SELECT ?x {{ {BLOCK}\n FILTER(?v > 1 }}", (3, 8), "'(' is never closed"),
    (f"SELECT ?x {{\n {BLOCK}\n ?x :p 'open }}", (4, 8), "the string that begins here never ends"),
    (f"SELECT ?x {{ {BLOCK} ?x :p <http://a b> }}", (2, 48), "this '<' begins an IRI that does not end"),
    (f"SELECT ?x {{ {BLOCK} FILTER(?x<?y&&?z>?x) }}", (2, 51), "'<?y&&?z>' reads as an IRI here: to compare, write"),
    (f"SELECT ?x {{ {BLOCK}\n ?x foaf:name ?n }}", (3, 5), "'foaf:' of 'foaf:name' is not declared: add PREFIX foaf: <"),
    (r"SELECT ?x { STREAM :s [NOW] { ?x :p '\u00g0' } }", (2, 38), "\\u takes four hexadecimal digits"),
    # Syntax of SPARQL 1.2.
    (f"SELECT ?x {{ {BLOCK}\n << :a :b :c >> :p ?x }}", (3, 2), "'<<' is a reifier of RDF 1.2, which is not supported yet"),
    ("SELECT ?x { STREAM :s [NOW] {\n ?x :p <<( :a :b ?x )>> } }", (3, 8), "'<<(' is a triple term of RDF 1.2"),
    ("SELECT ?x { MATCH WITHIN 5m { EVENT ON :s {\n <<:a :b ?x>> :p 1 } } }", (3, 2), "'<<' is a reifier of RDF 1.2"),
    (f"SELECT ?x {{ {BLOCK}\n ?x :p ?y ~ :r }}", (3, 11), "'~' is a reifier of RDF 1.2"),
    (f"SELECT ?x {{ {BLOCK}\n ?x :p ?y {{| :a ?z |}} }}", (3, 11), "'{|' is an annotation of RDF 1.2"),
    (f"SELECT ?x {{ {BLOCK}\n ?x :p 'a'@en--ltr }}", (3, 11), "'@en--ltr' is a base direction of RDF 1.2"),
    ("VERSION '1.2' SELECT ?x {}", (2, 1), "'VERSION' is an announcement of RDF 1.2"),
    (with_filter("isTRIPLE(?v)"), (4, 9), "isTRIPLE is a function of SPARQL 1.2, which is not supported yet"),
    (with_filter("1 = LANGDIR(?v)"), (4, 13), "LANGDIR is a function of SPARQL 1.2"),
    # Windows.
    ("SELECT ?x { ?x :p ?v }", (2, 1), "the query reads no stream"),
    ("SELECT ?x { STREAM :s { ?x :p ?v } }", (2, 23), "expected '[' and a window after the stream"),
    ("SELECT ?x { STREAM :s [RANGE 5s] ?x :p ?v }", (2, 34), "expected '{' and a pattern after the window, found '?x'"),
    (around("[]"), (2, 24), "expected a window such as [RANGE 10s]"),
    (around("[RANGE]"), (2, 29), "expected a duration such as 10s or PT10S, found ']'"),
    (around("[RANGE 5]"), (2, 30), "'5' of which unit of time? Write 5s"),
    (around("[RANGE 5 parsecs]"), (2, 32), "unknown unit of time 'parsecs': known are d, h, m"),
    (around("[RANGE 0s]"), (2, 30), "a duration must be more than zero"),
    (around("[RANGE P1Y]"), (2, 30), "years and months have no fixed length"),
    (around("[RANGE 5s STEP]"), (2, 37), "expected a duration"),
    (around("[RANGE 5s\n STEP 1s SLIDE 1s]"), (3, 10), "SLIDE after another STEP, SLIDE or TUMBLING"),
    (around("[RANGE 5s START 2024-01-01T00:00:00Z]"), (2, 33), "write it after STEP"),
    (around("[RANGE 5s STEP 1s STARTING 2024]"), (2, 50), "expected AT after STARTING"),
    (around("[RANGE 5s STEP 1s START soon]"), (2, 47), "expected a time such as 2024-01-01T00:00:00Z"),
    (around("[RANGE 5s STEP 1s START 99999999999999999999]"), (2, 47), "beyond the years 1 to 9999"),
    (around(f"[RANGE {'7' * 5000}s]"), (2, 30), "has 5001 characters: numbers in windows are less than"),
    (around(f"[RANGE PT{'7' * 5000}S]"), (2, 30), "has 5003 characters"),
    (around(f"[RANGE 1.{'7' * 5000}s]"), (2, 30), "has 5003 characters"),
    (around(f"[COUNT {'7' * 5000}]"), (2, 30), "has 5000 characters"),
    (around(f"[RANGE 5s STEP 1s START {'7' * 5000}]"), (2, 47), "expected a time such as"),
    (around("[RANGE \u0661\u0660s]"), (2, 30), "numbers are written with the digits 0 to 9"),
    (around("[RANGE PT\u0665S]"), (2, 30), "numbers are written with the digits 0 to 9"),
    (around("[TRIPLES \u096b]"), (2, 32), "numbers are written with the digits 0 to 9"),
    (f"SELECT ?x {{ {BLOCK} }} LIMIT {'7' * 5000}", (2, 50), "LIMIT has a number of 5000 characters"),
    (f"SELECT ?x {{ {BLOCK} }} OFFSET {'7' * 5000}", (2, 51), "OFFSET has a number of 5000 characters"),
    (around("[RANGE 2s STEP 4611686018427387903us]"), (2, 33), "less than 4611686018427387904 microseconds together"),
    (around("[FROM NOW-2305843009213693952us TO NOW-1us STEP 2305843009213693952us]"), (2, 66), "STEP, and how far START"),
    (around("[SESSION 4611686018427387902us STEP 1us START 1970-01-01T00:00:01Z]"), (2, 54), "write less"),
    (around("[RANGE 2305843009213693952us TUMBLING]"), (2, 52), "write less"),
    (around("[RANGE 5s STEP 1s START '5'^^:double]"), (2, 52), "xsd:dateTime or an xsd:integer, not :double"),
    (around("[FROM NOW-1h]"), (2, 35), "expected TO after where the window begins, as in [FROM NOW-2h TO NOW-1h]"),
    (around("[FROM 1h TO NOW]"), (2, 29), "expected NOW after FROM"),
    (around("[FROM NOW-1h TO NOW-60m]"), (2, 29), "write the earlier time first"),
    (around("[NOW-1h]"), (2, 24), "where does the window begin and end"),
    (around("[SESSION]"), (2, 31), "expected a duration"),
    (around("[COUNT 5 PARTITION ?x]"), (2, 42), "expected BY after PARTITION"),
    (around("[COUNT 5 PARTITION BY]"), (2, 44), "expected the variables after PARTITION BY"),
    (around("[COUNT 5 PARTITION BY ?x ?z]"), (2, 48), "no triple pattern of this window has ?z"),
    (around("[COUNT 5] PARTITION BY ?x"), (2, 33), "PARTITION BY must be inside of the window's brackets"),
    (around("[COUNT 0]"), (2, 30), "expected a whole number from 1, such as 100, found '0'"),
    (around(f"[COUNT {2**62}]"), (2, 30), f"{2**62} is too large: the greatest number is {2**62 - 1}"),
    (around("[COUNT 1.5]"), (2, 30), "expected a whole number from 1"),
    (around("[RANGE 5s @]"), (2, 34), "expected the property that carries the event time after '@'"),
    (around("[RANGE 5s @ ex:time]"), (2, 35), "the prefix 'ex:' of 'ex:time' is not declared"),
    (f"SELECT ?x {{ STREAM :s [NOW] {{ {BLOCK} }} }}", (2, 31), "a window inside of a window"),
    (f"SELECT ?x {{ GRAPH :g {{ {BLOCK} }} }}", (2, 24), "a window inside of GRAPH"),
    (f"SELECT ?x {DECLARED} {{ WINDOW :v {{ ?x :p ?v }} }}", (2, 60), "the window :v is not declared: add FROM NAMED"),
    (f"SELECT ?x {DECLARED}\n{DECLARED} {{ WINDOW :w {{ ?x :p ?v }} }}", (3, 19), "the window :w is declared twice"),
    (f"SELECT ?x {DECLARED} {{ ?x :p ?v }}", (2, 1), "no pattern reads a window"),
    (
        "SELECT ?x FROM NAMED STREAM :s [RANGE 5s] FROM NAMED :s { GRAPH :s { ?x :p ?v } }",
        (2, 1),
        "is named by FROM NAMED STREAM and by FROM NAMED",
    ),
    ("SELECT ?x FROM NAMED STREAM :s [RANGE 5s] { ?x :p ?v }", (2, 1), "no pattern reads a window"),
    (f"SELECT ?x {DECLARED} {{ {BLOCK} }}", (2, 53), "CQELS-QL writes windows like this; the query is RSP-QL"),
    (f"SELECT ?x FROM STREAM :s [RANGE 5s] {{ {BLOCK} }}", (2, 39), "the query is C-SPARQL"),
    # Registration.
    (f"REGISTER {{ {BLOCK} }}", (2, 10), "expected QUERY, STREAM, ISTREAM, DSTREAM or RSTREAM after REGISTER"),
    (f"REGISTER QUERY AS SELECT ?x {{ {BLOCK} }}", (2, 16), "expected a name after REGISTER QUERY, found 'AS'"),
    (f"REGISTER QUERY q SELECT ?x {{ {BLOCK} }}", (2, 18), "expected AS after the name of the query, found 'SELECT'"),
    (f"SELECT ?x {{ {BLOCK} }} REGISTER QUERY q AS", (2, 44), "REGISTER can only be used once, in front of SELECT"),
    (f"REGISTER RSTREAM <q> AS SELECT ISTREAM ?x {{ {BLOCK} }}", (2, 32), "leave one out"),
    # Syntax that the algebra has no meaning for.
    (f"SELECT ?x (COUNT(*) AS ?n) {{ {BLOCK} }}", (2, 8), "?x is selected, but is neither in GROUP BY nor in an aggregate"),
    (f"SELECT (?v + 1 AS ?n) {{ {BLOCK} }} GROUP BY ?x", (2, 9), "?v is selected, but"),
    (f"SELECT ?x {{ {BLOCK} }} GROUP BY ?x ORDER BY ?v", (2, 65), "?v is used in HAVING or ORDER BY"),
    (f"SELECT * {{ {BLOCK} }} GROUP BY ?x", (2, 8), "SELECT * with GROUP BY"),
    (f"SELECT ?x {{ {BLOCK} BIND(1 AS ?v) }}", (2, 52), "the variable ?v already has a value here"),
    (f"SELECT (COUNT(*) AS ?x) {{ {BLOCK} }}", (2, 21), "the variable ?x is already used in the pattern"),
    (with_filter("COUNT(?v) > 1"), (4, 9), "COUNT can only be used in SELECT, HAVING and ORDER BY"),
    (f"SELECT ?x {{ {BLOCK} }} HAVING(?x > 1)", (2, 44), "HAVING needs GROUP BY or an aggregate"),
    (f"SELECT ?x {{ {BLOCK} }} VALUES (?x ?v) {{ (1) }}", (2, 44), "VALUES has 2 variables, but a row of 1"),
    ("ASK { STREAM :s [NOW] { _:a :p ?x } STREAM :t [NOW] { _:a :q ?y } }", (2, 25), "the blank node _:a is used in two"),
    (with_filter("!" + "(!" * 400 + "?v" + ")" * 400), (4, 206), "nested too deeply"),
    ("SELECT ?x " + "{" * 2000 + BLOCK + "}" * 2000, (2, 111), "nested too deeply"),
]  # fmt: skip

UNSUPPORTED = [
    (around("[RANGE 5s PARTITION BY ?x]"), (2, 33), "such as [COUNT 10 PARTITION BY ?x]"),
    (around("[COUNT 5 STEP 2 START 3]"), (2, 39), "START is for windows of time"),
    (
        "SELECT ?x { STREAM :s [TRIPLES 5 PARTITION BY ?x ?z] { ?x :p ?v . ?v :q ?z } }",
        (2, 47),
        "no triple pattern has all of ?x ?z",
    ),
    (
        "SELECT ?x { STREAM :s [COUNT 5 PARTITION BY ?x ?z] { ?x :p ?v . ?y :q ?z } }",
        (2, 45),
        "no triple patterns of this window connect ?x ?z",
    ),
    (around("[PAST 5s]"), (2, 24), "PAST windows are not supported"),
    (around("[RANGE 5s FUTURE 1s]"), (2, 33), "FUTURE windows are not supported"),
    (around("[RANGE 5s LATENESS 1s]"), (2, 33), "--lateness 5s"),
    (around("[RANGE 5s] EMIT"), (2, 34), "EMIT is not supported"),
    (around("[RANGE 1h PAST 1h]"), (2, 33), "is [FROM NOW-2h TO NOW-1h]"),
    (around("[FROM NOW TO NOW+1h]"), (2, 39), "a window in the future"),
    (around("[TRIPLES 5 STEP 2 START 3]"), (2, 41), "START is for windows of time: triples are counted"),
    (around("[RANGE 1ns]"), (2, 30), "durations are whole microseconds"),
    ("SELECT ?x { STREAM ?s [NOW] { ?x :p ?v } }", (2, 20), "a stream is an IRI, not a variable: '?s'"),
    ("REGISTER QUERY q COMPUTED EVERY 5s AS\nSELECT ?x FROM STREAM :s [RANGE 9s STEP 2s] { ?x :p ?v }", (2, 33), "differs from"),
    ("REGISTER QUERY q COMPUTED EVERY 5s AS\nSELECT ?x FROM STREAM :s [RANGE TRIPLES 9] { ?x :p ?v }", (2, 33), "COMPUTED EVERY"),
    (
        "PREFIX f: <http://larkc.eu/csparql/sparql/jena/ext#>\n"
        "SELECT ?x FROM STREAM :s [RANGE 9s] { ?x :p ?v\nFILTER(f:timestamp(?x, :p, ?v) > 0) }",
        (4, 8),
        "f:timestamp is not supported",
    ),
]  # fmt: skip


def complaint(text: str) -> QueryError:
    with pytest.raises(QueryError) as raised:
        parse(PREFIX + text, source="query.rq")
    return raised.value


@pytest.mark.parametrize(("text", "place", "message"), SYNTAX)
def test_syntax_errors(text: str, place: tuple[int, int], message: str) -> None:
    error = complaint(text)
    assert isinstance(error, QuerySyntaxError)
    assert message in error.message
    assert error.place == Place(*place, "query.rq")
    assert str(error).startswith(f"query.rq:{place[0]}:{place[1]}: ")


@pytest.mark.parametrize(("text", "place", "message"), UNSUPPORTED)
def test_refusals(text: str, place: tuple[int, int], message: str) -> None:
    error = complaint(text)
    assert isinstance(error, UnsupportedQuery)
    assert message in error.message
    assert error.place == Place(*place, "query.rq")


@pytest.mark.parametrize(
    ("misspelt", "meant"),
    [
        ("SELEKT ?x { STREAM :s [NOW] { ?x :p ?v } }", "SELECT"),
        ("SELECT ?x { STREM :s [NOW] { ?x :p ?v } }", "STREAM"),
        ("SELECT ?x { STREAM :s [RAGNE 5s] { ?x :p ?v } }", "RANGE"),
        ("SELECT ?x { STREAM :s [RANGE 5s STPE 1s] { ?x :p ?v } }", "STEP"),
        ("SELECT ?x { STREAM :s [COUNT 5 PARTITON BY ?x] { ?x :p ?v } }", "PARTITION"),
        ("SELECT ?x { STREAM :s [NOW] { ?x :p ?v } FLITER(?v > 1) }", "FILTER"),
        ("SELECT ?x { STREAM :s [NOW] { ?x :p ?v } OPTINAL { ?x :q ?w } }", "OPTIONAL"),
        ("REGISTER QEURY <q> AS SELECT ?x { STREAM :s [NOW] { ?x :p ?v } }", "QUERY"),
        ("SELECT ?x { STREAM :s [NOW] { ?x :p ?v } } SOMETHING ?x", None),
    ],
)
def test_the_keyword_that_a_misspelt_word_means(misspelt: str, meant: str | None) -> None:
    message = complaint(PREFIX + misspelt).message
    if meant is None:
        assert "did you mean" not in message
    else:
        assert message.endswith(f"did you mean {meant}?")


@pytest.mark.parametrize("text", ["", " \n\t", "# nothing\n"])
def test_an_empty_text(text: str) -> None:
    with pytest.raises(QuerySyntaxError, match=r"<query>:\d:\d+: .*expected .*SELECT"):
        parse(text)


@pytest.mark.parametrize("line_break", ["\n", "\r\n", "\r"])
def test_places_count_the_line_breaks_of_the_text(line_break: str) -> None:
    text = line_break.join(["PREFIX : <http://ex.org/> # é", f"ASK {{ {BLOCK}", "\t?x :q '\\u00e9' , ?? }"])
    with pytest.raises(QuerySyntaxError) as raised:
        parse(text)
    assert raised.value.place == Place(3, 19)


def test_a_place_behind_clauses_that_were_lifted_out() -> None:
    text = f"REGISTER RSTREAM :out AS {PREFIX} SELECT ?x {DECLARED} {{ WINDOW :w {{ ?x :p ?v }} FILTER(?v >) }}"
    with pytest.raises(QuerySyntaxError) as raised:
        parse(text)
    line = text.splitlines()[1]
    assert raised.value.place == Place(2, line.index(">)") + 2)


@pytest.mark.parametrize("dialect", [Dialect.RSP_QL, Dialect.C_SPARQL])
def test_a_dialect_that_is_given_is_kept_to(dialect: Dialect) -> None:
    with pytest.raises(QuerySyntaxError, match=f"the query is {dialect.value}"):
        parse(PREFIX + around("[NOW]"), dialect=dialect)
