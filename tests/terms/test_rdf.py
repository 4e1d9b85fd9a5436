"""rdflib's terms to texts and back, exact to the lexical form."""

from __future__ import annotations

import copy
import logging
import pickle

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from rdflib import RDF, XSD, BNode, Literal, URIRef
from rdflib.term import _toPythonMapping

from cqels_py.dictionary import Dictionary
from cqels_py.errors import UsageError
from cqels_py.terms.rdf import exact_literal, from_rdflib, to_rdflib


@pytest.fixture(autouse=True)
def _ill_typed_literals_are_no_news(caplog: pytest.LogCaptureFixture) -> None:
    caplog.set_level(logging.CRITICAL, "rdflib")


def literal(text: str, datatype: URIRef | None = None) -> Literal:
    return exact_literal(text, datatype=datatype)


ODD = [
    *(literal(text, XSD.integer) for text in ("5", "05", "+5", "-0", "five", "")),
    *(literal(text, XSD.decimal) for text in ("23.50", ".5", "5.", "1", "-0.0")),
    *(literal(text, XSD.double) for text in ("1", "1.0", "1e3", "1.0E3", "INF", "-INF", "NaN")),
    *(literal(text, XSD.boolean) for text in ("true", "1", "TRUE")),
    *(
        literal(text, XSD.dateTime)
        for text in ("2013-01-01T15:18:10Z", "2013-01-01T15:18:10.50", "2013-02-30T00:00:00")
    ),
    *(literal(text) for text in ("", "a", '"', "\\", "a\nb\r\tc", '"""', "\\n", "^^<a>", '"@en', "é😀", "\x00\x7f")),
    literal("<p>&amp;</p>", RDF.HTML),
    literal("<p/>", RDF.XMLLiteral),
    *(
        literal(text, datatype)
        for text in (" a  b ", "a\tb\r\n", "\xa0a")
        for datatype in (XSD.token, XSD.normalizedString)
    ),
    Literal("colour", lang="en-GB"),
    exact_literal("a", "with-a-subtag-beyond-eight-letters"),
    Literal('a"@b', lang="de"),
    URIRef("http://ex.org/é?a=b#c"),
    URIRef("urn:x"),
]


@pytest.mark.parametrize("term", ODD, ids=repr)
def test_terms_come_back_as_they_were(term: Literal | URIRef) -> None:
    dictionary = Dictionary()
    identifier = dictionary.encode_one(from_rdflib(term))
    text = dictionary.decode(np.array([identifier]))[0]
    assert text == from_rdflib(term)
    found = to_rdflib(str(text))
    assert found == term
    assert str(found) == str(term)
    assert type(found) is type(term)


@pytest.mark.filterwarnings("ignore:Parsing weird boolean:UserWarning")
def test_the_constructor_of_rdflib_changes_no_other_datatypes() -> None:
    for datatype in filter(None, _toPythonMapping):
        for text in (
            " 1 ",
            "a\tb\n",
            "  a  b ",
            "01",
            "+1.50",
            "",
            "TRUE",
            "\xa0x",
            "2020-01-01T24:00:00Z",
            "<a b='1'/>",
        ):
            assert str(exact_literal(text, datatype=datatype)) == text, datatype


@pytest.mark.parametrize("term", ODD, ids=repr)
@pytest.mark.filterwarnings("ignore:Parsing weird boolean:UserWarning")
def test_terms_are_pickled_and_copied_with_their_lexical_form(term: Literal | URIRef) -> None:
    for found in (pickle.loads(pickle.dumps(term)), copy.deepcopy(term)):
        assert from_rdflib(found) == from_rdflib(term)


@given(st.text(st.characters(exclude_categories=["Cs"])))
def test_any_text_comes_back(text: str) -> None:
    assert to_rdflib(from_rdflib(Literal(text))) == Literal(text)


def test_strings_have_one_form_with_and_without_their_datatype() -> None:
    assert from_rdflib(Literal("a", datatype=XSD.string)) == from_rdflib(Literal("a")) == '"a"'


def test_blank_nodes() -> None:
    assert from_rdflib(BNode("x")) == "_:x"
    assert to_rdflib("_:x") == BNode("x")


@pytest.mark.parametrize("term", ["http://ex.org/a", 5, None])
def test_what_is_no_term_is_refused(term: object) -> None:
    with pytest.raises(UsageError, match="is not an RDF term"):
        from_rdflib(term)
