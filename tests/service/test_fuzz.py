"""Requests that are drawn from the description of the service, and such that break it: no answer is 500, and errors are problems."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st

from cqels_py.sources.documents import FORMATS
from tests.service.support import declare, register, served

schemathesis = pytest.importorskip("schemathesis", reason="pip install schemathesis")

_HOSTILE = [
    b'{"@id": "urn:a", "@context": "http://x/"}',
    b"[" * 5000,
    b'{"a":' * 3000,
    b"<urn:a> <urn:b> _:c <urn:d> .",
]
_EXAMPLES = settings(
    max_examples=10, deadline=None, suppress_health_check=list(HealthCheck), database=None, derandomize=True
)


@pytest.fixture(scope="module")
def client(tmp_path_factory: pytest.TempPathFactory) -> Iterator[httpx.Client]:
    with served(tmp_path_factory.mktemp("fuzzed")) as found:
        declare(found)
        assert register(found).status_code == 201
        yield found


def _check(status: int, kind: str, text: str) -> None:
    assert status != 500, text
    if status >= 400 and status != 404:
        assert kind == "application/problem+json", (status, kind, text)


def test_requests_by_the_description(client: httpx.Client) -> None:
    schema = schemathesis.openapi.from_url(f"{client.base_url}/openapi.json")
    tried = set()
    for found in schema.get_all_operations():
        operation = found.ok()
        if operation.path.endswith("/results"):
            # Those do not end.
            continue
        tried.add((operation.method.upper(), operation.path))

        @_EXAMPLES
        @given(case=operation.as_strategy())
        def draw(case: Any) -> None:
            response = case.call(base_url=str(client.base_url), timeout=60)
            _check(response.status_code, response.headers.get("content-type", [""])[0], response.text)

        draw()
    assert len(tried) > 15
    assert client.get("/livez").status_code == 200


@_EXAMPLES
@given(
    kind=st.sampled_from([*FORMATS, "x/y", ""]),
    body=st.one_of(
        st.binary(max_size=200),
        st.text(max_size=100).map(str.encode),
        st.sampled_from(
            [
                b'{"@id": "urn:a", "@context": "http://x/"}',
                b"[" * 5000,
                b'{"a":' * 3000,
                b"<urn:a> <urn:b> _:c <urn:d> .",
            ]
        ),
    ),
    key=st.one_of(st.none(), st.text("ab~", max_size=300)),
)
def test_bodies_of_elements(client: httpx.Client, kind: str, body: bytes, key: str | None) -> None:
    headers = {"Content-Type": kind} if kind else {}
    if key is not None:
        headers["Idempotency-Key"] = key
    answer = client.post("/streams/readings", content=body, headers=headers)
    _check(answer.status_code, answer.headers["content-type"], answer.text)


@_EXAMPLES
@given(
    start=st.one_of(st.none(), st.text("0123456789-. x\u0663", max_size=25)),
    last=st.one_of(st.none(), st.text("0123456789-x", max_size=25)),
    accept=st.sampled_from(["text/event-stream", "application/x-ndjson", "*/*;q=0", "text/html", ";;,", "text/*;q=x"]),
)
def test_numbers_of_results(client: httpx.Client, start: str | None, last: str | None, accept: str) -> None:
    headers = {"Accept": accept} | ({} if last is None else {"Last-Event-ID": last})
    query = {} if start is None else {"from": start}
    with client.stream("GET", "/queries/hot/results", params=query, headers=headers) as answer:
        if answer.status_code >= 400:
            _check(answer.status_code, answer.headers["content-type"], answer.read().decode())
