"""Requests that no client of good will sends: each is refused, and the server goes on."""

from __future__ import annotations

import asyncio
import gc
from collections.abc import Iterator
from types import SimpleNamespace
from typing import Any
from unittest.mock import Mock
from weakref import ref

import httpx
import pytest

from cqels_py.service.following import Hub
from cqels_py.service.limits import Limits
from tests.service.support import EX, register, served

TOKEN = "a token of many letters"
JSON = {"Content-Type": "application/json"}
DEEP = b"[" * 100_000
LONG = b'{"a": %b}' % (b"9" * 5000)
HALVES = [
    b'{"iri": "urn:\\ud800", "text": "\\uDC00", "token": "\\ud800", "a": "\\ud800"}',
    b'{"iri": "urn:\xed\xa0\x80"}',
]


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("hostile"), token=TOKEN) as found:
        found.headers["Authorization"] = f"Bearer {TOKEN}"
        assert (
            found.put("/streams/readings", json={"iri": f"{EX}readings", "context": {"@vocab": EX}}).status_code == 201
        )
        assert register(found).status_code == 201
        yield found


@pytest.mark.parametrize("body", [*HALVES, DEEP, LONG])
@pytest.mark.parametrize(
    "path", ["PUT /streams/other", "PUT /queries/other", "POST /session", "POST /streams/readings"]
)
def test_json_that_no_other_program_could_read(client: httpx.Client, path: str, body: bytes) -> None:
    """Texts with half of a character cannot be written in UTF-8 again, neither in an answer nor in the folder."""
    method, _, path = path.partition(" ")
    answer = client.request(method, path, content=body, headers=JSON)
    too_large = path == "/session" and len(body) > 1024
    expected = (413, "CQ-TOO-LARGE") if too_large else (400, "CQ-DEPTH" if body == DEEP else "CQ-DATA")
    assert (answer.status_code, answer.json()["code"]) == expected, answer.text
    assert [each["name"] for each in client.get("/streams").json()] == ["readings"]


@pytest.mark.parametrize(
    "iri", ["http://[x", "http://a b/", "/queries/hot/windows/" + "9" * 5000, "/queries/hot/windows/01"]
)
def test_graphs_whose_names_are_none(client: httpx.Client, iri: str) -> None:
    asked = [{"query": f"SELECT * {{ GRAPH <{iri}> {{ ?s ?p ?o }} }}"}]
    asked += [{"query": "SELECT * { ?s ?p ?o }", name: iri} for name in ("default-graph-uri", "named-graph-uri")]
    asked += [{"query": f"BASE <{iri}> SELECT * {{ ?s ?p ?o }}"}] if iri.startswith("http") else []
    for parameters in asked:
        answer = client.post("/sparql", data=parameters)
        assert answer.status_code in (400, 404), answer.text


@pytest.mark.parametrize("origin", ["http://[", "http://[::1", "http://a\u2100b".encode()])
def test_an_origin_that_is_none_is_another_one(client: httpx.Client, origin: str) -> None:
    assert client.post("/queries/hot/pause", headers={"Origin": origin}).status_code == 403


@pytest.mark.parametrize("host", ["[::1", "localhost:8x", "localhost:80/x", "localhost@evil", "[::1]x", ""])
def test_a_host_that_is_none_is_not_answered(client: httpx.Client, host: str) -> None:
    assert client.get("/queries", headers={"Host": host}).status_code in (400, 403)


@pytest.mark.parametrize("host", ["localhost", "LOCALHOST:80", "[::1]", "[::1]:8737", "127.0.0.1:"])
def test_hosts_with_and_without_a_port(client: httpx.Client, host: str) -> None:
    assert client.get("/queries", headers={"Host": host}).status_code == 200


def test_the_head_of_results_ends(client: httpx.Client) -> None:
    """The connection takes the next request, and nobody has subscribed."""
    with httpx.Client(base_url=client.base_url, headers=client.headers, timeout=10) as other:
        head = other.head("/queries/hot/results")
        assert (head.status_code, head.headers["content-type"]) == (200, "text/event-stream; charset=utf-8")
        assert other.head("/queries/hot/results?from=x").status_code == 400
        assert other.get("/queries/hot").json()["subscribers"] == 0


def test_accept_in_several_lines(client: httpx.Client) -> None:
    for first, second in (
        ("text/html", "text/csv"),
        ("text/csv", "text/html"),
        ("text/csv;q=0.9", "application/json;q=0.1"),
    ):
        answer = client.get("/queries/hot/answer", headers=[("Accept", first), ("Accept", second)])
        assert (answer.status_code, answer.headers["content-type"]) == (200, "text/csv; charset=utf-8"), answer.text


@pytest.mark.parametrize("results", [0, 9])
def test_readers_leave_nothing_behind(results: int) -> None:
    """Neither while a query has no results nor while a reader is behind them: it waits for the next ones once at a time."""

    async def most_that_wait() -> int:
        store = Mock(last=results, read=lambda number, most: [b"{}"] if number <= results else [])
        kept = SimpleNamespace(paused=False)
        query: Any = SimpleNamespace(store=store, removed=False, failure=None, kept=kept)
        hub = Hub(Limits(silence=0.001))
        following = hub.follow(query, 1)
        for _ in range(9):
            await anext(following)
        found = len(hub.wakes_of(store)._waiting)
        await following.aclose()  # type: ignore[attr-defined]
        assert not hub.wakes_of(store)._waiting
        return found

    assert asyncio.run(most_that_wait()) <= 1


def test_a_query_that_has_had_readers_can_be_removed_in_any_way() -> None:
    """Its results are in memory no longer."""

    async def follow() -> bool:
        hub, store = Hub(Limits()), Mock()
        hub.wakes_of(store)
        gone = ref(store)
        del store
        gc.collect()
        return gone() is None

    assert asyncio.run(follow())
