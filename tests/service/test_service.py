"""The service over HTTP: requests, their answers, and what is there after a restart."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from xml.etree import ElementTree

import httpx
import pytest
from rdflib import Graph
from websockets.sync.client import connect

from cqels_py.service.limits import Limits
from tests.service.support import HOT, QUERY, READINGS, declare, reading, register, results, send, served

SERVICE = b'{"text": "SELECT * { STREAM <urn:s> [RANGE 1s] { ?s ?p ?o } SERVICE <http://127.0.0.1:1/> { ?s ?p ?o } }"}'


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("service")) as found:
        declare(found)
        yield found


def test_elements_become_results(client: httpx.Client) -> None:
    answer = register(client, "first")
    assert answer.status_code == 201, answer.text
    assert answer.json()["form"] == "SELECT" and answer.json()["state"] == "running"
    assert register(client, "first").status_code == 200
    taken = send(client, reading("a", 31) + reading("b", 20) + reading("c", 40))
    assert taken.status_code == 200
    assert taken.json() == {"elements": 3, "late": 0, "ahead": 0, "repeated": False, "unread": False}
    found = results(client, 2, name="first")
    assert [each["number"] for each in found] == [1, 2]
    assert [each["bindings"]["s"]["value"] for each in found] == ["http://ex.org/a", "http://ex.org/c"]
    assert [each["number"] for each in results(client, 1, start=2, name="first")] == [2]
    assert client.get("/queries/first").json()["results"] == 2
    assert client.delete("/queries/first").status_code == 204
    assert client.get("/queries/first").status_code == 404


@pytest.mark.parametrize(
    ("kind", "body", "count"),
    [
        (
            "application/n-quads",
            b'<http://ex.org/q> <http://ex.org/t> "1" <urn:g> .\n<urn:q> <urn:p> "1" <urn:h> .\n',
            2,
        ),
        ("application/trig", b"<urn:g> { <urn:a> <urn:p> 1, 2 }", 1),
        (
            "application/n-quads",
            b"<urn:a> <urn:p> <urn:o> .\n<urn:a> <urn:q> <urn:o> .\n<urn:b> <urn:p> <urn:o> .\n",
            2,
        ),
        ("application/trig", b"<urn:a> <urn:p> 1, 2 .", 1),
        ("application/trig", b"{ <urn:a> <urn:p> 1, 2 }", 1),
        ("text/turtle", b"<urn:a> <urn:p> 1, 2 .", 1),
        ("application/ld+json", b'{"@id": "urn:a",\n "urn:p": 1}', 1),
        ("application/x-ndjson", b'{"@id": "urn:a", "urn:p": 1}\n\n{"@id": "urn:b", "urn:p": 1}', 2),
        ("text/csv", b"time,subject,predicate,object\n2026-01-01T00:00:00Z,<urn:a>,<urn:p>,<urn:b>\n", 1),
        ("application/n-triples; charset=utf-8", b"", 0),
    ],
)
def test_formats(client: httpx.Client, kind: str, body: bytes, count: int) -> None:
    answer = send(client, body, kind)
    assert answer.status_code == 200, answer.text
    assert answer.json()["elements"] == count


@pytest.mark.parametrize(
    "body",
    [
        b'<urn:g> <http://www.w3.org/ns/prov#generatedAtTime> "2026-01-01T00:00:00Z" .\n<urn:a> <urn:p> <urn:o> .\n',
        b"<urn:a> <urn:p> <urn:o> <urn:g> .\n<urn:a> <urn:p> <urn:o> .\n",
        b"<urn:a> <urn:p> <urn:o> .\n<urn:a> oops .\n",
    ],
)
def test_triples_beside_graphs_are_an_error(client: httpx.Client, body: bytes) -> None:
    assert send(client, body, "application/n-quads").status_code == 400


def test_a_body_is_taken_whole_or_not_at_all(client: httpx.Client) -> None:
    register(client, "whole")
    answer = send(client, reading("a", 50) + b"<http://ex.org/a> nonsense\n")
    assert answer.status_code == 400
    assert answer.headers["content-type"] == "application/problem+json"
    assert answer.json()["code"] == "CQ-DATA" and answer.json()["line"] == 2
    assert send(client, reading("b", 51)).json()["elements"] == 1
    assert [each["bindings"]["s"]["value"] for each in results(client, 1, name="whole")] == ["http://ex.org/b"]
    assert client.get("/streams/readings").json()["refused"] >= 1


def test_a_key_counts_once(client: httpx.Client) -> None:
    first, again = (send(client, reading("k", 1), **{"Idempotency-Key": "one"}).json() for _ in range(2))
    assert (first["repeated"], again["repeated"]) == (False, True)
    assert send(client, reading("k", 2), **{"Idempotency-Key": "one"}).status_code == 400
    assert send(client, reading("k", 1), **{"Idempotency-Key": "two"}).json()["repeated"] is False


def test_events_are_resumed_behind_their_last_id(client: httpx.Client) -> None:
    register(client, "events")
    send(client, reading("a", 60) + reading("b", 61) + reading("c", 62))
    assert len(results(client, 3, name="events")) == 3
    headers = {"Accept": "text/event-stream", "Last-Event-ID": "2"}
    with client.stream("GET", "/queries/events/results", headers=headers) as response:
        assert response.headers["content-type"].startswith("text/event-stream")
        lines = response.iter_lines()
        found = [line for line, _ in zip(lines, range(4), strict=False) if line and line != ":"]
    assert found[0] == "id: 3"
    assert json.loads(found[1].removeprefix("data: "))["bindings"]["s"]["value"] == "http://ex.org/c"


def test_a_socket_gets_results_from_a_number_on(client: httpx.Client) -> None:
    register(client, "socket")
    send(client, reading("a", 70) + reading("b", 71))
    url = str(client.base_url).replace("http", "ws")
    with connect(f"{url}/queries/socket/results?from=2") as socket:
        assert json.loads(socket.recv(30))["number"] == 2
        send(client, reading("c", 72))
        assert json.loads(socket.recv(30))["bindings"]["s"]["value"] == "http://ex.org/c"


def test_the_answer_in_the_formats_of_sparql(client: httpx.Client) -> None:
    text = "PREFIX : <http://ex.org/> SELECT (COUNT(*) AS ?n) { STREAM :answers [RANGE 1h] { ?s :t ?t } }"
    register(client, "count", text)
    client.put("/streams/answers", json={"iri": "http://ex.org/answers"})
    client.post("/streams/answers", content=reading("a", 1), headers={"Content-Type": "application/n-triples"})
    found = {}
    for kind in (
        "application/sparql-results+json",
        "application/sparql-results+xml",
        "text/csv",
        "text/tab-separated-values",
    ):
        answer = client.get("/queries/count/answer", headers={"Accept": kind})
        assert answer.status_code == 200, answer.text
        assert answer.headers["content-type"].startswith(kind)
        found[kind] = answer.text
    assert json.loads(found["application/sparql-results+json"])["results"]["bindings"][0]["n"]["value"] == "1"
    assert found["text/csv"].split() == ["n", "1"]
    assert client.get("/queries/count/answer", headers={"Accept": "image/png"}).status_code == 406


def test_construct(client: httpx.Client) -> None:
    text = HOT.replace("SELECT ?s ?t", "CONSTRUCT { ?s :is _:x . _:x :hot ?t }").replace("30", "90")
    assert register(client, "graph", text).status_code == 201
    send(client, reading("a", 91))
    (found,) = results(client, 1, name="graph")
    assert found["triples"].startswith("<http://ex.org/a> <http://ex.org/is> _:r1")
    answer = client.get("/queries/graph/answer", headers={"Accept": "text/turtle"})
    assert answer.status_code == 200 and "hot" in answer.text


def test_errors_of_a_query_have_their_place(client: httpx.Client) -> None:
    answer = register(client, "wrong", "SELECT ?s {\n STREAM <urn:x> [RANGE 5 apples] { ?s ?p ?o } }")
    assert answer.status_code == 400
    problem = answer.json()
    assert (problem["code"], problem["line"]) == ("CQ-SYNTAX", 2) and problem["column"] > 1
    assert client.get("/queries/wrong").status_code == 404


def test_another_text_replaces_a_query_and_numbers_go_on(client: httpx.Client) -> None:
    register(client, "replaced")
    send(client, reading("a", 80))
    assert len(results(client, 1, name="replaced")) == 1
    answer = register(client, "replaced", HOT.replace("30", "81"))
    assert answer.status_code == 200 and answer.json()["generation"] == 2
    send(client, reading("b", 80.5) + reading("c", 82))
    found = results(client, 2, name="replaced")
    assert [(each["number"], each["bindings"]["s"]["value"]) for each in found] == [
        (1, "http://ex.org/a"),
        (2, "http://ex.org/c"),
    ]
    wrong = register(client, "replaced", "SELECT nothing")
    assert wrong.status_code == 400
    assert client.get("/queries/replaced").json()["generation"] == 2


def test_a_paused_query_keeps_its_results(client: httpx.Client) -> None:
    register(client, "paused")
    assert client.post("/queries/paused/pause").json()["state"] == "paused"
    send(client, reading("p", 33))
    assert client.get("/queries/paused").json()["results"] >= 1
    assert client.post("/queries/paused/resume").json()["state"] == "running"
    assert results(client, 1, name="paused")[0]["number"] == 1


def test_json_through_a_context(client: httpx.Client) -> None:
    context = {"sensor": "@id", "value": "http://ex.org/t", "@base": "http://ex.org/"}
    iri = "http://ex.org/plain"
    assert client.put("/streams/plain", json={"iri": iri, "context": context}).status_code == 201
    register(client, "plain", HOT.replace(":readings", ":plain"))
    body = [{"sensor": "s1", "value": 35.5}, {"sensor": "s2", "value": 3}]
    answer = client.post("/streams/plain", json=body)
    assert answer.status_code == 200, answer.text
    assert answer.json()["elements"] == 2
    assert results(client, 1, name="plain")[0]["bindings"]["s"]["value"] == "http://ex.org/s1"
    assert client.post("/streams/plain", json=[1]).status_code == 400


def test_what_is_there(client: httpx.Client) -> None:
    register(client, "plan")
    assert "RANGE" in client.get("/queries/plan/plan").text
    assert client.get("/queries/plan/plan", headers={"Accept": "application/json"}).json()["form"] == "SELECT"
    assert client.get("/queries/plan/plan", headers={"Accept": "text/vnd.graphviz"}).text.startswith("digraph")
    send(client, reading("s1", 35) + reading("s2", 20))
    assert client.get("/queries/plan/profile").json()["operators"][0]["rows_out"] == 1
    for kind, start in (("text/plain", "SELECT"), ("text/vnd.graphviz", "digraph")):
        assert start in client.get("/queries/plan/profile", headers={"Accept": kind}).text
    assert client.get("/healthz").json()["status"] == "ok"
    assert client.get("/livez").status_code == 200
    assert "cqels_elements_total" in client.get("/metrics").text
    assert client.get("/openapi.json").json()["openapi"].startswith("3.1")
    assert client.get("/streams").json()[0]["iri"] == READINGS
    assert "plan" in [each["name"] for each in client.get("/queries").json()]
    assert client.delete("/streams/readings").status_code == 409
    assert client.get("/nothing").json()["code"] == "CQ-NOT-FOUND"
    assert client.patch("/streams/readings").status_code == 405


@pytest.mark.parametrize(
    ("method", "path", "content", "kind", "status"),
    [
        ("PUT", "/streams/x", b"{", "application/json", 400),
        ("PUT", "/streams/x", b"[]", "application/json", 400),
        ("PUT", "/streams/x", b'{"iri": "no iri"}', "application/json", 400),
        ("PUT", "/streams/-x", b'{"iri": "urn:x"}', "application/json", 400),
        ("PUT", "/streams/x", b'{"iri": "urn:x", "lateness": "soon"}', "application/json", 400),
        ("PUT", "/streams/x", b'{"iri": "urn:x", "map": "/etc/passwd"}', "application/json", 403),
        ("PUT", "/streams/x", b"iri", "text/plain", 415),
        ("POST", "/streams/nowhere", b"", "application/n-quads", 404),
        ("POST", "/streams/readings", b"", "image/png", 415),
        ("POST", "/streams/readings", b"{}", "application/json", 400),
        ("PUT", "/queries/x", b"\xff", QUERY, 400),
        ("PUT", "/queries/x", b"SELECT * {}", "text/plain", 415),
        ("PUT", "/queries/x", SERVICE, "application/json", 403),
        ("GET", "/queries/x/results", b"", "", 404),
    ],
)
def test_wrong_requests(client: httpx.Client, method: str, path: str, content: bytes, kind: str, status: int) -> None:
    answer = client.request(method, path, content=content, headers={"Content-Type": kind} if kind else {})
    assert answer.status_code == status, answer.text
    assert answer.json()["status"] == status


def test_all_is_back_after_a_restart(tmp_path: Path) -> None:
    with served(tmp_path) as client:
        declare(client, lateness="1s")
        register(client)
        send(client, reading("a", 31) + reading("b", 32))
        assert len(results(client, 2)) == 2
        send(client, reading("k", 1), **{"Idempotency-Key": "one"})
    with served(tmp_path) as client:
        assert client.get("/streams/readings").json()["lateness"] == 1_000_000
        assert [each["number"] for each in results(client, 2)] == [1, 2]
        assert send(client, reading("k", 1), **{"Idempotency-Key": "one"}).json()["repeated"]
        send(client, reading("c", 33))
        assert [each["bindings"]["s"]["value"][-1] for each in results(client, 3)] == ["a", "b", "c"]


def test_results_that_are_no_longer_kept(tmp_path: Path) -> None:
    with served(tmp_path, limits=Limits(results=1)) as client:
        declare(client)
        register(client)
        for start in (0, 3000, 6000):
            send(client, b"".join(reading(f"s{number}", 40 + number) for number in range(start, start + 3000)))
        first = client.get("/queries/hot").json()["first"]
        assert first == 4097
        gone = client.get("/queries/hot/results?from=4096", headers={"Accept": "application/x-ndjson"})
        assert gone.status_code == 410 and gone.json()["first"] == first
        assert [each["number"] for each in results(client, 1, start=0)] == [first]


def test_answers_that_xml_cannot_hold(tmp_path: Path) -> None:
    """A request gets the answer that it asked for or is refused, never an error of the server or a document that no parser reads."""
    window = "{ STREAM <http://ex.org/readings> [RANGE 1h] { ?s <http://ex.org/t> ?t } }"
    solutions, graphs = "application/sparql-results+xml", "application/rdf+xml"

    def answer(path: str, accept: str, **parameters: str) -> httpx.Response:
        return client.get(path, params=parameters, headers={"Accept": accept})

    with served(tmp_path / "data") as client:
        declare(client, clock="events")
        register(client, "all", f"SELECT ?s ?t {window}")
        register(client, "graph", f"CONSTRUCT {{ ?s <http://ex.org/t> ?t }} {window}")
        register(client, "unnamed", f"CONSTRUCT {{ ?s <urn:x:> ?t }} {window}")
        assert send(client, b'<http://ex.org/a> <http://ex.org/t> "\\r" .\n').status_code == 200
        literal = ElementTree.fromstring(answer("/queries/all/answer", solutions).content).find(".//{*}literal")
        assert literal is not None and literal.text == "\r"
        found = Graph().parse(data=answer("/queries/graph/answer", graphs).content, format="xml")
        assert [str(each) for each in found.objects()] == ["\r"]
        refused = answer("/queries/unnamed/answer", graphs)
        assert (refused.status_code, refused.json()["code"]) == (406, "CQ-NOT-ACCEPTABLE")
        assert send(client, b'<http://ex.org/a> <http://ex.org/t> "\\u0001" .\n').status_code == 200
        asked = {"query": "SELECT ?t { GRAPH </queries/all/windows/1> { ?s ?p ?t } }"}
        for path, accept in (("/queries/all/answer", solutions), ("/queries/graph/answer", graphs)):
            assert answer(path, accept).status_code == 406
        assert answer("/sparql", solutions, **asked).status_code == 406
        assert answer("/sparql", "text/csv", **asked).status_code == 200
