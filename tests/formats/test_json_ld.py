"""JSON-LD at every entrance: numbers by their types, and nothing that is left out without a word."""

from __future__ import annotations

import json
from decimal import Decimal
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cqels_py import Engine
from cqels_py.dictionary import Dictionary
from cqels_py.formats.omissions import EMPTY, MOST_SHOWN, NO_IRI, Omissions
from cqels_py.mappings.context import MessageContext
from cqels_py.sources.files import open_source
from cqels_py.sources.protocol import Opening
from cqels_py.terms.values import text_of
from tests.support.json_entrances import STREAM, TIME, Entrances

XSD = "http://www.w3.org/2001/XMLSchema#"
EX = "http://ex.org/"
RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
CONTEXT: dict[str, Any] = {
    "@vocab": EX,
    "id": "@id",
    "time": {"@id": TIME},
    **{name: {"@type": XSD + name} for name in ("double", "float", "decimal", "integer", "long", "string", "boolean")},
    "link": {"@type": "@id"},
}


@pytest.fixture
def entrances(tmp_path: Path) -> Entrances:
    return Entrances(tmp_path)


def objects_of(entrances: Entrances, members: dict[str, Any], context: dict[str, Any] = CONTEXT) -> dict[str, set[str]]:
    found = entrances.triples(context, {"time": 1, "id": EX + "s", **members})
    return {name: {object_ for _, _, object_ in triples} for name, triples in found.items()}


@pytest.mark.parametrize(
    ("member", "number", "term"),
    [
        ("any", 21.5, f'"21.5"^^<{XSD}double>'),
        ("any", 20.0, f'"20"^^<{XSD}integer>'),
        ("any", 10**20, f'"{10**20}"^^<{XSD}integer>'),
        ("any", 10**21 - 1, f'"{10**21 - 1}"^^<{XSD}integer>'),
        ("any", -(10**21) + 1, f'"{-(10**21) + 1}"^^<{XSD}integer>'),
        ("any", 1e-7, f'"{1e-7:.0e}"^^<{XSD}double>'.replace("e-07", "e-7")),
        ("decimal", 21.5, f'"21.5"^^<{XSD}decimal>'),
        ("decimal", 1, f'"1"^^<{XSD}decimal>'),
        ("decimal", 1e-7, f'"0.0000001"^^<{XSD}decimal>'),
        ("double", 1, f'"1"^^<{XSD}double>'),
        ("double", 1.0, f'"1"^^<{XSD}double>'),
        ("double", 21.5, f'"21.5"^^<{XSD}double>'),
        ("float", 21.5, f'"21.5"^^<{XSD}float>'),
        ("integer", 10**25, f'"{10**25}"^^<{XSD}integer>'),
        ("long", 3.0, f'"3"^^<{XSD}long>'),
        ("string", 3, '"3"'),
        ("link", 3, f'"3"^^<{XSD}integer>'),
    ],
)
def test_a_number_is_of_the_type_that_the_context_asks_for(
    entrances: Entrances, member: str, number: float, term: str
) -> None:
    # Without types, no member can be a double that has no fraction.
    context = {key: CONTEXT[key] for key in ("@vocab", "id", "time")} if member == "any" else CONTEXT
    found = objects_of(entrances, {member: number}, context)
    assert found == {name: {term} for name in entrances.names()}


def test_a_large_number_is_a_double(entrances: Entrances) -> None:
    found = objects_of(entrances, {"any": 10**21})
    assert found == {name: {f'"1e+21"^^<{XSD}double>'} for name in entrances.names()}


NUMBERS = st.one_of(
    st.floats(allow_nan=False, allow_infinity=False),
    st.decimals(-1000, 1000, places=2).map(float),
    st.integers(-(10**22), 10**22),
)


@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])
@given(number=NUMBERS, member=st.sampled_from(["any", "double", "float", "decimal", "integer"]))
def test_all_entrances_make_one_term_of_a_number(entrances: Entrances, number: float, member: str) -> None:
    found = objects_of(entrances, {member: number})
    (term,) = found["push"]
    assert found == {name: {term} for name in entrances.names()}
    lexical, datatype = term.removeprefix('"').removesuffix(">").split('"^^<')
    assert member == "any" or datatype == XSD + member
    if datatype == XSD + "double":
        assert term == text_of(float(number))
    elif member == "decimal":
        assert "e" not in lexical.lower()
        assert Decimal(lexical) == Decimal(repr(number))


def test_texts_are_no_numbers(entrances: Entrances) -> None:
    found = objects_of(entrances, {"any": ["1.5E3", {"@value": "2.0E1", "@language": "en"}], "string": "1.5E4"})
    assert found == {name: {'"1.5E3"', '"2.0E1"@en', '"1.5E4"'} for name in entrances.names()}


LEFT_OUT: list[tuple[dict[str, Any], str]] = [
    ({"Temp (C)": 21}, '"http://ex.org/Temp (C)"'),
    ({"hum%": 21}, '"http://ex.org/hum%"'),
    ({"link": "http://ex.org/a b"}, '"http://ex.org/a b" is no IRI'),
    ({"@type": "a b"}, '"http://ex.org/a b" is no IRI'),
    ({"text": {"@value": "x", "@language": "en us"}}, '"en us" is no language tag'),
    ({"text": {"@value": "x", "@language": ""}}, '"" is no language tag'),
    ({"text": {"@value": "x", "@type": "a b"}}, '"http://ex.org/a b" is no IRI of a datatype'),
    ({"_:p": 3}, 'the member "_:p" is left out'),
    ({"text": {"@value": "x", "@type": f"{RDF}langString"}}, "without a language are left out"),
]


@pytest.mark.parametrize(("members", "message"), LEFT_OUT)
def test_values_that_have_no_place_are_told(entrances: Entrances, members: dict[str, Any], message: str) -> None:
    """Once, however often they come, and all other values are taken in."""
    found = objects_of(entrances, {"ok": 1, **members, "@included": [{"@id": "http://ex.org/s", **members}]})
    assert found == {name: {f'"1"^^<{XSD}integer>'} for name in entrances.names()}
    for name in entrances.names():
        (told,) = entrances.told[name]
        assert message in told
        assert entrances.counts[name] == [NO_IRI, NO_IRI]


def test_members_that_no_context_defines_are_told(entrances: Entrances) -> None:
    context = {"time": {"@id": TIME}, "ok": EX + "ok"}
    found = entrances.triples(context, {"time": 1, "@id": EX + "s", "ok": 1, "temp": 3, "http://ex.org/in": {"hum": 4}})
    assert {len(triples) for triples in found.values()} == {2}
    for name in entrances.names():
        assert sorted(told.split(" is left")[0] for told in entrances.told[name]) == [
            'the member "hum"',
            'the member "temp"',
        ]


def test_a_term_from_outside_makes_no_statement_of_its_own(entrances: Entrances) -> None:
    evil = "http://ex.org/a> <http://ex.org/b> <http://ex.org/c> .\n<http://ex.org/x"
    found = entrances.triples(
        CONTEXT, {"time": 1, "id": evil, "ok": 1, "link": evil, "at": {"@id": "_:x <y:z> <a:b> .\n_:c"}}
    )
    assert set(map(len, found.values())) == {0}


def test_tags_are_judged_after_a_document_that_names_their_datatype(entrances: Entrances) -> None:
    assert set(map(len, objects_of(entrances, {"link": f"{RDF}langString"}).values())) == {1}
    found = objects_of(entrances, {"text": {"@value": "x", "@language": "en us> <a:b> .\n<c:d"}})
    assert set(map(len, found.values())) == {0}


def test_relative_iris_are_those_of_the_file(entrances: Entrances, tmp_path: Path) -> None:
    found = entrances.triples(CONTEXT, {"time": 1, "id": "sensor1", "ok": 1})
    base = tmp_path.as_uri()
    at = {name: {subject for subject, _, _ in triples} for name, triples in found.items()}
    with_place = ["ndjson", "jsonld", "mapped file", "static", "static lines"]
    assert at == {name: {f"<{base}/sensor1>"} if name in with_place else set() for name in entrances.names()}
    for name in set(entrances.names()) - set(with_place):
        assert '"sensor1" is a relative IRI, and the document has no base' in entrances.told[name][0]


def test_objects_without_triples_are_empty_elements(tmp_path: Path) -> None:
    (tmp_path / "s.ndjson").write_text(
        '{"@id": "http://ex.org/a", "http://ex.org/t": null}\n[]\n{}\n'
        f'{{"@id": "http://ex.org/a", "{TIME}": 1, "http://ex.org/t": 5}}\n'
    )
    engine = Engine()
    found = []
    engine.register(f"SELECT ?t {{ STREAM <{STREAM}> [RANGE 5m] {{ ?s <{EX}t> ?t }} }}").subscribe(
        lambda result: found.append(str(result.bindings["t"]))
    )
    engine.run({STREAM: str(tmp_path / "s.ndjson")})
    assert found == ["5"]
    assert dict(engine.statistics.rejected) == {(STREAM, EMPTY): 3}


def test_pushed_and_sent_objects_without_triples_are_counted(entrances: Entrances) -> None:
    engine = Engine()
    engine.register(f"SELECT ?t {{ STREAM <{STREAM}> [RANGE 5m] {{ ?s <{EX}t> ?t }} }}")
    engine.push(STREAM, {"@id": "http://ex.org/a", "http://ex.org/t": None})
    assert dict(engine.statistics.rejected) == {(STREAM, EMPTY): 1}
    found = entrances.triples({"@vocab": EX}, {"t": None})
    assert set(map(len, found.values())) == {0}
    assert {name for name in entrances.names() if entrances.counts[name] == [EMPTY]} == {
        "ndjson", "mapped file", "message", "mapped message", "service", "push",
    }  # fmt: skip


def test_a_document_with_times_of_several_subjects_has_an_element_of_each(tmp_path: Path) -> None:
    path, dictionary = tmp_path / "s.jsonld", Dictionary()
    subjects = [{"id": f"{EX}s{number}", "time": number, "value": number} for number in range(1, 4)]
    path.write_text(json.dumps({"@context": CONTEXT, "@graph": subjects}))
    opening = Opening(stream=STREAM, number=0, dictionary=dictionary, time_predicate=TIME)
    batches = list(open_source(str(path), opening))
    assert [time for batch in batches for time in batch.time.tolist()] == [1, 2, 3]
    assert sum(len(batch.subject) for batch in batches) == 6


def test_each_name_is_told_once_and_a_hundred_of_them() -> None:
    told: list[str] = []
    counted: list[str] = []
    omissions = Omissions(told.append, counted.append)
    for _ in range(2):
        for number in range(MOST_SHOWN + 50):
            omissions.left_out(f"name {number}")
    assert told[:MOST_SHOWN] == [f"name {number}" for number in range(MOST_SHOWN)]
    assert len(told) == MOST_SHOWN + 1
    assert "are counted" in told[-1]
    assert counted == [NO_IRI] * 2 * (MOST_SHOWN + 50)


def test_an_engine_reports_and_counts_what_is_left_out(tmp_path: Path) -> None:
    (tmp_path / "d.jsonld").write_text('{"@id": "http://ex.org/a", "name": "Ann", "http://ex.org/age": 3}')
    told: list[str] = []
    engine = Engine(report=lambda error: told.append(str(error)))
    engine.register(
        f"SELECT ?t {{ STREAM <{STREAM}> [RANGE 5m] {{ ?s <{EX}t> ?t }} ?a <{EX}age> ?age }}",
        static=tmp_path / "d.jsonld",
    )
    for time in (1, 2):
        engine.push(STREAM, {"@context": {"@vocab": EX}, "@id": EX + "s", "t": time, "Temp (C)": 3}, time=time)
    assert [each.split(" is left out")[0] for each in told] == [
        'static data: the member "name"',
        f"<{STREAM}>: a member",
    ]
    assert dict(engine.statistics.rejected) == {("static data", NO_IRI): 1, (STREAM, NO_IRI): 2}


def test_what_a_context_and_a_program_give_joins(tmp_path: Path) -> None:
    (tmp_path / "readings.ndjson").write_text('{"time": 1, "id": "http://ex.org/s", "value": 21.5}\n')
    engine = Engine()
    found = []
    text = "STREAM :readings [RANGE 5m] { ?s :value ?v } STREAM :limits [RANGE 5m] { ?a :limit ?v }"
    engine.register(f"PREFIX : <http://ex.org/> SELECT ?a {{ {text} }}").subscribe(
        lambda result: found.append(str(result.bindings["a"]))
    )
    times = '<http://ex.org/g> <http://www.w3.org/ns/prov#generatedAtTime> "0" .'
    limit = f"<http://ex.org/room> <http://ex.org/limit> {text_of(21.5)} <http://ex.org/g> ."
    (tmp_path / "limits.nq").write_text(f"{times}\n{limit}\n")
    engine.run(
        {STREAM: str(tmp_path / "readings.ndjson"), "http://ex.org/limits": str(tmp_path / "limits.nq")},
        maps={STREAM: MessageContext.inline(CONTEXT)},
    )
    assert found == ["http://ex.org/room"]
