"""What requests say beside texts and elements: times of arrival, rejects, results that are kept, elements of before."""

from __future__ import annotations

import time
from collections.abc import Iterator
from datetime import datetime
from pathlib import Path

import httpx
import pytest

from cqels_py.errors import UsageError
from cqels_py.service.definitions import Keep, QueryDefinition, StreamDefinition
from cqels_py.service.limits import Limits
from cqels_py.service.result_store import IN_A_FILE, NotKept, ResultStore
from tests.service.support import EX, HOT, READINGS, declare, reading, register, results, send, served


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("definitions"), limits=Limits(results=1000)) as found:
        declare(found)
        yield found


def test_tables_without_times_get_those_of_their_arrival(client: httpx.Client) -> None:
    query = f"SELECT ?s ?t {{ STREAM <{READINGS}> [RANGE 1h] {{ ?s <{EX}t> ?t }} }}"
    begun = int(time.time())
    assert register(client, "table", query).status_code == 201
    rows = f"subject,predicate,object\r\n<{EX}a>,<{EX}t>,<urn:1>\n\n<{EX}b>,<{EX}t>,<urn:2>\n"
    answer = send(client, rows.encode(), "text/csv")
    assert answer.status_code == 200, answer.text
    assert send(client, rows.replace(",", "\t").encode(), "text/tab-separated-values").json()["late"] == 0
    found = results(client, 2, name="table")
    assert [each["bindings"]["s"]["value"] for each in found] == [f"{EX}a", f"{EX}b"]
    assert all(datetime.fromisoformat(each["time"]).timestamp() >= begun for each in found)
    wrong = send(client, rows.encode() + b"<urn:x>,oops\n", "text/csv")
    assert (wrong.status_code, wrong.json()["line"]) == (400, 5)
    client.delete("/queries/table")


@pytest.mark.parametrize(
    ("map_", "kind", "body"),
    [
        ("CONSTRUCT {{ ?id <{e}t> ?v }} WHERE {{}}", "text/csv", b"id,v\nurn:a,31\nurn:b,32\n"),
        ("CONSTRUCT {{ ?id <{e}t> ?v }} WHERE {{}}", "text/csv", b"id,v,time\nurn:a,31,\nurn:b,32,\n"),
        (
            "CONSTRUCT {{ ?id <{e}t> ?v }} WHERE {{}}",
            "application/x-ndjson",
            b'{"id":"urn:a","v":31}\n{"id":"urn:b","v":32}',
        ),
    ],
)
def test_mapped_rows_without_times_get_those_of_their_arrival(
    client: httpx.Client, map_: str, kind: str, body: bytes
) -> None:
    text = "CONSTRUCT { ?s <http://ex.org/t> ?v } WHERE { BIND(IRI(?id) AS ?s) }"
    assert client.put("/streams/mapped", json={"iri": "urn:mapped", "map": text}).status_code == 201
    query = "SELECT ?s ?t { STREAM <urn:mapped> [RANGE 1h] { ?s <http://ex.org/t> ?t } }"
    assert register(client, "mapped", query).status_code == 201
    answer = client.post("/streams/mapped", content=body, headers={"Content-Type": kind})
    assert answer.status_code == 200 and answer.json()["elements"] == 2, answer.text
    assert [each["bindings"]["s"]["value"] for each in results(client, 2, name="mapped")] == ["urn:a", "urn:b"]
    assert client.delete("/queries/mapped").status_code == client.delete("/streams/mapped").status_code == 204


def of_before(count: int) -> bytes:
    """So many elements of 2020."""
    quads = (
        f'<urn:g{n}> <http://www.w3.org/ns/prov#generatedAtTime> "2020-01-01T00:00:00Z"^^'
        f"<http://www.w3.org/2001/XMLSchema#dateTime> .\n<urn:a> <{EX}t> <urn:{n}> <urn:g{n}> .\n"
        for n in range(count)
    )
    return "".join(quads).encode()


def test_the_last_rejects(client: httpx.Client) -> None:
    register(client, "late")
    assert send(client, of_before(150), "application/n-quads").json()["late"] == 150
    found = client.get("/streams/readings/rejects").json()
    assert len(found) == 100 and {each["reason"] for each in found} == {"late"}
    assert "<urn:149>" in found[-1]["element"] and "<urn:50>" in found[0]["element"]
    assert abs(found[-1]["at"] - time.time()) < 600
    assert client.get("/streams/other/rejects").status_code == 404
    client.delete("/queries/late")


def test_a_replacement_says_whether_it_began_empty(client: httpx.Client) -> None:
    register(client, "kept")
    send(client, reading("a", 31) + reading("b", 32))
    assert len(results(client, 2, name="kept")) == 2
    empty = register(client, "kept", HOT.replace("> 30", "> 31"))
    assert (empty.status_code, empty.json()["backfill"], empty.json()["results"]) == (200, None, 2)
    asked = {"text": HOT.replace("> 30", "> 29"), "backfill": "log"}
    filled = client.put("/queries/kept", json=asked)
    assert filled.status_code == 200 and filled.json()["backfill"] == "log", filled.text
    found = results(client, 2, start=3, name="kept")
    assert {each["bindings"]["s"]["value"] for each in found} >= {f"{EX}a", f"{EX}b"}
    # The same text changes nothing.
    last = client.get("/queries/kept").json()["results"]
    assert client.put("/queries/kept", json=asked).json()["results"] == last
    other = client.put("/queries/new", json={"text": HOT, "backfill": "log"})
    assert other.status_code == 201 and len(results(client, 2, name="new")) == 2
    assert client.put("/queries/new", json={"text": HOT, "backfill": "all"}).status_code == 400
    for name in ("kept", "new"):
        client.delete(f"/queries/{name}")


def test_a_dialect_that_the_text_has_not(client: httpx.Client) -> None:
    wrong = client.put("/queries/dialect", json={"text": HOT, "dialect": "RSP-QL"})
    assert wrong.status_code == 400 and "CQELS-QL" in wrong.json()["detail"]
    assert client.put("/queries/dialect", json={"text": HOT, "dialect": "CQELS-QL"}).status_code == 201
    assert client.delete("/queries/dialect").status_code == 204


def test_the_answer_has_the_number_of_its_last_result(client: httpx.Client) -> None:
    assert client.put("/queries/answer", json={"text": HOT, "changelog": True}).status_code == 201
    assert client.get("/queries/answer/answer").headers["cqels-result"] == "0"
    send(client, reading("a", 31) + reading("b", 32))
    answer = client.get("/queries/answer/answer")
    assert answer.headers["cqels-result"] == "2" and len(answer.json()["results"]["bindings"]) == 2
    client.delete("/queries/answer")


def test_what_a_query_keeps_may_change(client: httpx.Client) -> None:
    assert client.put("/queries/keep", json={"text": HOT, "keep": 10}).json()["keep"]["results"] == 10
    changed = client.put("/queries/keep", json={"text": HOT, "keep": {"bytes": 5000, "age": "1h"}}).json()
    assert changed["keep"] == {"results": None, "bytes": 5000, "age": 3600} and changed["generation"] == 1
    assert client.put("/queries/keep", json={"text": HOT, "keep": 1001}).status_code == 413
    for wrong in (0, True, "x", {}, {"days": 1}, {"bytes": -1}, {"age": "x"}):
        assert client.put("/queries/keep", json={"text": HOT, "keep": wrong}).status_code == 400, wrong
    client.delete("/queries/keep")


def _filled(store: ResultStore, count: int, together: int = 16) -> None:
    for start in range(0, count, together):
        store.add([b'{"number":%d}' % number for number in range(start + 1, start + together + 1)])
        store.flush()


def test_a_store_keeps_bytes_or_ages(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    few = ResultStore(tmp_path / "bytes", Keep(results=1_000_000, bytes=8192))
    _filled(few, 4096)
    kept = sum(path.stat().st_size for path in (tmp_path / "bytes").iterdir())
    assert kept <= 8192 + 8192 // 4 and few.last == 4096
    assert few.read(few.first, 1)[0] == b'{"number":%d}' % few.first
    with pytest.raises(NotKept):
        ResultStore(tmp_path / "bytes", Keep(results=1_000_000)).read(few.first - 1, 1)
    young = ResultStore(tmp_path / "age", Keep(results=1_000_000, age=40))
    now = time.time()
    monkeypatch.setattr("cqels_py.service.result_store.time.time", lambda: now)
    for _ in range(20):
        now += 11
        _filled(young, 16)
    assert young.last == 320 and 1 < young.first <= 320
    many = ResultStore(tmp_path / "number", Keep(results=10))
    _filled(many, 3 * IN_A_FILE)
    assert many.last - many.first + 1 >= 10 and many.first > IN_A_FILE


def test_keep_of_a_request() -> None:
    assert Keep.of(5) == Keep(results=5) and Keep.of(None) is None
    assert Keep.of({"age": "2m"}) == Keep(age=120)
    with pytest.raises(UsageError):
        Keep.of([])


def test_clients_get_definitions_without_secrets() -> None:
    """A definition that comes back as it was shown has them again."""
    source = "https://data.example/events#token=abc&format=nq"
    sinks = ["postgresql://me:secret@host/db#t", "mqtt://broker/rooms?password=x"]
    stream = StreamDefinition.of({"iri": "urn:s", "source": source})
    query = QueryDefinition.of({"text": "ASK {}", "sinks": sinks, "static": ["http://u:pw@host/x.nt"]})
    assert stream.shown()["source"] == "https://data.example/events#token=…&format=nq"
    assert query.shown()["sinks"] == ["postgresql://me:…@host/db#t", "mqtt://broker/rooms?password=…"]
    assert query.shown()["static"] == ["http://u:…@host/x.nt"]
    assert StreamDefinition.of(stream.shown()).with_secrets_of(stream) == stream
    assert QueryDefinition.of(query.shown()).with_secrets_of(query) == query
    other = StreamDefinition.of({"iri": "urn:s", "source": "https://data.example/other#token=…"})
    assert other.with_secrets_of(stream) == other
