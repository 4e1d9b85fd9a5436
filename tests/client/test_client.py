"""The client against a real server: every request, errors with their places, results by number across a restart."""

from __future__ import annotations

import asyncio
import gzip
import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from itertools import chain, cycle, islice
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest
from hypothesis import given
from hypothesis import strategies as st

from cqels_py.client import AsyncClient, Client, Unreachable
from cqels_py.client.bodies import MEDIA_TYPES
from cqels_py.client.failures import error_of
from cqels_py.client.following import Following
from cqels_py.client.requests import plan, queries
from cqels_py.errors import DataError, QuerySyntaxError, RunError, UsageError
from cqels_py.service.failures import Conflict, Gone, NotFound, ServiceError, Unauthorized
from cqels_py.service.limits import Limits
from cqels_py.service.server import Server, Serving
from cqels_py.sources.documents import FORMATS
from tests.service.support import HOT, N_TRIPLES, READINGS, reading


@contextmanager
def running(data: Path, port: int = 0, **options: Any) -> Iterator[Server]:
    server = Server(Serving(data=data, port=port, **options))
    thread = threading.Thread(target=server.run, daemon=True)
    thread.start()
    server.ready.wait(120)
    try:
        if server.failure is not None:
            raise server.failure
        yield server
    finally:
        server.should_exit = True
        thread.join(60)


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    with running(tmp_path_factory.mktemp("data")) as server:
        assert server.address
        yield server.address


@pytest.fixture
def client(server: str) -> Iterator[Client]:
    """A client of a server with the stream "readings" and no query."""
    with Client(server) as client:
        for query in client.queries():
            client.stop(query["name"])
        client.put_stream("readings", READINGS)
        yield client


def test_every_request(client: Client, tmp_path: Path) -> None:
    assert [each["iri"] for each in client.streams()] == [READINGS]
    figures = client.submit("hot", HOT, changelog=True)
    assert (figures["state"], figures["changelog"]) == ("running", True)
    file = tmp_path / "readings.nt.gz"
    file.write_bytes(gzip.compress(reading("a", 31) + reading("b", 20)))
    assert client.send("readings", file)["elements"] == 2
    assert client.send("readings", reading("c", 35), media_type=N_TRIPLES, key="k")["repeated"] is False
    assert client.send("readings", reading("c", 35), media_type=N_TRIPLES, key="k")["repeated"] is True
    found = list(islice(client.tail("hot", 1), 2))
    assert [each["number"] for each in found] == [1, 2]
    assert {float(each["bindings"]["t"]["value"]) for each in found} == {31, 35}
    rows = json.loads(client.answer("hot"))["results"]["bindings"]
    assert {float(row["t"]["value"]) for row in rows} == {31, 35}
    assert client.answer("hot", "text/csv").splitlines()[0] == "s,t"
    assert "readings" in client.plan("hot")
    asked = json.loads(client.ask("SELECT * { GRAPH </queries/hot/windows/1> { ?s ?p ?o } }"))
    assert len(asked["results"]["bindings"]) == 2
    assert client.rejects("readings") == []
    assert client.pause("hot")["state"] == "paused"
    assert client.resume("hot")["state"] == client.show("hot")["state"] == "running"
    assert client.stream("readings")["queries"] == ["hot"]
    with pytest.raises(Conflict):
        client.delete_stream("readings")
    client.stop("hot")
    client.delete_stream("readings")
    assert client.streams() == client.queries() == []


def test_static_data_of_a_file_goes_with_the_query(client: Client, tmp_path: Path) -> None:
    file = tmp_path / "rooms.ttl"
    file.write_text("@prefix : <http://ex.org/> . :a :in :kitchen .")
    text = "PREFIX : <http://ex.org/> SELECT ?r { STREAM :readings [RANGE 1h] { ?s :t ?t } ?s :in ?r }"
    client.submit("rooms", text, static=[file])
    client.send("readings", reading("a", 1) + reading("b", 1), media_type=N_TRIPLES)
    [result] = islice(client.tail("rooms", 0), 1)
    assert result["bindings"]["r"]["value"] == "http://ex.org/kitchen"
    file.write_text("@prefix : <http://ex.org/> .\n:a :in")
    with pytest.raises(DataError) as failed:
        client.submit("rooms", text, static=[file])
    assert failed.value.place is not None


def test_errors_are_those_of_the_package_with_their_places(client: Client, tmp_path: Path) -> None:
    with pytest.raises(QuerySyntaxError, match=r"^hot\.rq:2:") as syntax:
        client.submit("hot", "SELECT ?s\nWHERE [", source="hot.rq")
    assert (syntax.value.code, syntax.value.place and syntax.value.place.line) == ("CQ-SYNTAX", 2)
    file = tmp_path / "bad.nt"
    file.write_bytes(reading("a", 1) + b"<http://ex.org/a> oops\n")
    with pytest.raises(DataError) as data:
        client.send("readings", file)
    assert str(data.value).startswith(f"{file}:2")
    with pytest.raises(NotFound, match="nothing"):
        client.show("nothing")
    with pytest.raises(NotFound):
        next(client.tail("nothing"))
    with pytest.raises(UsageError, match="is no name"):
        client.submit("-x", HOT)
    with pytest.raises(UsageError, match=r"readings\.docx"):
        client.send("readings", tmp_path / "readings.docx")
    with pytest.raises(UsageError, match="media type"):
        client.send("readings", b"")
    with pytest.raises(UsageError, match="no file"):
        client.send("readings", tmp_path / "missing.nt")


def test_a_reader_of_a_query_that_is_removed_is_told(client: Client) -> None:
    client.submit("hot", HOT)
    results = client.tail_batches("hot")
    assert next(results) == []
    client.stop("hot")
    with pytest.raises(NotFound):
        list(results)


def test_asyncio_has_the_same_methods_and_answers(client: Client, server: str) -> None:
    assert {name for name in vars(Client) if not name.startswith("_")} - {"close"} == {
        name for name in vars(AsyncClient) if not name.startswith("_")
    } - {"aclose"}

    async def talk() -> list[dict[str, Any]]:
        async with AsyncClient(server) as other:
            await other.submit("hot", HOT)
            with pytest.raises(QuerySyntaxError):
                await other.submit("cold", "SELEKT")
            following = asyncio.create_task(_first(other, 2))
            await other.send("readings", reading("a", 31) + reading("b", 32), media_type=N_TRIPLES)
            return await following

    async def _first(other: AsyncClient, count: int) -> list[dict[str, Any]]:
        found = []
        async for result in other.tail("hot", 1):
            found.append(result)
            if len(found) == count:
                break
        return found

    found = asyncio.run(talk())
    assert found == list(islice(client.tail("hot", 1), 2))


def test_results_go_on_behind_a_restart(tmp_path: Path) -> None:
    with running(tmp_path) as first:
        address = first.address
        client = Client(address)
        client.put_stream("readings", READINGS)
        client.submit("hot", HOT)
        results = client.tail("hot", 0)
        client.send("readings", reading("a", 31), media_type=N_TRIPLES)
        assert next(results)["number"] == 1
    port = int(address.rpartition(":")[2])
    with pytest.raises(Unreachable, match=rf"cqels serve --port {port}"):
        client.queries()
    with pytest.raises(Unreachable, match="no server answers"):
        next(client.tail("hot"))
    with running(tmp_path, port):
        client.send("readings", reading("b", 32), media_type=N_TRIPLES)
        result = next(results)
        assert (result["number"], result["bindings"]["t"]["value"]) == (2, "32")
    client.close()


def test_another_query_of_the_same_name_is_another_one(client: Client) -> None:
    """Its numbers begin at 1, and none of its results is passed over for having a number that the former one has had."""
    client.submit("hot", HOT)
    client.send("readings", reading("a", 31) + reading("b", 32), media_type=N_TRIPLES)
    results = client.tail("hot", 1)
    assert [next(results)["number"], next(results)["number"]] == [1, 2]
    show, removed = client.show, threading.Event()

    def show_once_removed(name: str) -> dict[str, Any]:
        assert removed.wait(60)
        return show(name)

    client.show = show_once_removed  # type: ignore[method-assign]
    client.stop("hot")
    client.submit("hot", HOT)
    removed.set()
    with pytest.raises(NotFound, match="was removed, and another one has its name"):
        next(results)


def test_results_of_a_failed_query_that_a_pause_holds_back_are_waited_for(tmp_path: Path) -> None:
    """In one response: a reader that is sent away because the query has failed would come back at once, again and again."""
    with running(tmp_path, limits=Limits(silence=0.05)) as server, Client(server.address) as client:
        client.put_stream("readings", READINGS)
        client.submit("hot", HOT)
        client.send("readings", reading("a", 31), media_type=N_TRIPLES)
        client.pause("hot")
        assert server.requests is not None
        query = server.requests.service.query("hot")
        query.failure = RunError("full")
        query.store.wake()
        asked = client._opened
        with patch.object(client, "_opened", side_effect=asked) as opened:
            batches = client.tail_batches("hot", 1)
            assert [next(batches) for _ in range(4)] == [[], [], [], []]
            client.resume("hot")
            assert [result["number"] for result in chain.from_iterable(islice(filter(None, batches), 1))] == [1]
            assert opened.call_count == 1
            with pytest.raises(RunError, match="full"):
                list(batches)


def test_a_task_goes_on_behind_a_restart(tmp_path: Path) -> None:
    async def follow() -> list[int]:
        found: list[int] = []
        with running(tmp_path) as first:
            address = first.address
            with Client(address) as client:
                client.put_stream("readings", READINGS)
                client.submit("hot", HOT)
                client.send("readings", reading("a", 31), media_type=N_TRIPLES)
            other = AsyncClient(address)
            results = other.tail("hot", 0)
            found.append((await anext(results))["number"])
        with running(tmp_path, int(address.rpartition(":")[2])):
            await other.send("readings", reading("b", 32), media_type=N_TRIPLES)
            found.append((await anext(results))["number"])
            await results.aclose()  # type: ignore[attr-defined]
        await other.aclose()
        return found

    assert asyncio.run(follow()) == [1, 2]


def test_the_environment_names_the_server(server: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("CQELS_SERVER", server)
    with Client() as client:
        assert isinstance(client.queries(), list)
    monkeypatch.setenv("CQELS_SERVER", "nowhere")
    with pytest.raises(UsageError):
        Client()


def test_a_token(tmp_path: Path) -> None:
    with running(tmp_path, token="secret" * 4) as server:
        with Client(server.address) as nobody, pytest.raises(Unauthorized):
            nobody.queries()
        with Client(server.address, token="secret" * 4) as client:
            assert client.queries() == []


@pytest.mark.parametrize(
    "token", ["", "many secret letters\r", " many secret letters", "many\nsecret letters", "secret, and größer"]
)
def test_a_token_that_cannot_be_sent_is_in_no_message(server: str, token: str, tmp_path: Path) -> None:
    with pytest.raises(UsageError, match="a token has") as failed:
        Client(server, token=token).queries()
    assert "secret" not in str(failed.value)
    if token:
        with pytest.raises(UsageError, match="no header could have it") as refused:
            Serving(data=tmp_path, token=token)
        assert "secret" not in str(refused.value)


@pytest.mark.parametrize("text", ["a\nb", "ä", "", " a"])
def test_a_header_that_cannot_be_sent(client: Client, text: str) -> None:
    with pytest.raises(UsageError, match="Idempotency-Key has visible characters"):
        client.send("readings", reading("a", 31), media_type=N_TRIPLES, key=text)
    with pytest.raises(UsageError, match="Content-Type has visible characters"):
        client.send("readings", reading("a", 31), media_type=text)


def test_a_server_of_another_kind() -> None:
    with pytest.raises(ServiceError, match="is the address right"):
        queries().answer(200, b"<html>")
    with pytest.raises(ServiceError, match="is the address right"):
        plan("hot").answer(200, b"\xff")
    with pytest.raises(ServiceError, match="is the address right"):
        Following("hot", 1, 60).take(b"<html>\n")
    assert type(error_of(400, b'{"code": [1]}')) is ServiceError


@pytest.mark.parametrize(
    "server",
    [
        "localhost:8737",
        "ftp://localhost",
        "http://",
        "http://localhost:99999",
        "",
        "http://a\x01b",
        "http://xn--/",
        "http://ö_ö",
    ],
)
def test_an_address_that_is_none(server: str) -> None:
    with pytest.raises(UsageError, match=r"http://127\.0\.0\.1:8737"):
        Client(server)


@pytest.mark.parametrize("name", ["hot/plan", "../streams/s", "hot?from=1", "", "a b"])
def test_a_name_that_is_none_asks_for_nothing_else(client: Client, name: str) -> None:
    with pytest.raises(UsageError, match="is no name: it has 1 to 100 letters"):
        client.show(name)
    with pytest.raises(UsageError, match="is no name: it has 1 to 100 letters"):
        client.delete_stream(name)


def test_media_types_are_those_of_the_service() -> None:
    assert {kind: format for format, kind in MEDIA_TYPES.items()} == FORMATS


def test_answers_of_others_than_the_service() -> None:
    assert isinstance(error_of(502, b"<html>"), Unreachable)
    assert type(error_of(404, b"<html>")) is ServiceError
    assert type(error_of(400, b'{"code": "CQ-LATER", "detail": "of a later version"}')) is ServiceError
    gone = error_of(410, b'{"code": "CQ-GONE", "detail": "gone", "first": 7}')
    assert isinstance(gone, Gone)
    assert gone.members == {"first": 7}


@given(
    count=st.integers(1, 12),
    start=st.sampled_from([0, 1]),
    sizes=st.lists(st.integers(1, 40), min_size=1, max_size=9),
    lengths=st.lists(st.integers(1, 99), max_size=9),
)
def test_each_result_comes_once_however_connections_break(
    count: int, start: int, sizes: list[int], lengths: list[int]
) -> None:
    """Responses of some lengths, in parts of any size; the reader asks again for what has not come."""
    following = Following("hot", start, 60)
    taken: list[int] = []
    figures = {"results": count, "first": 1, "state": "failed", "failure": "full", "created": 1.5}
    part = cycle(sizes)
    for length in (*lengths, None, None):
        if taken and taken[-1] == count:
            break
        asked = int(following.begin(figures).path.rpartition("=")[2])
        body = b"\n" + b"".join(b'{"number":%d}\n' % number for number in range(asked, count + 1))
        rest = body[:length]
        while rest:
            size = next(part)
            taken += [result["number"] for result in following.take(rest[:size])]
            rest = rest[size:]
    assert taken == list(range(1, count + 1))
    with pytest.raises(RunError, match="full"):
        following.begin(figures)
