"""A literal is its lexical form, whatever its datatype: in queries, in data from every entrance, and in results."""

from __future__ import annotations

import pickle
from pathlib import Path

import pytest
from rdflib import XSD, Literal, URIRef

import cqels_py as cqels
from cqels_py.engine.compile import compile_query
from cqels_py.terms.rdf import exact_literal, from_rdflib

EX = "http://ex.org/"
FORMS = [
    (" a  b ", XSD.token),
    ("a b", XSD.token),
    ("a\tb\n", XSD.normalizedString),
    ("a b ", XSD.normalizedString),
    ("05", XSD.integer),
    ("1.50", XSD.decimal),
]
LITERALS = [exact_literal(text, datatype=datatype) for text, datatype in FORMS]
TEXTS = [from_rdflib(literal) for literal in LITERALS]
STREAM = f"STREAM <{EX}r> [RANGE 1m]"
QUERIES = {
    "pattern": f"SELECT ?s WHERE {{ {STREAM} {{ ?s <{EX}v> CONSTANT }} }}",
    "filter": f"SELECT ?s WHERE {{ {STREAM} {{ ?s <{EX}v> ?v }} FILTER(sameTerm(?v, CONSTANT)) }}",
    "values": f"SELECT ?s WHERE {{ {STREAM} {{ ?s <{EX}v> ?v }} VALUES ?v {{ CONSTANT }} }}",
    "long list": f"SELECT ?s WHERE {{ {STREAM} {{ ?s <{EX}v> ?v }} VALUES ?v {{ CONSTANT OTHERS }} }}",
}
OTHERS = " ".join(f'"other{i}"' for i in range(200))


def triples() -> list[tuple[str, str, str]]:
    return [(f"<{EX}s{number}>", f"<{EX}v>", text) for number, text in enumerate(TEXTS)]


@pytest.mark.parametrize("form", QUERIES)
@pytest.mark.parametrize("number", range(len(TEXTS)))
def test_a_constant_is_the_same_literal_in_data(form: str, number: int) -> None:
    compiled = compile_query(QUERIES[form].replace("CONSTANT", TEXTS[number]).replace("OTHERS", OTHERS))
    for query in (compiled, pickle.loads(pickle.dumps(compiled))):
        engine = cqels.Engine()
        registered = engine.register(query)
        engine.push(f"{EX}r", triples(), time=1)
        assert [result.bindings["s"] for result in registered.results()] == [URIRef(f"{EX}s{number}")]


def test_results_have_the_lexical_form_of_the_data_and_of_constants() -> None:
    engine = cqels.Engine()
    query = f"SELECT ?v ({TEXTS[0]} AS ?c) WHERE {{ {STREAM} {{ ?s <{EX}v> ?v }} }}"
    registered = engine.register(query)
    engine.push(f"{EX}r", triples(), time=1)
    found = [result.bindings for result in registered.results()]
    assert sorted(str(each["v"]) for each in found) == sorted(text for text, _ in FORMS)
    assert {str(each["c"]) for each in found} == {" a  b "}
    assert all(isinstance(each["v"], Literal) for each in found)


DOCUMENTS = {
    "data.ttl": f'<{EX}s0> <{EX}v> " a  b "^^<{XSD.token}> .',
    "data.nt": f'<{EX}s0> <{EX}v> " a  b "^^<{XSD.token}> .',
    "data.jsonld": f'{{"@id": "{EX}s0", "{EX}v": {{"@value": " a  b ", "@type": "{XSD.token}"}}}}',
    "data.rdf": f"""<rdf:RDF xmlns:rdf="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="{EX}">
      <rdf:Description rdf:about="{EX}s0"><e:v rdf:datatype="{XSD.token}"> a  b </e:v></rdf:Description></rdf:RDF>""",
}


@pytest.mark.parametrize("name", DOCUMENTS)
def test_readers_keep_it(name: str, tmp_path: Path) -> None:
    (tmp_path / name).write_text(DOCUMENTS[name])
    engine = cqels.Engine()
    query = f"SELECT ?s WHERE {{ {STREAM} {{ ?s <{EX}w> ?w }} ?s <{EX}v> {TEXTS[0]} }}"
    registered = engine.register(query, static=tmp_path / name)
    engine.push(f"{EX}r", [(f"{EX}s0", f"{EX}w", 1)], time=1)
    assert len(list(registered.results())) == 1


def test_a_dict_keeps_it() -> None:
    engine = cqels.Engine()
    registered = engine.register(QUERIES["pattern"].replace("CONSTANT", TEXTS[0]))
    engine.push(f"{EX}r", {"@id": f"{EX}s0", f"{EX}v": {"@value": " a  b ", "@type": str(XSD.token)}}, time=1)
    assert len(list(registered.results())) == 1
