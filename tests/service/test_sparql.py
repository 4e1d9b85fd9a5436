"""One-shot SPARQL over windows and static data, by its protocol and with clients that know nothing of this service."""

from __future__ import annotations

import re
import threading
from collections.abc import Iterator
from http.server import BaseHTTPRequestHandler, HTTPServer
from pathlib import Path
from typing import Any

import httpx
import pytest
from rdflib import Graph, URIRef
from rdflib.plugins.stores.sparqlstore import SPARQLStore

from cqels_py.errors import UsageError
from cqels_py.service.datasets import _TOKEN, dataset_of
from cqels_py.service.failures import Forbidden
from cqels_py.service.limits import MIB, Limits
from tests.service.support import EX, QUERY, declare, reading, send, served

LEVELS = "PREFIX : <http://ex.org/> SELECT ?s ?t { STREAM :readings [RANGE 1h] { ?s :t ?t } ?s :in ?room }"
ROOMS = {"type": "text/turtle", "data": f"<{EX}a> <{EX}in> <{EX}kitchen> . <{EX}b> <{EX}in> <{EX}hall> ."}
WINDOW = "</queries/levels/windows/1>"


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    limits = Limits(answer=20, sparql_triples=40, sparql_seconds=5, sparql_memory=1024 * MIB)
    with served(tmp_path_factory.mktemp("sparql"), limits=limits) as found:
        declare(found)
        assert found.put("/queries/levels", json={"text": LEVELS, "static": [ROOMS]}).status_code == 201
        counting = "SELECT (COUNT(*) AS ?n) { STREAM <http://ex.org/readings> [RANGE 1h] { ?s <http://ex.org/t> ?t } }"
        assert found.put("/queries/counting", json={"text": counting}).status_code == 201
        assert send(found, reading("a", 21) + reading("b", 19) + reading("b", 19)).status_code == 200
        yield found


def ask(
    client: httpx.Client, text: str, accept: str = "application/sparql-results+json", **more: Any
) -> httpx.Response:
    return client.get("/sparql", params={"query": text, **more}, headers={"Accept": accept})


def rows(answer: httpx.Response) -> list[dict[str, str]]:
    assert answer.status_code == 200, answer.text
    return [{n: t["value"] for n, t in each.items()} for each in answer.json()["results"]["bindings"]]


JOINED = f"SELECT ?room ?t {{ GRAPH {WINDOW} {{ ?s <{EX}t> ?t }} ?s <{EX}in> ?room }} ORDER BY ?t"


def test_windows_are_named_graphs_and_static_data_the_default_one(client: httpx.Client) -> None:
    found = rows(ask(client, JOINED))
    assert [each["room"].removeprefix(EX) for each in found] == ["hall", "kitchen"]
    assert [float(each["t"]) for each in found] == [19, 21]
    assert len(rows(ask(client, "SELECT * { ?s ?p ?o }"))) == 2
    graphs = rows(ask(client, "SELECT DISTINCT ?g { GRAPH ?g { ?s ?p ?o } }"))
    assert graphs == [{"g": f"{client.base_url}/queries/levels/windows/1".replace("//queries", "/queries")}]


def test_the_plan_lists_the_graphs(client: httpx.Client) -> None:
    (graph,) = client.get("/queries/levels/plan", headers={"Accept": "application/json"}).json()["graphs"]
    assert graph["graph"] == WINDOW.strip("<>") and graph["kept"] and graph["patterns"] == [f"?s <{EX}t> ?t"]
    assert "/queries/counting/windows/1  the plan does not keep" in client.get("/queries/counting/plan").text


@pytest.mark.parametrize(
    "request_",
    [
        {"content": JOINED, "headers": {"Content-Type": QUERY}},
        {"data": {"query": JOINED}},
        {"content": f"SELECT * FROM {WINDOW} {{ ?s ?p ?o }}", "headers": {"Content-Type": QUERY}},
        {"data": {"query": "SELECT * { ?s ?p ?o }", "default-graph-uri": WINDOW.strip("<>")}},
        {"data": {"query": "SELECT * { GRAPH ?g { ?s ?p ?o } }", "named-graph-uri": WINDOW.strip("<>")}},
    ],
)
def test_queries_are_posted(client: httpx.Client, request_: Any) -> None:
    assert len(rows(client.post("/sparql", **request_))) == 2


@pytest.mark.parametrize(
    ("text", "accept", "kind", "part"),
    [
        ("SELECT ?o { ?s ?p ?o }", "text/csv", "text/csv", f"{EX}hall"),
        ("SELECT ?o { ?s ?p ?o }", "application/sparql-results+xml", "application/sparql-results+xml", "<uri>"),
        ("SELECT ?o { ?s ?p ?o }", "text/tab-separated-values", "text/tab-separated-values", "?o\n"),
        ("ASK { ?s ?p ?o }", "application/sparql-results+json", "application/sparql-results+json", "true"),
        ("CONSTRUCT WHERE { ?s ?p ?o }", "text/turtle", "text/turtle", f"<{EX}hall>"),
        (f"DESCRIBE <{EX}a>", "application/n-triples", "application/n-triples", "kitchen"),
    ],
)
def test_formats_of_answers(client: httpx.Client, text: str, accept: str, kind: str, part: str) -> None:
    answer = ask(client, text, accept)
    assert answer.status_code == 200, answer.text
    assert answer.headers["content-type"].startswith(kind) and part in answer.text


def test_a_store_of_rdflib_reads_it(client: httpx.Client) -> None:
    graph = Graph(SPARQLStore(f"{client.base_url}/sparql".replace("//sparql", "/sparql")))
    assert {str(row[0]) for row in graph.query("SELECT ?room { ?s ?p ?room }")} == {f"{EX}hall", f"{EX}kitchen"}  # type: ignore[index]
    assert (URIRef(f"{EX}a"), URIRef(f"{EX}in"), URIRef(f"{EX}kitchen")) in graph


@pytest.mark.parametrize(
    ("text", "status", "part"),
    [
        ("SELECT * { ?s ?p }", 400, "expected"),
        ("SELECT * { GRAPH </queries/levels/windows/2> { ?s ?p ?o } }", 404, "1 windows"),
        ("SELECT * { GRAPH </queries/level/windows/1> { ?s ?p ?o } }", 404, "levels"),
        ("SELECT * { GRAPH </queries/counting/windows/1> { ?s ?p ?o } }", 409, "does not keep ?s"),
        ("SELECT * FROM <http://127.0.0.1:1/> { ?s ?p ?o }", 404, "nothing is fetched"),
        ("PREFIX x: <http://127.0.0.1:1/> SELECT * FROM x:y { ?s ?p ?o }", 400, "in brackets"),
        ("SELECT * { SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }", 403, "no other server"),
        ("LOAD <http://127.0.0.1:1/>", 400, "expected"),
        ("SELECT * { ?a ?b ?c . ?d ?e ?f . ?g ?h ?i . ?j ?k ?l . ?m ?n ?o }", 413, "20 rows"),
    ],
)
def test_what_is_refused(client: httpx.Client, text: str, status: int, part: str) -> None:
    answer = ask(client, text)
    assert answer.status_code == status and part in answer.json()["detail"], answer.text


def test_updates_and_other_forms_are_refused(client: httpx.Client) -> None:
    assert client.post("/sparql", data={"update": "CLEAR ALL"}).status_code == 400
    update = client.post("/sparql", content="CLEAR ALL", headers={"Content-Type": "application/sparql-update"})
    assert update.status_code == 415
    assert client.get("/sparql").status_code == 400
    assert ask(client, "ASK {}", "text/turtle").status_code == 406


def test_limits(client: httpx.Client) -> None:
    values = " ".join(f"VALUES ?{n} {{ {'1 ' * 60} }}" for n in "abcdefgh")
    endless = f"SELECT (COUNT(*) AS ?n) {{ {values} }}"
    answer = ask(client, endless)
    assert (answer.status_code, answer.json()["code"]) in ((503, "CQ-TOOK-TOO-LONG"), (413, "CQ-TOO-LARGE"))
    many = b"".join(reading("many", n) for n in range(50))
    assert send(client, many).status_code == 200
    assert "40 are loaded" in ask(client, "SELECT * { GRAPH ?g { ?s ?p ?o } }").json()["detail"]


def test_nothing_is_connected_to_though_the_text_hides_it(
    client: httpx.Client, monkeypatch: pytest.MonkeyPatch
) -> None:
    asked: list[str] = []

    class Listening(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            self.send_error(404)

        do_POST = do_GET

    with HTTPServer(("127.0.0.1", 0), Listening) as other:
        threading.Thread(target=other.serve_forever, daemon=True).start()
        monkeypatch.setattr("cqels_py.service.datasets._TOKEN", re.compile("(?P<word>NOTHING)"))
        text = f"SELECT * {{ SERVICE <http://127.0.0.1:{other.server_port}/> {{ ?s ?p ?o }} }}"
        answer = ask(client, text)
        other.shutdown()
    assert answer.status_code == 403 and not asked, answer.text


def test_tokens_of_a_query() -> None:
    found = dataset_of(
        'BASE <http://h/a/> SELECT * FROM NAMED <b> { GRAPH <c> { ?SERVICE :service "SERVICE <d>" } # <e>\n }', ""
    )
    assert (found.default, found.named, found.any_graph) == ([], ["http://h/a/b"], False)
    assert found.iris == {"http://h/a/", "http://h/a/b", "http://h/a/c"}
    assert dataset_of("SELECT * { GRAPH ?g { ?s ?p ?o } }", "http://h/").any_graph
    assert dataset_of("PREFIX w: </queries/> SELECT * { GRAPH w:x { } }", "http://h/").any_graph
    with pytest.raises(Forbidden):
        dataset_of("SELECT * { ?s ?p 'a' . service silent <x> {} }", "")
    with pytest.raises(UsageError):
        dataset_of("PREFIX x: <urn:> SELECT * FROM NAMED x:y {}", "")


@pytest.mark.parametrize("text", ["-" * 20, ".a" * 10, "1." * 10, "x-" * 10])
def test_no_part_of_a_query_is_looked_at_again_and_again(text: str) -> None:
    """A match begins once in a run of characters that could be those of a name: the time is linear in their number."""
    assert [match[0] for match in _TOKEN.finditer(text)] == [text]
    dataset = dataset_of(f"SELECT * {{ {text} }}", "http://h/")
    assert (dataset.iris, dataset.any_graph) == (set(), False)


def test_words_behind_numbers_are_words() -> None:
    with pytest.raises(Forbidden):
        dataset_of("SELECT * { ?s ?p 1.SERVICE <x> {} }", "")
    with pytest.raises(Forbidden):
        dataset_of("SELECT * { ?s ?p -1-service <x> {} }", "")


def test_named_graphs_of_static_data_have_their_names(tmp_path: Path) -> None:
    """Also those that two queries have; one whose name is that of a window cannot take its place."""
    window = "/queries/q1/windows/1"
    with served(tmp_path / "data") as client:
        declare(client)
        base = str(client.base_url).rstrip("/")
        for number, graph in ((1, f"<{EX}rooms>"), (2, f"<{EX}rooms>"), (3, f"<{base}{window}>"), (4, "")):
            data = {"type": "application/n-quads", "data": f"<{EX}s{number}> <{EX}in> <{EX}hall> {graph} ."}
            text = f"SELECT ?t {{ STREAM <{EX}readings> [RANGE 1h] {{ ?s <{EX}t> ?t }} GRAPH ?g {{ ?s ?p ?o }} }}"
            assert client.put(f"/queries/q{number}", json={"text": text, "static": [data]}).status_code == 201

        def subjects(text: str, **more: Any) -> list[str]:
            return [each["s"].removeprefix(EX) for each in rows(ask(client, text, **more))]

        assert subjects(f"SELECT ?s {{ GRAPH <{EX}rooms> {{ ?s ?p ?o }} }} ORDER BY ?s") == ["s1", "s2"]
        assert subjects("SELECT ?s { GRAPH ?g { ?s ?p ?o } } ORDER BY ?s") == ["s1", "s2"]
        assert subjects(f"SELECT ?s FROM <{EX}rooms> {{ ?s ?p ?o }} ORDER BY ?s") == ["s1", "s2"]
        assert subjects("SELECT ?s { ?s ?p ?o }", **{"default-graph-uri": f"{EX}rooms"}) in (["s1", "s2"], ["s2", "s1"])
        assert subjects("SELECT ?s { ?s ?p ?o }") == ["s4"]
        assert ask(client, f"SELECT * FROM <{EX}others> {{ ?s ?p ?o }}").status_code == 404
