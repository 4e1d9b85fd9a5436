"""MATCH: what is refused, with its place and a way out."""

from __future__ import annotations

import pytest

from cqels_py.algebra.match_automaton import MOST_IN_ALL
from cqels_py.algebra.nodes import EventSequence, Match, Output, Project
from cqels_py.algebra.printer import algebra_text
from cqels_py.engine.engine import Engine
from cqels_py.errors import QueryError, QuerySyntaxError, UnsupportedQuery
from cqels_py.kernels.patterns.runs import MOST_ENTRIES
from cqels_py.parser import parse

A, B, C = (f"EVENT ON :s {{ ?{x} :is :{x} ; :k ?k }}" for x in "abc")


OTHER = "EVENT ON :s { ?o :is ?p }"
ONLY = "an EVENT takes triple patterns, FILTER and BIND of one element"


def query(match: str, select: str = "?k", after: str = "") -> str:
    return f"PREFIX : <http://ex.org/>\nSELECT {select} WHERE {{\n{match}\n{after}}}"


REFUSED = [
    (f"MATCH {{ {A} }}", QuerySyntaxError, (3, 7), "wait for ever: write WITHIN 5m or WITHIN 100 EVENTS"),
    (f"MATCH WITHIN 5m {{\n{A} SEQ\n{B} AND\n{C} }}", QuerySyntaxError, (5, 35), "in one group: write { A SEQ B } AND C"),
    ("MATCH WITHIN 5m {\nEVENT { ?a :k ?k } }", QuerySyntaxError, (4, 7), "which stream? Write EVENT ON <stream> { … }"),
    ("MATCH WITHIN 5m {\nEVENT ON ?s { ?a :k ?k } }", UnsupportedQuery, (4, 10), "a stream is an IRI, not a variable"),
    ("MATCH WITHIN 5m {\nEVENT ON :s [NOW] { ?a :k ?k } }", UnsupportedQuery, (4, 13), "an EVENT has no window of its own"),
    ("MATCH WITHIN 5m {\nEVENT ON :s { ?a :k ?k OPTIONAL { ?a :v ?v } } }", UnsupportedQuery, (4, 24), ONLY),
    ("MATCH WITHIN 5m {\nEVENT ON :s { ?a :p+ ?k } }", UnsupportedQuery, (4, 1), "an EVENT takes triple patterns"),
    ("MATCH WITHIN 5m {\nEVENT ON :s { ?a :k ?k FILTER(?z > 1) } }", QuerySyntaxError, (4, 1), "write the FILTER outside of it"),
    (f"MATCH WITHIN 5m {{\nNOT {A} SEQ {B} }}", QuerySyntaxError, (4, 1), "NOT stands between two events: A SEQ NOT N SEQ C"),
    (f"MATCH WITHIN 5m {{\n{A} SEQ NOT {B} }}", QuerySyntaxError, (4, 39), "follows within 5 minutes write STREAM <a> [FROM NOW"),
    (f"MATCH WITHIN 5m {{\n{A} SEQ NOT {B} SEQ NOT {B} SEQ {C} }}", QuerySyntaxError, (4, 39), "NOT stands between two events"),
    (f"MATCH WITHIN 5m {{ {{ {A}+ SEQ {B} }}+ }}", UnsupportedQuery, (3, 19), "a '+' inside of a '+'"),
    (f"MATCH FIRST WITHIN 5m {{ {A} }}", QuerySyntaxError, (3, 7), "expected ALL, LATEST or EARLIEST, or WITHIN"),
    (f"MATCH CONSUME WITHIN 5m {{ {A} }}", QuerySyntaxError, (3, 7), "CONSUME comes after WITHIN: MATCH WITHIN 5m CONSUME"),
    (f"MATCH WITHIN 5m LATEST {{ {A} }}", QuerySyntaxError, (3, 17), "LATEST comes before WITHIN: MATCH LATEST WITHIN 5m"),
    (f"MATCH WITHIN 5m {{ {A}\nFILTER(?k > 1) }}", QuerySyntaxError, (4, 1), "or behind the MATCH, as in"),
    (f"MATCH WITHIN 5m {{ {{ {A}\nBIND(1 AS ?x) }} SEQ {B} }}", QuerySyntaxError, (4, 1), "BIND stands in the braces of an EVENT"),
    (f"MATCH WITHIN 5m {{ {A} SEQ {B}* }}", QuerySyntaxError, (3, 90), "only + repeats an event"),
    (f"MATCH WITHIN 5m {{ {' AND '.join([A] * 7)} }}", UnsupportedQuery, (3, 1), "transitions, more than 128"),
    (f"MATCH WITHIN 5m {{ {{ {A} OR {OTHER} }} SEQ NOT\n{B} SEQ {OTHER} }}", UnsupportedQuery, (4, 1), "some matches have no"),
    (f"MATCH WITHIN 5m {{ {A} {B} }}", QuerySyntaxError, (3, 53), "expected SEQ, AND, OR or the '}'"),
    (f"SEQ {A}", QuerySyntaxError, (3, 1), "SEQ can only be used inside of MATCH"),
    (f"MATCH WITHIN 5 {{ {A} }}", QuerySyntaxError, (3, 14), "'5' of which unit of time?"),
]  # fmt: skip


@pytest.mark.parametrize(("match", "kind", "place", "message"), REFUSED, ids=lambda value: str(value)[:40])
def test_refusals_have_a_place_and_a_way_out(match, kind, place, message):
    with pytest.raises(kind) as caught:
        parse(query(match))
    assert message in str(caught.value)
    assert (caught.value.place.line, caught.value.place.column) == place


def test_an_automaton_with_too_many_transitions_in_all_is_refused():
    assert MOST_IN_ALL == MOST_ENTRIES
    any_of_many = f"{{ {' OR '.join([A] * 128)} }}"
    most = f"MATCH WITHIN 5m {{ {' SEQ '.join([any_of_many] * 2)} }}"
    assert isinstance(parse(query(most)).pattern, Project)
    with pytest.raises(
        UnsupportedQuery, match=r"3:1: the event pattern has 49,280 transitions, more than 32,768: .*write"
    ):
        parse(query(f"MATCH WITHIN 5m {{ {' SEQ '.join([any_of_many] * 4)} }}"))


def test_a_repeated_variable_is_not_seen_outside():
    match = f"MATCH WITHIN 5m {{ {A} SEQ EVENT ON :s {{ ?x :is :b ; :k ?k }}+ }}"
    with pytest.raises(UnsupportedQuery, match=r"2:8: \?x is inside of \+, so it has many values"):
        parse(query(match, select="?x"))
    with pytest.raises(UnsupportedQuery, match=r"4:8: \?x is inside of \+"):
        parse(query(match, after="FILTER(?x != ?k)"))


def test_a_match_inside_of_exists_is_refused():
    text = query(f"STREAM :s [RANGE 5s] {{ ?s :k ?k }}\nFILTER NOT EXISTS {{ MATCH WITHIN 5m {{ {A} }} }}")
    with pytest.raises(QueryError, match="MATCH inside of EXISTS"):
        parse(text)


@pytest.mark.parametrize("written", ["5m", "PT5M", "300s"])
def test_durations_are_those_of_windows(written):
    found = parse(query(f"MATCH WITHIN {written} {{ {A} SEQ {B} }}")).pattern
    assert isinstance(found, Project)
    assert isinstance(found.pattern, Match)
    assert (found.pattern.within, found.pattern.within_events) == (300_000_000, None)
    assert isinstance(found.pattern.pattern, EventSequence)


def test_within_zero_is_one_instant():
    found = parse(query(f"MATCH ALL WITHIN 0s 0 EVENTS {{ {A} AND {B} }}")).pattern
    assert isinstance(found, Project)
    assert isinstance(found.pattern, Match)
    assert (found.pattern.within, found.pattern.within_events) == (0, 0)


def test_without_an_operator_it_is_istream_in_every_dialect():
    match = f"MATCH WITHIN 5m {{ {A} SEQ {B} }}"
    assert parse(query(match)).output is Output.ISTREAM
    rsp = f"PREFIX : <http://ex.org/> SELECT ?k FROM NAMED WINDOW :w ON :s [RANGE PT5S] {{ WINDOW :w {{ ?s :k ?k }} {match} }}"
    assert parse(rsp).output is Output.ISTREAM
    c_sparql = f"PREFIX : <http://ex.org/> SELECT ?k FROM STREAM :s [RANGE 5s] {{ ?s :k ?k {match} }}"
    assert parse(c_sparql).output is Output.RSTREAM


def test_the_algebra_is_printed_as_it_was_written():
    other = "EVENT ON :s AT ?t { ?d :k ?k FILTER(?k != :x) }"
    text = query(
        f"MATCH LATEST WITHIN 90s 5 EVENTS STRICT TIME CONSUME {{ {A}+ SEQ NOT {B} SEQ {{ {C} OR {other} }} }}"
    )
    printed = algebra_text(parse(text))
    assert "match LATEST WITHIN 90s 5 EVENTS STRICT TIME CONSUME:" in printed
    assert "?k }+ SEQ NOT EVENT ON" in printed
    assert (
        "OR EVENT ON <urn:cqels:window:1> AT ?t { ?d <http://ex.org/k> ?k FILTER(?k != <http://ex.org/x>) } }"
        in printed
    )


def test_the_way_out_for_a_not_at_the_end_works() -> None:
    with pytest.raises(QuerySyntaxError) as raised:
        parse(query(f"MATCH WITHIN 5m {{ {A} SEQ NOT {B} }}"))
    text = raised.value.message.partition("write ")[2]
    for name in "an":
        text = text.replace(f"<{name}>", "<http://ex.org/s>", 1).replace("…", f"?x <http://ex.org/is> '{name}'", 1)
    with Engine() as engine:
        asked = engine.register(f"SELECT ?x {{ {text} }}")
        for second, name, kind in [(0, "x", "a"), (10, "y", "a"), (20, "x", "n"), (200, "z", "a"), (501, "z", "n")]:
            triple = (f"http://ex.org/{name}", "http://ex.org/is", f'"{kind}"')
            engine.push("http://ex.org/s", [triple], time=second * 1_000_000)
        engine.advance(1000 * 1_000_000)
        found = [(result.time // 1_000_000, str(result.bindings["x"])) for result in asked.results()]
    assert found == [(310, "http://ex.org/y"), (500, "http://ex.org/z")]
