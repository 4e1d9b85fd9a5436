"""Requests that no client of good will sends: each is refused, and the server goes on."""

from __future__ import annotations

from collections.abc import Iterator

import httpx
import pytest

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
    assert (answer.status_code, answer.json()["code"]) == (400, "CQ-DATA"), answer.text
    assert [each["name"] for each in client.get("/streams").json()] == ["readings"]
