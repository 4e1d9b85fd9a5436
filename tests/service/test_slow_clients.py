"""Clients that begin a request and do not end it hold up nobody else."""

from __future__ import annotations

import asyncio
import socket
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from urllib.parse import urlsplit

import httpx
import pytest
from starlette.types import Message

from cqels_py.connections.keepalive import keep_alive
from cqels_py.service import patience
from cqels_py.service.bodies import body_of
from cqels_py.service.failures import TooMany, TooSlow
from cqels_py.service.limits import Limits
from cqels_py.service.patience import Places
from tests.service.support import N_TRIPLES, declare, reading, send, served

HEAD = b"POST /streams/readings HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/n-triples\r\nContent-Length: 100\r\n"
ONE = reading("a", 31)


@pytest.fixture
def client(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[httpx.Client]:
    monkeypatch.setattr(patience, "HEAD_SECONDS", 0.3)
    with served(tmp_path, limits=Limits(body_silence=0.3, pushes=4)) as found:
        declare(found)
        yield found


def connected(client: httpx.Client) -> socket.socket:
    found = urlsplit(str(client.base_url))
    return socket.create_connection((found.hostname or "", found.port or 0), timeout=30)


def rest(connection: socket.socket) -> bytes:
    """All that comes until the server closes the connection."""
    found = b""
    with connection:
        while part := connection.recv(1 << 16):
            found += part
    return found


@pytest.mark.parametrize("begun", [b"", b"GET /stre", HEAD, b"GET /livez HTTP/1.1\r\nHost: localhost\r\n\r\nGET /liv"])
def test_a_head_that_does_not_end_is_given_up(client: httpx.Client, begun: bytes) -> None:
    """Also behind a request that was answered."""
    connection = connected(client)
    connection.sendall(begun)
    found = rest(connection)
    assert found.startswith(b"HTTP/1.1 200") if b"/livez" in begun else not found


def test_half_a_body_is_given_up_and_its_place_is_free(client: httpx.Client) -> None:
    halves = [connected(client) for _ in range(4)]
    for each in halves:
        each.sendall(HEAD + b"\r\n" + ONE[:10])
    answers = [rest(each) for each in halves]
    # One client has at most half of the four places.
    assert sorted(answer.split(b" ")[1] for answer in answers) == [b"408", b"408", b"429", b"429"]
    assert send(client, ONE).json()["elements"] == 1


def test_a_slow_head_and_a_slow_body_that_end_are_taken_in(client: httpx.Client) -> None:
    connection = connected(client)
    head = HEAD.replace(b"100", b"%d" % len(ONE)) + b"Connection: close\r\n\r\n"
    connection.sendall(head[:50])
    connection.sendall(head[50:])
    for at in range(0, len(ONE), 20):
        connection.sendall(ONE[at : at + 20])
    assert b'"elements":1' in rest(connection)


def test_a_websocket_has_no_limit_of_a_head(client: httpx.Client) -> None:
    from websockets.sync.client import connect

    from tests.service.support import register

    register(client)
    url = str(client.base_url).replace("http", "ws")
    with connect(f"{url}/queries/hot/results") as following:
        with pytest.raises(TimeoutError):
            following.recv(timeout=1)
        send(client, ONE)
        assert b"31" in str(following.recv(timeout=30)).encode()


@pytest.mark.parametrize(("limits", "taken"), [(Limits(body_rate=1000, body_grace=0.2), False), (Limits(), True)])
def test_a_body_has_a_least_mean_rate(limits: Limits, taken: bool) -> None:
    """One that never stops, but brings a byte at a time."""
    parts = [b"x"] * 20

    async def receive() -> Message:
        await asyncio.sleep(0.03)
        return {"type": "http.request", "body": parts.pop(), "more_body": bool(parts)}

    if taken:
        assert asyncio.run(body_of({}, receive, limits)) == b"x" * 20
    else:
        with pytest.raises(TooSlow, match="1000 bytes a second"):
            asyncio.run(body_of({}, receive, limits))


def test_places_are_counted_by_client() -> None:
    places = Places(4)
    with places.one_for("a"), places.one_for("a"):
        with pytest.raises(TooMany, match="of this client"), places.one_for("a"):
            pass
        with places.one_for("b"), places.one_for("c"), pytest.raises(TooMany, match="4 bodies"), places.one_for("d"):
            pass
    assert (places.taken, places.by_client) == (0, {})


def test_connections_are_probed_by_the_system() -> None:
    with socket.create_server(("127.0.0.1", 0)) as listening:
        keep_alive(listening)
        with socket.create_connection(listening.getsockname()), listening.accept()[0] as accepted:
            assert accepted.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE) == 1
            assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE) == 60


def test_lists_are_read_while_queries_come_and_go(client: httpx.Client) -> None:
    """Figures and plans of queries that are being removed are there or are not: no mistake of the server, nor of the client."""
    from tests.service.support import register

    def turn_over() -> None:
        for number in range(12):
            register(client, f"q{number % 3}")
            client.delete(f"/queries/q{number % 3}")

    paths = ("/streams", "/queries", "/queries/q1/plan", "/queries/q1/profile", "/queries/q1/answer")
    with ThreadPoolExecutor(1) as other:
        turning = other.submit(turn_over)
        statuses = set()
        while not turning.done():
            statuses |= {client.get(path).status_code for path in paths}
        turning.result()
    assert statuses <= {200, 404}


def test_two_hosts_are_refused_and_answers_protect_browsers(client: httpx.Client) -> None:
    connection = connected(client)
    connection.sendall(b"GET /livez HTTP/1.1\r\nHost: localhost\r\nHost: evil\r\nConnection: close\r\n\r\n")
    assert rest(connection).startswith(b"HTTP/1.1 400")
    for path in ("/livez", "/streams", "/nothing", "/session"):
        headers = client.get(path).headers
        assert headers["x-content-type-options"] == "nosniff"
        assert "frame-ancestors 'self'" in headers["content-security-policy"]
    assert send(client, ONE, N_TRIPLES).headers["x-content-type-options"] == "nosniff"
