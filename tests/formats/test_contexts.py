"""Contexts of JSON-LD that are named by IRI: supplied by who reads, put in their places, never fetched."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pyoxigraph
import pytest

from cqels_py import DataError, Engine, UsageError
from cqels_py.formats.contexts import inlined, named_in, read_contexts
from tests.formats.reading import Source, iri, source

__all__ = ["source"]

IRI = "https://ex.org/context.jsonld"
VOCABULARY = {"@vocab": "http://ex.org/"}
GENERATED = "http://www.w3.org/ns/prov#generatedAtTime"


def triples(document: Any, contexts: dict[str, Any]) -> set[tuple[str, str]]:
    """Predicates and objects of a document."""
    read = read_contexts({name: {"@context": context} for name, context in contexts.items()})
    text = inlined(json.dumps(document).encode(), read, "d")
    return {
        (quad.predicate.value, quad.object.value if isinstance(quad.object, pyoxigraph.Literal) else "node")
        for quad in pyoxigraph.parse(text, format=pyoxigraph.RdfFormat.JSON_LD)
    }


P, Q = "http://ex.org/p", "http://other.org/q"
CASES: dict[str, tuple[Any, dict[str, Any], set[tuple[str, str]]]] = {
    "alone": ({"@context": IRI, "p": "1"}, {IRI: VOCABULARY}, {(P, "1")}),
    "in a list": ({"@context": [IRI, {"q": Q}], "p": "1", "q": "2"}, {IRI: VOCABULARY}, {(P, "1"), (Q, "2")}),
    "a list itself": ({"@context": [IRI], "p": "1", "q": "2"}, {IRI: [VOCABULARY, {"q": Q}]}, {(P, "1"), (Q, "2")}),
    "in a node": ({P: {"@context": IRI, "p": "1"}}, {IRI: VOCABULARY}, {(P, "node"), (P, "1")}),
    "of a term": (
        {"@context": {"p": {"@id": P, "@context": IRI}}, "p": {"q": "2"}},
        {IRI: {"q": Q}},
        {(P, "node"), (Q, "2")},
    ),
    "by another one": ({"@context": IRI, "p": "1"}, {IRI: ["urn:x:c"], "urn:x:c": VOCABULARY}, {(P, "1")}),
    "imported": (
        {"@context": {"@version": 1.1, "@import": IRI, "q": Q}, "p": "1", "q": "2"},
        {IRI: {"@vocab": "http://ex.org/", "q": "urn:x:overridden"}},
        {(P, "1"), (Q, "2")},
    ),
    "with a base": ({"@context": IRI, "p": {"@id": "http://a.org/"}}, {IRI: {**VOCABULARY, "@base": "urn:x:"}}, {(P, "node")}),
    "relative": ({"@context": "context.jsonld", "p": "1"}, {"context.jsonld": VOCABULARY}, {(P, "1")}),
}  # fmt: skip


@pytest.mark.parametrize("name", CASES)
def test_contexts_stand_where_they_are_named(name: str) -> None:
    document, contexts, expected = CASES[name]
    assert triples(document, contexts) == expected


def test_numbers_and_literals_of_json_stay_as_they_are() -> None:
    contexts = read_contexts({IRI: {"@context": VOCABULARY}})
    text = b'{"@context": "%s", "p": [1.10, 12345678901234567890123, 1E400], "q": {"@type": "@json", "@value": {"@context": "x"}}}'
    found = inlined(text % IRI.encode(), contexts, "d").decode()
    assert "1.10,12345678901234567890123,1E400" in found
    assert '"@value":{"@context":"x"}' in found


def test_a_context_that_is_not_supplied_is_named() -> None:
    contexts = read_contexts({"urn:x:c": {"@context": VOCABULARY}})
    with pytest.raises(
        DataError, match=r"^d:3: the context <https://ex.org/context.jsonld>.*--context https.*=FILE.*contexts="
    ):
        inlined(b'{"@context": "%s"}' % IRI.encode(), contexts, "d", 3)
    with pytest.raises(DataError, match=r"the context <\?> is named"):
        inlined(b'{"@context": "\\ud800"}', contexts, "d")
    for text in (b'{"@context": "a"}', b'{"@context" : [ "a", {}]}', b'{"@context":{"@import": "a"}}'):
        assert named_in(text) == "a"
    assert named_in(b'{"@context": {"a": "b"}}') is None


@pytest.mark.parametrize(
    ("document", "message"),
    [
        ({"@context": IRI}, "names itself"),
        ({"@context": {"@import": "urn:x:list"}}, "cannot be imported"),
        ({"@context": {"@import": 5}}, "cannot be imported"),
    ],
)
def test_contexts_that_cannot_be_put_there_are_refused(document: Any, message: str) -> None:
    contexts = {IRI: [IRI], "urn:x:list": [VOCABULARY]}
    with pytest.raises(DataError, match=message):
        triples(document, contexts)


@pytest.mark.parametrize(("given", "message"), [
    (5, "contexts is a mapping"),
    ({IRI: {"p": P}}, '"@context"'),
    ({IRI: "/no/such/file"}, "cannot read /no/such/file: No such file"),
    ({IRI: __file__}, "is not JSON"),
])  # fmt: skip
def test_invalid_contexts_are_refused(given: Any, message: str) -> None:
    with pytest.raises(UsageError, match=message):
        Engine(contexts=given)


# --- through the readers ----------------------------------------------------------------------------------------------

LINES = "".join(f'{{"@context": "{IRI}", "{GENERATED}": {n}, "p": {n}}}\n' for n in (1, 2))
DOCUMENT = f'{{"@context": "{IRI}", "@graph": [{{"time": 1, "p": 1}}]}}'
TIME_ = "http://ex.org/time"


@pytest.mark.parametrize(
    ("name", "text", "predicate", "count"),
    [
        ("d.ndjson", LINES, None, 2),
        ("d.json", LINES, None, 2),
        ("d.jsonld", DOCUMENT, TIME_, 1),
        ("d.json", DOCUMENT, TIME_, 1),
    ],
)
def test_streams(name: str, text: str, predicate: str | None, count: int, source: Source) -> None:
    read = source(name, text, time_predicate=predicate)
    assert f"the context <{IRI}>" in str(read.error)
    assert "not fetched" in str(read.error)
    contexts = read_contexts({IRI: {"@context": VOCABULARY}})
    for chunk_bytes in (1, 5000):
        read = source(name, text, time_predicate=predicate, contexts=contexts, chunk_bytes=chunk_bytes)
        assert (read.error, len(read.elements)) == (None, count)
        assert iri("p") in {p for triples in read.triples for _, p, _ in triples}


def test_lines_with_an_unknown_context_are_skipped(source: Source) -> None:
    read = source("d.ndjson", LINES + f'{{"{GENERATED}": 3, "{P}": 3}}\n', on_error="skip")
    assert (read.error, len(read.elements), len(read.reported)) == (None, 1, 2)
    assert "d.ndjson:1: the context" in read.reported[0]


def test_static_data_of_an_engine(tmp_path: Path) -> None:
    (tmp_path / "rooms.jsonld").write_text(f'{{"@context": "{IRI}", "@id": "http://ex.org/s", "room": "kitchen"}}')
    (tmp_path / "context.json").write_text(json.dumps({"@context": VOCABULARY}))
    text = "PREFIX : <http://ex.org/> SELECT ?r { STREAM :t [ALL] { ?s :p ?v } ?s :room ?r }"
    with pytest.raises(DataError, match="--context"):
        Engine().register(text, static=tmp_path / "rooms.jsonld")
    engine = Engine(contexts={IRI: tmp_path / "context.json"})
    query = engine.register(text, static=tmp_path / "rooms.jsonld")
    engine.push("http://ex.org/t", [(iri("s"), iri("p"), '"1"')], time=1)
    assert [str(r.bindings["r"]) for r in query.results()] == ["kitchen"]
