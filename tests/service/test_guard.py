"""Who may send requests: hosts, origins, the token; and which files and addresses requests may name."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from starlette.types import Message
from websockets.exceptions import InvalidStatus
from websockets.sync.client import connect

from cqels_py.errors import UsageError
from cqels_py.service.allowed import Allowed
from cqels_py.service.bodies import body_of
from cqels_py.service.failures import Forbidden, TooLarge
from cqels_py.service.guard import COOKIE
from cqels_py.service.limits import Limits
from cqels_py.service.server import Serving
from tests.service.support import HOT, N_TRIPLES, declare, reading, register, send, served

TOKEN = "a token of many letters"
BEARER = {"Authorization": f"Bearer {TOKEN}"}


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    limits = Limits(body=2000, decompressed=3000, query=500, streams=2, queries=1, subscribers=1)
    with served(tmp_path_factory.mktemp("guarded"), token=TOKEN, limits=limits) as found:
        found.headers.update(BEARER)
        declare(found)
        assert register(found).status_code == 201
        yield found


@pytest.mark.parametrize("path", ["/streams", "/queries/hot/results", "/metrics", "/openapi.json", "/nothing"])
def test_every_path_needs_the_token(client: httpx.Client, path: str) -> None:
    for headers in (
        {},
        {"Authorization": "Bearer another"},
        {"Authorization": f"Basic {TOKEN}"},
        {"Cookie": f"{COOKIE}=x"},
    ):
        answer = httpx.get(f"{client.base_url}{path}", headers=headers)
        assert answer.status_code == 401 and answer.json()["code"] == "CQ-UNAUTHORIZED"


@pytest.mark.parametrize("size", [1, 7, 1000])
def test_a_body_of_several_members_comes_in_parts(size: int) -> None:
    body = b"".join(gzip.compress(b"%d\n" % number) for number in range(20))
    parts = [body[at : at + size] for at in range(0, len(body), size)]
    parts.reverse()

    async def receive() -> Message:
        return {"type": "http.request", "body": parts.pop(), "more_body": len(parts) > 0}

    found = asyncio.run(body_of({"content-encoding": "gzip"}, receive, Limits()))
    assert found == b"".join(b"%d\n" % number for number in range(20))


def test_a_body_has_not_any_number_of_members() -> None:
    async def receive() -> Message:
        return {"type": "http.request", "body": gzip.compress(b"") * 10_001}

    with pytest.raises(TooLarge, match="10,000 members"):
        asyncio.run(body_of({"content-encoding": "gzip"}, receive, Limits()))


def test_health_needs_none(client: httpx.Client) -> None:
    assert [httpx.get(f"{client.base_url}{path}").status_code for path in ("/livez", "/healthz")] == [200, 200]


def test_a_browser_gets_the_token_as_a_cookie(client: httpx.Client) -> None:
    with httpx.Client(base_url=client.base_url) as browser:
        assert browser.post("/session", json={"token": "another"}).status_code == 401
        answer = browser.post("/session", json={"token": TOKEN})
        assert answer.status_code == 204
        assert {"HttpOnly", "SameSite=strict"} <= set(answer.headers["set-cookie"].split("; "))
        assert browser.get("/streams").status_code == 200
        browser.delete("/session")
        assert browser.get("/streams").status_code == 401


def test_a_socket_needs_the_token_and_an_origin_of_the_server(client: httpx.Client) -> None:
    url = f"{str(client.base_url).replace('http', 'ws')}/queries/hot/results"
    own = str(client.base_url).rstrip("/")
    for headers in ({}, {**BEARER, "Origin": "http://evil.example"}, {**BEARER, "Origin": "null"}):
        with pytest.raises(InvalidStatus), connect(url, additional_headers=headers):
            pass
    with connect(url, additional_headers={**BEARER, "Origin": own}):
        pass


@pytest.mark.parametrize("host", ["evil.example", "127.0.0.1.evil.example", "", "localhost.", "[::2]"])
def test_foreign_hosts_are_refused(client: httpx.Client, host: str) -> None:
    assert client.get("/streams", headers={"Host": host}).status_code in (400, 403)


def test_foreign_origins_may_not_change_anything(client: httpx.Client) -> None:
    headers = {"Origin": "http://evil.example"}
    assert client.delete("/queries/hot", headers=headers).status_code == 403
    assert client.post("/queries/hot/pause", headers=headers).status_code == 403
    assert send(client, reading("a", 1), Origin="http://evil.example").status_code == 403
    assert client.get("/queries/hot").json()["state"] == "running"


def test_limits(client: httpx.Client) -> None:
    assert send(client, b"#" * 2001).status_code == 413
    assert send(client, gzip.compress(b"#" * 3001), **{"Content-Encoding": "gzip"}).status_code == 413
    assert send(client, gzip.compress(reading("a", 1)), **{"Content-Encoding": "gzip"}).json()["elements"] == 1
    assert send(client, gzip.compress(reading("a", 1))[:-5], **{"Content-Encoding": "gzip"}).status_code == 400
    assert send(client, b"no gzip", **{"Content-Encoding": "gzip"}).status_code == 400
    members = gzip.compress(reading("a", 1)) + gzip.compress(reading("b", 1)) + b"\0" * 8
    assert send(client, members, **{"Content-Encoding": "gzip"}).json()["elements"] == 2
    assert send(client, members[:-12], **{"Content-Encoding": "gzip"}).status_code == 400
    assert send(client, gzip.compress(b"#" * 1600) * 2, **{"Content-Encoding": "gzip"}).status_code == 413
    assert send(client, gzip.compress(reading("a", 1)) + b"other", **{"Content-Encoding": "gzip"}).status_code == 400
    assert send(client, b"", **{"Content-Encoding": "br"}).status_code == 415

    def chunks() -> Iterator[bytes]:
        yield from (b"#" * 500 for _ in range(5))

    assert client.post("/streams/readings", content=chunks(), headers={"Content-Type": N_TRIPLES}).status_code == 413
    assert register(client, "long", HOT + " " * 500).status_code == 413
    assert register(client, "second").status_code == 429
    assert client.put("/streams/second", json={"iri": "urn:second"}).status_code == 201
    assert client.put("/streams/third", json={"iri": "urn:third"}).status_code == 429
    with client.stream("GET", "/queries/hot/results") as first:
        assert first.status_code == 200
        assert client.get("/queries/hot/results").status_code == 429


def test_paths_lie_below_allowed_folders(tmp_path: Path) -> None:
    inside, outside = tmp_path / "inside", tmp_path / "outside"
    inside.mkdir()
    outside.write_text("")
    (inside / "link").symlink_to(outside)
    (inside / "data.nt").write_text("")
    allowed = Allowed((inside,))
    assert allowed.location(str(inside / "data.nt")) == str(inside / "data.nt")
    assert allowed.location(f"file://{inside}/data.nt") == str(inside / "data.nt")
    for path in ("link", "../outside", "..", "%2e%2e/outside"):
        given = f"file://{inside}/{path}" if "%" in path else str(inside / path)
        with pytest.raises(Forbidden, match="--allow-path"):
            allowed.location(given)
    with pytest.raises(Forbidden):
        Allowed().location("file:/etc/passwd")


@pytest.mark.parametrize(
    "url",
    [
        "http://other.example/",
        "http://data.example.evil/x",
        "http://data.example@evil/x",
        "http://data.example/../x",
        "http://data.example/files-of-others",
        "mqtt://data.example/files/",
        "http:data.example/files/",
    ],
)
def test_addresses_begin_as_allowed_ones(url: str) -> None:
    allowed = Allowed(urls=("http://data.example/files",))
    assert allowed.location("http://data.example/files/x.nt")
    with pytest.raises(Forbidden, match="--allow-url"):
        allowed.location(url)


def test_beyond_this_machine_a_token_is_needed(tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="token"):
        Serving(data=tmp_path, host="0.0.0.0")
    with pytest.raises(UsageError, match="16 characters"):
        Serving(data=tmp_path, host="0.0.0.0", token="short")
