"""N-Triples and N-Quads are judged alike in files, static data, bodies, messages, requests of the service, and pushed texts."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import numpy as np
import pyoxigraph as ox
import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.triples import PushedElement, elements_of_pushed
from cqels_py.kernels.values.syntax import MALFORMED, term_end
from cqels_py.service.definitions import inline_static
from cqels_py.terms.canonical import canonical
from tests.conformance.documents import Document
from tests.conformance.entrances import ENTRANCES

RDF = "http://www.w3.org/1999/02/22-rdf-syntax-ns#"
MEDIA_TYPES = {"nt": "application/n-triples", "nq": "application/n-quads"}
READ = {
    "_:a.b": "_:",
    "_:1-": "_:",
    "_:_ä·\u0301": "_:",
    '"x"@abcdefgh-12345678': '"x"@abcdefgh-12345678',
    '"x"@i-klingon': '"x"@i-klingon',
    '"x" @en': '"x"@en',
    '"x"\t@EN': '"x"@en',
    '"x"^^ <http://e/t>': '"x"^^<http://e/t>',
    '"x" ^^\t<http://e/t>': '"x"^^<http://e/t>',
    '"\\u0078" ^^<http://e/t>': '"x"^^<http://e/t>',
}
"""Objects, and how their canonical forms begin."""
REFUSED = [
    *("_:abc:def", "_::a", "_:×", "_:·a", "_:a\u2000", "_:\u037e", "_:\U000f0000", "_:-a", "_:"),
    *('"x"@abcdefghi', '"x"@en-abcdefghi', '"x"@ en', '"x"@en--ltr', '"x"^ ^<http://e/t>', '"x"^^_:b', '"x"^^'),
    *(
        f'"x"^^<{RDF}langString>',
        f'"x"^^<{RDF}dirLangString>',
        f'"x" ^^<{RDF}langString>',
        f'"x"^^<{RDF}lan\\u0067String>',
    ),
]


@pytest.mark.parametrize("term", [*READ, *REFUSED])
def test_every_entrance_judges_alike(term: str, tmp_path: Path) -> None:
    for name, read in _entrances(term, tmp_path):
        if term in REFUSED:
            with pytest.raises(DataError):
                pytest.fail(f"{name} read {read()!r}")
        else:
            (line,) = read().decode().splitlines()
            assert line.startswith(f"<http://e/s> <http://e/p> {READ[term]}") or name.startswith("request"), name


def _entrances(term: str, folder: Path) -> Iterator[tuple[str, Callable[[], bytes]]]:
    dictionary, text = Dictionary(), f"<http://e/s> <http://e/p> {term} .\n".encode()
    for form, kind in MEDIA_TYPES.items():
        document = Document("", form, text, "", True, None)
        for name in ("static", "body", "message"):
            yield f"{name} {form}", lambda name=name, document=document: ENTRANCES[name](document, dictionary, folder)
        yield f"request {form}", lambda kind=kind: inline_static({"type": kind, "data": text.decode()})
    yield "pushed", lambda: _pushed(term, dictionary)


def _pushed(term: str, dictionary: Dictionary) -> bytes:
    texts = [b"<http://e/s>", b"<http://e/p>", term.encode()]
    batch, errors = elements_of_pushed(
        [PushedElement("", 0, 0, None, texts)], dictionary, dictionary.next_document() << 40
    )
    for error in errors:
        raise error
    found = dictionary.decode(np.concatenate([batch.subject, batch.predicate, batch.object]))
    return " ".join(map(str, found)).encode()


RANGES = [0x2D, 0x3A, 0x5F, 0xB7, 0xC0, 0xD7, 0xF7, 0x300, 0x370, 0x37E, 0x2000, 0x200C, 0x203F, 0x2070, 0x2190, 0x2C00]
RANGES += [0x2FF0, 0x3001, 0xD7FF, 0xE000, 0xF900, 0xFDD0, 0xFDF0, 0xFFFE, 0x10000, 0xF0000]
"""Where characters of labels begin or end."""


@given(st.text(st.sampled_from([chr(at + by) for at in RANGES for by in (-1, 0, 1) if not 0xD800 <= at + by < 0xE000])))
def test_labels_are_those_of_another_parser(text: str) -> None:
    term = f"_:{text}"
    data = np.frombuffer(term.encode(), np.uint8)
    end, _, written = term_end(data, 0, len(data))
    assert _by_library(term) == _by_python(term) == (written != MALFORMED and end == len(data))


def _by_library(term: str) -> bool:
    try:
        found = list(ox.parse(f"<http://e/s> <http://e/p> {term} .".encode(), format=ox.RdfFormat.N_TRIPLES))
    except SyntaxError:
        return False
    return [each.object for each in found] == [ox.BlankNode(term[2:])]


def _by_python(term: str) -> bool:
    try:
        return canonical(term) == term
    except DataError:
        return False
