"""IRIs, judged and resolved. The oracles are pyoxigraph, and the examples of RFC 3986, section 5.4."""

from __future__ import annotations

import random
from itertools import product
from pathlib import Path
from tempfile import TemporaryDirectory

import numpy as np
import pyoxigraph
import pytest
from hypothesis import given, settings
from rdflib import URIRef

import cqels_py
from bench.suites.fuzzed.iris import check_iris, iris
from cqels_py.checkpoints.packed import pack_terms, unpack_terms
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.iris import check_names_of, fault_of, is_iri, resolved
from cqels_py.kernels.values.iris import iri_stop

PIECES = [
    *"abvV10+-._~!$&'()*,;=:@/?#[]%", "%41", "%zz", "//", "::", "1.2.3.4", "256", "fe80", "\x7f", "\x85", "\xa0", "é",
    "\ud7ff", "\ue000", "\uf8ff", "\uf900", "\ufdcf", "\ufdd0", "\ufdef", "\ufdf0", "\uffef", "\ufff0", "\ufffd",
    "\U00010000", "\U0001fffd", "\U0001fffe", "\U000dfffd", "\U000e0fff", "\U000e1000", "\U000efffd", "\U000f0000",
    "\U000ffffd", "\U000fffff", "\U00100000", "\U0010fffd", "\U0010ffff", *' <>"{}|^`\\\0\n',
]  # fmt: skip
GROUPS = ["1", ":", "::", "2.3.4.5", "abcd", "0", "12345", "01.2.3.4", "1.2.3", "g"]
EXAMPLES = """
g http://a/b/c/g | ./g http://a/b/c/g | g/ http://a/b/c/g/ | /g http://a/g | //g http://g | ?y http://a/b/c/d;p?y
g?y http://a/b/c/g?y | #s http://a/b/c/d;p?q#s | g#s http://a/b/c/g#s | g?y#s http://a/b/c/g?y#s | ;x http://a/b/c/;x
g;x http://a/b/c/g;x | g;x?y#s http://a/b/c/g;x?y#s | . http://a/b/c/ | ./ http://a/b/c/ | .. http://a/b/
../ http://a/b/ | ../g http://a/b/g | ../.. http://a/ | ../../ http://a/ | ../../g http://a/g | ../../../g http://a/g
../../../../g http://a/g | /./g http://a/g | /../g http://a/g | g. http://a/b/c/g. | .g http://a/b/c/.g
g.. http://a/b/c/g.. | ..g http://a/b/c/..g | ./../g http://a/b/g | ./g/. http://a/b/c/g/ | g/./h http://a/b/c/g/h
g/../h http://a/b/c/h | g;x=1/./y http://a/b/c/g;x=1/y | g;x=1/../y http://a/b/c/y | g?y/./x http://a/b/c/g?y/./x
g?y/../x http://a/b/c/g?y/../x | g#s/./x http://a/b/c/g#s/./x | g#s/../x http://a/b/c/g#s/../x
"""
"""References and what they are relative to http://a/b/c/d;p?q: RFC 3986, 5.4."""


def drawn(draw: random.Random) -> str:
    """A text that looks like an IRI."""
    some = "".join(draw.choices(PIECES, k=draw.randint(0, 5)))
    match draw.randrange(4):
        case 0:
            return f"http://h/{some}"
        case 1:
            return f"http://{some}"
        case 2:
            return draw.choice(["a:", "http:", "a1+-.:", "1:", "", "é:"]) + some
        case _:
            address = "".join(draw.choices(GROUPS, k=draw.randint(0, 9)))
            return f"a://{draw.choice(['', 'u@', '@'])}[{address}]{draw.choice(['', '/', ':1', ':x', 'x', '?'])}"


def is_one(text: str) -> bool:
    try:
        pyoxigraph.NamedNode(text)
    except ValueError:
        return False
    return True


@pytest.mark.parametrize("seed", range(4))
def test_an_iri_is_one_where_pyoxigraph_says_so(seed: int) -> None:
    draw, dictionary = random.Random(seed), Dictionary()
    texts = [drawn(draw) for _ in range(2_000)]
    # Each IPv6 address of few groups, with and without a gap.
    texts += [f"a://[{':'.join(groups)}]" for count in (3, 7, 8, 9) for groups in _addresses(draw, count)]
    expected = list(map(is_one, texts))
    assert [text for text, one in zip(texts, expected, strict=True) if is_iri(text) != one] == []
    assert 400 < sum(expected) < len(texts) - 400
    # The kernel alone, and the way that most IRIs take in the dictionary.
    for text, one in zip(texts, expected, strict=True):
        data = np.frombuffer(text.encode() or b"\0", np.uint8)
        assert (iri_stop(data, 0, len(text.encode())) == len(text.encode()) > 0) == one, text
    terms = [term for text in texts if "\\" not in text for term in (f"<{text}>", f'"x"^^<{text}>')]
    assert [term for term in terms if _is_taken(dictionary, term) != is_one(term[term.index("<") + 1 : -1])] == []


def _addresses(draw: random.Random, count: int) -> list[list[str]]:
    return [[draw.choice(["1", "0", "", "ffff", "1.2.3.4"]) for _ in range(count)] for _ in range(20)]


def _is_taken(dictionary: Dictionary, term: str) -> bool:
    try:
        dictionary.encode_one(term)
    except DataError:
        return False
    return True


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("http://e/100%", "written %25"),
        ("http://e/pump[1]", "'[' cannot stand there; it is written %5B"),
        ("http://e/\ue000", "%EE%80%80"),
        ("http://e/#a#b", "it is written %23"),
        ("http://e:8a/", "'a' cannot stand there"),
        ("sensor1", "begin with a scheme"),
        ("", "begin with a scheme"),
        ("http://e/\ud800", "half a character"),
    ],
)
def test_the_fault_of_a_text_is_told_with_a_way_out(text: str, message: str) -> None:
    assert message in str(fault_of(text))


def test_iris_of_an_earlier_version_exist_as_they_were() -> None:
    terms = ["<http://e/100%>", '"x"^^<dt>', "<http://e/pump[1]>", "<http://e/a>"]
    dictionary = Dictionary()
    for term in terms[:3]:
        with pytest.raises(DataError, match="is not an IRI"):
            dictionary.encode([term])
    assert len(dictionary) == 0
    known = dictionary.encode(terms, existing=True)
    assert dictionary.decode(known) == terms
    assert dictionary.encode(terms).tolist() == known.tolist()


@pytest.mark.parametrize("scheme", ["http", "coap", "mqtt", "x+y"])
def test_references_are_resolved_as_the_rfc_says_for_every_scheme(scheme: str) -> None:
    base = "http://a/b/c/d;p?q".replace("http", scheme)
    for reference, expected in (each.split() for line in EXAMPLES.strip().split("\n") for each in line.split(" | ")):
        assert resolved(base, reference) == expected.replace("http", scheme), reference
    assert resolved(base, "") == base
    assert resolved(base, "g:h") == "g:h"
    assert resolved(f"{scheme}://a", "g?") == f"{scheme}://a/g?"
    assert resolved(f"{scheme}://a/b?c", "?") == f"{scheme}://a/b?"
    assert resolved(f"{scheme}://a/b?c#d", "#") == f"{scheme}://a/b?c#"


def test_references_are_resolved_as_by_pyoxigraph() -> None:
    bases = ["http://h", "http://h/a/b?q", "coap://h:5683/a/b", "urn:a:b", "urn:a/b/c", "tag:x,2020:y", "file:///x/y"]
    parts = ["", "a", "/a", "//a", "a/b/", "?x", "?", "#y", "#", "a:b", "é", "%41", "a b", "%", "a?b?c", "/#/"]
    for base, *reference in product(bases, parts, parts):
        text = "".join(reference)
        assert _resolved(base, text) == _by_pyoxigraph(base, text), (base, text)


def _resolved(base: str, reference: str) -> str | None:
    try:
        return resolved(base, reference)
    except DataError:
        return None


def _by_pyoxigraph(base: str, reference: str) -> str | None:
    turtle = f"<a:s> <a:p> <{reference}> .".encode()
    try:
        return next(iter(pyoxigraph.parse(turtle, pyoxigraph.RdfFormat.TURTLE, base_iri=base))).object.value
    except SyntaxError:
        return None


def test_a_path_that_would_become_a_host_is_refused() -> None:
    with pytest.raises(DataError, match="begin with //"):
        resolved("a:/b", "..//c")


def test_a_text_that_ends_as_a_term_is_not_judged() -> None:
    check_names_of('"a <b>"')
    check_names_of("_:b")
    with pytest.raises(DataError, match="<b> is not an IRI"):
        check_names_of('"a <c>"^^<b>')


def test_logs_with_iris_of_an_earlier_version_are_read() -> None:
    terms = ["<http://e/100%>", '"x"^^<dt>', "<http://e/pump[1]>", "<http://e/a>"]
    earlier = Dictionary()
    blocks = pack_terms(earlier.encode(terms, existing=True), earlier)
    now = Dictionary()
    assert now.decode(unpack_terms(memoryview(b"".join(map(bytes, blocks))), now)) == terms


def test_an_engine_refuses_what_is_no_iri_with_its_place_and_makes_none() -> None:
    engine = cqels_py.Engine(report=(reports := []).append)
    with pytest.raises(cqels_py.QueryError, match=r"1:38.*is not an IRI"):
        engine.register("SELECT * { STREAM <urn:s> [NOW] { ?s <http://e/%> ?o } }")
    with pytest.raises(cqels_py.QueryError, match="is relative, and there is no base"):
        engine.register("SELECT * { STREAM <urn:s> [NOW] { ?s <p> ?o } }")
    made = 'IRI(CONCAT("http://e/", ?o)) AS ?made'
    encoded = 'IRI(CONCAT("http://e/", ENCODE_FOR_URI(?o))) AS ?encoded'
    query = engine.register(f"SELECT ({made}) ({encoded}) {{ STREAM <urn:s> [NOW] {{ ?s ?p ?o }} }}")
    found: list[tuple[object, ...]] = []
    query.subscribe(lambda result: found.append(tuple(map(result.bindings.get, ("made", "encoded")))))
    for number, text in enumerate(["100%", "pump[1]", "plain"]):
        engine.push("urn:s", [("<urn:a>", "<urn:p>", f'"{text}"')], time=number)
    engine.flush()
    assert found == [
        (None, URIRef("http://e/100%25")),
        (None, URIRef("http://e/pump%5B1%5D")),
        (URIRef("http://e/plain"), URIRef("http://e/plain")),
    ]
    assert len(reports) == 1 and "ENCODE_FOR_URI" in str(reports[0])
    with pytest.raises(DataError, match="is not an IRI"):
        engine.push("urn:s", [("<urn:a>", "<http://e/100%>", '"x"')], time=9)


@settings(max_examples=25, deadline=None, database=None, derandomize=True)
@given(iris())
def test_iris_of_every_kind_are_written_and_read_again(drawn: list[str]) -> None:
    with TemporaryDirectory() as folder:
        check_iris(drawn, Path(folder))
