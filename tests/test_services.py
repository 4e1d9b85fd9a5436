"""SERVICE: the engine's answer over an endpoint is the oracle's over the endpoint's data as a static graph."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from rdflib import BNode, Literal, URIRef

import cqels_py
from cqels_py.algebra.nodes import Output
from cqels_py.errors import DataError, UnsupportedQuery, UsageError
from cqels_py.sources import sparql_protocol
from tests.oracle.naive import Element, Static
from tests.support import harness, traces
from tests.support.endpoint import Endpoint, endpoint
from tests.support.silent_server import silent_server

EX = traces.EX
STREAM = URIRef(traces.STREAMS + "s")
GRAPH = URIRef(EX + "remote")
PREFIX = f"PREFIX : <{EX}> PREFIX unused: <http://unused.example/> "


def _triples(*texts: str) -> list[tuple[URIRef, URIRef, URIRef]]:
    return [tuple(map(traces.term, text.split())) for text in texts]  # type: ignore[misc]


DATA = _triples("a name 'A'", "a name 'Z'", "b name 'B'", "b age 5", "c link a", "a link b")
ELEMENTS = [
    Element(n * 1_000_000, STREAM, tuple(_triples(text)))
    for n, text in enumerate(["a p 1", "b p 2", "d p 3", "c p 1", "a p 2"])
]

QUERIES = {
    "joined": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :name ?name } }",
    "the whole group": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :name ?name OPTIONAL { ?s :age ?age } FILTER(?name != 'Z') } }",
    "optional": "SELECT * { %w { ?s :p ?n } OPTIONAL { SERVICE %e { ?s :name ?name } } }",
    "minus": "SELECT * { %w { ?s :p ?n } MINUS { SERVICE %e { ?s :name ?name } } }",
    "exists": "SELECT * { %w { ?s :p ?n } FILTER NOT EXISTS { SERVICE %e { ?s :name ?name } } }",
    "counted": "SELECT ?s (COUNT(?name) AS ?k) { %w { ?s :p ?n } SERVICE %e { ?s :name ?name } } GROUP BY ?s",
    "a path": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :link+ ?t } }",
    "a subquery": "SELECT * { %w { ?s :p ?n } SERVICE %e { { SELECT ?s (COUNT(*) AS ?k) { ?s :name ?x } GROUP BY ?s } } }",
    "a blank node": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :link [ :name ?name ] } }",
    "twice": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :name ?a } SERVICE %e { ?s :link/:name ?b } }",
    "nothing found": "SELECT * { %w { ?s :p ?n } SERVICE %e { ?s :nowhere ?name } }",
}


@pytest.fixture
def remote() -> Iterator[Endpoint]:
    with endpoint(DATA) as here:
        yield here


@pytest.mark.parametrize("text", QUERIES.values(), ids=QUERIES.keys())
def test_an_endpoint_is_joined_like_static_data(text: str, remote: Endpoint) -> None:
    text = PREFIX + text.replace("%w", f"STREAM <{STREAM}> [RANGE 2s]")
    asked = harness.parse(text.replace("SERVICE %e", f"GRAPH <{GRAPH}>"))
    expected = harness.expected_changes(asked, ELEMENTS, Static([], {GRAPH: DATA}), Output.CHANGELOG)
    for batch in (1, None):
        results = harness.run_engine(text.replace("%e", f"<{remote.url}>"), ELEMENTS, None, batch, Output.CHANGELOG)
        harness.check_equal(expected, results)


def _text(group: str, silent: str = "") -> str:
    return f"{PREFIX}SELECT * {{ STREAM <{STREAM}> [NOW] {{ ?s :p ?n }} SERVICE {silent}{group} }}"


def test_the_users_own_text_is_sent_with_the_prefixes_that_it_uses(remote: Endpoint) -> None:
    cqels_py.Engine().register(_text(f"<{remote.url}> {{ ?s :name ?name # all of them\n }}"))
    assert remote.queries == [("GET", f"PREFIX : <{EX}>\nSELECT * WHERE {{ ?s :name ?name # all of them\n }}")]


def test_an_endpoint_may_have_a_prefix_and_words_may_stand_in_strings(remote: Endpoint) -> None:
    base = remote.url.removesuffix("sparql")
    text = _text("at:sparql { ?s :name ?name FILTER(?name != 'SERVICE ?x {') }")
    query = cqels_py.Engine().register(f"PREFIX at: <{base}> {text}")
    assert query.variables == ("s", "n", "name")
    assert remote.queries[0][1].endswith("FILTER(?name != 'SERVICE ?x {') }")


def test_long_queries_are_posted(remote: Endpoint) -> None:
    many = " ".join(f":n{number}" for number in range(1_000))
    cqels_py.Engine().register(_text(f"<{remote.url}> {{ VALUES ?s {{ {many} }} ?s :name ?name }}"))
    assert [method for method, _ in remote.queries] == ["POST"]


def test_it_is_asked_once(remote: Endpoint) -> None:
    engine = cqels_py.Engine()
    query = engine.register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))
    for time in range(3):
        engine.push(str(STREAM), _triples("a p 1"), time=time)
    query.update_static()
    query.explain()
    assert len(remote.queries) == 1


def test_every_kind_of_term() -> None:
    data = [
        (URIRef(EX + "a"), URIRef(EX + "v"), value)
        for value in (
            Literal("x", lang="en"),
            Literal("05", datatype=URIRef(EX + "t")),
            Literal(2.5),
            BNode("b"),
            Literal("é\n"),
        )
    ]
    data += [(BNode("b"), URIRef(EX + "w"), Literal(1)), (BNode("c"), URIRef(EX + "w"), Literal(2))]
    with endpoint(data) as here:
        engine = cqels_py.Engine()
        query = engine.register(_text(f"<{here.url}> {{ ?s :v ?v OPTIONAL {{ ?v :w ?w }} }}"))
        engine.push(str(STREAM), _triples("a p 1"), time=0)
    found = {result.bindings["v"]: result.bindings.get("w") for result in query.results()}
    blanks = [term for term in found if isinstance(term, BNode)]
    assert found.pop(blanks[0]) == Literal(1)
    assert set(found) == {
        value for _, predicate, value in data if predicate == URIRef(EX + "v") and not isinstance(value, BNode)
    }


# --- what may go wrong ------------------------------------------------------------------------------------------------


def test_a_variable_endpoint_is_refused_by_name() -> None:
    with pytest.raises(UnsupportedQuery, match=r"<query>:1:\d+: SERVICE \?where: .* name it"):
        cqels_py.Engine().register(_text("?where { ?s :name ?name }"))


def test_a_window_inside_is_refused(remote: Endpoint) -> None:
    with pytest.raises(cqels_py.QuerySyntaxError, match="a window inside of SERVICE"):
        cqels_py.Engine().register(_text(f"<{remote.url}> {{ STREAM <{STREAM}> [NOW] {{ ?s :name ?name }} }}"))


def test_an_error_names_the_endpoint_and_its_response(remote: Endpoint) -> None:
    remote.status, remote.body = 503, b"come back\nlater"
    with pytest.raises(DataError, match=f"SERVICE <{remote.url}>: it answered 503 .*: come back later"):
        cqels_py.Engine().register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b"[1]",
        b'{"results":{"bindings":[{"s":1}]}}',
        b'{"results":{"bindings":[{"s":{"type":"uri"}}]}}',
        b'{"results":{"bindings":[{"s":{"type":"literal","value":5}}]}}',
        b'{"results":{"bindings":{}}}',
    ],
    ids=range(7),
)
def test_an_answer_of_another_format(remote: Endpoint, body: bytes) -> None:
    remote.body = body
    with pytest.raises(DataError, match=r"SPARQL 1\.1 JSON format"):
        cqels_py.Engine().register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))


def test_an_answer_that_is_nested_too_deeply(remote: Endpoint) -> None:
    remote.body = b"[" * 200_000
    with pytest.raises(
        DataError, match=rf"SERVICE <{remote.url}>: .*:1:101: objects and arrays are nested more than 100 deep"
    ):
        cqels_py.Engine().register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))


@pytest.mark.parametrize(
    "term",
    [
        '{"type":"uri","value":"http://ex.org/a b"}',
        '{"type":"literal","value":"1","datatype":"http://ex.org/a b"}',
        '{"type":"literal","value":"\\ud800"}',
    ],
)
def test_an_answer_with_an_invalid_term(remote: Endpoint, term: str) -> None:
    remote.body = f'{{"results":{{"bindings":[{{"name":{term}}}]}}}}'.encode()
    group = f"<{remote.url}> {{ ?s :name ?name }}"
    with pytest.raises(DataError, match=f"SERVICE <{remote.url}>: its answer has .*, which is not an RDF term"):
        cqels_py.Engine().register(_text(group))
    engine = cqels_py.Engine()
    query = engine.register(_text(group, "SILENT "))
    engine.push(str(STREAM), _triples("a p 1"), time=0)
    assert [sorted(result.bindings) for result in query.results()] == [["n", "s"]]


def test_a_text_in_a_language_may_have_its_datatype(remote: Endpoint) -> None:
    datatype = "http://www.w3.org/1999/02/22-rdf-syntax-ns#langString"
    term = f'{{"type":"literal","value":"x","xml:lang":"en","datatype":"{datatype}"}}'
    remote.body = f'{{"results":{{"bindings":[{{"name":{term}}}]}}}}'.encode()
    engine = cqels_py.Engine()
    query = engine.register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))
    engine.push(str(STREAM), _triples("a p 1"), time=0)
    assert [result.bindings["name"] for result in query.results()] == [Literal("x", lang="en")]


def test_a_silent_endpoint(remote: Endpoint) -> None:
    remote.silent = True
    with pytest.raises(DataError, match=r"did not answer within 0\.05 seconds; increase the timeout"):
        cqels_py.Engine(service_timeout=0.05).register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))


@pytest.mark.parametrize(
    ("begin", "dribbles"),
    [(b"HTTP/1.1 200 OK\r\n\r\n", b" "), (b"HTTP/1.1 200 OK\r\nX: ", b"x"), (b"HTTP/1.1 500 No\r\n\r\n", b" ")],
    ids=["body", "head", "error"],
)
def test_an_answer_that_does_not_end(begin: bytes, dribbles: bytes) -> None:
    """The endpoint is never silent: without a limit of the whole time this would not return."""
    with silent_server(begin, dribbles) as server:
        text = _text(f"<http://127.0.0.1:{server.port}/sparql> {{ ?s :name ?name }}")
        with pytest.raises(DataError, match=r"took more than 0\.5 seconds in all; ask for less|it answered 500 No"):
            cqels_py.Engine(service_timeout=0.05).register(text)


def test_an_answer_that_is_too_long(remote: Endpoint, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sparql_protocol, "MOST_BYTES", 1 << 20)
    remote.body = b" " * ((1 << 20) + 1)
    with pytest.raises(DataError, match="its answer has more than 1 MiB; ask for less, as with LIMIT"):
        cqels_py.Engine().register(_text(f"<{remote.url}> {{ ?s :name ?name }}"))


def test_an_endpoint_that_is_not_there() -> None:
    with endpoint() as here:
        url = here.url
    with pytest.raises(DataError, match=f"SERVICE <{url}>: it cannot be reached: "):
        cqels_py.Engine().register(_text(f"<{url}> {{ ?s :name ?name }}"))


def test_an_endpoint_is_reached_by_http() -> None:
    with pytest.raises(DataError, match="reached by http or https"):
        cqels_py.Engine().register(_text("<file:///etc/hosts> { ?s :name ?name }"))


def test_silent_gives_one_empty_mapping(remote: Endpoint) -> None:
    remote.status = 500
    engine = cqels_py.Engine()
    query = engine.register(_text(f"<{remote.url}> {{ ?s :name ?name }}", "SILENT "))
    engine.push(str(STREAM), _triples("a p 1"), time=0)
    assert [sorted(result.bindings) for result in query.results()] == [["n", "s"]]


def test_a_timeout_is_a_number_of_seconds() -> None:
    with pytest.raises(UsageError, match="service_timeout is a number of seconds above 0, not 0"):
        cqels_py.Engine(service_timeout=0)
