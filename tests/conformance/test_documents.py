"""W3C's tests of N-Triples, N-Quads, Turtle, TriG and RDF/XML, at every entrance for the syntax."""

from __future__ import annotations

from pathlib import Path

import pyoxigraph as ox
import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from tests.conformance import skips
from tests.conformance.documents import Document, documents, quads_of
from tests.conformance.entrances import ENTRANCES, takes
from tests.conformance.files import SYNTAXES

pytestmark = pytest.mark.skipif(not documents(), reason="W3C's files are not here: run scripts/fetch_conformance")


@pytest.mark.parametrize("entrance", ENTRANCES)
@pytest.mark.parametrize("suite", SYNTAXES)
def test_suite(suite: str, entrance: str, tmp_path: Path) -> None:
    dictionary = Dictionary()
    asked = [each for each in documents() if each.name.startswith(f"{suite}/") and takes(entrance, each)]
    wrong = {each.name: problem for each in asked if (problem := _problem(each, entrance, dictionary, tmp_path))}
    excepted = {each.name: why for each in asked if (why := _exception(each, entrance))}
    told = "\n".join(f"{name}: {wrong[name]}" for name in wrong.keys() - excepted.keys())
    assert not told, told
    right = excepted.keys() - wrong.keys()
    assert not right, f"these are right, and no longer exceptions: {right}"


def _exception(document: Document, entrance: str) -> str | None:
    """Why W3C's judgement is not that of the entrance; None if it is."""
    if entrance == "body" and document.well_formed and _has_both(document):
        return "beside named graphs, which are elements, the default graph gives their times, and is about them"
    return skips.DOCUMENTS.get(entrance, {}).get(document.name)


def _has_both(document: Document) -> bool:
    """Have the default graph and named ones triples?"""
    return len({quad.graph_name == ox.DefaultGraph() for quad in document.expected}) == 2


def _problem(document: Document, entrance: str, dictionary: Dictionary, folder: Path) -> str | None:
    """The difference to W3C's judgement; None if there is none."""
    try:
        read = ENTRANCES[entrance](document, dictionary, folder)
    except DataError as error:
        return f"refused: {error}" if document.well_formed else None
    if not document.well_formed:
        return f"read, as {read!r}"
    found, expected = quads_of(read, "nq"), document.expected
    return None if found == expected else f"expected\n{expected}got\n{found}"
