"""Redirects and names that lead where requests may not reach."""

from __future__ import annotations

import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any

import pytest

from cqels_py.dictionary import Dictionary
from cqels_py.errors import RunError
from cqels_py.service.allowed import Allowed
from cqels_py.service.failures import Forbidden
from cqels_py.sources.protocol import Opening
from cqels_py.sources.sparql_protocol import select
from cqels_py.sources.urls import source_of
from tests.service.support import HOT, READINGS, declare, reading, register, results, send, served
from tests.support.servers import wait_until

ANSWER = b'{"head":{"vars":["x"]},"results":{"bindings":[{"x":{"type":"uri","value":"urn:secret"}}]}}'


@contextmanager
def servers() -> Iterator[tuple[str, str, list[str]]]:
    """A server that leads elsewhere, one whose requests are listed, and those."""
    asked: list[str] = []

    class Inner(BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            asked.append(self.path)
            body = ANSWER if "query" in self.path else b'{"@id": "urn:a", "urn:p": 1}\n'
            self.send_response(200)
            self.send_header("Content-Type", "application/x-ndjson")
            self.send_header("Content-Length", str(len(body)))
            self.end_headers()
            self.wfile.write(body)

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Inner) as inner:

        class Leading(Inner):
            def do_GET(self) -> None:
                self.send_response(302)
                path = self.path.removeprefix("/leads")
                self.send_header("Location", f"http://127.0.0.1:{inner.server_port}{path}")
                self.end_headers()

        with ThreadingHTTPServer(("127.0.0.1", 0), Leading) as leading:
            for each in (inner, leading):
                threading.Thread(target=each.serve_forever, daemon=True).start()
            yield f"http://127.0.0.1:{leading.server_port}", f"http://127.0.0.1:{inner.server_port}", asked
            leading.shutdown()
        inner.shutdown()


def test_service_follows_redirects_only_to_allowed_addresses() -> None:
    with servers() as (leading, inner, asked):
        with pytest.raises(Forbidden, match="--allow-url"):
            select(f"{leading}/leads/a", "SELECT * {}", timeout=10, reach=Allowed(urls=(leading,)))
        assert not asked
        both = Allowed(urls=(leading, f"{inner}/a"))
        assert [str(each["x"]) for each in select(f"{leading}/leads/a", "SELECT * {}", timeout=10, reach=both)] == [
            "urn:secret"
        ]
        with pytest.raises(Forbidden):
            select(f"{leading}/leads/b", "SELECT * {}", timeout=10, reach=both)
        assert len(asked) == 1
        # Without a server that others use, redirects lead anywhere.
        assert select(f"{leading}/leads/b", "SELECT * {}", timeout=10)


def test_sources_follow_redirects_only_to_allowed_addresses(tmp_path: Path) -> None:
    with servers() as (leading, inner, asked), served(tmp_path, allowed=Allowed(urls=(leading,))) as client:
        declare(client, source=f"{leading}/leads/rows#time=arrival")
        text = f"SELECT ?s {{ STREAM <{READINGS}> [RANGE 1h] {{ ?s <urn:p> ?o }} }}"
        assert register(client, text=text).status_code == 201
        until = time.monotonic() + 60
        while (read := client.get("/streams/readings").json()["read"])["failure"] is None and time.monotonic() < until:
            time.sleep(0.05)
        assert "--allow-url" in read["failure"] and inner in read["failure"]
        assert not asked
        query = (
            f"SELECT * {{ STREAM <{READINGS}> [RANGE 1s] {{ ?s ?p ?o }} SERVICE <{leading}/leads/x> {{ ?x ?y ?z }} }}"
        )
        assert register(client, "service", query).status_code == 403
    with (
        servers() as (leading, inner, asked),
        served(tmp_path / "both", allowed=Allowed(urls=(leading, inner))) as client,
    ):
        declare(client, source=f"{leading}/leads/rows#time=arrival")
        assert register(client, text=text).status_code == 201
        assert results(client, 1)[0]["bindings"]["s"]["value"] == "urn:a"


@pytest.mark.parametrize(
    ("url", "address", "private", "refused"),
    [
        ("http://data.example/", "93.184.215.14", False, ""),
        ("http://data.example/", "10.0.0.7", False, "--allow-private"),
        ("http://data.example/", "127.0.0.1", False, "--allow-private"),
        ("http://data.example/", "::1", False, "--allow-private"),
        ("http://data.example/", "::ffff:192.168.1.1", False, "--allow-private"),
        ("http://data.example/", "100.64.0.1", False, "--allow-private"),
        ("http://data.example/", "64:ff9b::a00:7", False, "--allow-private"),
        ("http://data.example/", "64:ff9b:1::5db8:d70e", False, "--allow-private"),
        ("http://data.example/", "64:ff9b::5db8:d70e", False, ""),
        ("http://data.example/", "2002:a00:7::1", False, "--allow-private"),
        ("http://data.example/", "64:ff9b::a9fe:a9fe", True, "may not reach"),
        ("http://data.example/", "10.0.0.7", True, ""),
        ("http://10.0.0.7/", "10.0.0.7", False, ""),
        ("http://localhost:8080/", "127.0.0.1", False, ""),
        ("http://169.254.169.254/", "169.254.169.254", True, "may not reach"),
        ("http://data.example/", "fe80::1%eth0", True, "may not reach"),
        ("http://data.example/", "::ffff:169.254.169.254", True, "may not reach"),
    ],
)
def test_addresses_that_names_lead_to(url: str, address: str, private: bool, refused: str) -> None:
    allowed = Allowed(urls=(url,), private=private)
    if not refused:
        allowed.check_peer(url, address)
        return
    with pytest.raises(Forbidden, match=refused):
        allowed.check_peer(url, address)


def test_a_name_that_leads_into_a_private_network_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with servers() as (_, inner, asked):
        port = inner.rpartition(":")[2]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        url = f"http://data.example:{port}"
        with pytest.raises(Forbidden, match="--allow-private"):
            select(f"{url}/a", "SELECT * {}", timeout=10, reach=Allowed(urls=(url,)))
        assert not asked
        assert select(f"{url}/a", "SELECT * {}", timeout=10, reach=Allowed(urls=(url,), private=True))


def test_requests_with_results_go_only_where_names_may_lead(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "HTTP_PROXY", "all_proxy"):
        monkeypatch.setenv(name, "http://127.0.0.1:1")
    # That is for the test's own requests.
    monkeypatch.setenv("no_proxy", "127.0.0.1")
    taken: list[str] = []

    class Taking(BaseHTTPRequestHandler):
        def do_POST(self) -> None:
            taken.append(self.path)
            self.rfile.read(int(self.headers["Content-Length"]))
            self.send_response(204)
            self.end_headers()

        def log_message(self, *_: object) -> None:
            pass

    with ThreadingHTTPServer(("127.0.0.1", 0), Taking) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        url = f"http://localhost:{server.server_port}/hook"
        with served(tmp_path / "data", allowed=Allowed(urls=(url,))) as client:
            declare(client)
            assert client.put("/queries/hot", json={"text": HOT, "sinks": [url]}).status_code == 201
            send(client, reading("a", 50))
            # No proxy of the environment is asked.
            wait_until(lambda: bool(taken), "the server to be asked")

            def refuse(self: Allowed, url: str, address: str) -> None:
                raise Forbidden(f"{url} leads to {address}")

            monkeypatch.setattr(Allowed, "check_peer", refuse)

            def has_failed() -> bool:
                # Told when the next result comes.
                send(client, reading("b", 50))
                return client.get("/healthz").status_code == 503

            wait_until(has_failed, "the sink to fail")
            assert "hook leads to 127.0.0.1" in client.get("/healthz").text
        server.shutdown()


@contextmanager
def websocket(leads_to: str | None = None) -> Iterator[tuple[str, list[str]]]:
    """A server, or one that leads elsewhere, and the paths that it was asked for."""
    serve = pytest.importorskip("websockets.sync.server").serve
    asked: list[str] = []

    def answer(connection: Any, request: Any) -> Any:
        asked.append(request.path)
        if leads_to is None:
            return None
        response = connection.respond(302, "")
        response.headers["Location"] = leads_to
        return response

    with serve(lambda connection: connection.recv(), "127.0.0.1", 0, process_request=answer) as server:
        threading.Thread(target=server.serve_forever, daemon=True).start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}", asked
        server.shutdown()


def failure_of(url: str, allowed: Allowed) -> str:
    """With which a source ends."""
    source = source_of(url).open(Opening(stream=READINGS, number=0, dictionary=Dictionary(), reach=allowed))
    failures: list[str] = []

    def has_failed() -> bool:
        try:
            source.poll()
        except RunError as error:
            failures.append(error.message)
        return bool(failures)

    try:
        wait_until(has_failed, "the source to fail")
    finally:
        source.close()
    return failures[0]


def test_a_websocket_does_not_follow_redirects() -> None:
    with websocket() as (inner, asked), websocket(f"{inner}/secret") as (leading, _):
        assert "redirect" in failure_of(f"{leading}/a", Allowed(urls=(leading,)))
        assert not asked


def test_a_websocket_whose_name_leads_into_a_private_network_is_asked_nothing(monkeypatch: pytest.MonkeyPatch) -> None:
    import socket

    with websocket() as (inner, asked):
        port = inner.rpartition(":")[2]
        found = [(socket.AF_INET, socket.SOCK_STREAM, 6, "", ("127.0.0.1", int(port)))]
        monkeypatch.setattr(socket, "getaddrinfo", lambda *_, **__: found)
        url = f"ws://data.example:{port}"
        assert "--allow-private" in failure_of(f"{url}/a", Allowed(urls=(url,)))
        assert not asked
        source = source_of(f"{url}/a").open(
            Opening(stream=READINGS, number=0, dictionary=Dictionary(), reach=Allowed(urls=(url,), private=True))
        )
        wait_until(lambda: asked == ["/a"], "the server to be asked")
        source.close()
