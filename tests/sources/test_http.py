"""Responses that do not end, and WebSockets, as sources: against servers of the test's own."""

from __future__ import annotations

import itertools
import json
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.dictionary import Dictionary
from cqels_py.errors import CqelsError, DataError, RunError, UsageError
from cqels_py.mappings.mapping import Mapping
from cqels_py.sources.http import EventParser, event_lines, lines_of
from cqels_py.sources.protocol import Opening, Source
from cqels_py.sources.urls import source_of
from cqels_py.testing import check_source
from tests.support.http_server import Request, served
from tests.support.servers import free_port, needed_module, wait_until

STREAM = "http://example.org/readings"
MAP = Mapping.of(
    "PREFIX : <http://example.org/> CONSTRUCT { ?s :v ?value } WHERE { BIND(IRI(CONCAT('http://example.org/', ?sensor)) AS ?s) }"
)
V = "<http://example.org/v>"
INTEGER = "^^<http://www.w3.org/2001/XMLSchema#integer>"
ELEMENTS = [(n, [(f"<http://example.org/s{n}>", V, f'"{n}"{INTEGER}')]) for n in range(1, 6)]


@pytest.fixture(autouse=True)
def packages() -> None:
    needed_module("httpx", "http")
    needed_module("websockets", "http")


def message(n: int) -> str:
    return json.dumps({"time": n, "sensor": f"s{n}", "value": n})


def opened(url: str, **more: Any) -> tuple[Source, Dictionary]:
    dictionary = Dictionary()
    return source_of(url).open(Opening(stream=STREAM, number=0, dictionary=dictionary, map=MAP, **more)), dictionary


def read(source: Source, wanted: int) -> list[int]:
    """The times of so many elements."""
    found: list[int] = []

    def enough() -> bool:
        batch = source.poll()
        found.extend([] if batch is None else batch.time.tolist())
        return len(found) >= wanted or batch is None

    wait_until(enough, f"{wanted} elements")
    return found


@pytest.mark.parametrize("kind", ["text/event-stream", "application/x-ndjson; charset=utf-8"])
def test_it_keeps_the_protocol(kind: str) -> None:
    def answer(request: Request, wrong: str = "") -> None:
        assert request.path == "/readings?room=k"
        events = kind == "text/event-stream"
        bodies = [message(n) for n in range(1, 6)]
        bodies.insert(2, wrong)
        lines = [f"data: {body}\n\n" if events else f"{body}\n" for body in bodies if body]
        if request.headers.get("last-event-id"):
            request.send(204)
            return
        request.send(kind=kind, body=(("id: 5\nretry: 10\n" if events else "") + "".join(lines)).encode())

    with served(answer) as url, served(lambda request: answer(request, "nonsense")) as wrong:
        check_source(
            lambda: source_of(f"{url}/readings?room=k"),
            ELEMENTS,
            map=MAP,
            malformed=lambda: source_of(f"{wrong}/readings?room=k"),
        )


def test_a_response_that_breaks_off_goes_on_behind_the_last_event() -> None:
    """The server is asked for what follows the id; an event that had not been complete comes again, whole."""
    asked: list[str | None] = []

    def answer(request: Request) -> None:
        last = request.headers.get("last-event-id")
        asked.append(last)
        first = int(last or 0) + 1
        body = "".join(f"id: {n}\ndata: {message(n)}\n\n" for n in range(first, first + 2))
        request.send(kind="text/event-stream", body=f"retry: 10\n{body}id: {first + 2}\ndata: {{".encode())

    with served(answer) as url:
        source, _ = opened(f"{url}/")
        assert read(source, 6)[:6] == [1, 2, 3, 4, 5, 6]
        source.close()
    assert asked[0] is None
    assert asked[1] is not None


def test_ids_of_events_are_any_text() -> None:
    """Also in the header that asks for the events behind one, where it is UTF-8."""
    asked: list[bytes] = []

    def answer(request: Request) -> None:
        last = (request.headers.get("last-event-id") or "").encode("latin-1")
        asked.append(last)
        n = 1 if not last else 2
        request.send(kind="text/event-stream", body=f"retry: 10\nid: \u00e9\u4e2d{n} \ndata: {message(n)}\n\n".encode())

    with served(answer) as url:
        source, _ = opened(f"{url}/")
        assert read(source, 2)[:2] == [1, 2]
        source.close()
    assert asked[:2] == [b"", "\u00e9\u4e2d1".encode()]


@pytest.mark.parametrize("seed", range(6))
def test_events_with_ids_go_on_at_a_position(seed: int) -> None:
    """Another source goes on behind any element, also of events between two that have ids."""
    random = Random(seed)
    ids = {n: f"e{n}" for n in range(1, 41) if random.random() < 0.5}

    def answer(request: Request) -> None:
        last = request.headers.get("last-event-id")
        first = 1 + next((n for n, name in ids.items() if name == last), 0)
        bodies = (
            f"id: {ids[n]}\ndata: {message(n)}\n\n" if n in ids else f"data: {message(n)}\n\n" for n in range(first, 41)
        )
        request.send(kind="text/event-stream", body="".join(bodies).encode())
        ended.wait()

    ended = threading.Event()
    found: list[int] = []
    position: Any = None
    with served(answer) as url:
        while len(found) < 40:
            source, _ = opened(f"{url}/", position=position)
            first = read(source, 1)
            before = position
            position = json.loads(json.dumps(source.position()))
            source.close()
            if random.random() < 0.3 and before is not None:
                # It is killed before it has logged this.
                position = before
                continue
            found += first
        ended.set()
    assert found == list(range(1, 41))


def test_a_server_that_is_not_there_yet() -> None:
    port = free_port()
    source, _ = opened(f"http://127.0.0.1:{port}/")
    batch = source.poll()
    assert batch is not None
    assert len(batch) == 0
    with served(lambda request: request.send(kind="application/x-ndjson", body=message(1).encode()), port):
        assert read(source, 1) == [1]
        wait_until(lambda: source.poll() is None, "the end")
    source.close()


@pytest.mark.parametrize(
    ("status", "kind", "said"),
    [
        (404, "text/event-stream", "answers with status 404"),
        (200, "text/html", "answers with text/html; read are text/event"),
    ],
)
def test_an_answer_that_is_no_stream(status: int, kind: str, said: str) -> None:
    with served(lambda request: request.send(status, kind)) as url:
        source, _ = opened(url)
        with pytest.raises(RunError, match=said):
            read(source, 1)
        source.close()


def test_the_token_is_sent_and_not_shown(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("TOKEN", "secret-token")
    seen: list[str] = []

    def answer(request: Request) -> None:
        seen.append(f"{request.path} {request.headers.get('authorization')}")
        request.send(404)

    with served(answer) as url:
        source, _ = opened(f"{url}/a?b=c#token=${{TOKEN}}")
        with pytest.raises(RunError) as told:
            read(source, 1)
        source.close()
    assert seen == ["/a?b=c Bearer secret-token"]
    assert "secret-token" not in str(told.value)


def test_what_is_wrong_is_said() -> None:
    with pytest.raises(
        UsageError, match=r"there is no option 'tme'; there are token, format, time, idle; did you mean time\?"
    ):
        source_of("http://localhost/a#tme=arrival")
    with pytest.raises(UsageError, match="names no host"):
        source_of("ws:///a")


@given(body=st.binary(max_size=60), cuts=st.lists(st.integers(0, 60)))
def test_lines_do_not_depend_on_chunks(body: bytes, cuts: list[int]) -> None:
    bounds = [0, *sorted(cut for cut in cuts if cut < len(body)), len(body)]
    chunks = [body[start:end] for start, end in itertools.pairwise(bounds)]
    lines = [line.removesuffix(b"\r") for line in body.split(b"\n")]
    assert list(lines_of(chunks)) == ([*lines[:-1], body.split(b"\n")[-1]] if body.split(b"\n")[-1] else lines[:-1])


@given(
    parts=st.lists(st.sampled_from([b"\r", b"\n", b"a", b"b"]), max_size=30),
    cuts=st.lists(st.integers(0, 30)),
    mark=st.booleans(),
)
def test_lines_of_events_do_not_depend_on_chunks(parts: list[bytes], cuts: list[int], mark: bool) -> None:
    """Their ends are of three kinds; a byte order mark is no part of the first."""
    body = b"".join(parts)
    marked = b"\xef\xbb\xbf" * mark + body
    bounds = [0, *sorted(cut for cut in cuts if cut < len(marked)), len(marked)]
    chunks = [marked[start:end] for start, end in itertools.pairwise(bounds)]
    assert list(event_lines(chunks)) == body.splitlines()


def test_a_return_ends_an_event_before_anything_follows() -> None:
    chunks = iter([b"data: a\r\r", b"\ndata: b\r"])
    lines = event_lines(chunks)
    assert [next(lines), next(lines)] == [b"data: a", b""]
    assert len(list(chunks)) == 1


@pytest.mark.parametrize("kind", ["text/event-stream", "application/x-ndjson"])
def test_a_byte_order_mark(kind: str) -> None:
    """It is no part of the first message."""
    form = "data: {}\r\r" if kind == "text/event-stream" else "{}\n"
    body = "".join(form.format(message(n)) for n in (1, 2))
    with served(lambda request: request.send(kind=kind, body=b"\xef\xbb\xbf" + body.encode())) as url:
        source, _ = opened(f"{url}/")
        assert read(source, 2)[:2] == [1, 2]
        source.close()


def test_events_of_the_standard() -> None:
    """Comments, several lines of data, a field without a colon, other fields."""
    text = b": comment\nevent: add\ndata: a\ndata:b\ndata\n\nid: 7\nretry: 1500\nretry: x\n\ndata: c\n\ndata: open"
    parser = EventParser()
    assert list(parser.events(text.split(b"\n"))) == [(b"a\nb\n", None), (b"c", None)]
    assert (parser.last_id, parser.pause) == ("7", 1.5)


@contextmanager
def websocket(handler: Any, refuse: Any = None) -> Iterator[str]:
    from websockets.sync.server import serve

    with serve(handler, "127.0.0.1", 0, process_request=refuse) as server:
        thread = threading.Thread(target=server.serve_forever, daemon=True)
        thread.start()
        yield f"ws://127.0.0.1:{server.socket.getsockname()[1]}"
        server.shutdown()


def test_messages_of_a_websocket() -> None:
    """Texts and bytes; a connection that is closed is made again."""
    connections: list[str] = []

    def handler(connection: Any) -> None:
        connections.append(connection.request.path)
        first = 2 * len(connections) - 1
        connection.send(message(first))
        connection.send(message(first + 1).encode())

    with websocket(handler) as url:
        source, _ = opened(f"{url}/readings?room=k")
        assert read(source, 4)[:4] == [1, 2, 3, 4]
        source.close()
    assert connections[:2] == ["/readings?room=k"] * 2


def test_a_malformed_message_of_a_websocket() -> None:
    def handler(connection: Any) -> None:
        connection.send("nonsense")
        connection.recv()

    with websocket(handler) as url:
        source, _ = opened(url)
        with pytest.raises(DataError, match=rf"^{url}:1: this is no JSON"):
            read(source, 1)
        source.close()


def test_a_websocket_that_is_refused() -> None:
    with websocket(None, refuse=lambda connection, request: connection.respond(403, "no")) as url:
        source, _ = opened(url)
        with pytest.raises(RunError, match="answers with status 403"):
            read(source, 1)
        source.close()


def test_a_websocket_that_is_closed_while_it_connects() -> None:
    """The connection that comes about then is closed too, and its thread ends."""
    asked, answered, ended = threading.Event(), threading.Event(), threading.Event()

    def refuse(connection: Any, request: Any) -> None:
        asked.set()
        answered.wait()

    def handler(connection: Any) -> None:
        for _ in connection:
            pass
        ended.set()

    with websocket(handler, refuse=refuse) as url:
        source, _ = opened(url)
        assert asked.wait(30)
        source.close()
        answered.set()
        assert ended.wait(10)


@pytest.mark.parametrize("status", [429, 503])
def test_a_websocket_whose_server_has_too_much_to_do(status: int) -> None:
    """It is asked again, as it is over HTTP."""
    asked: list[str] = []

    def refuse(connection: Any, request: Any) -> Any:
        asked.append(request.path)
        return connection.respond(status, "later") if len(asked) == 1 else None

    with websocket(lambda connection: connection.send(message(1)), refuse=refuse) as url:
        source, _ = opened(url)
        assert read(source, 1)[:1] == [1]
        source.close()


@pytest.mark.parametrize(
    ("url", "module", "package"), [("http://h/", "httpx", "httpx"), ("ws://h/", "websockets.sync.client", "websockets")]
)
def test_without_the_package(monkeypatch: pytest.MonkeyPatch, url: str, module: str, package: str) -> None:
    monkeypatch.setitem(sys.modules, module, None)
    with pytest.raises(CqelsError, match=rf"needs the package {package}: pip install 'cqels_py\[http\]'"):
        source_of(url)
