"""W3C's tests of JSON-LD 1.1 to RDF, for documents that are read whole and for those that come in pieces."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import pyoxigraph as ox
import pytest

from cqels_py.errors import DataError
from cqels_py.formats.json_ld import JsonLd
from cqels_py.formats.omissions import Omissions
from cqels_py.formats.turtle import PARSER_ERRORS, nquads_blocks
from tests.conformance import skips
from tests.conformance.files import FOLDER

_MANIFEST = FOLDER / "toRdf-manifest.jsonld"
_FORMER = "json-ld-1.0"
_DOUBLE = "http://www.w3.org/2001/XMLSchema#double"
_PIECE = 50

pytestmark = pytest.mark.skipif(
    not _MANIFEST.exists(), reason="W3C's files are not here: run scripts/fetch_conformance"
)


@dataclass(frozen=True)
class Case:
    """One test: `text` is to be read as the quads of `expected` (None: as any), or refused if not `well_formed`."""

    name: str
    text: bytes
    base: str
    well_formed: bool
    expected: bytes | None


def _cases() -> dict[str, Case]:
    """Those of JSON-LD 1.1, without options that change what a document stands for."""
    manifest = json.loads(_MANIFEST.read_bytes())
    found = {}
    for entry in manifest["sequence"]:
        option, name = entry.get("option", {}), entry["@id"][1:]
        if (
            _FORMER in (option.get("specVersion"), option.get("processingMode"))
            or option.keys() & skips.JSON_LD_OPTIONS
        ):
            continue
        found[name] = Case(
            name,
            (FOLDER / entry["input"]).read_bytes(),
            option.get("base", manifest["baseIri"] + entry["input"]),
            "jld:NegativeEvaluationTest" not in entry["@type"],
            (FOLDER / entry["expect"]).read_bytes() if "expect" in entry else None,
        )
    return found


def whole(case: Case) -> Any:
    """A document that is there, as a message or a line is."""
    return _dataset(_json_ld(case).quads(case.text, "document"))


def in_pieces(case: Case) -> Any:
    """A document that is read as it comes, as a file is."""
    pieces = (case.text[at : at + _PIECE] for at in range(0, len(case.text), _PIECE))
    blocks = nquads_blocks(pieces, "jsonld", "document", _stop, _json_ld(case))
    return _dataset(ox.parse(b"".join(blocks), ox.RdfFormat.N_QUADS))


@pytest.mark.parametrize("read", [whole, in_pieces])
def test_suite(read: Callable[[Case], Any]) -> None:
    cases = _cases()
    assert len(cases) > 400
    wrong = {name: problem for name, case in cases.items() if (problem := _problem(case, read))}
    assert wrong.keys() - skips.JSON_LD.keys() == set(), "\n".join(f"{name}: {wrong[name]}" for name in wrong)
    assert skips.JSON_LD.keys() - wrong.keys() == set(), "these are right, and no longer exceptions"


def _json_ld(case: Case) -> JsonLd:
    return JsonLd(omissions=Omissions(lambda message: None), base=case.base)


def _stop(error: DataError) -> None:
    raise error


def _problem(case: Case, read: Callable[[Case], Any]) -> str | None:
    """The difference to W3C's judgement; None if there is none."""
    try:
        found = read(case)
    except (DataError, *PARSER_ERRORS) as error:
        return f"refused: {error}" if case.well_formed else None
    if not case.well_formed:
        return f"read, as {found}"
    if case.expected is None or found == (expected := _dataset(ox.parse(case.expected, ox.RdfFormat.N_QUADS))):
        return None
    return f"expected\n{expected}got\n{found}"


def _dataset(quads: Iterable[Any]) -> Any:
    """The quads, with canonical labels of blank nodes, and with doubles in one of the texts that the same double has."""
    found = ox.Dataset(_plain(quad) for quad in quads)
    found.canonicalize(ox.CanonicalizationAlgorithm.UNSTABLE)
    return found


def _plain(quad: Any) -> Any:
    literal = quad.object
    if not isinstance(literal, ox.Literal):
        return quad
    if literal.language is not None:
        literal = ox.Literal(literal.value, language=literal.language.lower())
    elif literal.datatype.value == _DOUBLE:
        literal = ox.Literal(repr(float(literal.value)), datatype=literal.datatype)
    return ox.Quad(quad.subject, quad.predicate, literal, quad.graph_name)
