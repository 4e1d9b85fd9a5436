"""Language tags, judged. The oracle is pyoxigraph."""

from __future__ import annotations

import random
from pathlib import Path

import pyoxigraph
import pytest
from rdflib import Literal

import cqels_py
from cqels_py.checkpoints.packed import pack_terms, unpack_terms
from cqels_py.dictionary import Dictionary
from cqels_py.errors import DataError
from cqels_py.formats.static import load_static
from cqels_py.iris import check_names_of
from cqels_py.languages import is_tag

SUBTAGS = ["en", "x", "a", "1", "i", "abc", "latn", "abcde", "abcdefgh", "abcdefghi", "12", "123", "1994", "1abc", "a1", "a1bc",
           "a1bcd", "sgn", "be", "fr", "gb", "oed", "X", "De", "AT", "", "é", "a b", "_", "klingon", "default"]  # fmt: skip
IRREGULAR = ["i-klingon", "i-default", "en-GB-oed", "SGN-be-fr", "sgn-ch-de", "i-bnn", "zh-min-nan", "art-lojban"]
NONE = ["x", "en-a", "abcd-efg", "en-x", "en-US-Latn", "i-none"]


def is_one(text: str) -> bool:
    try:
        pyoxigraph.Literal("", language=text)
    except ValueError:
        return False
    return True


def is_taken(dictionary: Dictionary, term: str) -> bool:
    try:
        dictionary.encode_one(term)
    except DataError:
        return False
    return True


@pytest.mark.parametrize("seed", range(2))
def test_a_tag_is_one_where_pyoxigraph_says_so(seed: int) -> None:
    draw, dictionary = random.Random(seed), Dictionary()
    texts = [*IRREGULAR, *NONE, *SUBTAGS, *(f"{tag}-a" for tag in IRREGULAR), "i-ami i-bnn", "ami"]
    texts += ["-".join(draw.choices(SUBTAGS, k=draw.randint(2, 6))) for _ in range(2_000)]
    texts += [
        "-".join([draw.choice(["en", "abc", "latn"]), *draw.choices(SUBTAGS[:19], k=draw.randint(1, 5))])
        for _ in range(4_000)
    ]
    expected = list(map(is_one, texts))
    assert [text for text, one in zip(texts, expected, strict=True) if is_tag(text) != one] == []
    assert [text for text, one in zip(texts, expected, strict=True) if is_taken(dictionary, f'"x"@{text}') != one] == []
    assert 400 < sum(expected) < len(texts) - 400


def test_tags_of_an_earlier_version_exist_as_they_were() -> None:
    terms = [f'"x"@{tag.lower()}' for tag in [*NONE, *IRREGULAR]]
    earlier = Dictionary()
    for term in terms[: len(NONE)]:
        with pytest.raises(DataError, match="is not a language tag"):
            earlier.encode([term])
    assert len(earlier) == 0
    known = earlier.encode(terms, existing=True)
    assert earlier.encode(terms).tolist() == known.tolist()
    now = Dictionary()
    blocks = pack_terms(known, earlier)
    assert now.decode(unpack_terms(memoryview(b"".join(map(bytes, blocks))), now)) == terms


def test_a_text_that_ends_as_a_tag_is_not_judged() -> None:
    check_names_of('"a@x"')
    check_names_of("_:a@x")
    with pytest.raises(DataError, match='"x" is not a language tag'):
        check_names_of('"a@en"@x')


@pytest.mark.parametrize("tag", NONE)
@pytest.mark.parametrize("form", ["nt", "nq", "ttl", "trig", "rdf"])
def test_files_with_other_tags_are_refused_with_their_place(tmp_path: Path, form: str, tag: str) -> None:
    file = tmp_path / f"s.{form}"
    text = f'<a:a> <a:b> "x"@en .\n<a:a> <a:b> "x"@{tag} .\n'
    if form == "rdf":
        text = (
            '<r:RDF xmlns:r="http://www.w3.org/1999/02/22-rdf-syntax-ns#" xmlns:e="a:"><r:Description r:about="a:a">\n'
            f'<e:b xml:lang="{tag}">x</e:b></r:Description></r:RDF>'
        )
    file.write_text(text)
    place = "s.rdf: error while parsing language tag" if form == "rdf" else f"s.{form}:2:"
    with pytest.raises(DataError, match=place) as error:
        load_static(str(file), Dictionary(), 1)
    if form in ("nt", "nq"):
        assert f'"{tag.lower()}" is not a language tag' in error.value.message and ":2:13" in str(error.value)


def test_an_engine_refuses_other_tags_with_their_place_and_makes_none() -> None:
    engine = cqels_py.Engine()
    with pytest.raises(cqels_py.QueryError, match=r'1:44.*"en-a" is not a language tag'):
        engine.register("SELECT * { STREAM <urn:s> [NOW] { ?s ?p 'x'@en-a } }")
    query = engine.register(
        'SELECT ?o (STRLANG("x", ?o) AS ?made) { STREAM <urn:s> [NOW] { ?s ?p ?o FILTER(?o != "x@x" && ?o != "x"@en-a-bb) } }'
    )
    found: list[object] = []
    query.subscribe(lambda result: found.append(result.bindings.get("made")))
    for number, text in enumerate([*NONE, "de-Latn-AT", "x-a"]):
        engine.push("urn:s", [("<urn:a>", "<urn:p>", f'"{text}"')], time=number)
    engine.flush()
    assert found == [*[None] * len(NONE), Literal("x", "de-latn-at"), Literal("x", "x-a")]
    for given in ('"x"@en-a', Literal("x", "en-a")):
        with pytest.raises(DataError, match='"en-a" is not a language tag'):
            engine.push("urn:s", [("<urn:a>", "<urn:p>", given)], time=9)
